//! The migration penalty: the cost of a vertex that leaves its old part.
//!
//! The connection of a vertex to its old part counts a *price* more. An algorithm that compares connections
//! then moves the vertex only for a gain above the price, and moves it back where that loses less. The cut is
//! then the weight of the cut edges, and the price of every vertex that has left its old part.
//!
//! **Source.** Schloegel, Karypis and Kumar, "A Unified Algorithm for Load-balancing Adaptive Scientific
//! Simulations", SC 2000.

use std::sync::Arc;

use crate::base::{Buffer, NONE};
use crate::sets::SparseSums;

/// The old parts of the vertices, and the penalty for leaving them.
#[derive(Clone)]
pub struct Migration {
    /// The part that each vertex had, or [`NONE`].
    old: Arc<Buffer<u32>>,
    price: u32,
    /// Vertices that had a part.
    count: u64,
}

impl Migration {
    /// The penalty where `count` vertices have an `old` part. `None` if the price is 0.
    pub fn new(old: &Arc<Buffer<u32>>, count: u64, price: u32) -> Option<Self> {
        (price > 0).then(|| Self { old: old.clone(), price, count })
    }

    /// The sum of the penalties if all vertices leave their old parts.
    pub fn highest(&self) -> u64 {
        self.count * u64::from(self.price)
    }

    /// The part that `v` had, and its price.
    #[inline(always)]
    pub fn of(&self, v: u32) -> Option<(u32, u32)> {
        let old = self.old[v as usize];
        (old != NONE).then_some((old, self.price))
    }

    /// The penalty of `v` for leaving `part`: the price if it is its old part, else 0.
    #[inline(always)]
    pub fn penalty(&self, v: u32, part: u32) -> u32 {
        if self.old[v as usize] == part { self.price } else { 0 }
    }

    /// The penalty of `v` for being in `part`: the price if it had another part, else 0.
    #[inline(always)]
    pub fn due(&self, v: u32, part: u32) -> u32 {
        if [NONE, part].contains(&self.old[v as usize]) { 0 } else { self.price }
    }

    /// Adds the price to the connection of `v` to its old part.
    #[inline(always)]
    pub(crate) fn apply(&self, v: u32, connections: &mut SparseSums<u32>) {
        if let Some((old, price)) = self.of(v) {
            connections.add(old, price.min(u32::MAX - connections.of(old)));
        }
    }
}
