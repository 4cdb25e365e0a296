//! The way from the parameters to a partition: its start, the place of its levels, the number of attempts and
//! rounds, and the bounds that are enforced in the end.

pub(crate) mod bounds;
pub(crate) mod process_mapping;
pub(crate) mod relaxed_bounds;
pub(crate) mod repartitioning;
pub(crate) mod rounds;
pub(crate) mod scheme;
pub(crate) mod semi_external;
pub(crate) mod start;
mod symmetry;
pub(crate) mod uncoarsening;
pub(crate) mod vertex_groups;

use std::path::PathBuf;

use super::model::Goal;
use super::refinement;
use crate::base::{Result, Run};
use crate::graph::Csr;
use crate::partition::VertexPartition;
pub use scheme::{Effort, Scheme};
pub use semi_external::{Costs, Hubs, Path, Plan};
use start::Start;
pub(crate) use symmetry::check_symmetry;

/// Parameters of the multilevel partitioner.
#[derive(Debug, Clone)]
pub struct Multilevel {
    /// The bounds, sizes and fixed vertices to keep, and the objective to minimize.
    pub goal: Goal,
    /// The amount of work.
    pub effort: Effort,
    /// Where the levels lie. By default the first path that fits into memory is taken.
    pub path: Option<Path>,
    /// Share of the entries that the last of the levels out of memory may have.
    pub sample: Option<f64>,
    /// The directory of checkpoints, if levels lie in files.
    pub checkpoints: Option<PathBuf>,
}

impl From<Goal> for Multilevel {
    fn from(goal: Goal) -> Self {
        Self { goal, effort: Effort::Default, path: None, sample: None, checkpoints: None }
    }
}

impl Multilevel {
    /// The defaults for `k` parts.
    pub fn new(k: u32) -> Self {
        Goal::new(k).into()
    }

    /// Refuses parameters that are invalid for a graph of `n` vertices.
    pub fn validate(&self, n: u64) -> Result<()> {
        self.goal.validate(n)?;
        self.validate_plan()
    }

    /// Bytes that a partition in memory by `threads` threads needs, beside an adjacency of `n` vertices and
    /// `entries` entries.
    pub fn needed(&self, n: u64, entries: u64, threads: usize) -> u64 {
        let (goal, size) = (&self.goal, self.goal.size(n, entries, threads as u64));
        self.scheme()
            .memory(&size)
            .max(refinement::memory(&goal.objective.refiners::<1>(), &size))
            .saturating_add(goal.machines.as_ref().map_or(0, |_| process_mapping::memory(&size)))
            .saturating_add(goal.memory(&size))
    }

    /// The scheme by which the graph is partitioned.
    pub(crate) fn scheme(&self) -> Scheme {
        Scheme::new(1 + self.goal.bounds.len(), self.effort)
    }

    /// Partitions the graph of `csr`.
    pub fn partition(&self, csr: &Csr, run: &Run) -> Result<VertexPartition> {
        self.partition_in_rounds(csr, run).map(|(partition, _)| partition)
    }

    /// The partition, and the number of rounds of improvement.
    pub fn partition_in_rounds(&self, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        let n = csr.graph().n;
        self.validate(n)?;
        self.partition_planned(csr, run).map(|(partition, rounds, _)| (partition, rounds))
    }

    /// The partition, the number of rounds of improvement, and the plan.
    pub(crate) fn partition_planned(&self, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64, Plan)> {
        check_symmetry(csr, run)?;
        let placement = self.placement(csr, run)?;
        let _reserved = run.reserve(placement.used);
        run.begin("partition", csr.graph().n + csr.num_entries());
        let (partition, rounds) = self.goal.partition(Start::Anew(self.effort, &placement), csr, run)?;
        if let Some(checkpoints) = placement.checkpoints {
            checkpoints.remove(run);
        }
        Ok((partition, rounds, placement.plan))
    }
}
