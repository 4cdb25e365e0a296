//! The results of partitioners, and the caps they keep.

use crate::balance::{BalanceOn, Balanced};
use crate::buffer::Buffer;
use crate::edges::EdgeStream;
use crate::error::{Error, Result};
use crate::run::Run;

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
    /// Whether both caps could only be met by [`BalanceOn::deal`], which disregards the edges.
    pub dealt: bool,
    /// The graph it belongs to.
    pub graph: Graph,
}

impl VertexPartition {
    /// A partition under at most one cap.
    pub fn new(assignment: Buffer<i32>, k: u32, loads: Vec<u64>, cap: Option<u64>, graph: Graph) -> Self {
        Self { assignment, k, loads, cap, weight_loads: None, weight_cap: None, dealt: false, graph }
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

/// An algorithm that gives every vertex a part.
pub trait VertexPartitioner {
    /// Partitions `edges`.
    fn partition(&self, edges: &dyn EdgeStream, run: &Run) -> Result<VertexPartition>;
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
