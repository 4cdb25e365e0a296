//! Refinement for the halo, which is the communication volume of a partition.
//!
//! The *halo* of a partition is the sum over all vertices of their connectivity: the number of parts that
//! hold a copy of the vertex, its own part and those of its neighbours. Divided by n it is the halo
//! replication factor. A cut edge costs nothing more where its ends are copied already, so the partition with
//! the fewest cut edges is not the one with the fewest copies. It is a good start, though.
//!
//! The *gain* of a move counts copies of the vertex and of its neighbours. A neighbour gives up its copy in
//! the part that is left if the vertex was its only neighbour there and the neighbour belongs to another
//! part. It gets a copy in the target part if it had no neighbour there and belongs to another part
//! ([`Connectivity`]). Edges that are no longer cut count too, but much less: most moves change no copy at
//! once, and those that join neighbours prepare the ones that do.
//!
//! An iteration has three steps.
//! 1. For every vertex that did not move in the iteration before: the part in which it has neighbours that
//!    gains most, among those that stay below the cap plus some slack.
//! 2. These moves are made by descending gain. Each is made only if it is no loss after those before it.
//! 3. Vertices leave parts above their caps, by the least loss per overload relief ([`HaloRebalancing`]). If
//!    that does not help, [`rebalance`] moves vertices by the cut.
//!
//! The best state found is the result, so the halo never grows. As in [`jet`](super::jet), the slack is what
//! helps: full parts can exchange vertices. The moves back under the caps must count the halo as well. If
//! they are chosen by the cut, they undo most of what was gained.
//!
//! **Requirements.** The lists of the graph ascend. Weights of edges do not count.
//!
//! **Parallelism.** The first step and the first look of the third. Moves are made one by one, in an order
//! that does not depend on the threads.
//!
//! **Figures.** On 17 real graphs and 4, 8 and 32 parts (balance 1.03, one seed), the halo is 0.969, 0.946
//! and 0.912 of that of the partition it starts with, in the geometric mean. The cut is 1.06 to 1.09 of it.
//!
//! **Memory.** 44 bytes per vertex beside the [`Connectivity`], and 12 per part and thread.
//!
//! **Complexity.** An iteration takes O(s) per entry, where s is the number of parts around the neighbour, or
//! around the vertex if that is less.
//!
//! **Source.** The objective is the communication volume of Hendrickson and Kolda, "Graph Partitioning Models
//! for Parallel Computing", Parallel Computing 2000, and of METIS (`objtype=vol`).

use super::Refiner;
use super::balance::rebalance;
use super::move_queue::{Moves, OrderedF64};
use crate::algorithms::multilevel::model::{
    Assignment, Connectivity, Graph, Problem, Quality, Size, with_slack,
};
use crate::base::{Buffer, NONE, Result, Run, splitmix64};
use crate::capacity::{Load, excess, fits, minus, plus};
use crate::sets::{Bits, SparseSums};

/// Most iterations.
const ITERATIONS: u32 = 16;
/// Iterations in a row that may gain less than [`LEAST_GAIN`].
const PATIENCE: u32 = 3;
/// The least gain of an iteration that pays, as a share of the halo.
const LEAST_GAIN: f64 = 0.0005;
/// The share by which parts may exceed their caps during an iteration.
const SLACK: f64 = 0.1;
/// Edges that a copy is worth.
const EDGES_PER_COPY: i64 = 16;

/// Lowers the halo of an assignment, within the caps if it was.
pub struct Halo;

impl<const D: usize> Refiner<D> for Halo {
    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        refine(problem, assignment).map(Some)
    }

    /// The connectivity, targets, moves and the best parts.
    fn memory(&self, &Size { n, entries, k, .. }: &Size) -> u64 {
        Connectivity::memory(n, entries, k).saturating_add(44 * n).saturating_add(96 * k)
    }
}

/// Lowers the halo. Returns the quality, which counts copies.
fn refine<const D: usize>(problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Quality> {
    let &Problem { graph, caps, seed, run, .. } = problem;
    let n = graph.len();
    let each = graph.num_entries() + n as u64;
    run.begin("halo", u64::from(ITERATIONS) * each);
    let mut search = HaloSearch {
        graph,
        caps,
        slack: with_slack(caps, SLACK),
        connectivity: Connectivity::new(graph, &assignment.part_of, caps.len(), run)?,
        targets: Buffer::zeroed(n, "targets of vertices")?,
        locked: Bits::new(n as u64, "vertices that moved")?,
    };
    let state = |assignment: &Assignment<D>, halo: u64| (assignment.excess(caps), halo);
    let mut best = state(assignment, search.connectivity.halo());
    let mut best_parts: Buffer<u32> = Buffer::zeroed(n, "best parts")?;
    best_parts.copy_from_slice(&assignment.part_of);
    let mut best_loads = assignment.loads.clone();
    let mut impatience = 0;
    for iteration in 0..ITERATIONS {
        let seed = splitmix64(seed ^ u64::from(iteration));
        let moves = search.propose(assignment, seed, run)?;
        let moved = search.approve(assignment, moves)?;
        search.rebalance(assignment, seed, run)?;
        run.advance(each)?;
        let now = state(assignment, search.connectivity.halo());
        let paid = now.0 < best.0 || (now.1 as f64) < best.1 as f64 * (1.0 - LEAST_GAIN);
        if now < best {
            best = now;
            best_parts.copy_from_slice(&assignment.part_of);
            best_loads.clone_from(&assignment.loads);
        }
        impatience = if paid { 0 } else { impatience + 1 };
        if moved == 0 || impatience > PATIENCE {
            run.advance(u64::from(ITERATIONS - 1 - iteration) * each)?;
            break;
        }
    }
    assignment.part_of = best_parts;
    assignment.loads = best_loads;
    Ok(Quality { excess: best.0, cut: best.1 })
}

struct HaloSearch<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    caps: &'a [Load<D>],
    /// Caps and slack.
    slack: Vec<Load<D>>,
    connectivity: Connectivity,
    /// The target part of each vertex, or [`NONE`].
    targets: Buffer<u32>,
    /// Vertices that moved in the last iteration.
    locked: Bits,
}

impl<const D: usize> HaloSearch<'_, D> {
    /// Finds the target part of every vertex. Returns the moves, the best first.
    fn propose<'r>(&mut self, assignment: &Assignment<D>, seed: u64, run: &'r Run) -> Result<Moves<'r, i64>> {
        let HaloSearch { graph, slack, connectivity, locked, targets, .. } = self;
        let fullness = assignment.fullness(self.caps);
        let scratch = || SparseSums::new(self.caps.len() as u32);
        Moves::of(graph, targets, Some(seed), run, scratch, |copies, v, target| {
            *target = NONE;
            let own = assignment.part(v);
            if locked.contains(v) || !connectivity.on_boundary(v, own) {
                return None;
            }
            let weight = graph.weight(v);
            let mut most = 0;
            for (part, gain) in connectivity.gains(graph, &assignment.part_of, v, copies) {
                let gain = worth(connectivity, v, [own, part], gain);
                let emptier = || *target != NONE && fullness[part as usize] < fullness[*target as usize];
                if (gain > most || gain == most && emptier())
                    && fits(plus(assignment.loads[part as usize], weight), slack[part as usize])
                {
                    (*target, most) = (part, gain);
                }
            }
            (*target != NONE).then_some(-most)
        })
    }

    /// Makes the moves that are no loss after those before them. Returns the number of moves.
    fn approve(&mut self, assignment: &mut Assignment<D>, mut moves: Moves<i64>) -> Result<usize> {
        self.locked.clear();
        let mut moved = 0;
        while let Some((_, v)) = moves.next()? {
            let (own, to, weight) = (assignment.part(v), self.targets[v as usize], self.graph.weight(v));
            if !fits(plus(assignment.loads[to as usize], weight), self.slack[to as usize]) {
                continue;
            }
            moves.work += self.graph.degree(v);
            let gain = self.connectivity.gain(self.graph, &assignment.part_of, v, to);
            if worth(&self.connectivity, v, [own, to], gain) >= 0 {
                self.connectivity.shift(self.graph, v, [own, to], gain);
                assignment.shift(v, weight, to);
                self.locked.insert(v);
                moved += 1;
            }
        }
        Ok(moved)
    }

    /// Brings the loads back within the caps.
    fn rebalance(&mut self, assignment: &mut Assignment<D>, seed: u64, run: &Run) -> Result<()> {
        if assignment.is_within(self.caps) {
            return Ok(());
        }
        HaloRebalancing { graph: self.graph, caps: self.caps, connectivity: &mut self.connectivity }
            .find(assignment, seed, run)?;
        if !assignment.is_within(self.caps) {
            rebalance(self.graph, assignment, self.caps, seed, run)?;
            self.connectivity.count(self.graph, &assignment.part_of, self.caps.len(), run)?;
        }
        Ok(())
    }
}

/// The worth in edges of a move that saves `gain` copies.
#[inline(always)]
fn worth(connectivity: &Connectivity, v: u32, [from, to]: [u32; 2], gain: i64) -> i64 {
    let joined =
        i64::from(connectivity.neighbours_in(v, to)) - i64::from(connectivity.neighbours_in(v, from));
    EDGES_PER_COPY * gain + joined
}

/// Moves out of parts above their caps, into parts that keep theirs.
struct HaloRebalancing<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    caps: &'a [Load<D>],
    connectivity: &'a mut Connectivity,
}

impl<const D: usize> HaloRebalancing<'_, D> {
    /// Makes moves until all caps hold, or none is left.
    fn find(&mut self, assignment: &mut Assignment<D>, seed: u64, run: &Run) -> Result<()> {
        let (k, mut by_slack) = (self.caps.len() as u32, assignment.by_slack(self.caps));
        let first = by_slack.iter().next().unwrap_or(0);
        let mut moves = Moves::of(
            self.graph,
            &mut vec![(); self.graph.len()],
            Some(seed),
            run,
            || SparseSums::new(k),
            |copies, v, ()| self.best(assignment, copies, v, first).map(|(key, _)| key),
        )?;
        let mut copies = SparseSums::new(k)?;
        while let Some((key, v)) = moves.next()? {
            by_slack.skip(|part| !self.has_slack(assignment, v, part as u32));
            moves.work += self.graph.degree(v);
            match self.best(assignment, &mut copies, v, by_slack.iter().next().unwrap_or(0)) {
                Some((now, _)) if now > key => moves.push(now, v),
                Some((_, to)) => {
                    let gain = self.connectivity.gain(self.graph, &assignment.part_of, v, to);
                    self.connectivity.shift(self.graph, v, [assignment.part(v), to], gain);
                    assignment.shift(v, self.graph.weight(v), to);
                }
                None => {}
            }
        }
        Ok(())
    }

    fn has_slack(&self, assignment: &Assignment<D>, v: u32, part: u32) -> bool {
        fits(plus(assignment.loads[part as usize], self.graph.weight(v)), self.caps[part as usize])
    }

    /// The part with slack that takes `v` at the least loss per relief, and this loss. `None` if moving `v`
    /// relieves nothing. The parts of its neighbours are tried, and the emptiest part.
    fn best(
        &self,
        assignment: &Assignment<D>,
        copies: &mut SparseSums<u32>,
        v: u32,
        emptiest: u32,
    ) -> Option<(OrderedF64, u32)> {
        let (own, weight) = (assignment.part(v), self.graph.weight(v));
        let (load, cap) = (assignment.loads[own as usize], self.caps[own as usize]);
        if fits(load, cap) {
            return None;
        }
        let relief = excess(load, cap) - excess(minus(load, weight), cap);
        if relief <= 1e-12 {
            return None;
        }
        let mut best: Option<(OrderedF64, u32)> = None;
        let mut offer = |part: u32, gain: i64| {
            let loss = -worth(self.connectivity, v, [own, part], gain) as f64;
            let key = OrderedF64(if loss >= 0.0 { (loss + 1e-3) / relief } else { loss * relief });
            if best.is_none_or(|(least, _)| key < least) && self.has_slack(assignment, v, part) {
                best = Some((key, part));
            }
        };
        for (part, gain) in self.connectivity.gains(self.graph, &assignment.part_of, v, copies) {
            offer(part, gain);
        }
        if emptiest != own && self.connectivity.neighbours_in(v, emptiest) == 0 {
            offer(emptiest, self.connectivity.gain(self.graph, &assignment.part_of, v, emptiest));
        }
        best
    }
}
