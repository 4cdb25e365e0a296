//! SPRING: a vertex partition from a stream of edges.
//!
//! **Requirements.** Any graph. The records may come in any order. They are read twice (`passes + 1` times).
//!
//! **Memory.** At most 32 bytes per vertex (36 with a second cap, weights included), result included, plus
//! buffers of a few MB: a 16-byte record per vertex (degree, cluster, richest neighbour and its degree, so
//! that one record of the stream touches one cache line per endpoint) and 8 bytes of volume per cluster while
//! clustering, then sizes, targets and a queue.
//!
//! **Algorithm.** [`Hollocou`] follows the stream once and moves, for each record, the endpoint in the
//! cluster of smaller volume to the other's cluster. [`merging`] merges small clusters, smallest first, into
//! the cluster that the richest neighbour of their representative lies in. [`assignment`] deals the clusters,
//! largest first, to the part with the fewest vertices, and splits what would break the cap. With weights to
//! balance on ([`crate::capacity`]), a merged cluster also keeps its share of the weight, and [`balanced`]
//! takes the place of the last step.
//!
//! **Parallelism.** Degrees are counted by all threads. Clustering works in batches whose bounds depend on
//! the number of records only: threads drop, against the frozen state of the batch, the records that change
//! nothing. The few that are left are committed in stream order. So the result is the same for any number of
//! threads.
//!
//! **Complexity.** O(m + n log n) time.
//!
//! **Source.** "SDT-GNN: Streaming-based Distributed Training Framework for Graph Neural Networks", Algorithm
//! 1. The clustering is that of Hollocou et al., "A Streaming Algorithm for Graph Clustering", 2017.

mod assignment;
mod balanced;
mod merging;

use crate::base::{Buffer, Error, Result, Run, bytes};
use crate::capacity::{BalanceOn, cap};
use crate::clustering::hollocou::Hollocou;
use crate::edges::EdgeStream;
use crate::exec::follow;
use crate::graph::{Degrees, degrees};
use crate::partition::parameters::{
    Batch, Degrees as Known, Flag, Passes, Ratio, Seed, Weighing, parameters,
};
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape, VertexPartition};

/// Bytes per vertex at the peak, result included.
pub(crate) const BYTES_PER_VERTEX: u64 = 32;

/// Bytes per vertex that weights to balance on add. The weights and members of clusters take less later than
/// was freed before.
pub(crate) const BYTES_PER_WEIGHT: u64 = 4;

/// Buffers that do not depend on the graph.
pub(crate) const FIXED_BYTES: u64 = 8 << 20;

parameters! {
    /// Partition the vertices with SPRING, from two passes over the edges.
    ///
    /// Clusters the stream (Hollocou's rule), merges small clusters into that of their representative's
    /// richest neighbour, and deals the clusters to the parts, largest first. Takes 32 bytes per vertex for
    /// any number of edges.
    ///
    /// Notes
    /// -----
    /// Source: SDT-GNN, section III-B, Algorithm 1. The paper leaves ties open. Here the richest neighbour
    /// and the representative are those of the lowest id, the cluster is the one that appeared first, the
    /// part is the lowest. The order of the stream matters. A sorted file is fine.
    ///
    /// With ``balance_on``, clusters merge up to ``balance_on_ratio * W / k`` weight. They go to the part
    /// with capacity left under both caps whose larger relative load (vertices / n, weight / W) is smallest.
    /// A cluster that fits nowhere is split by the same rule. A vertex that fits nowhere takes the place of a
    /// lighter one, which goes to a part that can take it.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.spring(two_triangles, k=2).assignment
    /// array([0, 0, 0, 1, 1, 1], dtype=int32)
    /// >>> fp.spring(two_triangles, k=2, balance_on=[True, True, True, True, False, False]).weight_loads
    /// array([2, 2])
    pub struct Spring => "spring", [Vertices];
    /// ``beta`` of the paper, a ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance: Ratio = 1.05;
    /// Weights of the vertices, each 0 to 2**32 - 1, or a mask. The parts also share the sum W of the weights
    /// evenly. With the mask of the training vertices, each part gets its share of the training. Takes 4
    /// bytes more per vertex, 8 unless the array is uint32. A table with ids beside the weights is matched by
    /// the ids. If some vertex fits nowhere under both caps, all vertices are dealt by weight alone, with a
    /// warning. This never happens with masks.
    balance_on: Option<Weighing>;
    /// A ratio >= 1: no part gets more weight than ``ceil(balance_on_ratio * W / k)``, or than
    /// ``ceil(W / k) + max(balance_on)``, if that is more and the weights are not all 0 or 1.
    balance_on_ratio: Ratio = 1.05;
    /// Has no effect. SPRING makes no random choices.
    seed: Seed;
    /// Rounds of clustering over the stream. The paper makes one.
    passes: Passes = 1;
    /// Number of records that are decided against the same state. 1 is the paper's sequential rule. Default:
    /// 1 below 2**18 records, else 1,024 growing to 65,536. It changes the result slightly. The number of
    /// threads never does.
    batch: Option<Batch>;
    /// Split clusters that fit nowhere, so that the cap is met exactly. False is the paper's rule, which can
    /// exceed it. ``balance_on`` needs True.
    strict: Flag = true;
    /// Number of non-loop records at each vertex (uint32, length n), if known. Saves the pass that counts
    /// them.
    degrees: Option<Known>;
}

impl Spring {
    /// The clustering step, for `edges` records that are not loops.
    pub fn clustering(&self, edges: u64) -> Hollocou {
        let max_volume = (0.1 * (2 * edges) as f64 / f64::from(self.k)) as u64;
        Hollocou { max_volume, passes: self.passes, batch: self.batch }
    }

    fn balance_on(&self) -> Option<BalanceOn> {
        BalanceOn::of(self.balance_on.as_ref(), self.balance_on_ratio)
    }

    fn degrees(&self, edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
        let Some(given) = &self.degrees else { return degrees::scan(edges, run) };
        let graph = degrees::identify(edges, run)?;
        let (sum, ends) = (given.iter().map(|&d| u64::from(d)).sum::<u64>(), 2 * (graph.m - graph.loops));
        if sum != ends {
            let what =
                format!("they sum to {sum}. The records have {ends} ends. Count non-loop records per vertex");
            return Err(Error::parameter("degrees", what));
        }
        let mut degree: Buffer<u32> = Buffer::zeroed(given.len(), "degrees")?;
        degree.copy_from_slice(given);
        Ok(Degrees { degree, graph })
    }
}

impl Partitioner for Spring {
    type Parameters = Self;
    type Reads = ();

    fn check(&self, &Shape { n, .. }: &Shape) -> Result<()> {
        if let Some(degrees) = self.degrees.as_ref().filter(|degrees| degrees.len() as u64 != n) {
            return Err(Error::parameter("degrees", format!("{} degrees for {n} vertices", degrees.len())));
        }
        let Some(balance_on) = self.balance_on() else { return Ok(()) };
        balance_on.validate(n)?;
        if self.strict {
            return Ok(());
        }
        let what = "strict=False is the paper's rule, which keeps no cap. Leave one of the two out";
        Err(Error::parameter("balance_on", what))
    }

    fn memory(&self, &Shape { n, m, .. }: &Shape, _run: &Run) -> Need {
        let (per_weight, per_part) =
            if self.balance_on.is_some() { (BYTES_PER_WEIGHT, 128) } else { (0, 16) };
        let each = BYTES_PER_VERTEX + per_weight;
        let given = self.degrees.as_ref().map_or(0, |degrees| 4 * degrees.len() as u64);
        let buffers = FIXED_BYTES + per_part * u64::from(self.k) + follow::memory(self.batch, m);
        Need::new(n * each + given + buffers, format!("spring on {n} vertices ({} each)", bytes(each)))
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (edges, run) = (graph.edges(), graph.run);
        let on = self.balance_on();
        let Degrees { degree, graph } = self.degrees(edges, run)?;
        let clustering = self.clustering(graph.m - graph.loops).follow(edges, degree, run)?;
        let clusters = merging::merge(clustering, self, on.as_ref(), run)?;
        let cap = cap(self.balance, graph.n, self.k);
        if let Some(on) = &on {
            let balanced = balanced::assign(clusters, self.k, cap, on, run)?;
            return Ok(VertexPartition::balanced(balanced, self.k, cap, on, graph).into());
        }
        let cap = self.strict.then_some(cap);
        let (assignment, loads) = assignment::assign(clusters, self.k, cap, run)?;
        Ok(VertexPartition::new(assignment, self.k, loads, cap, graph).into())
    }
}
