//! Blocks: each vertex with the centre that reaches it first.
//!
//! **Algorithm.** A breadth-first search from all centres at once, level by level. A pass over the records
//! offers every vertex without a block the blocks of its neighbours in the level before. It takes the one
//! with the lowest centre. So a vertex gets the block that is nearest, and of several the one with the lowest
//! id.
//!
//! **Parallelism.** By records. The least of all offers does not depend on their order.

use std::sync::atomic::Ordering::Relaxed;

use crate::base::{Buffer, NONE, Result, Run, shared};
use crate::edges::{BLOCK, EdgeStream};
use crate::exec::{for_each, pass};
use crate::sets::Groups;

/// The blocks, numbered in the order of their centres' ids.
pub struct Blocks {
    centres: Buffer<u32>,
    members: Groups,
    /// Distance of each vertex of a block from its centre.
    distance: Buffer<u8>,
}

impl Blocks {
    /// The blocks of all vertices whose number in `splits` is not 0. A block reaches up to `hops` (at most
    /// 255) from its centre.
    pub fn new(
        edges: &dyn EdgeStream,
        directed: bool,
        splits: &[u32],
        hops: u32,
        run: &Run,
    ) -> Result<Blocks> {
        let n = splits.len();
        let is_centre = |v: u32| (splits[v as usize] != 0).then_some(0);
        let centres = Groups::counted(n, 1, is_centre, |_| run.check())?.into_items();
        let mut block_of: Buffer<u32> = Buffer::zeroed(n, "block of each vertex")?;
        block_of.fill(NONE);
        centres.iter().zip(0..).for_each(|(&centre, block)| block_of[centre as usize] = block);
        let mut distance: Buffer<u8> = Buffer::zeroed(n, "distance from the centre")?;
        search(edges, directed, &mut block_of, &mut distance, hops, run)?;
        run.begin("blocks", 2 * n as u64);
        let block = |v: u32| Some(block_of[v as usize]).filter(|&block| block != NONE);
        let members = Groups::counted(n, centres.len(), block, |vertices| run.advance(vertices))?;
        Ok(Blocks { centres, members, distance })
    }

    /// The centres, ascending.
    pub fn centres(&self) -> &[u32] {
        &self.centres
    }

    /// The vertices of a block, ascending.
    pub fn members(&self, block: u32) -> &[u32] {
        self.members.group(block)
    }

    /// The vertices of all blocks.
    pub fn all_members(&self) -> &[u32] {
        self.members.items()
    }

    /// Brings vertices of a block into breadth-first order: by distance, then by id.
    pub fn sort(&self, members: &mut [u32]) {
        members.sort_unstable_by_key(|&v| (self.distance[v as usize], v));
    }
}

/// Spreads the blocks `hops` levels beyond the vertices that have one.
fn search(
    edges: &dyn EdgeStream,
    directed: bool,
    block_of: &mut Buffer<u32>,
    distance: &mut Buffer<u8>,
    hops: u32,
    run: &Run,
) -> Result<()> {
    let n = block_of.len();
    let mut offers: Buffer<u32> = Buffer::zeroed(n, "blocks of the next level")?;
    offers.fill(NONE);
    run.begin("search", u64::from(hops) * (edges.num_edges() + 2 * n as u64));
    for hop in 1..=hops {
        let offered = shared(&mut offers);
        let offer = |from: u32, to: u32| {
            let block = block_of[from as usize];
            if block != NONE && block_of[to as usize] == NONE {
                offered[to as usize].fetch_min(block, Relaxed);
            }
        };
        pass(
            edges,
            run,
            BLOCK,
            usize::MAX,
            || Ok(()),
            |(), _, records| {
                for &[u, v] in records {
                    // v draws the in-edge from u.
                    offer(v, u);
                    if !directed {
                        offer(u, v);
                    }
                }
                Ok(())
            },
        )?;
        let is_new = |v: usize| block_of[v] == NONE && offers[v] != NONE;
        for_each(distance, run, |v, distance| {
            if is_new(v) {
                *distance = hop as u8;
            }
        })?;
        for_each(block_of, run, |v, block| *block = (*block).min(offers[v]))?;
    }
    Ok(())
}
