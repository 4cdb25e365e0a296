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

use super::assignment::{Assignment, BySlack, Connections, Quality};
use super::exchange::exchange;
use super::graph::Graph;
use super::moves::{Moves, OrderedF64};
use super::problem::Problem;
use super::refiner::{Refiner, Size};
use crate::base::{Result, Run, splitmix64};
use crate::capacity::{Load, excess, fits, minus, plus, relative};

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
    rebalance_knowing(graph, assignment, caps, seed, &|_| None, run)
}

/// The same, where the weight of the edges of some vertices is known, all of which lead to their own parts.
pub(super) fn rebalance_knowing<const D: usize>(
    graph: &Graph<D>,
    assignment: &mut Assignment<D>,
    caps: &[Load<D>],
    seed: u64,
    known: &(dyn Fn(u32) -> Option<u32> + Sync),
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
        // After the first moves, they may have other neighbours.
        let known = |v: u32| if round == 0 { known(v) } else { None };
        let moved = rebalancing.round(assignment, splitmix64(seed ^ round as u64), &known, run)?;
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
        if assignment.loads[own][0] <= caps[own][0] || is_heavy || !graph.may_move(v) {
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
    fn round(
        &self,
        assignment: &mut Assignment<D>,
        seed: u64,
        known: &(dyn Fn(u32) -> Option<u32> + Sync),
        run: &Run,
    ) -> Result<bool> {
        let over: Vec<bool> =
            assignment.loads.iter().zip(self.caps).map(|(&load, &cap)| !fits(load, cap)).collect();
        let mut by_slack = assignment.by_slack(&self.tight);
        let mut moves = Moves::of(
            self.graph,
            &mut vec![(); self.graph.len()],
            Some(seed),
            run,
            || Connections::new(assignment),
            |connections, v, ()| {
                let is_over = over[assignment.part(v) as usize];
                let best = is_over.then(|| self.best(assignment, connections, v, &by_slack, known(v)));
                best.flatten().map(|best| best.0)
            },
        )?;
        let (mut connections, mut moved) = (Connections::new(assignment)?, false);
        while let Some((OrderedF64(key), v)) = moves.next()? {
            let own = assignment.part(v) as usize;
            if fits(assignment.loads[own], self.caps[own]) {
                continue;
            }
            let weight = self.graph.weight(v);
            by_slack.skip(|part| !fits(plus(assignment.loads[part], weight), self.caps[part]));
            moves.work += self.graph.degree(v);
            match self.best(assignment, &mut connections, v, &by_slack, None) {
                Some((now, _)) if now.0 > key + key.abs() * STALE + 1e-9 => moves.push(now, v),
                Some((_, to)) => {
                    assignment.shift(v, weight, to);
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
        by_slack: &BySlack,
        known: Option<u32>,
    ) -> Option<(OrderedF64, u32)> {
        let (own, weight) = (assignment.part(v), self.graph.weight(v));
        let over_tight = |part: u32, load: Load<D>| excess(load, self.tight[part as usize]);
        let home = assignment.loads[own as usize];
        let leave = over_tight(own, home) - over_tight(own, minus(home, weight));
        if leave <= 1e-12 {
            return None;
        }
        match known {
            Some(home) => connections.only(own, home),
            None => connections.count(self.graph, assignment, v),
        }
        let mut best: Option<(OrderedF64, u32)> = None;
        let emptiest = by_slack.iter().take(EMPTIEST).map(|part| (part, connections.to(part)));
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
            if best.is_none_or(|(least, _)| key < least.0) {
                best = Some((OrderedF64(key), part));
            }
        }
        best
    }
}
