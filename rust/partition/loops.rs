//! Parts of the loops of an edge partition.
//!
//! **Rule.** After all other records, in stream order: a loop goes to the part with the fewest records among those below
//! the cap that hold its vertex, else to the part with the fewest records (ties: the lowest). So it makes no replica
//! where it can be helped, and no part exceeds the cap on its account.
//!
//! **Memory.** With the parts of all vertices at hand, nothing. Else a bit per vertex, and the parts of those vertices
//! that have a loop: a row of bits and 4 bytes each.
//!
//! **Complexity.** One pass over the records without the parts of the vertices, and one to place; nothing at all if
//! there are no loops.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::{EdgeParts, edge_parts::DEFERRED};
use crate::edges::{EdgeStream, pass::blocks};
use crate::error::Result;
use crate::incidence::{Incidence, parts};
use crate::run::Run;

/// Gives every loop a part, and counts it in `loads`; the parts of the other records are known. `holds` is where the
/// vertices are present, if the caller knows.
pub fn place(
    edges: &dyn EdgeStream,
    assignment: &mut EdgeParts,
    loads: &mut [u64],
    cap: Option<u64>,
    holds: Option<&mut Incidence>,
    run: &Run,
) -> Result<()> {
    let mut least: BinaryHeap<_> = loads.iter().zip(0..).map(|(&load, part)| Reverse((load, part))).collect();
    match holds {
        Some(holds) => each_loop(edges, assignment, run, |v| {
            let part = choose(holds.row(v), loads, cap, &mut least);
            holds.insert(v, part);
            part
        }),
        None => {
            let (row_of, mut rows) = rows(edges, assignment, loads.len() as u32, run)?;
            each_loop(edges, assignment, run, |v| {
                let row = row_of.get(&v).copied().unwrap_or_default();
                let part = choose(rows.row(row), loads, cap, &mut least);
                rows.insert(row, part);
                part
            })
        }
    }
}

/// The part of a loop whose vertex is present in the parts of `row`.
fn choose(
    row: &[u64],
    loads: &mut [u64],
    cap: Option<u64>,
    least: &mut BinaryHeap<Reverse<(u64, u32)>>,
) -> u32 {
    let room = |&part: &u32| cap.is_none_or(|cap| loads[part as usize] < cap);
    let held = parts(row).filter(room).min_by_key(|&part| loads[part as usize]);
    let part = held.unwrap_or_else(|| {
        // Loads only grow, so an entry that is no longer true is pushed again as it is.
        while let Some(mut top) = least.peek_mut() {
            let Reverse((load, part)) = *top;
            if load == loads[part as usize] {
                return part;
            }
            top.0.0 = loads[part as usize];
        }
        0
    });
    loads[part as usize] += 1;
    part
}

fn each_loop(
    edges: &dyn EdgeStream,
    assignment: &mut EdgeParts,
    run: &Run,
    mut part: impl FnMut(u32) -> u32,
) -> Result<()> {
    let (mut buf, mut found) = (Vec::new(), Vec::new());
    run.begin("loops", edges.num_edges());
    edges.check_unchanged()?;
    for range in blocks(0..edges.num_edges()) {
        let first = range.start;
        let records = edges.block(range, &mut buf)?;
        found.clear();
        found.extend(
            records.iter().zip(first..).filter(|([u, v], _)| u == v).map(|(&[v, _], record)| (record, v)),
        );
        for &(record, v) in &found {
            assignment.write(record, &[part(v)]);
        }
        run.advance(records.len() as u64)?;
    }
    edges.check_unchanged()
}

/// A row for each vertex with a loop, and the parts of its other records.
fn rows(
    edges: &dyn EdgeStream,
    assignment: &EdgeParts,
    k: u32,
    run: &Run,
) -> Result<(FxHashMap<u32, u32>, Incidence)> {
    let (mut buf, mut known) = (Vec::new(), Vec::new());
    let mut row_of = FxHashMap::default();
    run.begin("vertices with loops", 2 * edges.num_edges());
    for range in blocks(0..edges.num_edges()) {
        let records = edges.block(range, &mut buf)?;
        for &[v, _] in records.iter().filter(|[u, v]| u == v) {
            let row = row_of.len() as u32;
            row_of.entry(v).or_insert(row);
        }
        run.advance(records.len() as u64)?;
    }
    // A hash table keeps 1 byte beside each pair, and up to half of its slots free.
    run.require(18 * row_of.len() as u64 + Incidence::memory(row_of.len() as u64, k), "vertices with loops")?;
    let mut rows = Incidence::new(row_of.len(), k)?;
    for range in blocks(0..edges.num_edges()) {
        let parts = assignment.read(range.clone(), &mut known);
        let records = edges.block(range, &mut buf)?;
        for (&[u, v], &part) in
            records.iter().zip(parts).filter(|([u, v], part)| u != v && **part != DEFERRED)
        {
            for row in [u, v].iter().filter_map(|end| row_of.get(end)) {
                rows.insert(*row, part);
            }
        }
        run.advance(records.len() as u64)?;
    }
    Ok((row_of, rows))
}
