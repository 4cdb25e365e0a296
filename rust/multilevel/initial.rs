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
use super::Scheme;
use super::refinement::{Patience, better, refine};
use super::state::{Quality, State};
use super::array::Array;
use crate::error::Result;
use crate::random::{Random, splitmix64};
use crate::run::Run;

/// Sides that are grown for each bisection.
const TRIES: u64 = 10;
/// Moves without an improvement that end a round on so small a graph.
const PATIENCE: Patience = Patience { moves: 50, rounds: 4 };

/// Parts of the vertices of `graph`, one for each of `caps`.
pub fn partition(scheme: &Scheme, graph: &Graph, caps: &[Weight], seed: u64, run: &Run) -> Result<Array<u32>> {
    if let &[left, right] = caps {
        return bisect(graph, [left, right], seed, run);
    }
    let mut part_of = Array::zeroed(graph.len(), "parts")?;
    let ids = (0..graph.len() as u32).collect::<Vec<_>>();
    split(scheme, graph, caps, 0, &ids, &mut part_of, seed, run)?;
    Ok(part_of)
}

/// Gives the vertices `ids`, which are those of `graph`, parts from `first` on.
fn split(
    scheme: &Scheme,
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
    let sides = sides(graph, left, right);
    let mut best: Option<(Quality, Array<u32>)> = None;
    for attempt in 0..super::env("BTRIES", 1) {
        let rating = scheme.ratings[attempt as usize % scheme.ratings.len()];
        let (side_of, quality) = scheme.cycle(graph, &sides, rating, None, splitmix64(seed ^ attempt << 20), run)?;
        if best.as_ref().is_none_or(|(best, _)| better(quality, *best)) {
            best = Some((quality, side_of));
        }
    }
    let Some((_, side_of)) = best else { return Ok(()) };
    for (side, (caps, first)) in (0..).zip([(left, first), (right, first + left.len() as u32)]) {
        let (half, places) = graph.induced(&side_of, side)?;
        let ids: Vec<u32> = places.iter().map(|&v| ids[v as usize]).collect();
        split(scheme, &half, caps, first, &ids, part_of, splitmix64(seed ^ (u64::from(side) + 1)), run)?;
    }
    Ok(())
}

/// The caps of two sides: all bisections together may use up what the caps leave above the mean, so that each takes its
/// root of it.
fn sides(graph: &Graph, left: &[Weight], right: &[Weight]) -> [Weight; 2] {
    let depth = usize::BITS - (left.len().max(right.len()) - 1).leading_zeros() + 1;
    let (total, both) = (graph.total(), [sum(left), sum(right)]);
    [0, 1].map(|side| {
        [0, 1].map(|bound| {
            let (cap, total) = (both[side][bound] as f64, total[bound] as f64);
            let ratio = (both[0][bound] as f64 + both[1][bound] as f64) / total;
            if total == 0.0 || ratio <= 1.0 {
                return both[side][bound];
            }
            (cap / ratio * libm::pow(ratio, 1.0 / f64::from(depth))).ceil() as u64
        })
    })
}

fn sum(caps: &[Weight]) -> Weight {
    caps.iter().fold([0; 2], |total, &cap| [total[0].saturating_add(cap[0]), total[1].saturating_add(cap[1])])
}

/// The best of several bisections of `graph` under two caps.
fn bisect(graph: &Graph, caps: [Weight; 2], seed: u64, run: &Run) -> Result<Array<u32>> {
    let caps = super::relaxed(graph, &caps, false);
    let caps = [caps[0], caps[1]];
    let mut best: Option<(Quality, Array<u32>)> = None;
    for attempt in 0..super::env("GTRIES", TRIES) {
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
        None => Array::zeroed(graph.len(), "parts"),
    }
}

/// Side 0 grown from a random vertex until it has its share of the weight.
fn grow(graph: &Graph, caps: [Weight; 2], random: &mut Random) -> Result<Array<u32>> {
    let n = graph.len() as u64;
    let mut side_of: Array<u32> = Array::zeroed(graph.len(), "parts")?;
    side_of.iter_mut().for_each(|side| *side = 1);
    // The share of each bound, in proportion to the caps.
    let total = graph.total();
    let target = [0, 1].map(|bound| {
        let both = caps[0][bound] as f64 + caps[1][bound] as f64;
        if both > 0.0 { total[bound] as f64 * caps[0][bound] as f64 / both } else { 0.0 }
    });
    let mut inside: Array<u32> = Array::zeroed(graph.len(), "ties to the grown side")?;
    let mut degree: Array<i64> = Array::zeroed(graph.len(), "weighted degrees")?;
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
