//! Proposals for many vertices against one frozen state.
//!
//! All threads *propose* for the vertices of a round, each proposal written to the place of its vertex.
//! Nobody changes the state meanwhile. The caller then *approves* proposals in an order that does not depend
//! on the threads. So the result never depends on the threads either. In [`decide_all`](super::decide_all)
//! the vertices come one by one in a given order, and the batches are small. Here a round may be all
//! vertices, and proposals outlive it.

use std::ops::Range;

use super::side_by_side::{queue, side_by_side};
use crate::base::{Result, Run};

/// Entries that are worth a further thread.
const ENTRIES_PER_THREAD: u64 = 1 << 16;

/// Scratch space for each thread that rounds over `entries` entries keep busy.
pub(crate) fn scratches<S>(
    run: &Run,
    entries: u64,
    mut scratch: impl FnMut() -> Result<S>,
) -> Result<Vec<S>> {
    (0..most_threads(entries, run.threads() as u64)).map(|_| scratch()).collect()
}

/// The most of the `threads` that rounds over `entries` entries keep busy.
pub(crate) fn most_threads(entries: u64, threads: u64) -> u64 {
    (entries / ENTRIES_PER_THREAD + 1).min(threads)
}

/// Has `propose` set the proposal of each vertex of `ranges`, which ascend and are disjoint.
pub(crate) fn propose<S: Send, T: Send>(
    scratches: &mut Vec<S>,
    ranges: impl Iterator<Item = Range<u32>> + Send,
    proposals: &mut [T],
    run: &Run,
    propose: impl Fn(&mut S, u32, &mut T) + Sync,
) -> Result<()> {
    let (mut rest, mut first) = (proposals, 0);
    let slices = ranges.map(move |range| {
        let later = std::mem::take(&mut rest).split_at_mut((range.start - first) as usize).1;
        let (slice, later) = later.split_at_mut(range.len());
        (rest, first) = (later, range.end);
        (range, slice)
    });
    share(scratches, slices, run, |scratch, (range, slice)| {
        range.zip(slice).for_each(|(v, proposal)| propose(scratch, v, proposal));
        run.check()
    })
}

/// Has threads `work` on `items`, which they take one after the other, each with one of the scratches. A
/// single scratch is for the calling thread.
pub(crate) fn share<S: Send, T>(
    scratches: &mut Vec<S>,
    items: impl Iterator<Item = T> + Send,
    run: &Run,
    work: impl Fn(&mut S, T) -> Result<()> + Sync,
) -> Result<()> {
    let next = queue(items);
    // One loop for both ways. Compiled twice, the body of the hot loops inside `work` would no longer be
    // inlined into it, and a multilevel partition took 8 % longer.
    let take_all = |scratch: &mut S| {
        while let Some(item) = next() {
            work(scratch, item)?;
        }
        Ok(())
    };
    if let [scratch] = &mut scratches[..] {
        return take_all(scratch);
    }
    // Each scratch moves to the stack of its thread. Side by side in the list they would share cache lines.
    let finished =
        side_by_side(run, std::mem::take(scratches), |mut scratch| take_all(&mut scratch).map(|()| scratch));
    *scratches = finished.into_iter().collect::<Result<_>>()?;
    Ok(())
}
