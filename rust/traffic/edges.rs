//! Directed edges, as a graph or a directory delivers them.

use crate::base::{Buffer, Result, Run};
use crate::edges::{Directions, EdgeStream, Record};
use crate::exec::pass;
use crate::parts::in_degrees;

/// Edges that a source hands out at a time: 256 KiB.
pub(crate) const BLOCK: usize = 1 << 14;

/// An edge from a source to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectedEdge {
    /// Where it begins.
    pub source: u32,
    /// Where it ends. It is an in-edge of this vertex.
    pub target: u32,
    /// Its id: record r, or m + r for the opposite direction.
    pub id: u64,
}

/// Directed edges that can be read again and again.
pub trait InEdges: Sync {
    /// Number of vertices. Every end of an edge is below it.
    fn num_vertices(&self) -> u64;

    /// Units of work of a visit.
    fn work(&self) -> u64;

    /// In-degree of every vertex.
    fn in_degrees(&self, run: &Run) -> Result<Buffer<u32>>;

    /// Hands every edge to `step`, in blocks, from any thread and in any order.
    fn visit(&self, run: &Run, step: &(dyn Fn(&[DirectedEdge]) + Sync)) -> Result<()>;
}

/// The records of a graph as directed edges.
#[derive(Clone, Copy)]
pub struct GraphEdges<'a> {
    /// The records.
    pub records: &'a dyn EdgeStream,
    /// Which directed edges they are.
    pub directions: &'a Directions,
}

impl InEdges for GraphEdges<'_> {
    fn num_vertices(&self) -> u64 {
        self.records.num_vertices()
    }

    fn work(&self) -> u64 {
        self.records.num_edges()
    }

    fn in_degrees(&self, run: &Run) -> Result<Buffer<u32>> {
        in_degrees(self.records, self.directions, run.budget(), run, |_| true)
    }

    fn visit(&self, run: &Run, step: &(dyn Fn(&[DirectedEdge]) + Sync)) -> Result<()> {
        let (records, m) = (self.records, self.records.num_edges());
        let init = || Ok(Vec::new());
        pass(records, run, crate::edges::BLOCK, usize::MAX, init, |block, first, records| {
            for (records, first) in records.chunks(BLOCK / 2).zip((first..).step_by(BLOCK / 2)) {
                block.clear();
                for (&record, id) in records.iter().zip(first..) {
                    self.push(record, id, m, block);
                }
                step(block);
            }
            Ok(())
        })
        .map(drop)
    }
}

impl GraphEdges<'_> {
    /// Appends the edges that a record says.
    #[inline(always)]
    fn push(&self, record: Record, id: u64, m: u64, block: &mut Vec<DirectedEdge>) {
        let [u, v] = record;
        block.push(DirectedEdge { source: u, target: v, id });
        if self.directions.reverses(id, record) {
            block.push(DirectedEdge { source: v, target: u, id: m + id });
        }
    }
}
