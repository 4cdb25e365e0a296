//! The amount of work for a partition, and rounds of improvement that go on as long as they pay.
//!
//! Two kinds of rounds alternate. One is a *V-cycle*: the best partition is coarsened and uncoarsened again.
//! The other makes a further partition with another seed and combines it with the best. Rounds end when one
//! round has gained too little, or two in a row if the caller gives a number of rounds or a time limit
//! ([`Patience`]). A time limit only ends them earlier, between two rounds. So a run with the same number of
//! rounds gives the same result: its patience is at least as long.
//!
//! **Source.** Walshaw, "Multilevel Refinement for Combinatorial Optimisation Problems", 2004 (V-cycles);
//! Sanders and Schulz, "Distributed Evolutionary Graph Partitioning", ALENEX 2012 (combination).

use std::time::{Duration, Instant};

use super::{Problem, Scheme, Solution};
use crate::base::{Error, Result, splitmix64};

/// Most rounds that may be asked for.
pub(crate) const MOST_ROUNDS: u32 = 1 << 20;
/// Rounds without any other limit.
const ROUNDS: u64 = 16;

/// Rounds in a row that gain less than a share of the cut before the rounds end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    rounds: u64,
    gain: f64,
}

impl Patience {
    /// For runs without a limit. They take a third of the time of the best partitioners elsewhere.
    const SHORT: Self = Self { rounds: 1, gain: 0.015 };
    /// For runs with a limit on rounds or time.
    pub(crate) const LONG: Self = Self { rounds: 2, gain: 0.005 };
}

/// The amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// One attempt, and hardly any refinement.
    Fast,
    /// Few attempts, and little refinement.
    Quick,
    /// Several attempts on the middle levels.
    #[default]
    Default,
    /// As `Default`, and then rounds of improvement.
    Best {
        /// Most rounds.
        rounds: Option<u64>,
        /// No further round begins later.
        time_limit: Option<Duration>,
    },
}

impl Effort {
    /// The best effort within these limits.
    pub(crate) fn best(rounds: Option<u32>, time_limit: Option<f64>) -> Result<Self> {
        let limit = time_limit.map(|seconds| {
            Duration::try_from_secs_f64(seconds).map_err(|_| {
                let what = format!("{seconds} seconds. Use a number of seconds of at least 0");
                Error::parameter("time_limit", what)
            })
        });
        Ok(Self::Best { rounds: rounds.map(u64::from), time_limit: limit.transpose()? })
    }

    /// Whether little work is asked for.
    pub fn is_little(self) -> bool {
        matches!(self, Effort::Fast | Effort::Quick)
    }

    /// Most rounds.
    pub fn rounds(self) -> u64 {
        if let Effort::Best { rounds, .. } = self { rounds.unwrap_or(ROUNDS) } else { 0 }
    }

    /// This effort without rounds.
    pub fn without_rounds(self) -> Self {
        if let Effort::Best { .. } = self { Effort::Default } else { self }
    }

    fn patience(self) -> Patience {
        let is_open = matches!(self, Effort::Best { rounds: None, time_limit: None });
        if is_open { Patience::SHORT } else { Patience::LONG }
    }

    /// Whether another round may follow after this number of rounds.
    pub fn goes_on(self, rounds: u64, ends: Option<Instant>) -> bool {
        rounds < self.rounds() && ends.is_none_or(|ends| Instant::now() < ends)
    }

    /// The moment after which no further round begins.
    pub fn ends(self) -> Option<Instant> {
        match self {
            Effort::Best { time_limit: Some(limit), .. } => Instant::now().checked_add(limit),
            _ => None,
        }
    }
}

/// The best partition so far, and how many rounds in a row have gained too little.
pub(crate) struct Progress {
    /// The best so far.
    pub best: Solution,
    /// Rounds so far.
    pub rounds: u64,
    idle: u64,
    patience: Patience,
}

impl Progress {
    /// The progress after the first partition.
    pub(crate) fn new(best: Solution, patience: Patience) -> Self {
        Self { best, rounds: 0, idle: 0, patience }
    }

    /// Whether the last rounds paid.
    pub(crate) fn goes_on(&self) -> bool {
        self.idle < self.patience.rounds
    }

    /// Counts a round, and keeps what it found if that is better.
    pub(crate) fn take(&mut self, next: Solution) {
        let before = self.best.1;
        if next.1.beats(before) {
            self.best = next;
        }
        let now = self.best.1;
        let gain = before.cut.saturating_sub(now.cut) as f64;
        let gains = now.excess < before.excess || gain > before.cut as f64 * self.patience.gain;
        self.idle = if gains { 0 } else { self.idle + 1 };
        self.rounds += 1;
    }
}

impl Scheme {
    /// A partition for each problem, improved in rounds, and the number of rounds. A round improves all
    /// partitions that still gain.
    pub fn in_rounds<const D: usize>(&self, problems: &[Problem<D>]) -> Result<(Vec<Solution>, u64)> {
        let ends = self.effort.ends();
        let units = self.units / (problems.len() as u64 * (self.effort.rounds() + 1));
        let scheme = Self { units, ..self.clone() };
        let mut all = Vec::new();
        for problem in problems {
            all.push((problem, Progress::new(scheme.multilevel(problem)?, self.effort.patience())));
        }
        let mut rounds = 0;
        while self.effort.goes_on(rounds, ends) && all.iter().any(|(_, one)| one.goes_on()) {
            for (problem, one) in all.iter_mut().filter(|(_, one)| one.goes_on()) {
                let next = scheme.round(problem, &one.best, one.rounds)?;
                one.take(next);
            }
            rounds += 1;
        }
        let done: u64 = all.iter().map(|(_, one)| one.rounds + 1).sum();
        problems.iter().take(1).try_for_each(|problem| problem.run.advance(self.units - units * done))?;
        Ok((all.into_iter().map(|(_, one)| one.best).collect(), rounds))
    }

    /// One round of improvement.
    fn round<const D: usize>(&self, problem: &Problem<D>, best: &Solution, round: u64) -> Result<Solution> {
        let seed = splitmix64(problem.seed ^ splitmix64(round + 1));
        let rating = self.first()?;
        let rating = if round % 4 < 2 { rating } else { rating.opposite() };
        if round.is_multiple_of(2) {
            return self.v_cycle(problem, rating, [&best.0, &best.0], seed);
        }
        let other = self.multilevel(&Problem { seed, ..*problem })?;
        let [one, other] = if other.1.beats(best.1) { [&other.0, &best.0] } else { [&best.0, &other.0] };
        self.combine(problem, rating, [one, other], seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::multilevel::model::Quality;
    use crate::base::Buffer;

    #[test]
    fn the_best_is_kept_and_patience_ends() {
        let of = |cut| (Buffer::zeroed(0, "parts").unwrap(), Quality { excess: 0.0, cut });
        for (patience, cuts, rounds) in
            [(Patience::SHORT, [900, 890, 0, 0], 2), (Patience::LONG, [990, 2000, 989, 0], 3)]
        {
            let mut progress = Progress::new(of(1000), patience);
            for cut in cuts {
                if progress.goes_on() {
                    progress.take(of(cut));
                }
            }
            let least = cuts.into_iter().take(rounds as usize).min();
            assert_eq!((progress.rounds, Some(progress.best.1.cut)), (rounds, least));
        }
    }
}
