//! The results of partitioners, and the caps they keep.

pub mod edge_parts;

use std::path::Path;

use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{BalanceOn, Balanced};
use crate::edges::EdgeStream;
use crate::graph::csr::Csr;
use crate::graph::identity::Graph;
pub use edge_parts::EdgeParts;

/// One part per vertex.
#[derive(Debug)]
pub struct VertexPartition {
    /// Part of each vertex.
    pub assignment: Buffer<i32>,
    /// Number of parts.
    pub k: u32,
    /// Vertices of each part.
    pub loads: Vec<u64>,
    /// The largest load allowed, if loads were bounded.
    pub cap: Option<u64>,
    /// Weight of each part, if a weight was balanced, too.
    pub weight_loads: Option<Vec<u64>>,
    /// The largest weight allowed.
    pub weight_cap: Option<u64>,
    /// The bound on volume, if there was one.
    pub volume: Option<Volume>,
    /// Whether the caps could only be met by dealing the vertices, which disregards the edges.
    pub dealt: bool,
    /// The graph it belongs to.
    pub graph: Graph,
}

impl VertexPartition {
    /// A partition under at most one cap.
    pub fn new(assignment: Buffer<i32>, k: u32, loads: Vec<u64>, cap: Option<u64>, graph: Graph) -> Self {
        Self {
            assignment,
            k,
            loads,
            cap,
            weight_loads: None,
            weight_cap: None,
            volume: None,
            dealt: false,
            graph,
        }
    }

    /// A partition under a `cap` on vertices and that of `on`.
    pub fn balanced(balanced: Balanced, k: u32, cap: u64, on: &BalanceOn, graph: Graph) -> Self {
        let (loads, weights) =
            balanced.loads.into_iter().map(|[vertices, weight]| (vertices, weight)).unzip();
        Self {
            weight_loads: Some(weights),
            weight_cap: Some(on.cap(k)),
            dealt: balanced.dealt,
            ..Self::new(balanced.assignment, k, loads, Some(cap), graph)
        }
    }
}

/// Volumes of the parts of a vertex partition, and their bound; the volume of a vertex is its degree + 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Volume of each part.
    pub loads: Vec<u64>,
    /// The cap that was asked for.
    pub nominal: u64,
    /// The cap that was kept: more than `nominal` where that could not be.
    pub cap: u64,
}

/// One part per edge record.
#[derive(Debug)]
pub struct EdgePartition {
    /// Part of each record.
    pub parts: EdgeParts,
    /// Number of parts.
    pub k: u32,
    /// Records of each part.
    pub loads: Vec<u64>,
    /// The largest load allowed, if loads were bounded.
    pub cap: Option<u64>,
    /// The graph it belongs to.
    pub graph: Graph,
}

/// An algorithm that gives every vertex a part, from the records as they come.
pub trait VertexPartitioner {
    /// Partitions `edges`.
    fn partition(&self, edges: &dyn EdgeStream, run: &Run) -> Result<VertexPartition>;
}

/// An algorithm that gives every vertex a part, from the neighbours of each.
pub trait AdjacencyPartitioner {
    /// Partitions the graph of `csr`.
    fn partition(&self, csr: &Csr, run: &Run) -> Result<VertexPartition>;
}

/// An algorithm that gives every record a part.
pub trait EdgePartitioner {
    /// Partitions `edges`; the parts go to the `.npy` file `out`, or into memory.
    fn partition(&self, edges: &dyn EdgeStream, out: Option<&Path>, run: &Run) -> Result<EdgePartition>;
}
