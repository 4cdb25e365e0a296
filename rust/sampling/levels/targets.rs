//! Nodes whose in-edges are sampled, in blocks.
//!
//! The data of a vertex lies in several arrays at random places. A block of vertices is looked up one array
//! after the other. Meanwhile the data of the next block is on its way into the cache.

use crate::base::Result;
use crate::sampling::topology::Topology;
use crate::sampling::topology::part::Part;

/// Nodes of a block.
pub(crate) const BLOCK: usize = 64;

/// In-edges of a target that are on their way into the cache.
const FIRST_EDGES: usize = 64;

/// In-edges of a line of the cache. A list may begin within one.
const LINE: usize = 16;

/// A vertex whose in-edges are sampled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Target {
    /// Its part.
    pub part: u32,
    /// Its place among the inner vertices of the part.
    pub vertex: u32,
    /// Its original id.
    pub id: i64,
    /// Its first in-edge.
    pub first: usize,
    /// Its in-degree.
    pub degree: usize,
}

/// Some vertices.
#[derive(Debug)]
pub(crate) struct Targets {
    block: [Target; BLOCK],
    len: usize,
}

impl Targets {
    /// No vertices.
    pub(crate) fn none() -> Self {
        Self { block: [Target::default(); BLOCK], len: 0 }
    }

    /// The first rows of `rows`, and brings into the cache what [`Self::look_up`] reads.
    pub(crate) fn locate(&mut self, topology: &Topology, rows: &[u32]) {
        self.len = rows.len().min(BLOCK);
        for (target, &row) in self.block.iter_mut().zip(rows) {
            let part = topology.part_of(row);
            let vertex = row - topology.parts()[part].start;
            topology.parts()[part].prefetch(vertex);
            *target = Target { part: part as u32, vertex, ..Target::default() };
        }
    }

    /// Looks up ids and in-edges, and brings into the cache the first of these where a list is `short`.
    pub(crate) fn look_up(&mut self, topology: &Topology, short: usize, ids: &mut Vec<i64>) -> Result<()> {
        for target in &mut self.block[..self.len] {
            let part = &topology.parts()[target.part as usize];
            (target.first, target.degree) = part.in_edges(target.vertex)?;
            target.id = part.id(target.vertex)?;
            ids.push(target.id);
            if target.degree <= short {
                for edge in (0..target.degree.min(FIRST_EDGES) + LINE - 1).step_by(LINE) {
                    part.indices.prefetch(target.first + edge);
                }
            }
        }
        Ok(())
    }

    /// The targets, each with its part.
    pub(crate) fn iter<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = (&'a Target, &'a Part)> {
        self.block[..self.len].iter().map(|target| (target, &topology.parts()[target.part as usize]))
    }

    /// Number of targets.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
