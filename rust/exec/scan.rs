//! Items that workers take, each as a whole, in any order.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rayon::prelude::*;

use super::side_by_side::{queue, side_by_side};
use crate::base::{Error, Growing, Result, Run};

/// Items of an array that a worker takes at a time.
const CHUNK: usize = 1 << 14;

/// Hands `step` each of `items`, which at most `workers` workers take in their order, with the worker's
/// state. Returns the states. The caller combines them by an operation that does not depend on the order.
pub(crate) fn scan<T, S: Send>(
    run: &Run,
    workers: usize,
    items: impl Iterator<Item = T> + Send,
    init: impl Fn() -> Result<S> + Sync,
    step: impl Fn(&mut S, T) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let most = items.size_hint().1.unwrap_or(usize::MAX).max(1);
    let workers = workers.clamp(1, run.threads()).min(most);

    let (next, failed) = (queue(items), AtomicBool::new(false));
    let work = |()| {
        let mut state = init()?;
        while !failed.load(Relaxed)
            && let Some(item) = next()
        {
            let done = step(&mut state, item).and_then(|()| run.check());
            // Nobody takes another item. Those taken before are finished, so that of several bad records the
            // first is found whatever the threads.
            failed.fetch_or(done.is_err(), Relaxed);
            done?;
        }
        Ok(state)
    };
    let (mut states, mut errors) = (Vec::new(), Vec::new());
    for state in side_by_side(run, std::iter::repeat_n((), workers), work) {
        match state {
            Ok(state) => states.push(state),
            Err(error) => errors.push(error),
        }
    }
    match errors.into_iter().min_by_key(position) {
        Some(error) => Err(error),
        None => Ok(states),
    }
}

/// [`scan`] of the numbers `0..n`, in ranges of at most `len`.
pub(crate) fn scan_ranges<S: Send>(
    run: &Run,
    workers: usize,
    n: usize,
    len: usize,
    init: impl Fn() -> Result<S> + Sync,
    step: impl Fn(&mut S, Range<usize>) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let ranges = (0..n.div_ceil(len)).map(|index| index * len..n.min((index + 1) * len));
    scan(run, workers, ranges, init, step)
}

/// Sorts `items` by all threads. Equal keys must be of equal items.
pub(crate) fn sort_by_key<T: Send, K: Ord>(items: &mut [T], run: &Run, key: impl Fn(&T) -> K + Send + Sync) {
    run.install(|| items.par_sort_unstable_by_key(key));
}

/// The results of `make` for the numbers below `count`, in their order.
pub(crate) fn map<T: Send, S: Send>(
    run: &Run,
    workers: usize,
    count: usize,
    init: impl Fn() -> Result<S> + Sync,
    make: impl Fn(&mut S, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let init = || Ok((init()?, Vec::new()));
    let states = scan(run, workers, 0..count, init, |(state, results), index| {
        results.push((index, make(state, index)?));
        Ok(())
    })?;
    let mut results: Vec<(usize, T)> = states.into_iter().flat_map(|(_, results)| results).collect();
    results.sort_unstable_by_key(|&(index, _)| index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Calls `set` with each of `items` and its number, and counts them as done.
pub(crate) fn for_each<T: Send>(
    items: &mut [T],
    run: &Run,
    set: impl Fn(usize, &mut T) + Sync,
) -> Result<()> {
    let chunks = items.chunks_mut(CHUNK).zip((0..).step_by(CHUNK));
    let work = |(): &mut (), (items, first): (&mut [T], usize)| {
        items.iter_mut().zip(first..).for_each(|(item, index)| set(index, item));
        run.advance(items.len() as u64)
    };
    scan(run, usize::MAX, chunks, || Ok(()), work).map(drop)
}

/// Calls `set` with each of `items` and its number. The calling thread sets few items by itself.
pub(crate) fn fill<T: Send>(items: &mut [T], run: &Run, set: impl Fn(usize, &mut T) + Sync) -> Result<()> {
    let work = |(): &mut (), (items, first): (&mut [T], usize)| {
        items.iter_mut().zip(first..).for_each(|(item, index)| set(index, item));
        run.check()
    };
    let by_itself = run.threads() == 1 || items.len() <= CHUNK;
    let mut chunks = items.chunks_mut(CHUNK).zip((0..).step_by(CHUNK));
    if by_itself {
        return chunks.try_for_each(|chunk| work(&mut (), chunk));
    }
    scan(run, usize::MAX, chunks, || Ok(()), work).map(drop)
}

/// Folds the numbers below `n`: `step` adds one to the sum of a thread, and `join` adds sums in any order.
pub(crate) fn fold<S: Copy + Send + Sync>(
    run: &Run,
    n: usize,
    zero: S,
    step: impl Fn(S, usize) -> S + Sync,
    join: impl Fn(S, S) -> S,
) -> Result<S> {
    let add = |sum: &mut S, range: Range<usize>| {
        *sum = range.fold(*sum, &step);
        run.check()
    };
    if run.threads() == 1 || n <= CHUNK {
        let mut sum = zero;
        (0..n).step_by(CHUNK).try_for_each(|first| add(&mut sum, first..n.min(first + CHUNK)))?;
        return Ok(sum);
    }
    Ok(scan_ranges(run, usize::MAX, n, CHUNK, || Ok(zero), add)?.into_iter().fold(zero, join))
}

/// The numbers below `n` that `is_one` selects, ascending. `what` names them in errors.
pub(crate) fn select(
    run: &Run,
    n: usize,
    what: &str,
    is_one: impl Fn(u32) -> bool + Sync,
) -> Result<Vec<u32>> {
    let of_chunk = |(): &mut (), index: usize| {
        let (first, mut found) = (index * CHUNK, Growing::default());
        (first..n.min(first + CHUNK)).map(|v| v as u32).filter(|&v| is_one(v)).for_each(|v| found.push(v));
        run.check().map(|()| found)
    };
    let workers = if n <= CHUNK { 1 } else { run.threads() };
    Growing::concat(map(run, workers, n.div_ceil(CHUNK), || Ok(()), of_chunk)?, what)
}

/// Where an error lies in the stream. Errors without a place come last.
fn position(error: &Error) -> u64 {
    if let Error::IdOutOfRange { record, .. } = error { *record } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_numbers_ascend_for_all_threads() {
        let is_one = |v: u32| v % 7 == 3 || v % 1000 < 5;
        for n in [0, 1, CHUNK, CHUNK + 1, 5 * CHUNK + 17] {
            let expected: Vec<u32> = (0..n as u32).filter(|&v| is_one(v)).collect();
            for threads in [1, 2, 8] {
                let run = Run::new(Some(threads), None).unwrap();
                assert_eq!(select(&run, n, "test", is_one).unwrap(), expected);
            }
        }
    }
}
