//! What it costs that a vertex leaves the part it had before.
//!
//! The connection of a vertex to its old part counts a *price* more. So whoever compares connections moves it only for
//! a gain above the price, and brings it back where less is lost. The cut is then that of the edges, and the price of
//! every vertex that has left.
//!
//! **Source.** Schloegel, Karypis and Kumar, "A Unified Algorithm for Load-balancing Adaptive Scientific Simulations",
//! SC 2000.

use std::sync::Arc;

use crate::base::{Buffer, NONE};

/// The old parts of the vertices, and what leaving them costs.
#[derive(Clone)]
pub struct Migration {
    /// The part that each vertex had, or [`NONE`].
    old: Arc<Buffer<u32>>,
    price: u32,
    /// Vertices that had a part.
    count: u64,
}

impl Migration {
    /// Where `count` vertices have an `old` part, and leaving it has this price above 0.
    pub fn new(old: &Arc<Buffer<u32>>, count: u64, price: u32) -> Option<Self> {
        (price > 0).then(|| Self { old: old.clone(), price, count })
    }

    /// What all vertices would cost.
    pub fn highest(&self) -> u64 {
        self.count * u64::from(self.price)
    }

    /// The part that `v` had, and its price.
    #[inline(always)]
    pub fn of(&self, v: u32) -> Option<(u32, u32)> {
        let old = self.old[v as usize];
        (old != NONE).then_some((old, self.price))
    }

    /// The price if `v` had this part.
    #[inline(always)]
    pub fn penalty(&self, v: u32, part: u32) -> u32 {
        if self.old[v as usize] == part { self.price } else { 0 }
    }

    /// The price if `v`, which has this part, had another.
    #[inline(always)]
    pub fn due(&self, v: u32, part: u32) -> u32 {
        if [NONE, part].contains(&self.old[v as usize]) { 0 } else { self.price }
    }

    /// Adds the price to the connections of `v`. The first `count` of `parts` are those with one.
    #[inline(always)]
    pub fn apply(&self, v: u32, sums: &mut [u32], parts: &mut [u32], count: &mut usize) {
        let old = self.old[v as usize];
        if old == NONE {
            return;
        }
        if sums[old as usize] == 0 {
            parts[*count] = old;
            *count += 1;
        }
        sums[old as usize] = sums[old as usize].saturating_add(self.price);
    }
}
