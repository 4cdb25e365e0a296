//! The records whose ends have clusters in the same part.

use rustc_hash::FxHashMap;

use super::Vertex;
use crate::base::{NONE, Result, Run, prefetch};
use crate::edges::{EdgeStream, Record};
use crate::exec::blocks;
use crate::partition::EdgeParts;
use crate::sets::incidence::{Incidence, Shared};

/// Records by which data is prefetched ahead.
const AHEAD: usize = 24;

/// Gives them that part, and all others the mark. No part takes more than its first `cap`. Returns the loads,
/// and where the vertices are present. (A vertex whose records in a full part all got the mark counts as
/// present there, which nothing will ask again.)
pub(super) fn agreeing(
    edges: &dyn EdgeStream,
    vertices: &[Vertex],
    parts: &mut EdgeParts,
    k: u32,
    cap: u64,
    run: &Run,
) -> Result<(Vec<u64>, Incidence)> {
    let mut holds = Incidence::new(vertices.len(), k)?;
    let shared = holds.shared();
    run.begin("pre-partitioning", edges.num_edges());
    let mut loads =
        parts.fill(edges, k, run, |records, place, _| agreed(vertices, records, place, &shared))?;
    if loads.iter().any(|&load| load > cap) {
        mark_beyond(cap, parts, run)?;
        loads.iter_mut().for_each(|load| *load = cap.min(*load));
    }
    Ok((loads, holds))
}

/// The part of the record at a place among some: that of the clusters of both ends.
#[inline(always)]
fn agreed(vertices: &[Vertex], records: &[Record], place: usize, holds: &Shared<'_>) -> u32 {
    if let Some(&ahead) = records.get(place + AHEAD) {
        for id in ahead {
            prefetch(vertices, id as usize);
            holds.prefetch(id);
        }
    }
    let [u, v] = records[place];
    let [p, q] = [u, v].map(|id| vertices[id as usize].part);
    if u == v || p != q {
        return NONE;
    }
    holds.insert(u, p);
    holds.insert(v, p);
    p
}

/// Marks the records that come after the first `cap` of their part.
fn mark_beyond(cap: u64, parts: &mut EdgeParts, run: &Run) -> Result<()> {
    let mut seen = FxHashMap::<u32, u64>::default();
    let mut block = Vec::new();
    run.begin("full parts", parts.len());
    for range in blocks(0..parts.len()) {
        let first = range.start;
        parts.read(range, &mut block);
        for part in block.iter_mut().filter(|part| **part != NONE) {
            let seen = seen.entry(*part).or_default();
            *seen += 1;
            if *seen > cap {
                *part = NONE;
            }
        }
        parts.write(first, &block);
        run.advance(block.len() as u64)?;
    }
    Ok(())
}
