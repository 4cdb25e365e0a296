//! A graph, the bounds that a partition of it has to keep, and the objective.
//!
//! Every step of the partitioner is given a problem. [`bounds`](super::super::driver::bounds) makes the
//! problem of the given graph. A level has the same one with its own graph, and perhaps with looser caps.

use std::sync::Arc;

use super::assignment::{Assignment, Quality};
use super::connectivity::Connectivity;
use super::graph::Graph;
use super::machines::Prices;
use super::migration::Migration;
use crate::base::{Buffer, Result, Run};
use crate::capacity::Load;
use crate::partition::parameters::words;

words! {
    /// The quantity to minimize.
    pub enum Objective {
        /// Edges between parts.
        Cut = "cut",
        /// Copies of vertices in the parts of their neighbours: the communication volume. See
        /// [`halo`](super::super::refinement::halo).
        Halo = "halo",
    }
}

/// Parts of all vertices, and how good they are.
pub(crate) type Solution = (Buffer<u32>, Quality);

/// A problem of partitioning: a graph, its caps and the objective.
#[derive(Clone, Copy)]
pub struct Problem<'a, const D: usize> {
    /// The graph.
    pub graph: &'a Graph<'a, D>,
    /// Cap of each part.
    pub caps: &'a [Load<D>],
    /// The least number of vertices of each part. Empty if no part needs any.
    pub least: &'a [u64],
    /// The quantity to minimize.
    pub objective: Objective,
    /// Prices of cut edges. Each costs 1 if it is `None`.
    pub prices: Option<&'a Arc<Prices>>,
    /// Penalties for vertices that leave their old parts. Moves cost nothing if it is `None`.
    pub migration: Option<&'a Migration>,
    /// Seed of everything random.
    pub seed: u64,
    /// The run.
    pub run: &'a Run,
}

impl<'a, const D: usize> Problem<'a, D> {
    /// Few cut edges under these caps.
    pub fn new(graph: &'a Graph<'a, D>, caps: &'a [Load<D>], seed: u64, run: &'a Run) -> Self {
        Self { graph, caps, least: &[], objective: Objective::Cut, prices: None, migration: None, seed, run }
    }

    /// An assignment with these parts.
    pub fn assignment(&self, part_of: Buffer<u32>) -> Result<Assignment<D>> {
        let assignment = Assignment::new(self.graph, part_of, self.caps.len(), self.run)?;
        Ok(Assignment { prices: self.prices.cloned(), migration: self.migration.cloned(), ..assignment })
    }

    /// The quality of an assignment, by the objective.
    pub fn quality(&self, assignment: &Assignment<D>) -> Result<Quality> {
        let Self { graph, caps, run, .. } = *self;
        match self.objective {
            Objective::Cut => assignment.quality(graph, caps, run),
            Objective::Halo => {
                let cut = Connectivity::new(graph, &assignment.part_of, caps.len(), run)?.halo();
                Ok(Quality { excess: assignment.excess(caps), cut })
            }
        }
    }
}

/// A copy of some parts.
pub(crate) fn copied(parts: &[u32]) -> Result<Buffer<u32>> {
    let mut copy: Buffer<u32> = Buffer::zeroed(parts.len(), "parts")?;
    copy.copy_from_slice(parts);
    Ok(copy)
}
