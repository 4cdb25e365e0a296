//! The partition of the coarsest graph, by recursive bisection.
//!
//! A bisection *grows* one side from a random vertex, always by the vertex that cuts least, until it has its share; from
//! several seeds; each is refined, and the best by excess and then by cut is taken.
//!
//! **Source.** Greedy graph growing: Karypis and Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning
//! Irregular Graphs", 1998.

use std::collections::BinaryHeap;

use super::balancing::balance;
use super::graph::{Graph, Weight, plus};
use super::refinement::{better, refine};
use super::state::{Quality, State};
use crate::buffer::Buffer;
use crate::error::Result;
use crate::random::{Random, splitmix64};
use crate::run::Run;

/// Sides that are grown for each bisection.
const TRIES: u64 = 10;
/// Moves without an improvement that end a round on so small a graph.
const PATIENCE: usize = 100;

/// Parts of the vertices of `graph`, one for each of `caps`.
pub fn partition(graph: &Graph, caps: &[Weight], seed: u64, run: &Run) -> Result<Buffer<u32>> {
    let mut part_of = Buffer::zeroed(graph.len(), "parts")?;
    split(graph, caps, 0, &(0..graph.len() as u32).collect::<Vec<_>>(), &mut part_of, seed, run)?;
    Ok(part_of)
}

/// Gives the vertices `ids`, which are those of `graph`, parts from `first` on.
fn split(
    graph: &Graph,
    caps: &[Weight],
    first: u32,
    ids: &[u32],
    part_of: &mut [u32],
    seed: u64,
    run: &Run,
) -> Result<()> {
    if caps.len() == 1 {
        ids.iter().for_each(|&v| part_of[v as usize] = first);
        return Ok(());
    }
    let (left, right) = caps.split_at(caps.len().div_ceil(2));
    let side_of = bisect(graph, [sum(left), sum(right)], seed, run)?;
    for (side, (caps, first)) in (0..).zip([(left, first), (right, first + left.len() as u32)]) {
        let (half, places) = graph.induced(&side_of, side)?;
        let ids: Vec<u32> = places.iter().map(|&v| ids[v as usize]).collect();
        split(&half, caps, first, &ids, part_of, splitmix64(seed ^ (u64::from(side) + 1)), run)?;
    }
    Ok(())
}

fn sum(caps: &[Weight]) -> Weight {
    caps.iter().fold([0; 2], |total, &cap| [total[0].saturating_add(cap[0]), total[1].saturating_add(cap[1])])
}

/// The best of several bisections of `graph` under two caps.
pub fn bisect(graph: &Graph, caps: [Weight; 2], seed: u64, run: &Run) -> Result<Buffer<u32>> {
    let mut best: Option<(Quality, Buffer<u32>)> = None;
    for attempt in 0..TRIES {
        let mut random = Random::new(seed, attempt);
        let grown = grow(graph, caps, &mut random)?;
        let mut state = State::new(graph, grown, &caps)?;
        balance(&mut state, run)?;
        refine(&mut state, PATIENCE, random.next_u64(), run)?;
        let quality = state.quality();
        if best.as_ref().is_none_or(|(best, _)| better(quality, *best)) {
            best = Some((quality, state.part_of));
        }
    }
    match best {
        Some((_, side_of)) => Ok(side_of),
        None => Buffer::zeroed(graph.len(), "parts"),
    }
}

/// Side 0 grown from a random vertex until it has its share of the weight.
fn grow(graph: &Graph, caps: [Weight; 2], random: &mut Random) -> Result<Buffer<u32>> {
    let n = graph.len() as u64;
    let mut side_of: Buffer<u32> = Buffer::zeroed(graph.len(), "parts")?;
    side_of.iter_mut().for_each(|side| *side = 1);
    // The share of each bound, in proportion to the caps.
    let total = graph.total();
    let target = [0, 1].map(|bound| {
        let both = caps[0][bound] as f64 + caps[1][bound] as f64;
        if both > 0.0 { total[bound] as f64 * caps[0][bound] as f64 / both } else { 0.0 }
    });
    let mut inside: Buffer<u32> = Buffer::zeroed(graph.len(), "ties to the grown side")?;
    let mut degree: Buffer<i64> = Buffer::zeroed(graph.len(), "weighted degrees")?;
    degree
        .iter_mut()
        .zip(0..)
        .for_each(|(sum, v)| *sum = graph.edges(v).iter().map(|&[_, w]| i64::from(w)).sum());
    let mut queue: BinaryHeap<(i64, u32)> = BinaryHeap::new();
    let mut load = [0; 2];
    let mut next_seed = if n > 0 { random.below(n) } else { 0 };
    let mut unseen = 0;
    while (load[0] as f64) < target[0] && (total[1] == 0 || (load[1] as f64) < target[1].max(1.0)) {
        let v = match queue.pop() {
            Some((gain, v)) => {
                if side_of[v as usize] == 0 || gain != 2 * i64::from(inside[v as usize]) - degree[v as usize]
                {
                    continue;
                }
                v
            }
            // A component is used up: on with another.
            None if unseen < n => {
                unseen += 1;
                let v = next_seed as u32;
                next_seed = (next_seed + 1) % n;
                if side_of[v as usize] == 0 {
                    continue;
                }
                v
            }
            None => break,
        };
        side_of[v as usize] = 0;
        load = plus(load, graph.weight(v));
        for &[u, w] in graph.edges(v) {
            if side_of[u as usize] == 1 {
                inside[u as usize] += w;
                queue.push((2 * i64::from(inside[u as usize]) - degree[u as usize], u));
            }
        }
    }
    Ok(side_of)
}
