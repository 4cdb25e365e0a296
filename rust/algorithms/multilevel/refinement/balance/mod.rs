//! Rebalancing: loads are brought back within their caps, at the least cost for the cut.
//!
//! In a round, vertices of parts above their caps move to the parts that take them at the least loss per
//! overload relief ([`overload`]). The connections of these vertices are counted at the start of the round.
//! If no move helps, two vertices are exchanged ([`swaps`]).
//!
//! **Far from balanced** starts, such as all vertices in one part, would take a while: every move changes the
//! keys of many others. [`deal_surplus`] divides them first.
//!
//! **Parallelism.** Counting and choosing. Moves are made by one thread, which reads no list of neighbours:
//! so machines that store a share of the lists each can all repeat them.

pub(crate) mod bin_packing;
pub mod overload;
mod swaps;
pub(crate) mod vertex_counts;

use super::Refiner;
use crate::algorithms::multilevel::model::{Assignment, Graph, Problem, Quality, Size};
use crate::base::{Result, Run, splitmix64};
use crate::capacity::{Load, fits, plus};
use overload::Relief;
use swaps::exchange;

/// Most rounds.
const ROUNDS: usize = 16;
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
pub struct DealSurplus;

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

/// Rebalances an assignment. `known` has the weight of the edges of some vertices, all of which lead to their
/// own parts.
pub(crate) fn rebalance_knowing<const D: usize>(
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
    let relief = Relief::new(graph, caps);
    let mut is_sampled = true;
    for round in 0..ROUNDS {
        let seed = splitmix64(seed ^ round as u64);
        // After the first moves, they may have other neighbours.
        let known = |v: u32| if round == 0 { known(v) } else { None };
        let shares = relief.shares(assignment, is_sampled);
        let (ranks, histogram) = relief.prices(assignment, graph.here(), (&shares, seed), &known, run)?;
        let histogram = histogram.of_all(graph)?;
        let mut moved = 0;
        let helps = if !histogram.is_empty() {
            let limits = relief.limits(assignment, &histogram);
            let offers = graph.all(relief.offers(assignment, &ranks, &limits, &known, run)?)?;
            drop(ranks);
            moved = relief.commit(assignment, &offers, seed, run)?;
            true
        } else {
            shares.iter().any(|&share| share > 0.0 && share < 1.0) || exchange(graph, assignment, caps, run)?
        };
        // Where a sample has nothing to move, there may be vertices outside.
        is_sampled = moved > 0;
        if !helps || assignment.is_within(caps) {
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
