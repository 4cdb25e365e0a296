//! Refiners: the steps that change an assignment, which are run from a list.
//!
//! What a refiner does depends on the problem and on its own parameters only. A new one is a file with an
//! `impl` of [`Refiner`], and one line in a list: that of a level ([`Scheme`](super::Scheme)), or that of a
//! round ([`refining`](super::refining)).

use super::assignment::{Assignment, Quality};
use super::problem::{Problem, Solution};
use crate::base::{Buffer, Result};

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

/// Runs the refiners. Returns the quality of what they leave if the last of them found it.
pub(crate) fn apply<const D: usize>(
    refiners: &[Box<dyn Refiner<D>>],
    problem: &Problem<D>,
    assignment: &mut Assignment<D>,
) -> Result<Option<Quality>> {
    let mut quality = None;
    for refiner in refiners {
        if refiner.applies(problem, assignment) {
            quality = refiner.refine(problem, assignment)?;
        }
    }
    Ok(quality)
}

/// Parts of the vertices after all refiners, and their quality.
pub(crate) fn refined<const D: usize>(
    refiners: &[Box<dyn Refiner<D>>],
    problem: &Problem<D>,
    part_of: Buffer<u32>,
) -> Result<Solution> {
    let mut assignment = problem.assignment(part_of)?;
    let found = apply(refiners, problem, &mut assignment)?;
    let quality = found.map_or_else(|| problem.quality(&assignment), Ok)?;
    Ok((assignment.part_of, quality))
}

/// Bytes of the refiner that needs most.
pub(crate) fn memory<const D: usize>(refiners: &[Box<dyn Refiner<D>>], size: &Size) -> u64 {
    refiners.iter().map(|refiner| refiner.memory(size)).max().unwrap_or(0)
}
