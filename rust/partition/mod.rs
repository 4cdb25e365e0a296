//! The results of partitioners, and the caps they keep.

pub mod edge_parts;
pub mod loops;

use std::path::Path;

use crate::balance::{BalanceOn, Balanced};
use crate::buffer::Buffer;
use crate::csr::Csr;
use crate::edges::EdgeStream;
use crate::error::{Error, Result};
use crate::run::Run;
pub use edge_parts::EdgeParts;

/// The largest number of parts.
pub const MAX_PARTS: u64 = 1 << 20;

/// What identifies the graph that was partitioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Number of vertices.
    pub n: u64,
    /// Number of records.
    pub m: u64,
    /// Number of loops.
    pub loops: u64,
    /// See [`crate::checksum`].
    pub checksum: String,
}

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

/// Refuses a number of parts outside `1..=2^20`.
pub fn validate_parts(k: u32) -> Result<()> {
    if (1..=MAX_PARTS).contains(&u64::from(k)) {
        return Ok(());
    }
    Err(Error::parameter("k", format!("{k} parts; k is between 1 and 2^20 = {MAX_PARTS}")))
}

/// Refuses a balance below 1, infinite or NaN.
pub fn validate_balance(name: &'static str, balance: f64) -> Result<()> {
    if balance.is_finite() && balance >= 1.0 {
        return Ok(());
    }
    Err(Error::parameter(
        name,
        format!("{balance}; a ratio of at least 1 is needed, as 1.05 for 5 % above the mean"),
    ))
}

/// `balance * items / k`, from left to right in f64; a balance above k acts as k.
pub fn share(balance: f64, items: u64, k: u32) -> f64 {
    let k = f64::from(k);
    balance.min(k) * items as f64 / k
}

/// The cap of a part: `ceil(balance * items / k)`.
pub fn cap(balance: f64, items: u64, k: u32) -> u64 {
    share(balance, items, k).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps() {
        assert_eq!(cap(1.0, 10, 3), 4);
        assert_eq!(cap(1.0, 9, 3), 3);
        assert_eq!(cap(1.05, 100, 5), 21);
        assert_eq!(cap(1e308, 10, 3), 10);
        assert_eq!(cap(1.0, 0, 3), 0);
        assert_eq!(cap(1.0, (1 << 32) - 1, 1 << 20), 4096);
    }

    #[test]
    fn refusals() {
        for balance in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.999] {
            assert!(validate_balance("balance", balance).is_err());
        }
        assert!(validate_balance("balance", 1e308).is_ok());
        assert!(validate_parts(0).is_err() && validate_parts(1).is_ok());
        assert!(validate_parts(1 << 20).is_ok() && validate_parts((1 << 20) + 1).is_err());
    }
}
