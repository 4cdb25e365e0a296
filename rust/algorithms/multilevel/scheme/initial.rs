//! The partition of the coarsest graph, by recursive bisection.
//!
//! A bisection *grows* one side from a random vertex, always by the vertex that cuts least, until it has its share.
//! It does so from several seeds and refines each result. It takes the best by excess and then by cut.
//!
//! **Source.** Greedy graph growing: Karypis and Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning
//! Irregular Graphs", 1998.

use std::collections::BinaryHeap;

use super::{Scheme, loosened};
use crate::algorithms::multilevel::balancing::balance;
use crate::algorithms::multilevel::graph::{Graph, Weight};
use crate::algorithms::multilevel::refinement::{Patience, better, refine};
use crate::algorithms::multilevel::state::{Quality, State};
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::random::{Random, splitmix64};
use crate::base::run::Run;
use crate::capacity::bounds::plus;

/// Sides that are grown for each bisection, under one bound and under two.
const TRIES: [u64; 2] = [5, 10];
/// Moves without an improvement that end a round on so small a graph.
const PATIENCE: Patience = Patience { moves: 50, rounds: 4 };

/// Parts of the vertices of `graph`, one for each of `caps`.
pub fn partition(
    scheme: &Scheme,
    graph: &Graph,
    caps: &[Weight],
    seed: u64,
    run: &Run,
) -> Result<Buffer<u32>> {
    if caps.len() == 2 {
        return bisect(graph, caps, seed, run);
    }
    let mut part_of = Buffer::zeroed(graph.len(), "parts")?;
    let ids = (0..graph.len() as u32).collect::<Vec<_>>();
    split(scheme, graph, caps, (0, &ids), &mut part_of, seed, run)?;
    Ok(part_of)
}

/// Gives the vertices `ids`, which are those of `graph`, parts from `first` on.
fn split(
    scheme: &Scheme,
    graph: &Graph,
    caps: &[Weight],
    (first, ids): (u32, &[u32]),
    part_of: &mut [u32],
    seed: u64,
    run: &Run,
) -> Result<()> {
    if caps.len() == 1 {
        return run.each(ids.len(), |i| part_of[ids[i as usize] as usize] = first);
    }
    let (left, right) = caps.split_at(caps.len().div_ceil(2));
    let sides = shares(graph.total(), &[left, right]);
    let (side_of, _) = scheme.cycle(graph, &sides, scheme.first()?, seed, run)?;
    for (side, (caps, first)) in (0..).zip([(left, first), (right, first + left.len() as u32)]) {
        let (half, places) = graph.induced(&side_of, side, run)?;
        let ids: Vec<u32> = places.iter().map(|&v| ids[v as usize]).collect();
        split(scheme, &half, caps, (first, &ids), part_of, splitmix64(seed ^ (u64::from(side) + 1)), run)?;
    }
    Ok(())
}

/// The caps of blocks of parts: all bisections to come together may use up what the caps leave above the mean, so that
/// this one takes its root of it.
pub fn shares(total: Weight, blocks: &[&[Weight]]) -> Vec<Weight> {
    let most = blocks.iter().map(|block| block.len()).max().unwrap_or(1);
    let depth = usize::BITS - (most - 1).leading_zeros() + 1;
    let sums: Vec<Weight> = blocks.iter().map(|caps| sum(caps)).collect();
    let all = [0, 1].map(|bound| sums.iter().map(|cap| cap[bound] as f64).sum::<f64>());
    let share = |cap: &Weight| {
        [0, 1].map(|bound| {
            let ratio = all[bound] / total[bound] as f64;
            if total[bound] == 0 || ratio <= 1.0 {
                return cap[bound];
            }
            let least = cap[bound] as f64 / ratio;
            ((least * libm::pow(ratio, 1.0 / f64::from(depth))).ceil() as u64).min(cap[bound])
        })
    };
    sums.iter().map(share).collect()
}

fn sum(caps: &[Weight]) -> Weight {
    caps.iter().fold([0; 2], |total, &cap| [total[0].saturating_add(cap[0]), total[1].saturating_add(cap[1])])
}

/// The best of several bisections of `graph` under two caps.
fn bisect(graph: &Graph, caps: &[Weight], seed: u64, run: &Run) -> Result<Buffer<u32>> {
    let caps = loosened(graph, caps);
    let mut best: Option<(Quality, Buffer<u32>)> = None;
    for attempt in 0..TRIES[usize::from(graph.total()[1] > 0)] {
        let mut random = Random::new(seed, attempt);
        let grown = grow(graph, &caps, &mut random, run)?;
        let mut state = State::new(graph, grown, &caps, run)?;
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
fn grow(graph: &Graph, caps: &[Weight], random: &mut Random, run: &Run) -> Result<Buffer<u32>> {
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
    let mut queue: BinaryHeap<(i64, u32)> = BinaryHeap::new();
    let mut load = [0; 2];
    let mut next_seed = if n > 0 { random.below(n) } else { 0 };
    let (mut unseen, mut work) = (0, 0);
    while (load[0] as f64) < target[0] && (total[1] == 0 || (load[1] as f64) < target[1].max(1.0)) {
        work += 1;
        if work > 1 << 16 {
            work = 0;
            run.check()?;
        }
        let v = match queue.pop() {
            Some((gain, v)) => {
                if side_of[v as usize] == 0
                    || gain != 2 * i64::from(inside[v as usize]) - i64::from(graph.volume(v))
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
        work += graph.degree(v);
        for &[u, w] in graph.edges(v) {
            if side_of[u as usize] == 1 {
                inside[u as usize] += w;
                queue.push((2 * i64::from(inside[u as usize]) - i64::from(graph.volume(u)), u));
            }
        }
    }
    Ok(side_of)
}
