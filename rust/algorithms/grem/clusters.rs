//! Clusters of the vertices of a large chunk, so that the multilevel partitioner never holds its graph.
//!
//! Label propagation under a size constraint, as in
//! [`crate::algorithms::multilevel::coarsening::clustering`], on the entries as they lie.

use super::entries::Entries;
use crate::base::{Buffer, CancelCheck, NONE, Result, Run, splitmix64};
use crate::sets::RatingMap;

/// Rounds over all vertices.
const ROUNDS: u64 = 3;

/// Gives each vertex that has entries a cluster of at most `cap` vertices, numbered `0..` in `cluster_of`,
/// and returns their sizes. Takes 4 bytes per vertex of the sub-problem.
pub(crate) fn cluster(
    entries: &Entries,
    cluster_of: &mut [u32],
    cap: u32,
    seed: u64,
    run: &Run,
) -> Result<Vec<u32>> {
    let mut size: Buffer<u32> = Buffer::zeroed(cluster_of.len(), "grem: clusters")?;
    cluster_of.fill(NONE);
    let (mut check, mut widest) = (CancelCheck::new(run), 0);
    for (v, neighbours) in entries.vertices() {
        cluster_of[v as usize] = v;
        size[v as usize] = 1;
        widest = widest.max(neighbours.len());
        check.count(1)?;
    }
    let mut connections = RatingMap::new(widest, cluster_of.len())?;
    for round in 0..ROUNDS {
        for (v, neighbours) in entries.vertices() {
            connections.begin_growing(neighbours.len());
            for u in neighbours {
                connections.add(cluster_of[u as usize], 1);
            }
            let own = cluster_of[v as usize];
            let mut best = (0, 0, own);
            for [cluster, connection] in connections.sums() {
                if connection >= best.0 && (cluster == own || size[cluster as usize] < cap) {
                    // Equal ones are chosen among at random, else low ids would attract everything.
                    let tie_break = splitmix64(seed ^ round ^ u64::from(cluster) << 32 ^ u64::from(v));
                    best = best.max((connection, tie_break, cluster));
                }
            }
            size[own as usize] -= 1;
            size[best.2 as usize] += 1;
            cluster_of[v as usize] = best.2;
            check.count(4)?;
        }
    }
    let mut sizes = Vec::new();
    run.each(size.len(), |v| {
        let size = &mut size[v as usize];
        if *size > 0 {
            // Its number takes the place of its size.
            sizes.push(std::mem::replace(size, sizes.len() as u32));
        }
    })?;
    run.each(cluster_of.len(), |v| match &mut cluster_of[v as usize] {
        &mut NONE => {}
        cluster => *cluster = size[*cluster as usize],
    })?;
    Ok(sizes)
}
