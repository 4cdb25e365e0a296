//! The assignment step: clusters to parts, largest first, and the repair that keeps the cap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::merging::{BySize, CHECK_EVERY, Clusters};
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;

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

/// Marks an index into the split clusters instead of a part.
const SPLIT: u32 = 1 << 31;

/// Stands for the part of an isolated vertex until all others have theirs.
const ISOLATED: u32 = u32::MAX;

/// Gives every vertex a part; with a `cap`, no part exceeds it. Returns the parts and their loads.
pub(super) fn assign(
    mut clusters: Clusters,
    k: u32,
    cap: Option<u64>,
    run: &Run,
) -> Result<(Buffer<i32>, Vec<u64>)> {
    run.begin("assignment", clusters.of.len() as u64 + 2 * clusters.size.len() as u64);
    let mut parts = Parts::new(k);
    let mut part_of: Buffer<u32> = Buffer::zeroed(clusters.size.len(), "spring: part of each cluster")?;
    let mut split: Vec<Pieces> = Vec::new();
    for (index, (size, id)) in BySize::of(&clusters.size, run)?.descending().enumerate() {
        if index.is_multiple_of(CHECK_EVERY) {
            run.advance(0)?;
        }
        part_of[id as usize] = match cap {
            Some(cap) if parts.least_load() + u64::from(size) > cap => {
                split.push(cut(u64::from(size), cap, &mut parts));
                SPLIT | (split.len() - 1) as u32
            }
            _ => parts.add(u64::from(size)),
        };
    }

    for id in 0..clusters.size.len() as u32 {
        if !clusters.is_void(id) {
            part_of[id as usize] = part_of[clusters.find(id) as usize];
        }
        if id.is_multiple_of(CHECK_EVERY as u32) {
            run.advance(0)?;
        }
    }

    let mut assignment = clusters.take_of()?;
    run.install(|| {
        assignment.par_chunks_mut(CHECK_EVERY).try_for_each(|vertices| {
            for of in vertices.iter_mut() {
                *of = part_of.get(*of as usize).copied().unwrap_or(ISOLATED);
            }
            run.advance(vertices.len() as u64)
        })
    })?;
    // What depends on the vertices before.
    let mut dealer = Dealer::new(parts);
    for vertices in assignment.chunks_mut(CHECK_EVERY) {
        for part in vertices.iter_mut().filter(|part| **part & SPLIT != 0) {
            *part = if *part == ISOLATED { dealer.deal() } else { split[(*part & !SPLIT) as usize].next() };
        }
        run.advance(0)?;
    }
    Ok((assignment.reinterpret(), dealer.loads))
}

/// Deals vertices one by one to the part with the fewest (ties: the lowest), in constant time each once the parts
/// are level.
struct Dealer {
    loads: Vec<u64>,
    /// Parts that got no vertex here yet.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// The load of those whose turn it is.
    height: u64,
    /// Parts raised to `height`, ascending; those from `next` on have their turn before them.
    level: Vec<u32>,
    next: usize,
    /// Parts raised above `height`, ascending.
    raised: Vec<u32>,
}

impl Dealer {
    fn new(parts: Parts) -> Self {
        let Parts { queue, loads } = parts;
        Self { loads, waiting: queue, height: 0, level: Vec::new(), next: 0, raised: Vec::new() }
    }

    fn deal(&mut self) -> u32 {
        loop {
            let waiting = self.waiting.peek().map(|&Reverse(lowest)| lowest);
            let fresh = waiting.filter(|&(load, _)| load == self.height).map(|(_, part)| part);
            let part = match (fresh, self.level.get(self.next).copied()) {
                (Some(fresh), known) if known.is_none_or(|known| fresh < known) => {
                    self.waiting.pop();
                    fresh
                }
                (_, Some(known)) => {
                    self.next += 1;
                    known
                }
                _ if self.raised.is_empty() => {
                    let Some((load, _)) = waiting else { return 0 };
                    self.height = load;
                    continue;
                }
                _ => {
                    self.height += 1;
                    self.level = std::mem::take(&mut self.raised);
                    self.next = 0;
                    continue;
                }
            };
            self.raised.push(part);
            self.loads[part as usize] += 1;
            return part;
        }
    }
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
    fn the_dealer_gives_to_the_least_loaded_part() {
        let mut parts = Parts::new(5);
        let mut loads = vec![7, 0, 3, 3, 1];
        parts.queue = loads.iter().zip(0..).map(|(&load, part)| Reverse((load, part))).collect();
        let dealt = Parts { queue: parts.queue.clone(), loads: loads.clone() };
        let mut dealer = Dealer::new(dealt);
        for _ in 0..40 {
            let part = parts.add(1);
            assert_eq!(dealer.deal(), part);
            loads[part as usize] += 1;
        }
        assert_eq!(dealer.loads, loads);
    }

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
