//! The assignment step under two caps, on the vertices of a part and on their weight.
//!
//! As without weights, clusters go to the parts in descending size, and isolated vertices last, in id order; but to the
//! part, and with the repairs, of [`Placing`].

use super::merging::{BySize, CHECK_EVERY, Clusters};
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{BalanceOn, Balanced, Placing};

/// Gives every vertex a part, none of which exceeds `cap` vertices or the cap of the weights.
pub(super) fn assign(
    clusters: Clusters,
    k: u32,
    cap: u64,
    balance_on: &BalanceOn,
    run: &Run,
) -> Result<Balanced> {
    place(clusters, k, cap, balance_on, run)?.finish()
}

fn place<'a>(
    mut clusters: Clusters,
    k: u32,
    cap: u64,
    balance_on: &'a BalanceOn,
    run: &'a Run,
) -> Result<Placing<'a>> {
    run.begin("assignment", 3 * clusters.of.len() as u64 + 2 * clusters.size.len() as u64);
    clusters.resolve(run)?;
    let members = Members::of(&clusters, run)?;
    let order = BySize::of(&clusters.size, run)?;
    let mut placing = Placing::new(clusters.take_of()?, k, cap, balance_on, run)?;
    for (size, id) in order.descending() {
        placing.place(members.of_cluster(id, size), clusters.weight[id as usize])?;
    }
    placing.place_each(members.isolated())?;
    Ok(placing)
}

/// The vertices of each cluster, in id order; behind them those of none.
struct Members {
    vertices: Buffer<u32>,
    /// Where the vertices of each cluster end.
    end: Buffer<u32>,
    clustered: usize,
}

impl Members {
    /// Sorts the vertices of resolved clusters by counting.
    fn of(clusters: &Clusters, run: &Run) -> Result<Self> {
        let mut vertices: Buffer<u32> = Buffer::zeroed(clusters.of.len(), "spring: vertices by cluster")?;
        let mut end: Buffer<u32> = Buffer::zeroed(clusters.size.len(), "spring: ends of the clusters")?;
        let mut clustered = 0;
        for (end, &size) in end.iter_mut().zip(&*clusters.size) {
            *end = clustered; // its beginning, until the vertices are in place
            clustered += size;
        }
        let mut isolated = clustered;
        let mut ids = 0_u32..;
        for of in clusters.of.chunks(CHECK_EVERY) {
            for (&cluster, vertex) in of.iter().zip(&mut ids) {
                let next = end.get_mut(cluster as usize).unwrap_or(&mut isolated);
                vertices[*next as usize] = vertex;
                *next += 1;
            }
            run.advance(of.len() as u64)?;
        }
        Ok(Self { vertices, end, clustered: clustered as usize })
    }

    fn of_cluster(&self, id: u32, size: u32) -> &[u32] {
        let end = self.end[id as usize] as usize;
        &self.vertices[end - size as usize..end]
    }

    fn isolated(&self) -> &[u32] {
        &self.vertices[self.clustered..]
    }
}
