//! Rebalancing: loads are brought back within their caps, at the least cost for the cut.
//!
//! In a round, each vertex of a part above a cap names the part that takes it at the least loss per *relief*.
//! These moves are sorted and made in order, until no part is above its caps. Before a move is made its key
//! is computed again. If that has become worse, the move is queued again.
//!
//! **Overload relief**, or relief for short, is how much a move lowers the excess of both parts together. It
//! is measured against *tight* caps, which lie a fifth of the way from the cap to the mean. Only parts above
//! the real caps lose vertices, though. Measured against the real caps, a part slightly over in volume would
//! be stuck beside parts that are full in vertices. Then a hub would relieve only the small remainder, and
//! cost a whole vertex.
//!
//! If no move helps, two vertices are exchanged ([`exchange`](super::exchange)).
//!
//! **Far from balanced** starts, such as all vertices in one part, would take a while: every move changes the
//! keys of many others. [`deal_surplus`] divides them first.
//!
//! **Parallelism.** Naming the moves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::assignment::{Assignment, Connections, Quality};
use super::exchange::exchange;
use super::graph::Graph;
use super::problem::Problem;
use super::refiner::{Refiner, Size};
use crate::base::{Result, Run, splitmix64};
use crate::capacity::{Load, excess, fits, minus, plus, relative};
use crate::exec::{propose, scratches};

/// Rounds at most.
const ROUNDS: usize = 12;
/// Exchanges at most. Each looks at all vertices.
const EXCHANGES: usize = 16;
/// How far the tight cap lies from the cap to the mean.
const TIGHTNESS: f64 = 0.2;
/// The weight of a rise of the target's excess over its tight cap, if the target keeps its real cap.
const WITHIN: f64 = 0.25;
/// The least relief of a move, as a share of the relief of leaving alone: into parts above their caps, and
/// others.
const LEAST_RELIEF: [f64; 2] = [0.3, 0.1];
/// By which share of its key a move may have become worse since it was sorted. Every move changes the loads,
/// and so the keys of all others, by a little.
const STALE: f64 = 0.05;
/// Parts with the most slack that are tried beside those with a connection.
const EMPTIEST: usize = 4;

/// The share of the vertices that must lie above the caps for them to be dealt.
const SURPLUS: f64 = 0.25;
/// A vertex is not dealt if this many times its weight exceeds a cap.
const HEAVY: u64 = 16;

/// A number in the order of [`f64::total_cmp`], such as a loss per relief.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct OrderedF64(pub f64);
impl Eq for OrderedF64 {}
impl PartialOrd for OrderedF64 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OrderedF64 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A move in the order in which moves are made: its loss per relief, a random tie-break, and the vertex.
type QueueEntry = (OrderedF64, u32, u32);

/// Brings loads back within their caps.
pub struct Rebalance;

impl<const D: usize> Refiner<D> for Rebalance {
    fn applies(&self, problem: &Problem<D>, assignment: &Assignment<D>) -> bool {
        !assignment.is_within(problem.caps)
    }

    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        rebalance(problem.graph, assignment, problem.caps, problem.seed, problem.run).map(|()| None)
    }

    /// The moves, as they are found and sorted.
    fn memory(&self, size: &Size) -> u64 {
        40 * size.n
    }
}

/// Deals the surplus of starts that are far from balanced. See [`deal_surplus`].
pub(crate) struct DealSurplus;

impl<const D: usize> Refiner<D> for DealSurplus {
    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        deal_surplus(problem.graph, assignment, problem.caps, problem.run).map(|()| None)
    }

    fn memory(&self, _: &Size) -> u64 {
        0
    }
}

/// Moves vertices until all caps hold, or nothing helps any more.
pub(crate) fn rebalance<const D: usize>(
    graph: &Graph<D>,
    assignment: &mut Assignment<D>,
    caps: &[Load<D>],
    seed: u64,
    run: &Run,
) -> Result<()> {
    if assignment.is_within(caps) || caps.len() < 2 {
        return Ok(());
    }
    let all = caps.iter().fold([0.0; D], |sum, cap| std::array::from_fn(|i| sum[i] + cap[i] as f64));
    let tight = caps.iter().map(|cap| {
        std::array::from_fn(|i| {
            let (cap, mean) = (cap[i] as f64, cap[i] as f64 / all[i].max(1.0) * graph.total()[i] as f64);
            (cap - (cap - mean.ceil()).max(0.0) * TIGHTNESS) as u64
        })
    });
    let rebalancing = Rebalancing { graph, caps, tight: tight.collect() };
    let mut exchanges = 0;
    for round in 0..ROUNDS {
        let moved = rebalancing.round(assignment, splitmix64(seed ^ round as u64), run)?;
        while !moved && exchanges < EXCHANGES && exchange(graph, assignment, caps, run)? {
            exchanges += 1;
        }
        if assignment.is_within(caps) || !moved && exchanges == 0 {
            break;
        }
    }
    Ok(())
}

/// Deals the vertices above the cap on vertices to parts with slack, if they are a large share of all.
/// Vertices with neighbouring ids stay together, since they often belong together.
fn deal_surplus<const D: usize>(
    graph: &Graph<D>,
    assignment: &mut Assignment<D>,
    caps: &[Load<D>],
    run: &Run,
) -> Result<()> {
    let surplus = |(load, cap): (&Load<D>, &Load<D>)| load[0].saturating_sub(cap[0]);
    let surplus: u64 = assignment.loads.iter().zip(caps).map(surplus).sum();
    if surplus as f64 <= SURPLUS * graph.total()[0] as f64 {
        return Ok(());
    }
    let mut next = 0;
    run.each(graph.len(), |v| {
        let (own, weight) = (assignment.part(v) as usize, graph.weight(v));
        // A heavy vertex would leave parts behind that could take many others.
        let is_heavy = !fits(weight.map(|weight| HEAVY.saturating_mul(weight)), caps[own]);
        if assignment.loads[own][0] <= caps[own][0] || is_heavy {
            return;
        }
        while next < caps.len() && !fits(plus(assignment.loads[next], weight), caps[next]) {
            next += 1;
        }
        if next < caps.len() {
            assignment.shift(v, weight, next as u32);
        }
    })
}

struct Rebalancing<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    caps: &'a [Load<D>],
    tight: Vec<Load<D>>,
}

impl<const D: usize> Rebalancing<'_, D> {
    /// One round. Returns whether anything moved.
    fn round(&self, assignment: &mut Assignment<D>, seed: u64, run: &Run) -> Result<bool> {
        let k = self.caps.len();
        let over: Vec<bool> =
            assignment.loads.iter().zip(self.caps).map(|(&load, &cap)| !fits(load, cap)).collect();
        let by_slack = assignment.by_slack(&self.tight);
        let scratch = || Ok((Connections::new(k), Vec::new()));
        let mut moves = scratches(run, self.graph.num_entries(), scratch)?;
        let mut nothing: Vec<()> = vec![(); self.graph.len()];
        let ranges = self.graph.ranges(0..self.graph.len() as u32);
        propose(&mut moves, ranges, &mut nothing, run, |(connections, moves), v, ()| {
            if over[assignment.part(v) as usize]
                && let Some((key, _)) = self.best(assignment, connections, v, &by_slack)
            {
                moves.push((OrderedF64(key), splitmix64(seed ^ u64::from(v)) as u32, v));
            }
        })?;
        let mut connections = Connections::new(k);
        let mut moves: Vec<QueueEntry> = moves.into_iter().flat_map(|(_, moves)| moves).collect();
        run.install(|| moves.par_sort_unstable());
        let mut moves = moves.into_iter().peekable();
        let mut waiting: BinaryHeap<Reverse<QueueEntry>> = BinaryHeap::new();
        let (mut emptiest, mut moved, mut looks) = (&by_slack[..], false, 0_usize);
        loop {
            let sorted_first = match (moves.peek(), waiting.peek()) {
                (Some(next), Some(Reverse(waits))) => next < waits,
                (next, _) => next.is_some(),
            };
            let next = if sorted_first { moves.next() } else { waiting.pop().map(|Reverse(entry)| entry) };
            let Some((OrderedF64(key), tie_break, v)) = next else { break };
            looks += 1;
            if looks % 256 == 0 {
                run.check()?;
            }
            let own = assignment.part(v) as usize;
            if fits(assignment.loads[own], self.caps[own]) {
                continue;
            }
            // Parts that have filled up are replaced by the next ones with slack.
            while let [first, rest @ ..] = emptiest
                && !rest.is_empty()
                && !fits(
                    plus(assignment.loads[*first as usize], self.graph.weight(v)),
                    self.caps[*first as usize],
                )
            {
                emptiest = rest;
            }
            match self.best(assignment, &mut connections, v, emptiest) {
                Some((now, _)) if now > key + key.abs() * STALE + 1e-9 => {
                    waiting.push(Reverse((OrderedF64(now), tie_break, v)));
                }
                Some((_, to)) => {
                    assignment.shift(v, self.graph.weight(v), to);
                    moved = true;
                }
                None => {}
            }
        }
        Ok(moved)
    }

    /// The part that takes `v` at the least loss per relief, and this loss.
    fn best(
        &self,
        assignment: &Assignment<D>,
        connections: &mut Connections,
        v: u32,
        by_slack: &[u32],
    ) -> Option<(f64, u32)> {
        let (own, weight) = (assignment.part(v), self.graph.weight(v));
        let over_tight = |part: u32, load: Load<D>| excess(load, self.tight[part as usize]);
        let home = assignment.loads[own as usize];
        let leave = over_tight(own, home) - over_tight(own, minus(home, weight));
        if leave <= 1e-12 {
            return None;
        }
        connections.count(self.graph, assignment, v);
        let mut best: Option<(f64, u32)> = None;
        let emptiest = by_slack.iter().take(EMPTIEST).map(|&part| (part, connections.to(part)));
        for (part, w) in connections.iter().chain(emptiest).filter(|&(part, _)| part != own) {
            let load = assignment.loads[part as usize];
            let after = plus(load, weight);
            let within = fits(after, self.caps[part as usize]);
            let rise = over_tight(part, after) - over_tight(part, load);
            let relief = leave - if within { WITHIN * rise } else { rise };
            if relief <= leave * LEAST_RELIEF[usize::from(within)] {
                continue;
            }
            let loss = f64::from(connections.to(own)) - f64::from(w);
            // Where nothing is lost or gained, the emptier part has more to offer later.
            let fullness = 1e-3 * relative(load, self.caps[part as usize]).min(100.0);
            let key =
                if loss >= 0.0 { (loss + 1e-3 + fullness) / relief } else { (loss + fullness) * relief };
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, part));
            }
        }
        best
    }
}
