//! An open graph.

use std::path::Path;
use std::sync::Arc;

use super::{Input, Outcome, Partitioner, partition};
use crate::base::{Result, Run, shown};
use crate::edges::{ByRelation, Directedness, EdgeFile, EdgeStream, Io, OwnedEdges, Weights};
use crate::graph::csr::AdjacencyCache;
use crate::graph::identity::find_num_vertices;

/// A graph that is open: its records, and the data that calls over it share.
///
/// The adjacency is built by the first partitioner that reads it, and kept for others.
pub struct Graph {
    edges: Arc<dyn EdgeStream + Send>,
    weights: Option<Weights>,
    directedness: Directedness,
    adjacency: AdjacencyCache,
}

impl Graph {
    /// Opens a file of edges: pairs of u32 ids, or a `.npy` array of ids. One pass finds the number of
    /// vertices.
    ///
    /// # Errors
    /// The file is missing, is of another format, or has ids that no numbering without large gaps has.
    pub fn open(path: impl AsRef<Path>, run: &Run) -> Result<Self> {
        let path = path.as_ref();
        let mut file = EdgeFile::open(path, None, None, Io::Map)?;
        let n = find_num_vertices(&file, run, None, &shown(path))?;
        file.set_num_vertices(n);
        Ok(Self::new(Arc::new(file), None))
    }

    /// A graph of `n` vertices and these edges, which is kept in memory.
    ///
    /// # Errors
    /// An id is `n` or more.
    pub fn from_edges(n: u64, edges: Vec<[u32; 2]>) -> Result<Self> {
        Ok(Self::new(Arc::new(OwnedEdges::new(n, edges)?), None))
    }

    /// A graph of any stream of records, with a weight for each if there are `weights`.
    pub fn new(edges: Arc<dyn EdgeStream + Send>, weights: Option<Weights>) -> Self {
        let adjacency = AdjacencyCache::default();
        Self { edges, weights, directedness: Directedness::default(), adjacency }
    }

    /// Its records, with these weights instead of any others.
    pub fn with_weights(&self, weights: Option<Weights>) -> Self {
        Self { directedness: self.directedness, ..Self::new(Arc::clone(&self.edges), weights) }
    }

    /// The graph, whose records are known to lie relation by relation.
    pub fn by_relation(self) -> Self {
        Self { edges: Arc::new(ByRelation::new(self.edges)), ..self }
    }

    /// The graph, with records that mean this in directed edges. Otherwise they are undirected edges.
    pub fn with_directedness(self, directedness: Directedness) -> Self {
        Self { directedness, ..self }
    }

    /// Number of vertices.
    pub fn num_vertices(&self) -> u64 {
        self.edges.num_vertices()
    }

    /// Number of records.
    pub fn num_edges(&self) -> u64 {
        self.edges.num_edges()
    }

    /// The records.
    pub fn edges(&self) -> &dyn EdgeStream {
        &*self.edges
    }

    /// The weights of the records.
    pub fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref()
    }

    /// The graph for one call, whose result goes to memory.
    pub fn input(&self) -> Input<'_> {
        Input {
            edges: &*self.edges,
            directedness: self.directedness,
            weights: self.weights.as_ref(),
            cache: Some(&self.adjacency),
            out: None,
        }
    }

    /// Partitions the graph.
    ///
    /// # Errors
    /// A parameter is out of its range, the memory budget is too small, the file changed, or the run was
    /// cancelled.
    pub fn partition<P: Partitioner>(&self, partitioner: &P, run: &Run) -> Result<Outcome> {
        partition(partitioner, &self.input(), run)
    }

    /// Frees the adjacency. The next call that needs it builds it again.
    pub fn forget_adjacency(&self) {
        self.adjacency.forget();
    }
}
