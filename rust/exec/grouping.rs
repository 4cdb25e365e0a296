//! Items by group, sorted by all threads.
//!
//! Threads place items behind each other in their groups, in any order, and each group is sorted afterwards.
//! The groups are those of [`Groups::of`], which one thread makes in one pass.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::scan::{fold, scan, sort_by_key};
use crate::base::{Buffer, Result, Run, shared};
use crate::sets::{Groups, to_starts};

/// Items that are worth further threads, and that a thread sorts at a time.
const CHUNK: usize = 1 << 14;

/// The numbers `0..n` by group, ascending in each. There are `count` groups.
pub(crate) fn group(
    run: &Run,
    n: usize,
    count: usize,
    group_of: impl Fn(u32) -> u32 + Sync,
) -> Result<Groups> {
    if run.threads() == 1 || n <= CHUNK {
        return Groups::counted(n, count, |item| Some(group_of(item)), |_| run.check());
    }
    let mut ends: Buffer<u32> = Buffer::zeroed(count, "sizes of groups")?;
    let cells = shared(&mut ends);
    let count_one = |(), item: usize| _ = cells[group_of(item as u32) as usize].fetch_add(1, Relaxed);
    fold(run, n, (), count_one, |(), ()| ())?;

    let mut items: Buffer<u32> = Buffer::zeroed(to_starts(&mut ends) as usize, "items by group")?;
    let (next, places) = (shared(&mut ends), shared(&mut items));
    let put = |(), item: usize| {
        let place = next[group_of(item as u32) as usize].fetch_add(1, Relaxed);
        places[place as usize].store(item as u32, Relaxed);
    };
    fold(run, n, (), put, |(), ()| ())?;

    let sort = |(): &mut (), (groups, items): (Range<usize>, &mut [u32])| {
        let (mut rest, mut start) = (items, groups.start.checked_sub(1).map_or(0, |before| ends[before]));
        for group in groups {
            let (items, later) = rest.split_at_mut((ends[group] - start) as usize);
            (rest, start) = (later, ends[group]);
            match items.len() {
                0..=CHUNK => items.sort_unstable(),
                _ => sort_by_key(items, run, |&item| item),
            }
        }
        run.check()
    };
    scan(run, usize::MAX, chunks(&ends, &mut items), || Ok(()), sort)?;
    Ok(Groups::from_ends(items, ends))
}

/// Some groups at a time, with their items.
fn chunks<'a>(
    ends: &'a [u32],
    items: &'a mut [u32],
) -> impl Iterator<Item = (Range<usize>, &'a mut [u32])> + Send {
    let (mut first, mut start, mut rest) = (0, 0, items);
    std::iter::from_fn(move || {
        let left = ends.get(first..)?;
        let most = start + CHUNK as u32;
        // The groups that end within a chunk, and one more.
        let count = left.partition_point(|&end| end <= most) + 1;
        let last = ends.len().min(first + count);
        let end = *ends[first..last].last()?;
        let (chunk, later) = std::mem::take(&mut rest).split_at_mut((end - start) as usize);
        let groups = first..last;
        (first, start, rest) = (last, end, later);
        Some((groups, chunk))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    #[test]
    fn groups_are_those_of_one_thread() {
        let mut random = Random::new(1, 0);
        for (n, count) in
            [(10, 3), (3 * CHUNK + 5, 1), (3 * CHUNK, 7), (4 * CHUNK, 3 * CHUNK), (2 * CHUNK, 1 << 20)]
        {
            let groups_of: Vec<u32> = (0..n).map(|_| random.below(count as u64) as u32).collect();
            let [one, many] = [1, 3].map(|threads| {
                let run = Run::new(Some(threads), None).unwrap();
                group(&run, n, count, |item| groups_of[item as usize]).unwrap()
            });
            assert_eq!(one.items(), many.items());
            assert!((0..count as u32).all(|group| one.group(group) == many.group(group)));
        }
    }
}
