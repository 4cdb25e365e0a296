//! Refiners: the steps that change an assignment, which are run from a list.
//!
//! The moves of a refiner depend only on the problem and on its own parameters. A new one is a file with an
//! `impl` of [`Refiner`], and one line in a list: that of a level ([`Scheme`](super::Scheme)), or that of a
//! round ([`refining`](super::refining)).

use super::assignment::{Assignment, Quality};
use super::problem::{Problem, Solution};
use crate::base::{Buffer, Result, Run, bytes};
use crate::exec::most_threads;
use crate::sets::RatingMap;

/// The sizes that memory depends on.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Vertices.
    pub n: u64,
    /// Entries: twice the edges.
    pub entries: u64,
    /// Parts.
    pub k: u64,
    /// Bounds, padded.
    pub bounds: u64,
    /// Threads at work.
    pub threads: u64,
}

/// Bytes of a thread, beside its tables: its stack, and what its heap keeps.
const THREAD: u64 = 1 << 19;
/// Bytes per part of a thread's tables.
const PART: u64 = 16;
/// Parts up to which the coarsest graph is small beside the given one.
const FEW_PARTS: u64 = 64;

impl Size {
    /// Bytes of the scratch space of all threads but the first, which is counted where it is used. Lists that
    /// are long take no memory of a thread ([`SharedSums`](crate::sets::SharedSums)).
    pub fn of_threads(&self) -> u64 {
        let each = THREAD + RatingMap::memory_of_short() + PART * self.k;
        (most_threads(self.entries, self.threads) - 1).saturating_mul(each)
    }

    /// Bytes that the partition of a graph of this size takes beside its lists, with one thread.
    pub fn of_partition(&self) -> u64 {
        let &Size { n, entries, k, bounds, .. } = self;
        let per_entry = if k > FEW_PARTS { 24 } else { 12 };
        entries.saturating_mul(per_entry).saturating_add(n * (80 + 24 * bounds)).saturating_add(128 * k)
    }

    /// Lets as many threads work as the budget of the run allows, but at least one. `memory` returns the
    /// bytes of a size.
    pub fn limit_threads(self, run: &Run, what: &str, memory: impl Fn(&Size) -> u64) {
        let all = run.threads() as u64;
        let fits = |&threads: &u64| memory(&Size { threads, ..self }) <= run.budget();
        let threads = (1..=all).rev().find(fits).unwrap_or(1);
        if threads < most_threads(self.entries, all) {
            let needed = bytes(memory(&Size { threads: all, ..self }));
            run.note(format!(
                "{what}: {threads} of {all} threads work, because {needed} beside the graph would be needed for all. Raise \
                 memory_limit for more. The result is the same"
            ));
        }
        run.limit_threads(threads as usize);
    }
}

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

/// Bytes of the refiner that needs most.
pub(crate) fn memory<const D: usize>(refiners: &[Box<dyn Refiner<D>>], size: &Size) -> u64 {
    refiners.iter().map(|refiner| refiner.memory(size)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::algorithms::multilevel::building::Builder;

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
