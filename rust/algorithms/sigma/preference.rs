//! The preferred part of each vertex: that of its cluster.
//!
//! **Memory.** 20 bytes per vertex at the peak, adjacency and the clustering's scratch space not counted. The
//! result takes 4.
//!
//! **Algorithm.** Modularity clusters, none too large for a part, are mapped to parts by sorted-list
//! scheduling: the heaviest first, each to the least loaded part.
//!
//! **Source.** SIGMA, section 3.3.

use crate::base::{Buffer, Result, Run, reserved};
use crate::capacity::schedule;
use crate::clustering::{Clusters, Modularity};
use crate::exec::for_each;
use crate::graph::Csr;

/// Bytes per vertex at the peak, adjacency and scratch space not counted.
pub(crate) const BYTES_PER_VERTEX: u64 = 20;

/// The weight that parts get evenly when clusters are mapped to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Vertices: for partitions of vertices.
    Vertices,
    /// Degrees: for partitions of records.
    Degrees,
}

/// Clusters the graph and maps the clusters to `k` parts: the part of each vertex's cluster. `caps` bound the
/// vertices of a cluster, and its sum of `d(v) + 1`.
pub fn preferred_parts(csr: &Csr, k: u32, caps: [u64; 2], weight: Weight, run: &Run) -> Result<Buffer<u32>> {
    let needed = csr.num_vertices() as u64 * BYTES_PER_VERTEX;
    run.require(needed, format!("clusters of {} vertices", csr.num_vertices()))?;
    let modularity =
        Modularity { max_vertices: Some(caps[0].max(1)), max_volume: Some(caps[1].max(1)), batch: None };
    let Clusters { cluster_of: mut parts, sizes, volumes } = modularity.cluster(csr, run)?;
    let part_of = match weight {
        Weight::Vertices => {
            drop(volumes);
            let mut weights = reserved(sizes.len(), "weights of clusters")?;
            weights.extend(sizes.iter().map(|&size| u64::from(size)));
            drop(sizes);
            schedule(&weights, k, run)?
        }
        Weight::Degrees => {
            drop(sizes);
            schedule(&volumes, k, run)?
        }
    };
    run.begin("clusters to parts", parts.len() as u64);
    for_each(&mut parts, run, |_, part| *part = part_of[*part as usize])?;
    Ok(parts)
}
