//! Clusters of vertices: what SIGMA and 2PS map to parts, and users ask for by themselves.

use crate::buffer::Buffer;

/// A clustering of all vertices.
#[derive(Debug)]
pub struct Clusters {
    /// Cluster of each vertex, `0..count`.
    pub cluster_of: Buffer<u32>,
    /// Vertices of each cluster.
    pub sizes: Buffer<u32>,
    /// Sum of the degrees of each cluster.
    pub volumes: Buffer<u64>,
}

impl Clusters {
    /// Number of clusters.
    pub fn count(&self) -> u32 {
        self.sizes.len() as u32
    }
}
