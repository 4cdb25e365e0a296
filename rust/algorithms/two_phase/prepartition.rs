//! The records whose ends have clusters in the same part.

use rustc_hash::FxHashMap;

use super::Vertex;
use crate::base::{NONE, Result, Run, prefetch};
use crate::edges::{EdgeStream, Record};
use crate::exec::blocks;
use crate::measure::total;
use crate::partition::EdgeParts;
use crate::sets::incidence::{Incidence, Shared};

/// How many records ahead data is prefetched.
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
    let counts = parts.update(
        edges,
        run,
        || Ok(vec![0_u64; k as usize]),
        |loads, _, records, parts| {
            choose(vertices, records, parts, loads, &shared);
            Ok(())
        },
    )?;
    let mut loads = total(counts, k as usize);
    if loads.iter().any(|&load| load > cap) {
        mark_beyond(cap, parts, run)?;
        loads.iter_mut().for_each(|load| *load = cap.min(*load));
    }
    Ok((loads, holds))
}

fn choose(vertices: &[Vertex], records: &[Record], parts: &mut [u32], loads: &mut [u64], holds: &Shared<'_>) {
    for (index, (&[u, v], part)) in records.iter().zip(parts).enumerate() {
        if let Some(&ahead) = records.get(index + AHEAD) {
            for id in ahead {
                prefetch(vertices, id as usize);
                holds.prefetch(id);
            }
        }
        let [p, q] = [u, v].map(|id| vertices[id as usize].part);
        *part = NONE;
        if u != v && p == q {
            *part = p;
            loads[p as usize] += 1;
            holds.insert(u, p);
            holds.insert(v, p);
        }
    }
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
