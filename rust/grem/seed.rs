//! The seed partitioner: [`crate::multilevel`] on the graph of one chunk, whose vertices are numbered densely.

use super::entries::Entries;
use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::multilevel::Scheme;
use crate::multilevel::balancing::balance;
use crate::multilevel::coarsening::Rating;
use crate::multilevel::graph::{Builder, Graph, Weight};
use crate::multilevel::refinement::refine;
use crate::multilevel::state::State;
use crate::run::Run;

/// The multilevel partitioner needs room to move, and gets this much beside a part's share of the vertices.
const SLACK: f64 = 1.03;
/// Entries up to which a graph is partitioned with all the care there is, whatever comes after.
const SMALL: usize = 1 << 18;
/// Moves without an improvement that end a round of the local search under the exact caps.
const PATIENCE: usize = 500;

/// Parts of the vertices that have `entries`, in ascending order, at most `caps` of each; `place` is room for a number
/// per vertex of the sub-problem.
pub fn partition(
    entries: Entries,
    place: &mut [u32],
    caps: &[u64],
    thorough: bool,
    seed: u64,
    run: &Run,
) -> Result<Buffer<u32>> {
    let graph = graph(&entries, place, run)?;
    drop(entries);
    let (n, total) = (graph.len() as f64, caps.iter().sum::<u64>() as f64);
    let share = |&cap: &u64| ((n * cap as f64 / total.max(1.0)).ceil() * SLACK).ceil() as u64;
    let loose: Vec<Weight> = caps.iter().map(|cap| [share(cap), 0]).collect();
    let scheme = Scheme { seed, ..scheme(thorough || graph.num_entries() <= SMALL) };
    let (part_of, _) = scheme.partition(&graph, &loose, run)?;
    if loose.iter().zip(caps).all(|(loose, cap)| loose[0] <= *cap) {
        return Ok(part_of);
    }
    let caps: Vec<Weight> = caps.iter().map(|&cap| [cap, 0]).collect();
    let mut state = State::new(&graph, part_of, &caps)?;
    if !balance(&mut state, run)? {
        return Err(Error::Internal("grem: the seed partitioner found no room for some vertex".into()));
    }
    refine(&mut state, PATIENCE, seed, run)?;
    Ok(state.part_of)
}

/// A seed is refined by all later chunks; what is partitioned whole is not.
fn scheme(thorough: bool) -> Scheme {
    if thorough {
        Scheme::default()
    } else {
        Scheme { ratings: vec![Rating::Density], cycles: 0, ..Scheme::default() }
    }
}

fn graph(entries: &Entries, place: &mut [u32], run: &Run) -> Result<Graph> {
    let mut n = 0;
    for (v, _) in entries.vertices() {
        place[v as usize] = n;
        n += 1;
    }
    let mut builder = Builder::new(n as usize, entries.len())?;
    for (index, (_, neighbours)) in entries.vertices().enumerate() {
        let mut last = None;
        for u in neighbours {
            if last == Some(u) {
                builder.thicken();
            } else {
                builder.entry(place[u as usize], 1);
                last = Some(u);
            }
        }
        builder.vertex([1, 0]);
        if index % 4096 == 0 {
            run.advance(0)?;
        }
    }
    Ok(builder.finish())
}
