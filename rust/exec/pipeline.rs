//! One thread places records in stream order, while all others gather what placing the next ones needs.
//!
//! **Algorithm.** The stream is cut into batches, and batches into slices. While the slices of one batch are
//! placed in order, those of the next are gathered in any order. Placing changes nothing that gathering
//! reads. The one exception is what a slice carries, and that is handed over when its batch is placed. So the
//! result is that of the sequential rule for any batches and threads. A single thread gathers and places
//! slice by slice, so that a slice stays in the cache. The stream order of a typed graph is that of
//! [`scattered`](super::scattered).
//!
//! **Memory.** Two batches of slices: [`memory`].

use std::ops::Range;

use rayon::prelude::*;

use super::scattered::{UNIT, UnitOrder};
use super::side_by_side::join;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::edges::{BLOCK, EdgeStream};

/// Records that are gathered while those before are placed.
const BATCH: u64 = 1 << 16;
/// Records that one thread gathers at a time.
pub(crate) const SLICE: u64 = UNIT;

/// Bytes that a pipeline of `m` records takes, `each` per record of a slice.
pub(crate) fn memory(m: u64, each: u64) -> u64 {
    2 * m.min(BATCH) * each
}

/// Calls `place` on all records of `edges` in order, slice by slice. `gather` fills a slice from a range of
/// records and from `shared`. `finish` updates `shared` with the results of a slice.
pub(crate) fn pipeline<T: Sync + Send, S: Default + Send>(
    edges: &dyn EdgeStream,
    shared: &mut T,
    run: &Run,
    gather: impl Fn(&T, Range<u64>, &mut S) -> Result<()> + Sync,
    place: impl FnMut(&mut S) -> Result<()> + Send,
    finish: impl Fn(&mut T, &S) + Sync,
) -> Result<()> {
    arranged(edges, shared, run, gather, |_| {}, place, finish)
}

/// Places all records as [`pipeline`] does, but `arrange` sees each gathered slice before it is placed, in
/// order and by one thread at a time.
pub(crate) fn arranged<T: Sync + Send, S: Default + Send>(
    edges: &dyn EdgeStream,
    shared: &mut T,
    run: &Run,
    gather: impl Fn(&T, Range<u64>, &mut S) -> Result<()> + Sync,
    arrange: impl FnMut(&mut S) + Send,
    place: impl FnMut(&mut S) -> Result<()> + Send,
    finish: impl Fn(&mut T, &S) + Sync,
) -> Result<()> {
    let (m, order) = (edges.num_edges(), UnitOrder::of(edges));
    let gather = |shared: &T, index: u64, slice: &mut S| {
        let range = order.unit(index, m);
        gather(shared, range.clone(), slice)?;
        run.advance(range.end - range.start)
    };
    edges.check_unchanged()?;
    slices(m.div_ceil(SLICE), shared, run, gather, arrange, place, finish)?;
    edges.check_unchanged()
}

/// Gathers, arranges and places `count` slices of any origin, each of at most [`SLICE`] records, which
/// `gather` knows by number and counts as done.
pub(crate) fn slices<T: Sync + Send, S: Default + Send>(
    count: u64,
    shared: &mut T,
    run: &Run,
    gather: impl Fn(&T, u64, &mut S) -> Result<()> + Sync,
    mut arrange: impl FnMut(&mut S) + Send,
    mut place: impl FnMut(&mut S) -> Result<()> + Send,
    finish: impl Fn(&mut T, &S) + Sync,
) -> Result<()> {
    // Alone, a thread needs nothing but the next slice ahead.
    let width = if run.threads() == 1 { 1 } else { BATCH / SLICE };
    let mut gather_batch = |shared: &T, start: u64, slices: &mut Vec<S>| {
        slices.resize_with(width.min(count.saturating_sub(start)) as usize, S::default);
        let numbered = slices.par_iter_mut().enumerate();
        numbered.try_for_each(|(index, slice)| gather(shared, start + index as u64, slice))?;
        slices.iter_mut().for_each(&mut arrange);
        Ok(())
    };
    run.install(|| {
        let (mut gathered, mut placing) = (Vec::new(), Vec::new());
        // One batch more than there are: when the last is placed, nothing is left to gather.
        for start in (0..count + width).step_by(width as usize) {
            std::mem::swap(&mut gathered, &mut placing);
            let (gathering, placed) = join(
                || gather_batch(shared, start, &mut gathered),
                || placing.iter_mut().try_for_each(&mut place),
            );
            gathering.and(placed)?;
            placing.iter().for_each(|slice| finish(shared, slice));
        }
        Ok(())
    })
}

const _: () = assert!(SLICE <= BLOCK);
