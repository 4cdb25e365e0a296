//! What a partitioner is called with: a graph, its size, and where a result that does not fit into memory goes.
//!
//! A caller implements [`Input`], or fills in a [`Call`]. A partitioner gets a [`Prepared`] graph, which
//! [`partition`](super::contract::partition) makes of it once there is enough memory.

use std::path::Path;
use std::sync::Arc;

use crate::base::{Result, Run};
use crate::edges::EdgeStream;
use crate::graph::Csr;

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

/// The graph of a call, and where a result that does not fit into memory goes.
pub trait Input: Sync {
    /// The records.
    fn edges(&self) -> &dyn EdgeStream;
    /// Whether they list both directions of every edge.
    fn is_symmetric(&self) -> bool {
        false
    }
    /// Whether a record has a direction. Only what depends on sampling, which draws in-edges, looks at it.
    fn is_directed(&self) -> bool {
        false
    }
    /// Whether the adjacency has the weights of the records.
    fn is_weighted(&self) -> bool {
        false
    }
    /// The adjacency, with the weights of the records if the partitioner reads them. Its memory is taken off the budget.
    fn adjacency(&self, run: &Run) -> Result<Arc<Csr>> {
        let csr = Csr::build(self.edges(), self.is_symmetric(), run)?;
        run.hold(csr.bytes());
        Ok(csr)
    }
    /// The `.npy` file for the parts of records.
    fn out(&self) -> Option<&Path> {
        None
    }

    /// The size of the graph.
    fn shape(&self) -> Shape {
        let (edges, symmetric, in_file) = (self.edges(), self.is_symmetric(), self.out().is_some());
        Shape { n: edges.num_vertices(), m: edges.num_edges(), symmetric, in_file }
    }
}

/// A graph that is open as a stream, whose adjacency is built for each call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The records.
    pub edges: &'a dyn EdgeStream,
    /// Whether they list both directions of every edge.
    pub symmetric: bool,
    /// Whether a record has a direction.
    pub directed: bool,
    /// The `.npy` file for the parts of records.
    pub out: Option<&'a Path>,
}

impl<'a> Call<'a> {
    /// An undirected graph, and a result in memory.
    pub fn new(edges: &'a dyn EdgeStream) -> Self {
        Self { edges, symmetric: false, directed: false, out: None }
    }
}

impl Input for Call<'_> {
    fn edges(&self) -> &dyn EdgeStream {
        self.edges
    }

    fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    fn is_directed(&self) -> bool {
        self.directed
    }

    fn out(&self) -> Option<&Path> {
        self.out
    }
}

/// What a partitioner reads beside the records: nothing, or the adjacency.
pub trait Reads: Sized {
    /// Builds it.
    fn prepare(input: &dyn Input, run: &Run) -> Result<Self>;
}

impl Reads for () {
    fn prepare(_: &dyn Input, _: &Run) -> Result<()> {
        Ok(())
    }
}

impl Reads for Arc<Csr> {
    fn prepare(input: &dyn Input, run: &Run) -> Result<Self> {
        input.adjacency(run)
    }
}

/// A graph for which there is enough memory, with what the partitioner reads beside the records.
pub struct Prepared<'a, R> {
    /// The adjacency, where the partitioner reads it.
    pub csr: R,
    /// Threads, budget, progress and cancellation.
    pub run: &'a Run,
    pub(super) input: &'a dyn Input,
}

impl<'a, R> Prepared<'a, R> {
    /// The records.
    pub fn edges(&self) -> &'a dyn EdgeStream {
        self.input.edges()
    }

    /// The size of the graph.
    pub fn shape(&self) -> Shape {
        self.input.shape()
    }

    /// See [`Input::is_directed`].
    pub fn is_directed(&self) -> bool {
        self.input.is_directed()
    }

    /// The `.npy` file for the parts of records.
    pub fn out(&self) -> Option<&'a Path> {
        self.input.out()
    }
}
