//! The input of a partitioner: a graph, its size, and the file of a result that does not fit into memory.
//!
//! A caller fills in an [`Input`]. A partitioner gets a [`Prepared`] graph, which
//! [`partition`](super::contract::partition) makes of it once there is enough memory.

use std::path::Path;
use std::sync::Arc;

use crate::base::{Result, Run};
use crate::edges::{Directedness, EdgeStream, Weights};
use crate::graph::Csr;
use crate::graph::csr::AdjacencyCache;

/// The size of a graph, which is all that estimates of memory know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of vertices.
    pub n: u64,
    /// Number of records.
    pub m: u64,
    /// Whether the records list both directions of every edge.
    pub symmetric: bool,
    /// Whether the parts of records go to a file.
    pub in_file: bool,
}

impl Shape {
    /// Most entries of the adjacency.
    pub fn entries(&self) -> u64 {
        self.m.saturating_mul(if self.symmetric { 1 } else { 2 })
    }
}

/// A graph as a call sees it, and where a result that does not fit into memory goes.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The records.
    pub edges: &'a dyn EdgeStream,
    /// The directed edges that a record stands for.
    pub directedness: Directedness,
    /// The weights of the records, for those who read them.
    pub weights: Option<&'a Weights>,
    /// Keeps the adjacency for further calls.
    pub cache: Option<&'a AdjacencyCache>,
    /// The `.npy` file for the parts of records.
    pub out: Option<&'a Path>,
}

impl<'a> Input<'a> {
    /// Undirected edges without weights, and a result in memory.
    pub fn new(edges: &'a dyn EdgeStream) -> Self {
        Self { edges, directedness: Directedness::Undirected, weights: None, cache: None, out: None }
    }

    /// The size of the graph.
    pub fn shape(&self) -> Shape {
        Shape {
            n: self.edges.num_vertices(),
            m: self.edges.num_edges(),
            symmetric: self.directedness == Directedness::Symmetric,
            in_file: self.out.is_some(),
        }
    }

    /// The adjacency, with the weights if there are any. Its memory is taken off the budget.
    pub fn adjacency(&self, run: &Run) -> Result<Arc<Csr>> {
        let own = AdjacencyCache::default();
        let symmetric = self.directedness == Directedness::Symmetric;
        self.cache.unwrap_or(&own).get(self.edges, self.weights, symmetric, run)
    }
}

/// The data that a partitioner reads beside the records: nothing, or the adjacency.
pub trait Reads: Sized {
    /// Builds it.
    fn prepare(input: &Input, run: &Run) -> Result<Self>;
}

impl Reads for () {
    fn prepare(_: &Input, _: &Run) -> Result<()> {
        Ok(())
    }
}

impl Reads for Arc<Csr> {
    fn prepare(input: &Input, run: &Run) -> Result<Self> {
        input.adjacency(run)
    }
}

/// A graph for which there is enough memory, with the data that the partitioner reads beside the records.
pub struct Prepared<'a, R> {
    /// The adjacency, where the partitioner reads it.
    pub csr: R,
    /// Threads, budget, progress and cancellation.
    pub run: &'a Run,
    pub(super) input: &'a Input<'a>,
}

impl<'a, R> Prepared<'a, R> {
    /// The records.
    pub fn edges(&self) -> &'a dyn EdgeStream {
        self.input.edges
    }

    /// The size of the graph.
    pub fn shape(&self) -> Shape {
        self.input.shape()
    }

    /// Whether a record has a direction. Only algorithms that depend on sampling, which draws in-edges, use
    /// it.
    pub fn is_directed(&self) -> bool {
        self.input.directedness == Directedness::Directed
    }

    /// The `.npy` file for the parts of records.
    pub fn out(&self) -> Option<&'a Path> {
        self.input.out
    }
}
