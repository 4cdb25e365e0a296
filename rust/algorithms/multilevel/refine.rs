//! The parameters of a refinement of any given partition of the vertices, in [`rounds`].

use std::sync::Arc;

use super::driver::scheme::effort::{Effort, MOST_ROUNDS};
use super::driver::{check_symmetry, rounds, start};
use super::model::{Goal, Objective, Size, WEIGHT_BALANCE, goal, parameters_with_goal};
use crate::base::{Error, Result, Run};
use crate::graph::Csr;
use crate::partition::parameters::{
    Fixed, Flag, Integers, Number, Ranges, Ratio, Seed, Sizes, Start, Weighings, Whole,
};
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape, Value, VertexPartition, validate_start};

/// The partition that another partitioner made, refined if that is asked for.
pub(crate) fn refined<R>(
    partition: VertexPartition,
    refine: Option<Refine>,
    graph: &Prepared<R>,
) -> Result<VertexPartition> {
    let Some(refine) = refine else { return Ok(partition) };
    let start = partition.assignment.iter().map(|&part| part as u32).collect();
    drop(partition);
    graph.partition(&Refine { start, ..refine })?.partition.vertices()
}

/// A partition to be refined, and the goal.
#[derive(Debug, Clone)]
pub struct Refine {
    /// Part of each vertex.
    pub start: Vec<u32>,
    /// The constraints and the objective.
    pub goal: Goal,
    /// Most rounds, and a time limit.
    pub effort: Effort,
}

impl Refine {
    /// Rounds as long as they pay, from the parts `start`.
    pub fn new(goal: Goal, start: Vec<u32>) -> Self {
        Self { start, goal, effort: Effort::Best { rounds: None, time_limit: None } }
    }

    fn validate(&self, n: u64) -> Result<()> {
        let Goal { k, objective, .. } = self.goal;
        self.goal.validate(n)?;
        if objective == Objective::Halo && self.goal.several_machines().is_some() {
            let what = format!("\"halo\" does not know machines. Use \"cut\", or machines=[{k}] for none");
            return Err(Error::parameter("objective", what));
        }
        validate_start(&self.start, k, n)
    }

    /// The memory of a refinement beside the adjacency. It includes the given parts and the result.
    pub fn memory(&self, shape: &Shape, run: &Run) -> Need {
        let what = format!("refine on {} vertices, {} parts", shape.n, self.goal.k);
        let size = |threads| self.goal.size(shape.n, shape.entries(), threads);
        Need { beside: self.needed(&size(run.threads() as u64)), least: self.needed(&size(1)), what }
    }

    fn needed(&self, size: &Size) -> u64 {
        rounds::memory(self.goal.objective, size).saturating_add(self.goal.memory(size))
    }

    /// Refines the partition on the graph of `csr`. Also returns the number of rounds.
    pub fn partition(&self, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        self.validate(csr.graph().n)?;
        let size = self.goal.size(csr.graph().n, csr.most_entries(), 1);
        size.limit_threads(run, "refine", |size| self.needed(size));
        check_symmetry(csr, run)?;
        self.goal.partition(start::Start::From(&self.start, self.effort), csr, run)
    }
}

parameters_with_goal! {
    {
        /// Refine any partition of the vertices: fewer cut edges within the same bounds.
        ///
        /// Vertices move between the parts in rounds, as long as that pays. A partition within its bounds
        /// never gets worse. One that breaks a bound is brought back within it first, even if that cuts more
        /// edges. Needs 72 bytes per vertex beside the adjacency (8 bytes per edge), and 8 more for a second
        /// bound, 24 for a third or fourth. If a memory limit is too low for the adjacency, it lies in a
        /// temporary file. ``objective="halo"`` needs 68 bytes per vertex and up to 16 per edge.
        ///
        /// Where the partition is an array, or tells no bound of its own, the defaults are those of
        /// :func:`multilevel`.
        ///
        /// See Also
        /// --------
        /// multilevel : Partition from scratch, usually with a lower cut.
        ///
        /// Notes
        /// -----
        /// Source: Gilbert et al., "Jet: Multilevel Graph Partitioning on Graphics Processing Units", SISC
        /// 2024, with a bound on how far parts may exceed their caps on the way. The result is the same for
        /// any number of threads.
        ///
        /// ``parameters`` of the result hold ``origin``, the algorithm and the parameters of the partition
        /// that was refined, and ``rounds``.
        ///
        /// Examples
        /// --------
        /// >>> import numpy as np, fastpart as fp
        /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
        /// >>> start = fp.algorithms.hash(two_triangles, k=2)
        /// >>> p = fp.refine(two_triangles, start)
        /// >>> p.cut_ratio < start.cut_ratio, p.parameters["origin"]["algorithm"]
        /// (True, 'hash')
        pub struct Parameters => "refine", [Vertices], reads weights;
        /// The partition to begin with: a vertex partition, a path that :func:`open_partition` accepts, or
        /// the part of each vertex.
        partition: Start;
    }
    /// A partition that was made with some needs them again, because it does not keep them.
    balance_on;
    /// Default: those of the partition.
    sizes;
    /// A partition that was made with some needs them again, because it does not keep them.
    fixed;
    {
        /// The quantity to minimize. "cut": edges between parts. "halo": copies of vertices in the parts of
        /// their neighbours. The other of the two may grow. Default: "halo" if the partition was made for
        /// that, else "cut".
        objective: Option<Objective>;
        /// Number of parts on each machine, as in :func:`multilevel`. An edge between machines then counts
        /// eight times. Default: that of the partition.
        machines: Option<Integers>;
        /// Seconds after which no further round begins. By default time does not matter.
        time_limit: Option<Number>;
        /// Most rounds, 16 by default. They end earlier if two in a row gain less than 0.5 %. With 0 the
        /// partition is only brought within its bounds. The number of rounds stands in ``parameters`` of the
        /// result. With that as ``rounds`` the result is the same anywhere.
        rounds: Option<Whole<0, MOST_ROUNDS>>;
        /// Seed of the ties: 0 to 2**64 - 1.
        seed: Seed;
    }
}

impl TryFrom<Parameters> for Refine {
    type Error = Error;

    fn try_from(given: Parameters) -> Result<Self> {
        let effort = Effort::best(given.rounds, given.time_limit)?;
        let goal = Goal { objective: given.objective.unwrap_or_default(), ..goal!(given) };
        Ok(Refine { start: given.partition, goal, effort })
    }
}

impl Ranges for Refine {
    fn ranges(&self) -> Result<()> {
        self.goal.ranges()
    }
}

impl Partitioner for Refine {
    type Parameters = Parameters;
    type Reads = Arc<Csr>;

    fn check(&self, shape: &Shape) -> Result<()> {
        self.validate(shape.n)
    }

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        Refine::memory(self, shape, run)
    }

    fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
        let (partition, rounds) = self.partition(&graph.csr, graph.run)?;
        Ok(Outcome { chosen: vec![("rounds", Value::Integer(rounds))], ..partition.into() })
    }
}
