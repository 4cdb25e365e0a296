//! The assignment step: clusters to parts, largest first, and the repair that keeps the cap.

use std::collections::VecDeque;

use super::merging::{BySize, CHECK_EVERY, Clusters};
use crate::base::NONE;
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{LeastLoaded, place_last};
use crate::exec::scan::for_each;

/// A cluster that fits nowhere as a whole: how many of its vertices, in id order, go to which part.
#[derive(Default)]
struct Pieces {
    pieces: VecDeque<(u32, u64)>,
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

/// Gives every vertex a part. With a `cap`, no part exceeds it. Returns the parts and their loads.
pub(super) fn assign(
    mut clusters: Clusters,
    k: u32,
    cap: Option<u64>,
    run: &Run,
) -> Result<(Buffer<i32>, Vec<u64>)> {
    run.begin("assignment", clusters.of.len() as u64 + 2 * clusters.size.len() as u64);
    let mut parts = LeastLoaded::new((0..k).map(|_| 0));
    let mut part_of: Buffer<u32> = Buffer::zeroed(clusters.size.len(), "spring: part of each cluster")?;
    let mut split: Vec<Pieces> = Vec::new();
    for (index, (size, id)) in BySize::of(&clusters.size, run)?.descending().enumerate() {
        if index.is_multiple_of(CHECK_EVERY) {
            run.check()?;
        }
        part_of[id as usize] = match cap {
            Some(cap) if parts.least_load() + u64::from(size) > cap => {
                split.push(cut(u64::from(size), cap, &mut parts));
                SPLIT | (split.len() - 1) as u32
            }
            _ => parts.place(u64::from(size)),
        };
    }

    for id in 0..clusters.size.len() as u32 {
        if !clusters.is_void(id) {
            part_of[id as usize] = part_of[clusters.find(id) as usize];
        }
        if id.is_multiple_of(CHECK_EVERY as u32) {
            run.check()?;
        }
    }

    let mut assignment = clusters.take_of()?;
    for_each(&mut assignment, run, |_, of| {
        *of = part_of.get(*of as usize).copied().unwrap_or(NONE);
    })?;
    place_last(&mut assignment, run, || parts.place(1))?;
    if !split.is_empty() {
        for vertices in assignment.chunks_mut(CHECK_EVERY) {
            let marked = vertices.iter_mut().filter(|part| **part & SPLIT != 0);
            marked.for_each(|part| *part = split[(*part & !SPLIT) as usize].next());
            run.check()?;
        }
    }
    Ok((assignment.reinterpret(), parts.into_loads()))
}

/// Deals a cluster of `size` vertices that fits nowhere: the least-loaded part is filled to the cap, then the
/// next.
fn cut(mut size: u64, cap: u64, parts: &mut LeastLoaded) -> Pieces {
    let mut pieces = Pieces::default();
    while size > 0 {
        // All caps together hold all vertices, so the least-loaded part has slack.
        let count = size.min(cap.saturating_sub(parts.least_load()).max(1));
        pieces.pieces.push_back((parts.place(count), count));
        size -= count;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_fits_nowhere_fills_the_parts_in_turn() {
        let mut parts = LeastLoaded::new([2, 1, 3]);
        let mut pieces = cut(6, 4, &mut parts);
        let dealt: Vec<u32> = (0..6).map(|_| pieces.next()).collect();
        assert_eq!(dealt, [1, 1, 1, 0, 0, 2]);
        assert_eq!(parts.into_loads(), [4, 4, 4]);
    }
}
