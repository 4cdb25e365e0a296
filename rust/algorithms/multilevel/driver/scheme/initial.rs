//! The partition of the coarsest graph, by recursive bisection.
//!
//! A bisection *grows* one side from a random vertex, always by the vertex that cuts least, until it has its
//! share. It does so from several seeds and refines each result. It takes the best by excess and then by cut.
//! Vertices that are fixed to that side are in it from the beginning, and those of the other side never.
//!
//! **Source.** Greedy graph growing: Karypis and Kumar, "A Fast and High Quality Multilevel Scheme for
//! Partitioning Irregular Graphs", 1998.

use std::collections::BinaryHeap;

use super::{Problem, Scheme};
use crate::algorithms::multilevel::driver::uncoarsening::loosened;
use crate::algorithms::multilevel::model::{Graph, Quality};
use crate::algorithms::multilevel::refinement::fm::{Limits, refine};
use crate::algorithms::multilevel::refinement::{GainTable, rebalance};
use crate::base::{Buffer, Random, Result, Run, splitmix64};
use crate::capacity::{Load, plus};
use crate::exec::side_by_side;

/// Sides that are grown for each bisection under several bounds.
const BISECTIONS_UNDER_BOUNDS: u64 = 10;
/// Parts from which on bisections are refined less, and the iterations of Jet on each level.
const MANY: usize = 64;
const HASTY: u32 = 3;
/// Moves without an improvement that end a round on so small a graph.
const LIMITS: Limits = Limits { moves: 50, rounds: 4 };

/// Parts of the vertices.
pub(crate) fn partition<const D: usize>(
    scheme: &Scheme,
    problem: &Problem<D>,
    seed: u64,
) -> Result<Buffer<u32>> {
    let k = problem.caps.len();
    if k == 2 {
        let tries = if D > 1 { BISECTIONS_UNDER_BOUNDS } else { scheme.bisections };
        return bisect(problem, tries, seed);
    }
    // If there are many bisections, long refinement of each gains little beside its cost.
    let iterations = if k > MANY { scheme.iterations.min(HASTY) } else { scheme.iterations };
    split(&Scheme { iterations, ..scheme.clone() }, problem, seed)
}

/// Partitions the graph into groups of parts, and each group by itself. There are two groups. With many parts
/// there are about as many groups as parts in each group. Then all edges are partitioned twice, instead of
/// once for each doubling of the parts.
fn split<const D: usize>(scheme: &Scheme, problem: &Problem<D>, seed: u64) -> Result<Buffer<u32>> {
    let &Problem { graph, caps, run, .. } = problem;
    if caps.len() < 2 {
        return Buffer::zeroed(graph.len(), "parts");
    }
    let groups = if caps.len() > MANY { caps.len().isqrt() } else { 2 };
    let size = caps.len().div_ceil(groups);
    let groups: Vec<&[Load<D>]> = caps.chunks(size).collect();
    let sides = shares(graph.total(), &groups);
    let graph_of_groups = graph.for_groups(|part| part / size as u32, run)?;
    let of_groups = Problem { graph: &graph_of_groups, caps: &sides, ..*problem };
    let (mut part_of, _) = scheme.cycle(&of_groups, scheme.first()?, seed)?;
    let part_of_group = |(group, caps): (usize, &&[Load<D>])| {
        let (induced, ids) = graph.induced(&part_of, group as u32, (group * size) as u32, run)?;
        let seed = splitmix64(seed ^ (group as u64 + 1));
        let part_of = split(scheme, &Problem { graph: &induced, caps, ..*problem }, seed)?;
        Ok((part_of, ids))
    };
    let parts = side_by_side(run, groups.iter().enumerate(), part_of_group);
    let mut first = 0;
    for (part_of_group, caps) in parts.into_iter().zip(&groups) {
        let (part_of_group, ids) = part_of_group?;
        run.each(ids.len(), |i| part_of[ids[i as usize] as usize] = first + part_of_group[i as usize])?;
        first += caps.len() as u32;
    }
    Ok(part_of)
}

/// The caps of groups of parts. All bisections to come together may use up the slack of the caps above the
/// mean. This one takes its root of the ratio.
pub(crate) fn shares<const D: usize>(total: Load<D>, groups: &[&[Load<D>]]) -> Vec<Load<D>> {
    let most = groups.iter().map(|group| group.len()).max().unwrap_or(1);
    let depth = usize::BITS - (most - 1).leading_zeros() + 1;
    let sums: Vec<Load<D>> = groups.iter().map(|caps| sum(caps)).collect();
    let all: [f64; D] = std::array::from_fn(|bound| sums.iter().map(|cap| cap[bound] as f64).sum());
    let share = |cap: &Load<D>| {
        std::array::from_fn(|bound| {
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

/// The caps of all parts together.
pub(crate) fn sum<const D: usize>(caps: &[Load<D>]) -> Load<D> {
    caps.iter().fold([0; D], |total, cap| std::array::from_fn(|i| total[i].saturating_add(cap[i])))
}

/// The best of several bisections under two caps.
fn bisect<const D: usize>(problem: &Problem<D>, tries: u64, seed: u64) -> Result<Buffer<u32>> {
    let &Problem { graph, run, .. } = problem;
    let caps = loosened(graph, problem.caps);
    let mut best: Option<(Quality, Buffer<u32>)> = None;
    for attempt in 0..tries {
        let mut random = Random::new(seed, attempt);
        let grown = grow(graph, &caps, &mut random, run)?;
        let mut assignment = problem.assignment(grown)?;
        rebalance(graph, &mut assignment, &caps, seed, run)?;
        let mut table = GainTable::new(graph, &mut assignment, &caps, run)?;
        refine(&mut table, LIMITS, random.next_u64(), run)?;
        let quality = table.quality();
        if best.as_ref().is_none_or(|(best, _)| quality.beats(*best)) {
            best = Some((quality, assignment.part_of));
        }
    }
    match best {
        Some((_, side_of)) => Ok(side_of),
        None => Buffer::zeroed(graph.len(), "parts"),
    }
}

/// Side 0 grown from its fixed vertices, or from a random vertex, until it has its share of the weight.
fn grow<const D: usize>(
    graph: &Graph<D>,
    caps: &[Load<D>],
    random: &mut Random,
    run: &Run,
) -> Result<Buffer<u32>> {
    let n = graph.len() as u64;
    let mut side_of: Buffer<u32> = Buffer::zeroed(graph.len(), "parts")?;
    side_of.iter_mut().for_each(|side| *side = 1);
    // The share of each bound, in proportion to the caps.
    let total = graph.total();
    let target: [f64; D] = std::array::from_fn(|bound| {
        let both = caps[0][bound] as f64 + caps[1][bound] as f64;
        if both > 0.0 { total[bound] as f64 * caps[0][bound] as f64 / both } else { 0.0 }
    });
    let volumes: Vec<u32> = (0..graph.len() as u32).map(|v| graph.volume(v)).collect();
    let mut inside: Buffer<u32> = Buffer::zeroed(graph.len(), "connections to the grown side")?;
    let mut queue: BinaryHeap<(i64, u32)> = BinaryHeap::new();
    let mut load = [0; D];
    let mut next_seed = if n > 0 { random.below(n) } else { 0 };
    let (mut unseen, mut work) = (0, 0);
    let mut fixed: Vec<u32> = (0..graph.len() as u32).rev().filter(|&v| graph.fixed(v) == 0).collect();
    let is_full = |load: Load<D>| (0..D).any(|i| total[i] > 0 && load[i] as f64 >= target[i].max(1.0));
    loop {
        work += 1;
        if work > 1 << 16 {
            work = 0;
            run.check()?;
        }
        let v = match fixed.pop() {
            Some(v) => v,
            None if is_full(load) => break,
            None => match queue.pop() {
                Some((gain, v)) => {
                    if gain != 2 * i64::from(inside[v as usize]) - i64::from(volumes[v as usize]) {
                        continue;
                    }
                    v
                }
                // A component is used up: on with another.
                None if unseen < n => {
                    unseen += 1;
                    let v = next_seed as u32;
                    next_seed = (next_seed + 1) % n;
                    v
                }
                None => break,
            },
        };
        if side_of[v as usize] == 0 || graph.fixed(v) == 1 {
            continue;
        }
        side_of[v as usize] = 0;
        load = plus(load, graph.weight(v));
        work += graph.degree(v);
        graph.each(v, |u, w| {
            if side_of[u as usize] == 1 {
                inside[u as usize] += w;
                queue.push((2 * i64::from(inside[u as usize]) - i64::from(volumes[u as usize]), u));
            }
        });
    }
    Ok(side_of)
}
