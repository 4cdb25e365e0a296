//! Parts that most vertices keep: the steps of an update.
//!
//! **Requirements.** The neighbours of every vertex, in memory or mapped, and a part for each vertex that had
//! one.
//!
//! **Memory.** Beside that of [`rounds`](super::rounds), 16 bytes per vertex.
//!
//! **Algorithm.** The *budget* says how many of the vertices that had a part may get another.
//! 1. With fewer parts than before, some are dissolved: small ones with few edges inside. The last parts take
//!    their numbers.
//! 2. Vertices without a part go where their neighbours are, in groups if there are many
//!    ([`vertex_groups`](super::vertex_groups)).
//! 3. Empty parts grow by the vertices that the caps need, and further as far as half the budget permits.
//! 4. In each step, groups move that gain, and then single vertices ([`rounds`](super::rounds)). A vertex
//!    that leaves its old part pays a migration penalty ([`Migration`]) beside the edges it cuts. The penalty
//!    falls from step to step. The best cut within the budget is taken. If too many vertices leave, those
//!    that gain least return, and no further step follows.
//!
//! Caps come first: vertices move as far as the caps need it, even if that exceeds the budget. The budget is
//! then raised to that number, and by up to an eighth of it more.
//!
//! **Parallelism.** Refinement and clustering run in parallel. Groups are placed one by one.
//!
//! **Complexity.** O(n + m) for each iteration of Jet.
//!
//! **Figures.** The last 5 % of the edges of a random order arrive (com-dblp, cit-hep-ph, a planted graph of
//! 2^18 vertices; 4, 8 and 32 parts): the cut is 0.975 to 1.032 of one from scratch, and 0.7 to 5 % of the
//! vertices move.

use std::sync::Arc;

use super::rounds::{begin, improve};
use super::scheme::Effort;
use super::vertex_groups::{PartialAssignment, VertexGroups};
use crate::algorithms::multilevel::coarsening::{Clusterer, Clustering, Rating};
use crate::algorithms::multilevel::model::{Connections, Migration, Problem, Solution, copied};
use crate::algorithms::multilevel::refinement::{Moves, refined};
use crate::base::{Buffer, NONE, Result, splitmix64};
use crate::capacity::{Load, fits, plus};

/// The migration penalty in each step, in edges of mean weight.
const PENALTIES: [u32; 4] = [8, 1, 0, 0];
/// Rounds of refinement with each price.
const ROUNDS: Effort = Effort::Best { rounds: Some(2), time_limit: None };
/// Minimum number of groups in a part, and rounds of label propagation to find them.
const GROUPS_PER_PART: u64 = 64;
const LABEL_ROUNDS: u32 = 8;
/// 1/MORE of the moves that the caps need is allowed in addition, up to the budget.
const MORE: u64 = 8;
/// Passes over the vertices that may return to their old parts.
const RETURNS: u32 = 4;

/// The old parts of an update, which most vertices keep.
#[derive(Clone, Copy)]
pub(crate) struct OldParts<'a> {
    /// The part that each vertex had, or `NONE`. Vertices of dissolved parts have none.
    pub part_of: &'a Arc<Buffer<u32>>,
    /// Vertices of dissolved parts.
    pub gone: u64,
    /// Number of vertices that may move, unless the bounds need more moves.
    pub allowed: u64,
}

/// Parts of the vertices, of which most stay, and the number of rounds.
pub(crate) fn solve<const D: usize>(problem: &Problem<D>, old_parts: OldParts) -> Result<(Buffer<u32>, u64)> {
    let graph = problem.graph;
    let unit = (graph.edge_weight() / graph.num_entries().max(1)).clamp(1, 1 << 24) as u32;
    Updating { old_parts, unit, problem: *problem }.solve()
}

/// Vertices with a part.
pub(crate) fn count(parts: &[u32]) -> u64 {
    parts.iter().filter(|&&part| part != NONE).count() as u64
}

/// The state that all steps of an update use.
struct Updating<'a, const D: usize> {
    old_parts: OldParts<'a>,
    /// The problem without migration penalties.
    problem: Problem<'a, D>,
    /// The mean weight of an edge.
    unit: u32,
}

impl<const D: usize> Updating<'_, D> {
    fn solve(self) -> Result<(Buffer<u32>, u64)> {
        let start = self.placed()?;
        let migration = self.migration(PENALTIES[0]);
        let mut state = begin(&Problem { migration: migration.as_ref(), ..self.problem }, &start)?;
        drop(start);
        let (needed, budget) = (self.moved(&state.0), self.old_parts.allowed);
        let allowed = budget.max(needed + budget.min(needed / MORE));
        let (mut best, mut rounds) = (judged(&self.problem, &state.0)?, 0);
        for (step, price) in (0..).zip(PENALTIES) {
            let migration = self.migration(price);
            let priced = Problem { migration: migration.as_ref(), ..self.problem };
            let grouped = self.regrouped(&priced, state, splitmix64(priced.seed ^ step))?;
            let (next, more) = improve(&priced, grouped, ROUNDS.into())?;
            rounds += more;
            let too_many = self.moved(&next.0) > allowed;
            state = next;
            let within =
                if too_many { self.returned(&state.0, allowed)? } else { judged(&self.problem, &state.0)? };
            if self.moved(&within.0) <= allowed && within.1.beats(best.1) {
                best = within;
            }
            if too_many {
                break;
            }
        }
        Ok((best.0, rounds))
    }

    fn migration(&self, price: u32) -> Option<Migration> {
        Migration::new(self.old_parts.part_of, count(self.old_parts.part_of), price * self.unit)
    }

    /// Number of vertices whose part is not their old one.
    fn moved(&self, parts: &[u32]) -> u64 {
        let left = self.old_parts.part_of.iter().zip(parts).filter(|&(&old, &new)| old != NONE && old != new);
        self.old_parts.gone + left.count() as u64
    }

    /// The parts after moves of groups of vertices that gain, if that is better.
    fn regrouped(&self, problem: &Problem<D>, (part_of, _): Solution, seed: u64) -> Result<Solution> {
        let &Problem { graph, caps, migration, run, .. } = problem;
        let assignment = problem.assignment(copied(&part_of)?)?;
        let (before, loads) = (problem.quality(&assignment)?, assignment.loads);
        let before = (assignment.part_of, before);
        let groups = VertexGroups::new(graph, self.clusters(&part_of, seed)?, run)?;
        let mut parts = PartialAssignment { part_of, loads };
        groups.improve_greedily(&mut parts, caps, migration)?;
        let after = judged(problem, &parts.part_of)?;
        Ok(if after.1.beats(before.1) { after } else { before })
    }

    /// Clusters of the vertices, each within one part.
    fn clusters(&self, part_of: &[u32], seed: u64) -> Result<Clustering> {
        let Problem { graph, caps, run, .. } = self.problem;
        let cap = graph.total().map(|total| total.div_ceil(caps.len() as u64 * GROUPS_PER_PART));
        let clusterer = Clusterer { rating: Rating::Weight, cap, rounds: LABEL_ROUNDS, seed };
        clusterer.cluster(graph, Some(part_of), run)
    }

    /// A part for each vertex: the old one, where it has one and no empty part needs it.
    fn placed(&self) -> Result<Buffer<u32>> {
        let Problem { graph, caps, run, seed, .. } = self.problem;
        let mut part_of = copied(self.old_parts.part_of)?;
        graph.place_fixed(&mut part_of, run)?;
        let (mut loads, mut unplaced) = (vec![[0; D]; caps.len()], 0);
        let mut is_new = vec![true; caps.len()];
        run.each(graph.len(), |v| match part_of[v as usize] {
            NONE => unplaced += 1,
            part => {
                loads[part as usize] = plus(loads[part as usize], graph.weight(v));
                is_new[part as usize] = false;
            }
        })?;
        // A graph without any placed vertex has no part to grow from.
        let used = is_new.iter().rposition(|is_new| !is_new).map_or(caps.len(), |last| last + 1);
        let new: Vec<u32> = (0..caps.len() as u32).filter(|&part| is_new[part as usize]).collect();
        if unplaced == 0 && new.is_empty() {
            return Ok(part_of);
        }
        let few = graph.len() as u64 / (caps.len() as u64 * GROUPS_PER_PART);
        let clustering = if new.is_empty() && unplaced <= few || used == new.len() {
            Clustering::singletons(graph.len(), run)?
        } else {
            self.clusters(&part_of, seed)?
        };
        let groups = VertexGroups::new(graph, clustering, run)?;
        let mut parts = PartialAssignment { part_of, loads };
        let wide = |cap: u64| (cap as f64 * caps.len() as f64 / used as f64).ceil() as u64;
        let wide: Vec<Load<D>> = caps[..used].iter().map(|cap| cap.map(wide)).collect();
        groups.place(&mut parts, &wide)?;
        for (index, &part) in new.iter().enumerate() {
            let surplus = self.surplus(&parts.loads, (new.len() - index) as u64);
            groups.grow(
                &mut parts,
                &surplus,
                (part, caps[part as usize]),
                self.old_parts.part_of,
                splitmix64(seed ^ u64::from(part)),
            )?;
        }
        Ok(parts.part_of)
    }

    /// Number of vertices that each part can spare for the first of `empty` empty parts.
    fn surplus(&self, loads: &[Load<D>], empty: u64) -> Vec<u64> {
        let above = |level: u64| loads.iter().map(move |load| load[0].saturating_sub(level));
        let cap = self.problem.caps.iter().map(|cap| cap[0]).max().unwrap_or(0);
        let permitted = (self.old_parts.allowed / 2).max(above(cap).sum());
        let (mut low, mut high) = (self.problem.graph.len() as u64 / loads.len() as u64, cap);
        while low < high {
            let middle = low + (high - low) / 2;
            if above(middle).sum::<u64>() <= permitted { high = middle } else { low = middle + 1 }
        }
        above(high).map(|surplus| surplus.div_ceil(empty)).collect()
    }

    /// The parts after enough vertices have returned to their old parts to leave `allowed` moves. Vertices
    /// that gain least return first.
    fn returned(&self, parts: &[u32], allowed: u64) -> Result<Solution> {
        let Problem { graph, caps, run, .. } = self.problem;
        let mut assignment = self.problem.assignment(copied(parts)?)?;
        let mut left = self.moved(parts).saturating_sub(allowed);
        for _ in 0..RETURNS {
            let loss = |connections: &mut Connections, v: u32, (): &mut ()| {
                let (old, own) = (self.old_parts.part_of[v as usize], assignment.part(v));
                (old != NONE && old != own).then(|| {
                    connections.count(graph, &assignment, v);
                    i64::from(connections.to(own)) - i64::from(connections.to(old))
                })
            };
            let scratch = || Connections::new(&assignment);
            let mut moves = Moves::of(graph, &mut vec![(); graph.len()], None, run, scratch, loss)?;
            let before = left;
            while let (Some((_, v)), 1..) = (moves.next()?, left) {
                let (to, weight) = (self.old_parts.part_of[v as usize], graph.weight(v));
                if fits(plus(assignment.loads[to as usize], weight), caps[to as usize]) {
                    assignment.shift(v, weight, to);
                    left -= 1;
                }
            }
            if left == 0 || left == before {
                break;
            }
        }
        let quality = self.problem.quality(&assignment)?;
        Ok((assignment.part_of, quality))
    }
}

/// Parts, and their quality.
fn judged<const D: usize>(problem: &Problem<D>, parts: &[u32]) -> Result<Solution> {
    refined(&[], problem, copied(parts)?, 0)
}
