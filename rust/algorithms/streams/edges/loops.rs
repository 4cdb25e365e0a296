//! Parts of the loops of an edge partition.
//!
//! **Rule.** After all other records, in stream order: a loop goes to the part with the fewest records among
//! those below the cap that hold its vertex, else to the part with the fewest records (ties: the lowest). So
//! it makes a replica only if all parts of its vertex are full, and no part exceeds the cap because of loops.
//!
//! **Memory.** With the parts of all vertices at hand, nothing. Else 1.5 bits per vertex, and a row of bits
//! for each vertex that has a loop.
//!
//! **Complexity.** One pass over the records without the parts of the vertices, and one to place. No work at
//! all if there are no loops.

use crate::base::{Buffer, NONE, Result, Run};
use crate::capacity::LeastLoaded;
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::{in_order, pass};
use crate::partition::{EdgePartition, EdgeParts};
use crate::sets::{Bits, Incidence, ones};

/// The partition with a part for every loop, which counts. The parts of the other records are known. `holds`
/// is where the vertices are present, if the caller knows.
pub(crate) fn place(
    edges: &dyn EdgeStream,
    mut partition: EdgePartition,
    holds: Option<Incidence>,
    run: &Run,
) -> Result<EdgePartition> {
    let EdgePartition { parts: ref mut assignment, ref mut loads, cap, ref graph, .. } = partition;
    if graph.loops == 0 {
        return Ok(partition);
    }
    let mut by_load = LeastLoaded::new(loads.iter().copied());
    match holds {
        Some(mut holds) => each_loop(edges, assignment, run, |v| {
            let part = choose(holds.row(v), &mut by_load, cap);
            holds.insert(v, part);
            part
        })?,
        None => {
            let Rows { bits, before, mut parts } = Rows::of(edges, assignment, loads.len() as u32, run)?;
            each_loop(edges, assignment, run, |v| {
                let row = row(&bits, &before, v).unwrap_or_default();
                let part = choose(parts.row(row), &mut by_load, cap);
                parts.insert(row, part);
                part
            })?;
        }
    }
    *loads = by_load.into_loads();
    Ok(partition)
}

/// The part of a loop whose vertex is present in the parts of `row`.
fn choose(row: &[u64], by_load: &mut LeastLoaded, cap: Option<u64>) -> u32 {
    let has_slack = |&part: &u32| cap.is_none_or(|cap| by_load.load(part) < cap);
    let connected = ones(row).filter(has_slack).min_by_key(|&part| by_load.load(part));
    let part = connected.unwrap_or_else(|| by_load.least());
    by_load.add(part, 1);
    part
}

fn each_loop(
    edges: &dyn EdgeStream,
    assignment: &mut EdgeParts,
    run: &Run,
    mut part: impl FnMut(u32) -> u32,
) -> Result<()> {
    run.begin("loops", edges.num_edges());
    in_order(edges, 0..edges.num_edges(), run, |first, records| {
        for (&[v, _], record) in records.iter().zip(first..).filter(|([u, v], _)| u == v) {
            assignment.write(record, &[part(v)]);
        }
        Ok(())
    })
}

/// The parts of the vertices with a loop.
struct Rows {
    /// The vertices with a loop.
    bits: Bits,
    /// Number of these before each word of the bits: the row of the first.
    before: Buffer<u32>,
    parts: Incidence,
}

impl Rows {
    /// Finds them, and the parts of their other records.
    fn of(edges: &dyn EdgeStream, assignment: &EdgeParts, k: u32, run: &Run) -> Result<Self> {
        let words = edges.num_vertices() as usize / 64 + 1;
        run.require(12 * words as u64, "vertices with loops")?;
        let mut bits = Bits::new(edges.num_vertices(), "vertices with loops")?;
        run.begin("vertices with loops", 2 * edges.num_edges());
        let marks = bits.shared();
        let mark = |(): &mut (), _, records: &[Record]| {
            records.iter().filter(|[u, v]| u == v).for_each(|&[v, _]| marks.insert(v));
            Ok(())
        };
        pass(edges, run, BLOCK, usize::MAX, || Ok(()), mark)?;
        let mut before: Buffer<u32> = Buffer::zeroed(words, "vertices with loops")?;
        let mut count = 0;
        for (before, word) in before.iter_mut().zip(bits.words()) {
            *before = count;
            count += word.count_ones();
        }
        run.require(12 * words as u64 + Incidence::memory(u64::from(count), k), "vertices with loops")?;
        let mut rows = Rows { bits, before, parts: Incidence::new(count as usize, k)? };
        rows.see(edges, assignment, run)?;
        Ok(rows)
    }

    fn see(&mut self, edges: &dyn EdgeStream, assignment: &EdgeParts, run: &Run) -> Result<()> {
        let Self { bits, before, parts } = self;
        let parts = parts.shared();
        let see = |known: &mut Vec<u32>, first: u64, records: &[Record]| {
            let known = assignment.read(first..first + records.len() as u64, known);
            for (&[u, v], &part) in
                records.iter().zip(known).filter(|([u, v], part)| u != v && **part != NONE)
            {
                [u, v]
                    .into_iter()
                    .filter_map(|end| row(bits, before, end))
                    .for_each(|row| parts.insert(row, part));
            }
            Ok(())
        };
        pass(edges, run, BLOCK, usize::MAX, || Ok(Vec::new()), see).map(drop)
    }
}

/// The row of `v`, if it has a loop.
#[inline(always)]
fn row(bits: &Bits, before: &[u32], v: u32) -> Option<u32> {
    bits.contains(v).then(|| before[v as usize / 64] + bits.below(v))
}
