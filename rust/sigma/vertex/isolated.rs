//! Vertices without neighbours, last, to the parts with the fewest vertices.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::UNPLACED;
use super::loads::Loads;
use crate::balance::CHECK_EVERY;
use crate::csr::Csr;
use crate::error::Result;
use crate::run::Run;

/// A vertex without neighbours.
const ITEM: [u64; 2] = [1, 1];

/// Gives each isolated vertex, in id order, the part with the fewest vertices (ties: the lowest) among those with room;
/// without room anywhere, among all.
pub(super) fn place(csr: &Csr, parts: &mut [u32], loads: &mut Loads, run: &Run) -> Result<()> {
    let mut with_room: BinaryHeap<_> =
        (0..).zip(loads.all()).map(|(part, load)| Reverse((load[0], part))).collect();
    let mut without = BinaryHeap::new();
    for (v, part) in parts.iter_mut().enumerate() {
        if v.is_multiple_of(CHECK_EVERY) {
            run.advance(0)?;
        }
        if *part != UNPLACED || csr.degree(v as u32) > 0 {
            continue;
        }
        let room = loads.room(1.0, ITEM).unwrap_or_default();
        while let Some(&Reverse((_, full))) = with_room.peek().filter(|top| !loads.is_within(top.0.1, room)) {
            with_room.pop();
            without.push(Reverse((loads.load(full)[0], full)));
        }
        let queue = if with_room.is_empty() { &mut without } else { &mut with_room };
        if let Some(mut top) = queue.peek_mut() {
            let Reverse((vertices, chosen)) = &mut *top;
            *vertices += 1;
            *part = *chosen;
            loads.add(*chosen, ITEM);
        }
    }
    Ok(())
}
