//! Greedy passes: vertices that gain move into parts that keep their caps, the largest gain first.
//!
//! Each gain is computed again before the move. So a start always changes if a single move within the caps
//! improves it, whatever the bounds are.
//!
//! **Parallelism.** The search for vertices that gain.

use std::cmp::Reverse;

use super::Refiner;
use super::move_queue::Moves;
use crate::algorithms::multilevel::model::{Assignment, Connections, Problem, Quality, Size};
use crate::base::{NONE, Result};
use crate::capacity::{fits, plus};

/// Most passes. Another pass pays if at least one vertex in `FEW` moves.
const PASSES: u32 = 8;
const FEW: u64 = 1000;

/// Greedy passes.
pub struct Greedy;

impl<const D: usize> Refiner<D> for Greedy {
    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        problem.improve_greedily(assignment).map(|()| None)
    }

    /// The moves, as they are found and sorted.
    fn memory(&self, size: &Size) -> u64 {
        24 * size.n
    }
}

impl<const D: usize> Problem<'_, D> {
    /// Moves vertices that gain into parts that keep their caps.
    fn improve_greedily(&self, assignment: &mut Assignment<D>) -> Result<()> {
        let Problem { graph, run, .. } = *self;
        let mut connections = Connections::new(assignment)?;
        for _ in 0..PASSES {
            let mut moves = Moves::of(
                graph,
                &mut vec![(); graph.len()],
                None,
                run,
                || Connections::new(assignment),
                |connections, v, ()| self.gain(assignment, connections, v).map(|(gain, _)| Reverse(gain)),
            )?;
            let mut moved = 0_u64;
            while let Some((_, v)) = moves.next()? {
                moves.work += graph.degree(v);
                if let Some((_, to)) = self.gain(assignment, &mut connections, v) {
                    assignment.shift(v, graph.weight(v), to);
                    moved += 1;
                }
            }
            if moved == 0 || moved * FEW < graph.len() as u64 {
                break;
            }
        }
        Ok(())
    }

    /// The part with slack to which `v` has the strongest connection, and the gain of moving there.
    #[inline(always)]
    fn gain(&self, assignment: &Assignment<D>, connections: &mut Connections, v: u32) -> Option<(u32, u32)> {
        connections.count(self.graph, assignment, v);
        let (own, weight) = (assignment.part(v), self.graph.weight(v));
        let home = connections.to(own);
        let (mut best, mut most) = (NONE, home);
        for (part, w) in connections.iter() {
            let has_slack = || fits(plus(assignment.loads[part as usize], weight), self.caps[part as usize]);
            if w > most && has_slack() {
                (best, most) = (part, w);
            }
        }
        (best != NONE).then_some((most - home, best))
    }
}
