//! The neighbours of every vertex, from a stream of edges.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::degrees::{self, Degrees};
use crate::edges::{EdgeStream, pass::blocks};
use crate::error::Result;
use crate::partition::Graph;
use crate::run::Run;

/// Adjacency: the neighbours of each vertex, ascending; loops are left out, parallel records are parallel entries.
#[derive(Debug)]
pub struct Csr {
    offsets: Buffer<u64>,
    neighbours: Buffer<u32>,
    graph: Graph,
    symmetric: bool,
}

impl Csr {
    /// Builds it. Of an undirected record both ends get an entry; a `symmetric` stream lists both directions, and one
    /// entry per record is the same graph.
    pub fn build(edges: &dyn EdgeStream, symmetric: bool, run: &Run) -> Result<Arc<Csr>> {
        let (n, m) = (edges.num_vertices(), edges.num_edges());
        let Degrees { loops, checksum, .. } = degrees::scan(edges, run)?;
        let graph = Graph { n, m, loops, checksum };
        let mut offsets: Buffer<u64> = Buffer::zeroed(n as usize + 1, "offsets of the adjacency")?;
        let mut buf = Vec::new();
        for range in blocks(0..m) {
            for &[u, v] in edges.block(range, &mut buf)?.iter().filter(|[u, v]| u != v) {
                offsets[u as usize + 1] += 1;
                offsets[v as usize + 1] += u64::from(!symmetric);
            }
            run.advance(0)?;
        }
        for v in 0..n as usize {
            offsets[v + 1] += offsets[v];
        }
        let mut neighbours = Buffer::zeroed(offsets[n as usize] as usize, "adjacency")?;
        let mut next: Vec<u64> = offsets.to_vec();
        for range in blocks(0..m) {
            for &[u, v] in edges.block(range, &mut buf)?.iter().filter(|[u, v]| u != v) {
                neighbours[next[u as usize] as usize] = v;
                next[u as usize] += 1;
                if !symmetric {
                    neighbours[next[v as usize] as usize] = u;
                    next[v as usize] += 1;
                }
            }
            run.advance(0)?;
        }
        for v in 0..n as usize {
            neighbours[offsets[v] as usize..offsets[v + 1] as usize].sort_unstable();
        }
        Ok(Arc::new(Csr { offsets, neighbours, graph, symmetric }))
    }

    /// The graph: `n`, `m` and `loops` count records.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether it has one entry per record instead of two.
    pub fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    /// Number of vertices.
    pub fn num_vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of entries: the sum of all degrees, `2m'`.
    pub fn num_entries(&self) -> u64 {
        self.offsets[self.num_vertices()]
    }

    /// Number of neighbours, parallel ones included.
    #[inline(always)]
    pub fn degree(&self, v: u32) -> u32 {
        (self.offsets[v as usize + 1] - self.offsets[v as usize]) as u32
    }

    /// The neighbours of `v`, ascending.
    #[inline(always)]
    pub fn neighbours(&self, v: u32) -> &[u32] {
        &self.neighbours[self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize]
    }
}
