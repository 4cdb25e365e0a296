//! The assignment step: clusters to parts, largest first, and the repair that keeps the cap.

use super::merging::{BySize, CHECK_EVERY, Clusters};
use crate::base::NONE;
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{LeastLoaded, place_last};
use crate::exec::scan::for_each;

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
    // The parts of the vertices of clusters that fit nowhere as a whole, in id order.
    let mut split = Vec::new();
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

    run.each(clusters.size.len(), |id| {
        if !clusters.is_void(id) {
            part_of[id as usize] = part_of[clusters.find(id) as usize];
        }
    })?;
    let mut assignment = clusters.take_of()?;
    for_each(&mut assignment, run, |_, of| {
        *of = part_of.get(*of as usize).copied().unwrap_or(NONE);
    })?;
    let loads = place_last(&mut assignment, parts.into_loads(), run)?;
    if !split.is_empty() {
        run.each(assignment.len(), |v| {
            let part = &mut assignment[v as usize];
            if *part & SPLIT != 0 {
                *part = split[(*part & !SPLIT) as usize].next().unwrap_or(0);
            }
        })?;
    }
    Ok((assignment.reinterpret(), loads))
}

/// Deals a cluster of `size` vertices that fits nowhere: the least-loaded part is filled to the cap, then the
/// next.
fn cut(mut size: u64, cap: u64, parts: &mut LeastLoaded) -> impl Iterator<Item = u32> + use<> {
    let mut pieces = Vec::new();
    while size > 0 {
        // All caps together hold all vertices, so the least-loaded part has slack.
        let count = size.min(cap.saturating_sub(parts.least_load()).max(1));
        pieces.push((parts.place(count), count as usize));
        size -= count;
    }
    pieces.into_iter().flat_map(|(part, count)| std::iter::repeat_n(part, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_fits_nowhere_fills_the_parts_in_turn() {
        let mut parts = LeastLoaded::new([2, 1, 3]);
        let dealt: Vec<u32> = cut(6, 4, &mut parts).collect();
        assert_eq!(dealt, [1, 1, 1, 0, 0, 2]);
        assert_eq!(parts.into_loads(), [4, 4, 4]);
    }
}
