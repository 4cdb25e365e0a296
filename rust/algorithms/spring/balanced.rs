//! The assignment step under two caps, on the vertices of a part and on their weight.
//!
//! As without weights, clusters go to the parts in descending size, and isolated vertices last, in id order.
//! But to the part, and with the repairs, of [`Placing`].

use super::merging::{BySize, Clusters};
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{BalanceOn, BalancedAssignment, Placing};
use crate::sets::groups::Groups;

/// Gives every vertex a part, none of which exceeds `cap` vertices or the cap of the weights.
pub(super) fn assign(
    clusters: Clusters,
    k: u32,
    cap: u64,
    balance_on: &BalanceOn,
    run: &Run,
) -> Result<BalancedAssignment> {
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
    let members = members(&clusters, run)?;
    let order = BySize::of(&clusters.size, run)?;
    let mut placing = Placing::new(clusters.take_of()?, k, cap, balance_on, run)?;
    for (_, id) in order.descending() {
        placing.place(members.group(id), clusters.weight[id as usize])?;
    }
    placing.place_each(members.group(clusters.size.len() as u32))?;
    Ok(placing)
}

/// The vertices of each cluster, resolved, in id order. The last group has the vertices without a cluster.
fn members(clusters: &Clusters, run: &Run) -> Result<Groups> {
    let count = clusters.size.len();
    let mut sizes: Buffer<u32> = Buffer::zeroed(count + 1, "spring: sizes of the clusters")?;
    sizes[..count].copy_from_slice(&clusters.size);
    sizes[count] = clusters.of.len() as u32 - clusters.size.iter().sum::<u32>();
    let cluster = |v: u32| Some(clusters.of[v as usize].min(count as u32));
    Groups::of(clusters.of.len(), sizes, cluster, |done| run.advance(done))
}
