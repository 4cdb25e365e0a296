//! How much work a partition is worth, and rounds of improvement that go on as long as they pay.
//!
//! A round makes a further partition with another seed and crosses it with the best, or takes the best down and up
//! again (a *V-cycle*), in turns. It ends when [`PATIENCE`] rounds in a row have gained nothing worth it. A limit on
//! the time only ends it earlier, between two rounds: so the number of rounds stands for the result.
//!
//! **Source.** Walshaw, "Multilevel Refinement for Combinatorial Optimisation Problems", 2004 (V-cycles); Sanders and
//! Schulz, "Distributed Evolutionary Graph Partitioning", ALENEX 2012 (crossing).

use std::time::{Duration, Instant};

use super::{Descent, Scheme, Solution};
use crate::algorithms::multilevel::graph::Graph;
use crate::base::{Buffer, Result, Run, splitmix64};
use crate::capacity::Load;

/// Rounds in a row that may gain less than [`LEAST_GAIN`].
const PATIENCE: u64 = 2;
/// The share of the cut that is worth a round.
const LEAST_GAIN: f64 = 0.005;
/// Rounds without any other limit.
pub const ROUNDS: u64 = 16;

/// How much work to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// One attempt, and little refinement.
    Quick,
    /// Several attempts on the middle levels.
    #[default]
    Default,
    /// The same, then rounds of improvement.
    Best {
        /// Rounds at most.
        rounds: u64,
        /// No further round begins later.
        time_limit: Option<Duration>,
    },
}

impl Effort {
    /// Rounds at most.
    pub fn rounds(self) -> u64 {
        if let Effort::Best { rounds, .. } = self { rounds } else { 0 }
    }

    fn ends(self) -> Option<Instant> {
        match self {
            Effort::Best { time_limit: Some(limit), .. } => Instant::now().checked_add(limit),
            _ => None,
        }
    }
}

impl Scheme {
    /// A partition, improved in rounds; returns their number, too.
    pub(super) fn in_rounds<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        run: &Run,
    ) -> Result<(Solution, u64)> {
        let ends = self.effort.ends();
        let units = self.units / (self.effort.rounds() + 1);
        let scheme = Self { units, ..self.clone() };
        let mut best = scheme.multilevel(graph, caps, run)?;
        let (mut rounds, mut idle) = (0, 0);
        while rounds < self.effort.rounds()
            && idle < PATIENCE
            && ends.is_none_or(|ends| Instant::now() < ends)
        {
            let before = best.1;
            let next = scheme.round(graph, caps, &best, rounds, run)?;
            if next.1.beats(best.1) {
                best = next;
            }
            rounds += 1;
            let gain = before.cut.saturating_sub(best.1.cut) as f64;
            let gains = best.1.excess < before.excess || gain > before.cut as f64 * LEAST_GAIN;
            idle = if gains { 0 } else { idle + 1 };
        }
        run.advance(self.units - units * (rounds + 1))?;
        Ok((best, rounds))
    }

    /// One round of improvement.
    fn round<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        best: &Solution,
        round: u64,
        run: &Run,
    ) -> Result<Solution> {
        let seed = splitmix64(self.seed ^ splitmix64(round + 1));
        let rating = self.first()?;
        let rating = if round % 4 < 2 { rating } else { rating.opposite() };
        if round.is_multiple_of(2) {
            let mut cells = Buffer::zeroed(graph.len(), "cells")?;
            cells.copy_from_slice(&best.0);
            let descent = Descent { rating, entries: 0, seed, units: 0, cells: Some(cells) };
            let again = self.again(graph, caps, descent, &best.0, run)?;
            return run.advance(self.units).map(|()| again);
        }
        let other = Self { seed, ..self.clone() };
        let other = other.multilevel(graph, caps, run)?;
        let [one, other] = if other.1.beats(best.1) { [&other.0, &best.0] } else { [&best.0, &other.0] };
        self.cross(graph, caps, rating, [one, other], seed, run)
    }
}
