//! Rounds of refinement of a given partition of the vertices.
//!
//! **Requirements.** The neighbours of every vertex, in memory or mapped, and a part for each vertex.
//!
//! **Memory.** [`memory`]: beside the adjacency 72 bytes per vertex, and 8 more per further bound, however
//! many edges there are. This holds the parts, the best parts so far, and the memory of [`Jet`] and
//! [`Rebalance`]. With the communication volume as objective, the memory of [`refinement::halo`] is needed
//! instead. Each thread beyond the first takes 1 MB and 16 bytes per part.
//!
//! **Algorithm.** A start that breaks a bound is rebalanced first. If it is far from balanced, its surplus is
//! dealt out before. Then come rounds. Each begins with the best partition so far and has two steps.
//! 1. Bounded Jet. Slack and lenience alternate between a small and a large one. Where a small slack finds
//!    nothing more, a large one often does: whole groups of vertices change places.
//! 2. *Greedy passes* ([`Greedy`]): vertices that gain move, the largest gain first, if the target part keeps
//!    its caps.
//!
//! If the objective is the communication volume, the halo is refined ([`refinement::halo`]): in even rounds
//! directly, in odd rounds after Jet. If parts are on machines, an edge between machines costs more than
//! others ([`Prices`](super::super::model::Prices)).
//!
//! The result of a round is kept if it exceeds the caps less, or by the same amount and is better by the
//! objective. So a start within its bounds never gets worse. Rounds end by the same rules as in
//! [`effort`](super::scheme::effort).
//!
//! **Parallelism.** Jet and rebalancing run in parallel, and so does the search for vertices that gain. Moves
//! are made one by one, in an order that does not depend on the threads.
//!
//! **Complexity.** O(n + m) per iteration of Jet, at most eight of them in a round.
//!
//! **Figures.** On 17 real graphs and 4, 8 and 32 parts, the cut is 0.33, 0.41 and 0.60 of SPRING's in the
//! geometric mean, 0.71, 0.74 and 0.83 of GREM's, 0.66, 0.73 and 0.81 of SIGMA's under both its bounds, and
//! 0.93, 0.93 and 0.96 of METIS's (16 graphs). Where all rounds have the same slack and lenience, the cut is
//! 2 to 6 % larger. It took at most 47 bytes per vertex beside the parts to start with (n = 2^21, 8 parts,
//! all vertices initially in one of them).
//!
//! **Source.** See [`refinement::jet`].

use super::scheme::effort::{Effort, Patience, Progress};
use crate::algorithms::multilevel::model::{Objective, Problem, Size, Solution, copied};
use crate::algorithms::multilevel::refinement;
use crate::algorithms::multilevel::refinement::{DealSurplus, Fill, Greedy, Jet, Rebalance, Refiners, apply};
use crate::base::{Buffer, Result, splitmix64};

/// Iterations of Jet in a round.
const ITERATIONS: u32 = 8;
/// See [`Jet::patience`].
const PATIENCE: u32 = 2;
/// The freedom of Jet in a round: see [`Jet::slack`] and [`Jet::lenience`].
struct Freedom {
    slack: f64,
    lenience: f64,
}
/// In rounds of even numbers.
const LITTLE: Freedom = Freedom { slack: 0.1, lenience: 0.25 };
/// In rounds of odd numbers.
const MUCH: Freedom = Freedom { slack: 0.3, lenience: 0.75 };

/// How to refine in rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    /// Number of rounds, and their time limit.
    pub effort: Effort,
    /// Whether lists are read in the order of the vertices only. A round has no greedy passes then.
    pub in_order: bool,
}

impl From<Effort> for Rounds {
    fn from(effort: Effort) -> Self {
        Self { effort, in_order: false }
    }
}

/// Bytes beside the adjacency: the given parts, the best parts, those at hand, and the refiners.
pub(crate) fn memory(objective: Objective, size: &Size) -> u64 {
    let refiners = [brought_within::<1>(), searches(objective, true, 0.0, false), finish(objective)];
    let most = refiners.iter().map(|list| refinement::memory(list, size)).max().unwrap_or(0);
    most.saturating_add(12 * size.n).saturating_add(128 * size.k)
}

/// The refiners that bring given parts within their bounds.
fn brought_within<const D: usize>() -> Refiners<D> {
    vec![Box::new(DealSurplus), Box::new(Rebalance), Box::new(Fill)]
}

/// The refiners of a round that search for a lower cut, with at least this slack.
fn searches<const D: usize>(objective: Objective, is_odd: bool, slack: f64, in_order: bool) -> Refiners<D> {
    if objective == Objective::Halo && !is_odd {
        return vec![];
    }
    let freedom = if is_odd { MUCH } else { LITTLE };
    let (slack, lenience) = (freedom.slack.max(slack), freedom.lenience);
    let jet = Jet { iterations: ITERATIONS, slack, lenience, patience: PATIENCE };
    if in_order { vec![Box::new(jet)] } else { vec![Box::new(jet), Box::new(Greedy)] }
}

/// The refiners at the end of a round.
fn finish<const D: usize>(objective: Objective) -> Refiners<D> {
    let mut refiners = objective.refiners();
    refiners.push(Box::new(Fill));
    refiners
}

/// Parts of the vertices, refined from `start`, and the number of rounds.
pub(crate) fn solve<const D: usize>(
    problem: &Problem<D>,
    start: &[u32],
    rounds: Rounds,
) -> Result<(Buffer<u32>, u64)> {
    let ((part_of, _), rounds) = improve(problem, begin(problem, start)?, rounds)?;
    Ok((part_of, rounds))
}

/// The start, brought within its bounds as far as this can be.
pub(crate) fn begin<const D: usize>(problem: &Problem<D>, start: &[u32]) -> Result<Solution> {
    let mut parts = copied(start)?;
    problem.graph.place_fixed(&mut parts, problem.run)?;
    refinement::refined(&brought_within(), problem, parts, 0)
}

/// The parts after as many rounds as pay, and the number of rounds.
pub(crate) fn improve<const D: usize>(
    problem: &Problem<D>,
    start: Solution,
    Rounds { effort, in_order }: Rounds,
) -> Result<(Solution, u64)> {
    let ends = effort.ends();
    let mut progress = Progress::new(start, Patience::LONG);
    while effort.goes_on(progress.rounds, ends) && progress.goes_on() {
        let next = round(problem, &progress.best.0, progress.rounds, in_order)?;
        progress.take(next);
    }
    Ok((progress.best, progress.rounds))
}

/// One round, from the parts that are best so far.
fn round<const D: usize>(problem: &Problem<D>, best: &[u32], round: u64, in_order: bool) -> Result<Solution> {
    let &Problem { graph, caps, run, objective, .. } = problem;
    let seed = splitmix64(problem.seed ^ splitmix64(round + 1));
    let problem = Problem { seed, ..*problem };
    let each = graph.num_entries() + graph.len() as u64;
    run.begin("rounds", each);
    // Slack for one vertex more, however small the parts.
    let one = 1.5 / caps.iter().map(|cap| cap[0]).min().unwrap_or(1).max(1) as f64;
    let mut assignment = problem.assignment(copied(best)?)?;
    apply(&searches(objective, !round.is_multiple_of(2), one, in_order), &problem, &mut assignment, each)?;
    refinement::refined(&finish(objective), &problem, assignment.part_of, 0)
}
