//! Clusters of vertices. SIGMA and 2PS map them to parts, and users can request them.

pub(crate) mod bounded;
pub(crate) mod hollocou;
pub(crate) mod modularity;

use std::ops::Range;

use crate::base::{Buffer, NONE, Result, Run};
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::{pass, scan_ranges};
use crate::graph::Csr;
pub use bounded::BoundedClustering;
pub use hollocou::Hollocou;
pub use modularity::Modularity;

/// A clustering of all vertices.
#[derive(Debug)]
pub struct Clusters {
    /// Cluster of each vertex, `0..count`. Numbered in the order of their lowest vertices.
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

    /// Modularity, if `internal` of the ends of edges belong to edges inside a cluster.
    fn modularity(&self, internal: u64) -> f64 {
        let ends: u64 = self.volumes.iter().sum();
        if ends == 0 {
            return 0.0;
        }
        // Squares in integers, so that the sum depends on no order.
        let squares: u128 = self.volumes.iter().map(|&volume| u128::from(volume).pow(2)).sum();
        internal as f64 / ends as f64 - squares as f64 / (ends as f64 * ends as f64)
    }

    /// Numbers the clusters of `cluster_of`, any ids below `spare.len()`, and counts their members. `spare`
    /// takes the new numbers.
    pub fn numbered(
        mut cluster_of: Buffer<u32>,
        mut spare: Buffer<u32>,
        degree: impl Fn(u32) -> u32,
        run: &Run,
    ) -> Result<Self> {
        let mut count = 0;
        run.each(spare.len(), |v| spare[v as usize] = NONE)?;
        run.each(cluster_of.len(), |v| {
            let cluster = &mut cluster_of[v as usize];
            let id = &mut spare[*cluster as usize];
            if *id == NONE {
                *id = count;
                count += 1;
            }
            *cluster = *id;
        })?;
        drop(spare);
        let mut sizes: Buffer<u32> = Buffer::zeroed(count as usize, "sizes of clusters")?;
        let mut volumes: Buffer<u64> = Buffer::zeroed(count as usize, "volumes of clusters")?;
        run.each(cluster_of.len(), |v| {
            let cluster = cluster_of[v as usize] as usize;
            sizes[cluster] += 1;
            volumes[cluster] += u64::from(degree(v));
        })?;
        Ok(Self { cluster_of, sizes, volumes })
    }
}

/// Modularity of `clusters`: the share of edges inside, less that expected in a random graph of the same
/// degrees, `sum over C of in(C) / 2m' - (vol(C) / 2m')^2`, where `in(C)` counts internal edges from both
/// ends. 0 without edges.
pub fn modularity(csr: &Csr, clusters: &Clusters, run: &Run) -> Result<f64> {
    let of = &clusters.cluster_of;
    run.begin("modularity", csr.num_entries());
    let count = |internal: &mut u64, vertices: Range<usize>| {
        for v in vertices.clone() {
            let inside = |&&u: &&u32| of[u as usize] == of[v];
            *internal += csr.neighbours(v as u32).iter().filter(inside).count() as u64;
        }
        run.advance(vertices.map(|v| u64::from(csr.degree(v as u32))).sum())
    };
    let internal = scan_ranges(run, usize::MAX, of.len(), 512, || Ok(0), count)?.iter().sum();
    Ok(clusters.modularity(internal))
}

/// Modularity of `clusters`, from a stream.
pub fn modularity_of_stream(edges: &dyn EdgeStream, clusters: &Clusters, run: &Run) -> Result<f64> {
    let of = &clusters.cluster_of;
    run.begin("modularity", edges.num_edges());
    let count = |internal: &mut u64, _, records: &[Record]| {
        let inside = |&&[u, v]: &&Record| u != v && of[u as usize] == of[v as usize];
        *internal += records.iter().filter(inside).count() as u64;
        Ok(())
    };
    let internal: u64 = pass(edges, run, BLOCK, usize::MAX, || Ok(0), count)?.iter().sum();
    Ok(clusters.modularity(2 * internal))
}
