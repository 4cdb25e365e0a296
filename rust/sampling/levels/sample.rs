//! A batch: levels of nodes, and the in-edges that were sampled between them.

use crate::base::{Error, Result};
use crate::sampling::reused_memory::Memory;

/// The seeds of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Seeds<'a> {
    /// Their rows.
    pub rows: &'a [u32],
    /// Their times, if samples are temporal.
    pub times: &'a [i64],
}

/// Columns of in-edges that a batch has beside their sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeColumns {
    /// Its id.
    pub ids: bool,
    /// Its row in the topology, where its features are.
    pub rows: bool,
}

/// The place of a batch in a training.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The epoch.
    pub epoch: u64,
    /// The batch in it.
    pub step: u64,
}

/// One batch. Nodes of a type and in-edges of a relation lie together, types and relations one after the
/// other. A graph without types has one type and one relation. Within a type the nodes of level 0, the seeds,
/// come first, then the nodes of level 1, and so on.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Row of each node, among those of its type.
    pub rows: Vec<u32>,
    /// Original id of each node.
    pub ids: Vec<i64>,
    /// Where the nodes of each type begin, and their number.
    pub nodes: Vec<usize>,
    /// Where the in-edges of each target begin among those of the relation: one number more than there are
    /// targets. Nodes of the last level are no targets.
    pub indptr: Vec<i32>,
    /// Where the numbers of each relation begin in `indptr`, and their number.
    pub targets: Vec<usize>,
    /// The source of each in-edge: its place among the nodes of its type.
    pub indices: Vec<i32>,
    /// Id of each in-edge, if wanted.
    pub edge_ids: Vec<i64>,
    /// Row of each in-edge, if wanted.
    pub edge_rows: Vec<i64>,
    /// Where the in-edges of each relation begin, and their number.
    pub edges: Vec<usize>,
    /// Whether seeds have times.
    pub temporal: bool,
    /// Time of the seeds that each node belongs to, if they have times.
    pub seed_times: Vec<i64>,
    /// Nodes of each type in each level, type by type.
    pub num_nodes: Vec<u64>,
    /// In-edges of each relation in each hop, relation by relation.
    pub num_edges: Vec<u64>,
}

impl Sample {
    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self) {
        let Self { rows, ids, indptr, indices, edge_ids, edge_rows, seed_times, .. } = self;
        rows.clear();
        [ids, edge_ids, edge_rows, seed_times].into_iter().for_each(Vec::clear);
        [&mut *indptr, indices].into_iter().for_each(Vec::clear);
        indptr.push(0);
        let Self { nodes, targets, edges, temporal, num_nodes, num_edges, .. } = self;
        [nodes, targets, edges].into_iter().for_each(Vec::clear);
        [num_nodes, num_edges].into_iter().for_each(Vec::clear);
        *temporal = false;
    }

    /// Refuses more nodes than places can name, and `more` in-edges if offsets cannot count them.
    pub(crate) fn check_size(&self, more: usize) -> Result<()> {
        let (edges, most) = (self.indices.len() + more, i32::MAX as usize);
        if edges <= most && self.rows.len() <= most {
            return Ok(());
        }
        let what = if edges > most { "edges" } else { "nodes" };
        Err(Error::Capacity(format!("a batch of more than 2^31 {what}. Use fewer seeds or fanouts")))
    }

    /// Ends a batch of one type and one relation.
    pub(crate) fn end(&mut self) {
        self.nodes.extend([0, self.rows.len()]);
        self.targets.extend([0, self.indptr.len()]);
        self.edges.extend([0, self.indices.len()]);
    }
}

impl Memory for Sample {
    fn bytes(&self) -> u64 {
        let Self { rows, ids, indptr, indices, edge_ids, edge_rows, seed_times, .. } = self;
        let small = rows.capacity() + indptr.capacity() + indices.capacity();
        let large = ids.capacity() + edge_ids.capacity() + edge_rows.capacity() + seed_times.capacity();
        (4 * small + 8 * large) as u64
    }
}
