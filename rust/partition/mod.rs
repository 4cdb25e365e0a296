//! The results of partitioners, the caps they keep, and the contract of a partitioner.

pub(crate) mod contract;
pub(crate) mod edge_parts;
mod graph;
pub(crate) mod input;
pub(crate) mod parameters;

use crate::base::{Buffer, Error, Result};
use crate::capacity::{BalanceOn, BalancedAssignment, Load, RepairOutcome};
use crate::graph::Identity;
pub(crate) use contract::Need;
pub use contract::{Entry, Outcome, Partition, Partitioner, partition};
pub use edge_parts::{EdgeParts, Words};
pub use graph::Graph;
pub(crate) use input::Prepared;
pub use input::{Input, Shape};
pub(crate) use parameters::Parameters;
use parameters::words;
pub use parameters::{Field, Given, Value};

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
    /// The cap of each part, if parts have different shares. `cap` is then the largest.
    pub caps: Vec<u64>,
    /// The bound on each set of weights that was balanced beside the number of vertices.
    pub weights: Vec<Capacity>,
    /// The bound on volume, if there was one. The volume of a vertex is its degree + 1.
    pub volume: Option<Capacity>,
    /// Whether the caps could only be met by dealing the vertices, which disregards the edges.
    pub dealt: bool,
    /// Warnings for users.
    pub warnings: Vec<String>,
    /// The graph it belongs to.
    pub graph: Identity,
}

impl VertexPartition {
    /// A partition under at most one cap.
    pub fn new(assignment: Buffer<i32>, k: u32, loads: Vec<u64>, cap: Option<u64>, graph: Identity) -> Self {
        let (caps, weights, warnings) = (Vec::new(), Vec::new(), Vec::new());
        Self { assignment, k, loads, cap, caps, weights, volume: None, dealt: false, warnings, graph }
    }

    /// A partition under a `cap` on vertices and that of `on`.
    pub fn balanced(balanced: BalancedAssignment, k: u32, cap: u64, on: &BalanceOn, graph: Identity) -> Self {
        let (loads, weights) =
            balanced.loads.into_iter().map(|[vertices, weight]| (vertices, weight)).unzip();
        Self {
            weights: vec![Capacity::new(weights, on.cap(k), on.cap(k))],
            dealt: balanced.dealt,
            ..Self::new(balanced.assignment, k, loads, Some(cap), graph)
        }
    }

    /// A partition under `caps` on vertices and on volume, which was repaired to keep them.
    pub(crate) fn repaired(parts: Buffer<u32>, repaired: RepairOutcome, caps: Load, graph: Identity) -> Self {
        let RepairOutcome { loads, cap, dealt } = repaired;
        let k = loads.len() as u32;
        let (vertices, volumes) = loads.into_iter().map(|[vertices, volume]| (vertices, volume)).unzip();
        Self {
            volume: Some(Capacity::new(volumes, caps[1], cap)),
            dealt,
            ..Self::new(parts.reinterpret(), k, vertices, Some(caps[0]), graph)
        }
    }
}

/// Refuses parts to begin with that are not one below `k` for each of `n` vertices.
pub(crate) fn validate_start(start: &[u32], k: u32, n: u64) -> Result<()> {
    if start.len() as u64 != n {
        let what = format!("{} parts for {n} vertices. Give one per vertex", start.len());
        return Err(Error::parameter("partition", what));
    }
    match start.iter().position(|&part| part >= k) {
        None => Ok(()),
        Some(v) => {
            let what = format!("vertex {v} has part {}, outside 0..{} (k={k})", start[v], k - 1);
            Err(Error::parameter("partition", what))
        }
    }
}

/// The loads of the parts of a vertex partition under a bound other than the number of vertices, and the
/// bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Weight of each part.
    pub loads: Vec<u64>,
    /// The cap that was asked for.
    pub nominal: u64,
    /// The cap that was kept. It exceeds `nominal` where that was out of reach.
    pub cap: u64,
    /// Both caps of each part, if parts have different shares. `nominal` and `cap` are then the largest.
    pub of_parts: Vec<[u64; 2]>,
}

impl Capacity {
    /// A requested cap and a kept cap, the same for all parts.
    pub fn new(loads: Vec<u64>, nominal: u64, cap: u64) -> Self {
        Self { loads, nominal, cap, of_parts: Vec::new() }
    }

    /// A requested cap and one that was kept for each part.
    pub fn of_parts(loads: Vec<u64>, of_parts: Vec<[u64; 2]>) -> Self {
        let most = |index: usize| of_parts.iter().map(|caps| caps[index]).max().unwrap_or(0);
        Self { loads, nominal: most(0), cap: most(1), of_parts }
    }
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
    pub graph: Identity,
}

words! {
    /// The items that a partition deals to parts.
    pub enum Of {
        /// Vertices.
        Vertices = "vertices",
        /// Edge records.
        Edges = "edges",
    }
}
