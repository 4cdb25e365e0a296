//! A batch: levels of nodes, and the in-edges that were sampled between them.

use super::pool::Memory;

/// The seeds of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Seeds<'a> {
    /// Their rows.
    pub rows: &'a [u32],
    /// Their times, if samples are temporal.
    pub times: &'a [i64],
}

/// The columns of in-edges that are kept beside the sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeColumns {
    /// Its id.
    pub ids: bool,
    /// Its row in the topology, where its features are.
    pub rows: bool,
}

/// One batch. Its nodes come level by level: the seeds, which are level 0, then level 1, and so on.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Row of each node.
    pub rows: Vec<u32>,
    /// Original id of each node.
    pub ids: Vec<i64>,
    /// Where the in-edges of each node begin, except for the last level, whose nodes have none.
    pub indptr: Vec<i32>,
    /// The source of each in-edge: its place among the nodes.
    pub indices: Vec<i32>,
    /// Id of each in-edge, if wanted.
    pub edge_ids: Vec<i64>,
    /// Row of each in-edge, if wanted.
    pub edge_rows: Vec<i64>,
    /// Whether seeds have times.
    pub temporal: bool,
    /// Time of the seeds that each node belongs to, if they have times.
    pub seed_times: Vec<i64>,
    /// Nodes of each level.
    pub num_nodes: Vec<u64>,
    /// In-edges of the nodes of each level but the last.
    pub num_edges: Vec<u64>,
}

impl Sample {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        let Self {
            rows,
            ids,
            indptr,
            indices,
            edge_ids,
            edge_rows,
            temporal,
            seed_times,
            num_nodes,
            num_edges,
        } = self;
        rows.clear();
        ids.clear();
        indptr.clear();
        indices.clear();
        edge_ids.clear();
        edge_rows.clear();
        *temporal = false;
        seed_times.clear();
        num_nodes.clear();
        num_edges.clear();
        indptr.push(0);
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
