//! Clusters of the vertices of a large chunk, so that the multilevel partitioner never holds its graph.
//!
//! Label propagation under a size constraint, as in [`crate::algorithms::multilevel::coarsening`], on the entries as they lie.

use super::entries::Entries;
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::random::splitmix64;
use crate::base::run::Run;

/// Rounds over all vertices.
const ROUNDS: u64 = 3;
/// Vertices between two looks at the cancel flag.
const STEP: usize = 1024;

/// Marks vertices that have no entries.
pub const NONE: u32 = u32::MAX;

/// Gives each vertex that has entries a cluster of at most `cap` vertices, numbered `0..` in `cluster_of`, and returns
/// their sizes. Takes 8 bytes per vertex of the sub-problem.
pub fn cluster(
    entries: &Entries,
    cluster_of: &mut [u32],
    cap: u32,
    seed: u64,
    run: &Run,
) -> Result<Vec<u32>> {
    let mut size: Buffer<u32> = Buffer::zeroed(cluster_of.len(), "grem: clusters")?;
    let mut ties: Buffer<u32> = Buffer::zeroed(cluster_of.len(), "grem: ties to clusters")?;
    cluster_of.fill(NONE);
    for (index, (v, _)) in entries.vertices().enumerate() {
        cluster_of[v as usize] = v;
        size[v as usize] = 1;
        if index % STEP == 0 {
            run.advance(0)?;
        }
    }
    let mut touched = Vec::new();
    for round in 0..ROUNDS {
        for (index, (v, neighbours)) in entries.vertices().enumerate() {
            for u in neighbours {
                let cluster = cluster_of[u as usize];
                if ties[cluster as usize] == 0 {
                    touched.push(cluster);
                }
                ties[cluster as usize] += 1;
            }
            let own = cluster_of[v as usize];
            let mut best = (0, 0, own);
            for cluster in touched.drain(..) {
                let tie = std::mem::take(&mut ties[cluster as usize]);
                if tie >= best.0 && (cluster == own || size[cluster as usize] < cap) {
                    // Equal ones are chosen among at random, else low ids would attract everything.
                    let lot = splitmix64(seed ^ round ^ u64::from(cluster) << 32 ^ u64::from(v));
                    best = best.max((tie, lot, cluster));
                }
            }
            size[own as usize] -= 1;
            size[best.2 as usize] += 1;
            cluster_of[v as usize] = best.2;
            if index % STEP == 0 {
                run.advance(0)?;
            }
        }
    }
    let mut sizes = Vec::new();
    run.each(size.len(), |v| {
        if size[v as usize] > 0 {
            // The number takes the place of the ties, which are all 0 by now.
            ties[v as usize] = sizes.len() as u32;
            sizes.push(size[v as usize]);
        }
    })?;
    run.each(cluster_of.len(), |v| match &mut cluster_of[v as usize] {
        &mut NONE => {}
        cluster => *cluster = ties[*cluster as usize],
    })?;
    Ok(sizes)
}
