//! The assignment step: clusters to parts, largest first, and the repair that keeps the cap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::merging::{CHECK_EVERY, Clusters};
use crate::buffer::{Buffer, reserved};
use crate::error::Result;
use crate::run::Run;

/// Parts by load: the least loaded first, ties to the lowest part.
struct Parts {
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    loads: Vec<u64>,
}

impl Parts {
    fn new(k: u32) -> Self {
        Self { queue: (0..k).map(|part| Reverse((0, part))).collect(), loads: vec![0; k as usize] }
    }

    fn least_load(&self) -> u64 {
        self.queue.peek().map_or(0, |&Reverse((load, _))| load)
    }

    /// Adds `count` vertices to the least-loaded part and returns it.
    fn add(&mut self, count: u64) -> u32 {
        let Some(mut top) = self.queue.peek_mut() else { return 0 };
        let Reverse((load, part)) = &mut *top;
        *load += count;
        self.loads[*part as usize] = *load;
        *part
    }
}

/// A cluster that fits nowhere as a whole: how many of its vertices, in id order, go to which part.
#[derive(Default)]
struct Pieces {
    pieces: std::collections::VecDeque<(u32, u64)>,
}

impl Pieces {
    fn next(&mut self) -> u32 {
        let Some((part, left)) = self.pieces.front_mut() else { return 0 };
        let part = *part;
        *left -= 1;
        if *left == 0 {
            self.pieces.pop_front();
        }
        part
    }
}

/// Marks an entry of `part_of` as an index into the split clusters.
const SPLIT: u32 = 1 << 31;

/// Gives every vertex a part; with a `cap`, no part exceeds it. Returns the parts and their loads.
pub(super) fn assign(
    mut clusters: Clusters,
    k: u32,
    cap: Option<u64>,
    run: &Run,
) -> Result<(Buffer<i32>, Vec<u64>)> {
    run.begin("assignment", clusters.of.len() as u64);
    let mut parts = Parts::new(k);
    let mut part_of: Buffer<u32> = Buffer::zeroed(clusters.size.len(), "spring: part of each cluster")?;
    let mut split: Vec<Pieces> = Vec::new();
    for (Reverse(size), id) in by_descending_size(&clusters, run)? {
        part_of[id as usize] = match cap {
            Some(cap) if parts.least_load() + u64::from(size) > cap => {
                split.push(cut(u64::from(size), cap, &mut parts));
                SPLIT | (split.len() - 1) as u32
            }
            _ => parts.add(u64::from(size)),
        };
    }

    let mut assignment = clusters.take_of()?;
    let isolated = assignment.len() as u32;
    for vertices in assignment.chunks_mut(CHECK_EVERY) {
        for of in vertices.iter_mut() {
            *of = if *of == isolated {
                parts.add(1)
            } else {
                let part = part_of[clusters.find(*of) as usize];
                if part & SPLIT == 0 { part } else { split[(part & !SPLIT) as usize].next() }
            };
        }
        run.advance(vertices.len() as u64)?;
    }
    Ok((assignment.reinterpret(), parts.loads))
}

/// The clusters, as (size, id): descending size, then ascending id.
pub(super) fn by_descending_size(clusters: &Clusters, run: &Run) -> Result<Vec<(Reverse<u32>, u32)>> {
    let live = || clusters.size.iter().zip(0_u32..).filter(|&(&size, _)| size > 0);
    let mut order = reserved(live().count(), "spring: order of the clusters")?;
    order.extend(live().map(|(&size, id)| (Reverse(size), id)));
    run.install(|| order.par_sort_unstable());
    Ok(order)
}

/// Deals a cluster of `size` vertices that fits nowhere: the least-loaded part is filled to the cap, then the next.
fn cut(mut size: u64, cap: u64, parts: &mut Parts) -> Pieces {
    let mut pieces = Pieces::default();
    while size > 0 {
        // All caps together hold all vertices, so the least-loaded part has room.
        let count = size.min(cap.saturating_sub(parts.least_load()).max(1));
        pieces.pieces.push_back((parts.add(count), count));
        size -= count;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_fits_nowhere_fills_the_parts_in_turn() {
        let mut parts = Parts::new(3);
        assert_eq!((parts.add(2), parts.add(1), parts.add(3)), (0, 1, 2));
        let mut pieces = cut(6, 4, &mut parts);
        let dealt: Vec<u32> = (0..6).map(|_| pieces.next()).collect();
        assert_eq!(dealt, [1, 1, 1, 0, 0, 2]);
        assert_eq!(parts.loads, [4, 4, 4]);
    }
}
