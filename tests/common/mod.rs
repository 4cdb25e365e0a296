//! What the integration tests share: graphs in memory, and random ones.

// Each group of tests is a crate of its own and uses some of this.
#![allow(dead_code)]

pub mod children;
pub mod edge_streams;
pub mod parts;
pub mod sigma;
pub mod spring;
pub mod text;

use std::ops::Range;
use std::path::Path;

use fastpart::internals::base::Result;
use fastpart::internals::base::Run;
use fastpart::internals::edges::MemoryEdges;
use fastpart::internals::edges::{Column, IdType};
use fastpart::internals::edges::{EdgeStream, Record};
use fastpart::internals::partition::{EdgePartition, Input, Partitioner, VertexPartition, partition};
use proptest::prelude::*;

/// A graph in memory, with its records at hand for oracles.
pub struct Graph {
    pub n: u64,
    pub records: Vec<Record>,
    edges: MemoryEdges,
}

impl Graph {
    pub fn new(n: u64, records: Vec<Record>) -> Self {
        let start = records.as_ptr().cast::<u8>();
        let columns = [0, 4].map(|offset| Column {
            start: start.wrapping_add(offset),
            stride: 8,
            id_type: IdType::U32,
            swapped: false,
        });
        // SAFETY: the records live, unchanged, as long as the graph; moving a vector leaves its items in place.
        let edges = unsafe { MemoryEdges::new(columns, records.len() as u64, n) };
        Self { n, records, edges }
    }

    pub fn m(&self) -> u64 {
        self.records.len() as u64
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "n = {}, records {:?}", self.n, self.records)
    }
}

// SAFETY: `edges` keeps the promise.
unsafe impl EdgeStream for Graph {
    fn num_vertices(&self) -> u64 {
        self.edges.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.m()
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        self.edges.block(range, buf)
    }
}

/// Partitioners of vertices, which read no adjacency but their own.
pub trait OfVertices: Partitioner {
    fn partition(&self, edges: &dyn EdgeStream, run: &Run) -> Result<VertexPartition> {
        partition(self, &Input::new(edges), run)?.partition.vertices()
    }
}

impl<P: Partitioner> OfVertices for P {}

/// Partitioners of records.
pub trait OfEdges: Partitioner {
    fn partition(&self, edges: &dyn EdgeStream, out: Option<&Path>, run: &Run) -> Result<EdgePartition> {
        partition(self, &Input { out, ..Input::new(edges) }, run)?.partition.edges()
    }
}

impl<P: Partitioner> OfEdges for P {}

/// A run on `threads` threads with plenty of memory.
pub fn run(threads: usize) -> Run {
    Run::new(Some(threads), Some(1 << 34)).unwrap()
}

/// Graphs of up to `max_n` vertices and `max_m` records: none at all, or with loops, parallel and reversed records,
/// and, since only the first few ids may be used, isolated vertices.
pub fn graphs(max_n: u32, max_m: usize) -> impl Strategy<Value = Graph> {
    let records = move |n: u32| {
        let used = 1..=n.max(1);
        used.prop_flat_map(move |used| {
            let most = if n == 0 { 0 } else { max_m };
            proptest::collection::vec([0..used, 0..used], 0..=most)
        })
        .prop_map(move |records| Graph::new(u64::from(n), records))
    };
    (0..=max_n).prop_flat_map(records)
}
