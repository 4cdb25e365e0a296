//! Vertices without neighbours, last, to the parts with the fewest vertices.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{CHECK_EVERY, Load};
use crate::base::NONE;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::graph::csr::Csr;

/// Gives each isolated vertex, in id order, the part with the fewest vertices (ties: the lowest) among those with room
/// for it under the `caps`; without room anywhere, among all.
pub fn place(csr: &Csr, parts: &mut [u32], loads: &mut [Load], caps: Load, run: &Run) -> Result<()> {
    let mut with_room: BinaryHeap<_> =
        (0..).zip(loads.iter()).map(|(part, load)| Reverse((load[0], part))).collect();
    let mut without = BinaryHeap::new();
    for (v, part) in parts.iter_mut().enumerate() {
        if v.is_multiple_of(CHECK_EVERY) {
            run.advance(0)?;
        }
        if *part != NONE || csr.degree(v as u32) > 0 {
            continue;
        }
        let is_full = |part: u32| (0..2).any(|dimension| loads[part as usize][dimension] >= caps[dimension]);
        while let Some(full) = with_room.peek().filter(|fewest| is_full(fewest.0.1)).copied() {
            with_room.pop();
            without.push(full);
        }
        let queue = if with_room.is_empty() { &mut without } else { &mut with_room };
        if let Some(mut fewest) = queue.peek_mut() {
            let Reverse((vertices, chosen)) = &mut *fewest;
            *vertices += 1;
            *part = *chosen;
            let load = &mut loads[*chosen as usize];
            *load = [load[0] + 1, load[1] + 1];
        }
    }
    Ok(())
}
