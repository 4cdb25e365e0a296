//! Items by group, sorted by counting.

use std::ops::AddAssign;

use crate::base::{Buffer, Result};

/// Items between two calls of the caller's step.
const STEP: usize = 1 << 12;

/// Turns the sizes of groups into their starts, and returns the sum.
pub(crate) fn to_starts<T: Copy + Default + AddAssign>(sizes: &mut [T]) -> T {
    let mut total = T::default();
    for size in sizes {
        let start = total;
        total += std::mem::replace(size, start);
    }
    total
}

/// The numbers `0..n`, or some of them, by group, ascending in each.
pub(crate) struct Groups {
    items: Buffer<u32>,
    /// Where each group ends in the items.
    ends: Buffer<u32>,
}

impl Groups {
    /// Sorts those of `0..n` that have a group, given how many each group has. Calls `step` with the number
    /// of items that it looked at.
    pub(crate) fn of(
        n: usize,
        mut sizes: Buffer<u32>,
        group_of: impl Fn(u32) -> Option<u32>,
        step: impl Fn(u64) -> Result<()>,
    ) -> Result<Self> {
        let mut items = Buffer::zeroed(to_starts(&mut sizes) as usize, "items by group")?;
        // Where the group begins. Placing its items moves that to its end.
        let mut ends = sizes;
        for first in (0..n).step_by(STEP) {
            let last = n.min(first + STEP);
            for item in first as u32..last as u32 {
                if let Some(group) = group_of(item) {
                    let end = &mut ends[group as usize];
                    items[*end as usize] = item;
                    *end += 1;
                }
            }
            step((last - first) as u64)?;
        }
        Ok(Self { items, ends })
    }

    /// Groups of items that are sorted already, and where each ends.
    pub(crate) fn from_ends(items: Buffer<u32>, ends: Buffer<u32>) -> Self {
        Self { items, ends }
    }

    /// Counts the sizes of `count` groups, then sorts. So `step` hears of each item twice.
    pub(crate) fn counted(
        n: usize,
        count: usize,
        group_of: impl Fn(u32) -> Option<u32>,
        step: impl Fn(u64) -> Result<()>,
    ) -> Result<Self> {
        let mut sizes: Buffer<u32> = Buffer::zeroed(count, "sizes of groups")?;
        for first in (0..n).step_by(STEP) {
            let last = n.min(first + STEP);
            let groups = (first as u32..last as u32).filter_map(&group_of);
            groups.for_each(|group| sizes[group as usize] += 1);
            step((last - first) as u64)?;
        }
        Self::of(n, sizes, group_of, step)
    }

    /// The items of a group.
    #[inline(always)]
    pub(crate) fn group(&self, group: u32) -> &[u32] {
        let start = if group == 0 { 0 } else { self.ends[group as usize - 1] };
        &self.items[start as usize..self.ends[group as usize] as usize]
    }

    /// All items, group after group.
    pub(crate) fn items(&self) -> &[u32] {
        &self.items
    }

    /// All items, group after group, without the groups.
    pub(crate) fn into_items(self) -> Buffer<u32> {
        self.items
    }

    /// Number of groups.
    pub(crate) fn count(&self) -> u32 {
        self.ends.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_by_group_and_then_number() {
        let groups_of = [2, 0, 9, 2, 0, 3];
        let mut sizes: Buffer<u32> = Buffer::zeroed(4, "sizes").unwrap();
        sizes.copy_from_slice(&[2, 0, 2, 1]);
        let group_of = |item: u32| Some(groups_of[item as usize]).filter(|&group| group < 4);
        for groups in [
            Groups::of(6, sizes, group_of, |_| Ok(())).unwrap(),
            Groups::counted(6, 4, group_of, |_| Ok(())).unwrap(),
        ] {
            assert_eq!([0, 1, 2, 3].map(|group| groups.group(group)), [&[1, 4][..], &[], &[0, 3], &[5]]);
            assert_eq!((groups.items(), groups.count()), (&[1, 4, 0, 3, 5][..], 4));
        }
    }
}
