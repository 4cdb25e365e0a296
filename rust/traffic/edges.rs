//! Directed edges, as a graph or a directory delivers them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::base::{Buffer, Result, Run, shared};
use crate::edges::{Directions, EdgeStream, Record, Relations};
use crate::exec::{pass, scan};
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

/// Directed edges that can be read again and again, relation by relation. A plain graph has one relation.
pub trait InEdges: Sync {
    /// Number of vertices. Every end of an edge is below it.
    fn num_vertices(&self) -> u64;

    /// Number of relations.
    fn num_relations(&self) -> usize {
        1
    }

    /// The ranges of vertices that are of one type each: where each ends, ascending, and its type.
    fn ranges(&self) -> Vec<(u32, u16)> {
        vec![(self.num_vertices() as u32, 0)]
    }

    /// Units of work of a visit.
    fn work(&self, relation: usize) -> u64;

    /// Number of in-edges of a relation at every vertex.
    fn in_degrees(&self, relation: usize, run: &Run) -> Result<Buffer<u32>>;

    /// Hands every edge of a relation to `step`, in blocks, from any thread and in any order.
    fn visit(&self, relation: usize, run: &Run, step: &(dyn Fn(&[DirectedEdge]) + Sync)) -> Result<()>;
}

/// The in-degrees of one relation after the other. The last ones are kept, which are all that a plain graph
/// has.
pub(super) struct Degrees<'a> {
    edges: &'a dyn InEdges,
    known: Option<(usize, Buffer<u32>)>,
}

impl<'a> Degrees<'a> {
    pub(super) fn new(edges: &'a dyn InEdges) -> Self {
        Self { edges, known: None }
    }

    pub(super) fn of(&mut self, relation: usize, run: &Run) -> Result<&[u32]> {
        if self.known.as_ref().is_none_or(|&(known, _)| known != relation) {
            self.known = None; // one at a time in memory
            self.known = Some((relation, self.edges.in_degrees(relation, run)?));
        }
        Ok(self.known.as_ref().map_or(&[], |(_, degrees)| degrees))
    }
}

/// The records of a graph as directed edges.
#[derive(Clone, Copy)]
pub struct GraphEdges<'a> {
    /// The records.
    pub records: &'a dyn EdgeStream,
    /// The directed edges that they stand for.
    pub directions: &'a Directions,
}

impl InEdges for GraphEdges<'_> {
    fn num_vertices(&self) -> u64 {
        self.records.num_vertices()
    }

    fn work(&self, _: usize) -> u64 {
        self.records.num_edges()
    }

    fn in_degrees(&self, _: usize, run: &Run) -> Result<Buffer<u32>> {
        in_degrees(self.records, self.directions, run.budget(), run, |_| true)
    }

    fn visit(&self, _: usize, run: &Run, step: &(dyn Fn(&[DirectedEdge]) + Sync)) -> Result<()> {
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

/// The records of a graph with types as directed edges of its relations and their reverse ones.
pub struct TypedEdges<'a> {
    /// The records.
    pub records: &'a dyn EdgeStream,
    /// The relation of each.
    pub relations: &'a Relations,
    /// Number of vertices of each type.
    pub types: &'a [u64],
}

impl InEdges for TypedEdges<'_> {
    fn num_vertices(&self) -> u64 {
        self.records.num_vertices()
    }

    fn num_relations(&self) -> usize {
        self.relations.num_numbers()
    }

    fn ranges(&self) -> Vec<(u32, u16)> {
        let ends = self.types.iter().scan(0, |end, size| {
            *end += *size as u32;
            Some(*end)
        });
        ends.zip(0..).collect()
    }

    fn work(&self, relation: usize) -> u64 {
        let records = self.relations.of_number(relation).0;
        records.end - records.start
    }

    fn in_degrees(&self, relation: usize, run: &Run) -> Result<Buffer<u32>> {
        let mut degrees = Buffer::zeroed(self.num_vertices() as usize, "in-degrees of a relation")?;
        let counts: &[AtomicU32] = shared(&mut degrees);
        run.begin("degrees", self.work(relation));
        self.visit(relation, run, &|block| {
            for edge in block {
                counts[edge.target as usize].fetch_add(1, Relaxed);
            }
        })?;
        Ok(degrees)
    }

    fn visit(&self, relation: usize, run: &Run, step: &(dyn Fn(&[DirectedEdge]) + Sync)) -> Result<()> {
        let (records, m) = (self.records, self.records.num_edges());
        let (range, [forward, backward]) = self.relations.of_number(relation);
        let blocks =
            range.clone().step_by(BLOCK / 2).map(|first| first..range.end.min(first + BLOCK as u64 / 2));
        records.check_unchanged()?;
        scan(
            run,
            usize::MAX,
            blocks,
            || Ok((Vec::new(), Vec::new())),
            |(buffer, block), range| {
                block.clear();
                let read = records.block(range.clone(), buffer)?;
                for (&record, id) in read.iter().zip(range) {
                    let [u, v] = record;
                    if forward {
                        block.push(DirectedEdge { source: u, target: v, id });
                    }
                    if backward && self.relations.reverses(id, record) {
                        block.push(DirectedEdge { source: v, target: u, id: m + id });
                    }
                }
                step(block);
                run.advance(read.len() as u64)
            },
        )?;
        records.check_unchanged()
    }
}
