//! SIGMA of vertices: a partition that keeps clusters whole and bounds vertices and volume of every part.
//!
//! **Requirements.** The neighbours of every vertex ([`Csr`]). The *volume* of a part is the sum of
//! `d(v) + 1` over its vertices.
//!
//! **Memory.** 24 bytes per vertex, with the result, without the adjacency and the clustering's scratch
//! space. Clusters take that before the stream, and repair takes at most that after it. The stream itself
//! takes 8, and k bits for [`Objective::Multi`]. 96 bytes per part, and 8 per part and thread.
//!
//! **Algorithm.** Every vertex prefers the part that its cluster is mapped to ([`preference`]).
//! *Preassignment*, in id order: a vertex goes there if all neighbours that were preassigned before are
//! there, and both caps hold. *Streaming* of the others, in id order: each goes to the part with the highest
//! score `e(v,p) / d(v) - rho^(gamma - 1.1)` among those with slack under both caps times
//! `s + (1 - s) sqrt(t)`. Here `rho` is the larger of the part's relative loads, `s` the largest one after
//! the preassignment, at least 0.9, and `t` the fraction of the stream that went before. If no part has
//! slack, it goes to the part whose larger relative load will be smallest. [`Objective::Multi`] subtracts
//! `tau R / (d(v) + k)`. Isolated vertices come last, to the parts with the fewest vertices.
//! [Repair](mod@crate::capacity::repair) brings the parts under their caps, or raises the cap on volume.
//!
//! `R` counts the replicas that come with a choice. A vertex is *present* in a part if it or one of its
//! neighbours is a member. So `v` is present wherever it has a neighbour, the paper's `R2` (parts of its
//! neighbours where it is not) is always 0, and `R` is the number of its neighbours that are not present in
//! `p`.
//!
//! **Exactness.** By the cut alone, a part without neighbours of `v` is best if its penalty is least: the
//! parts of its neighbours and the one that [`PartLoads`] finds are all that need a score. With replicas all
//! parts are scored. The neighbours present in each are counted by adding up rows of bits ([`columns`]).
//!
//! **Parallelism.** Clustering, and the stream, whose vertices are decided in batches against a frozen state
//! ([`crate::exec::batches`]): a vertex whose part has no slack any more is decided again. Presence stays
//! that of the frozen state, so that all threads can bring it up to date between the batches. The size of the
//! batches depends on n and m only. Small graphs have batches of 1, the sequential rule.
//!
//! **Complexity.** Beside the clustering O(m + n log k), with replicas O((n + m) k / 64 + nk). A vertex that
//! fits nowhere costs O(k).
//!
//! **Source.** SIGMA, sections 3.1 and 3.3.

mod columns;
mod preassignment;
mod streaming;

use super::preference::{Weight, preferred_parts};
use super::{Sigma, preference};
use crate::algorithms::multilevel::refine::Refine;
use crate::algorithms::multilevel::{Bound, Goal};
use crate::base::{Buffer, NONE, Result, Run};
use crate::capacity::{LeastLoaded, Load, PartLoads, cap, fits, plus, repair};
use crate::graph::Csr;
use crate::partition::parameters::words;
use crate::partition::{Need, VertexPartition};
use crate::sets::Incidence;
use columns::Columns;
use preassignment::preassign;
use streaming::{Replicas, stream};

/// Graphs with fewer vertices follow the sequential rule.
const SEQUENTIAL_BELOW: usize = 1 << 16;

/// Vertices decided against one frozen state, on large graphs. On smaller graphs, 1 of 1,024, since vertices
/// do not see others of their batch, which costs quality.
const LARGEST_BATCH: usize = 1024;

/// Most bytes per vertex while caps are repaired.
const REPAIR_BYTES_PER_VERTEX: u64 = 24;

words! {
    /// The objective of the score of a part.
    pub enum Objective {
        /// Few cut edges and few replicas of vertices.
        Multi = "multi",
        /// Few cut edges.
        Cut = "cut",
    }
}

impl Sigma {
    /// `1 + epsilon` of the paper: bound on the vertices of a part, relative to their mean.
    pub(super) fn vertex_balance(&self) -> f64 {
        self.balance.unwrap_or(1.03)
    }

    /// The nominal caps: on vertices, and on volume.
    pub fn caps(&self, csr: &Csr) -> Load {
        let (n, entries) = (csr.num_vertices() as u64, csr.num_entries());
        [cap(self.vertex_balance(), n, self.k), cap(self.volume_balance, n + entries, self.k)]
    }

    /// How the partition is refined, if it is.
    pub(super) fn refinement(&self) -> Option<Refine> {
        let bounds = vec![Bound::Volume(self.volume_balance)];
        let goal = Goal { balance: self.vertex_balance(), bounds, ..Goal::new(self.k) };
        self.refine.then(|| Refine::new(goal, Vec::new()))
    }

    fn batch(&self, csr: &Csr) -> usize {
        match self.batch {
            Some(batch) => usize::try_from(batch.get()).unwrap_or(usize::MAX),
            None if csr.num_vertices() < SEQUENTIAL_BELOW || csr.graph().m < 1 << 18 => 1,
            None => (csr.num_vertices() / 1024).min(LARGEST_BATCH),
        }
    }

    /// Memory for `n` vertices, adjacency and the clustering's scratch space not counted.
    pub(super) fn memory_of_vertices(&self, n: u64, threads: usize) -> Need {
        let words = u64::from(self.k.div_ceil(64));
        let (presence, columns) = match self.objective {
            Objective::Cut => (0, 0),
            Objective::Multi => (Incidence::memory(n, self.k), Columns::memory(words)),
        };
        let repairing = if self.strict { REPAIR_BYTES_PER_VERTEX } else { 0 };
        let per_vertex = preference::BYTES_PER_VERTEX.max(repairing);
        let threads = threads as u64 + 1;
        let per_thread = 8 * u64::from(self.k) + columns;
        Need::new(
            (n * per_vertex).max(8 * n + presence)
                + 2 * PartLoads::<2>::memory(self.k)
                + per_thread * threads,
            format!("sigma on {n} vertices, {} parts", self.k),
        )
    }

    /// Partitions the vertices, given the part that each vertex's cluster is mapped to.
    pub fn place(&self, csr: &Csr, mut preferred: Buffer<u32>, run: &Run) -> Result<VertexPartition> {
        let caps = self.caps(csr);
        let parts = &mut preferred[..];
        let preassigned = preassign(csr, parts, self.k, caps, run)?;
        let mut loads = PartLoads::new(preassigned.loads.iter().copied(), caps, self.gamma - 1.1)?;
        let replicas = match self.objective {
            Objective::Cut => None,
            Objective::Multi => Some(Replicas::new(csr, parts, self.k, self.tau, run)?),
        };
        stream(csr, parts, &mut loads, replicas, &preassigned.deferred, self.batch(csr), run)?;
        drop(preassigned);
        let mut loads: Vec<Load> = loads.all().collect();
        place_isolated(parts, &mut loads, caps, run)?;
        let graph = csr.graph().clone();
        if !self.strict {
            let vertices = loads.iter().map(|load| load[0]).collect();
            return Ok(VertexPartition::new(preferred.reinterpret(), self.k, vertices, None, graph));
        }
        let repaired = repair(csr, parts, &loads, caps, run)?;
        Ok(VertexPartition::repaired(preferred, repaired, caps, graph))
    }

    /// Partitions the vertices of the graph of `csr`.
    pub fn partition_vertices(&self, csr: &Csr, run: &Run) -> Result<VertexPartition> {
        let preferred = preferred_parts(csr, self.k, self.caps(csr), Weight::Vertices, run)?;
        self.place(csr, preferred, run)
    }
}

/// Gives each isolated vertex the part with the fewest vertices among those with slack under the `caps`, or
/// among all if none has slack.
fn place_isolated(parts: &mut [u32], loads: &mut [Load], caps: Load, run: &Run) -> Result<()> {
    let [mut open, mut all] = [(); 2].map(|()| LeastLoaded::new(loads.iter().map(|load| load[0])));
    run.each(parts.len(), |v| {
        if parts[v as usize] != NONE {
            return;
        }
        let has_slack = |part: u32| fits(plus(loads[part as usize], [1, 1]), caps);
        let found = open.least_open(has_slack).inspect(|&part| open.add(part, 1));
        let part = found.unwrap_or_else(|| all.least());
        all.add(part, 1);
        loads[part as usize] = plus(loads[part as usize], [1, 1]);
        parts[v as usize] = part;
    })
}
