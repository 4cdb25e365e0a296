//! Refiners: the steps that change an assignment, which are run from a list.
//!
//! A refiner depends only on the problem and on its own parameters. A new one is a file with an `impl` of
//! [`Refiner`], and one line in the list of a level ([`scheme`](super::driver::scheme)) or of a round
//! ([`rounds`](super::driver::rounds)).

pub mod balance;
pub(crate) mod flows;
pub(crate) mod fm;
pub(crate) mod fragments;
pub(crate) mod gains;
pub(crate) mod greedy;
pub(crate) mod halo;
pub(crate) mod jet;
pub(crate) mod move_queue;

use super::model::{Assignment, Objective, Problem, Quality, Size, Solution};
use crate::base::{Buffer, Result};
pub(crate) use balance::bin_packing::deal;
pub(crate) use balance::rebalance;
pub use balance::vertex_counts::Fill;
pub(crate) use balance::vertex_counts::fill;
pub use balance::{DealSurplus, Rebalance};
pub use flows::Flows;
pub use fm::Fm;
pub(crate) use fragments::connect;
pub use gains::table::GainTable;
pub use greedy::Greedy;
pub use halo::Halo;
pub use jet::Jet;
pub(crate) use move_queue::{Moves, OrderedF64};

/// A step that changes an assignment.
pub trait Refiner<const D: usize>: Sync {
    /// Whether there is anything to do.
    fn applies(&self, _problem: &Problem<D>, _assignment: &Assignment<D>) -> bool {
        true
    }

    /// Changes the assignment. Returns its quality if that was found on the way.
    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>>;

    /// Bytes beside the graph and the assignment.
    fn memory(&self, size: &Size) -> u64;
}

/// Refiners in the order in which they run.
pub(crate) type Refiners<const D: usize> = Vec<Box<dyn Refiner<D>>>;

impl Objective {
    /// The refiners of a partition that has few cut edges, after the levels of the scheme are freed.
    pub(crate) fn refiners<const D: usize>(self) -> Refiners<D> {
        match self {
            Objective::Cut => vec![],
            Objective::Halo => vec![Box::new(Halo)],
        }
    }
}
/// Runs the refiners, which count as `units` units of progress. Returns the quality of the result if the last
/// of them found it.
pub(crate) fn apply<const D: usize>(
    refiners: &[Box<dyn Refiner<D>>],
    problem: &Problem<D>,
    assignment: &mut Assignment<D>,
    units: u64,
) -> Result<Option<Quality>> {
    let (mut quality, mut left) = (None, units);
    for (refiner, ahead) in refiners.iter().zip((0..refiners.len() as u64).rev()) {
        if refiner.applies(problem, assignment) {
            quality = refiner.refine(problem, assignment)?;
        }
        let next = left / (ahead + 1);
        left -= next;
        problem.run.advance(next)?;
    }
    problem.run.advance(left)?;
    Ok(quality)
}

/// Parts of the vertices after all refiners, and their quality. See [`apply`] for the units.
pub(crate) fn refined<const D: usize>(
    refiners: &[Box<dyn Refiner<D>>],
    problem: &Problem<D>,
    part_of: Buffer<u32>,
    units: u64,
) -> Result<Solution> {
    let mut assignment = problem.assignment(part_of)?;
    let found = apply(refiners, problem, &mut assignment, units)?;
    let quality = found.map_or_else(|| problem.quality(&assignment), Ok)?;
    Ok((assignment.part_of, quality))
}

/// Bytes that the refiners take: the largest number, since they run one after the other.
pub(crate) fn memory<const D: usize>(refiners: &[Box<dyn Refiner<D>>], size: &Size) -> u64 {
    refiners.iter().map(|refiner| refiner.memory(size)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::algorithms::multilevel::model::Builder;
    use crate::base::Run;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Notes how far the run is.
    struct Look(Arc<Mutex<Vec<u64>>>, bool);

    impl Refiner<1> for Look {
        fn applies(&self, _problem: &Problem<1>, _assignment: &Assignment<1>) -> bool {
            self.1
        }

        fn refine(&self, problem: &Problem<1>, _: &mut Assignment<1>) -> Result<Option<Quality>> {
            self.0.lock().unwrap().push(problem.run.progress().done);
            Ok(None)
        }

        fn memory(&self, _size: &Size) -> u64 {
            0
        }
    }

    #[test]
    fn progress_moves_after_each_refiner() {
        let run = Run::new(Some(1), None).unwrap();
        let mut builder = Builder::new(1, 0).unwrap();
        builder.vertex([1]);
        let graph = builder.finish();
        let problem = Problem::new(&graph, &[[1]], 0, &run);
        let mut assignment = problem.assignment(Buffer::zeroed(1, "parts").unwrap()).unwrap();
        for (used, seen) in
            [(vec![true; 3], vec![0, 3, 6]), (vec![true, false, true], vec![0, 6]), (vec![], vec![])]
        {
            run.begin("refining", 10);
            let found = Arc::default();
            let refiners: Refiners<1> =
                used.iter().map(|&used| Box::new(Look(Arc::clone(&found), used)) as _).collect();
            apply(&refiners, &problem, &mut assignment, 10).unwrap();
            assert_eq!((&*found.lock().unwrap(), run.progress().done), (&seen, 10));
        }
    }
}
