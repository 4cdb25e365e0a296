//! A state that follows the records in stream order, in batches.
//!
//! **Algorithm.** All threads look at the records of a batch, against the state after the batch before, and
//! drop those that would change nothing. One thread commits the others in stream order against the current
//! state. With a batch of 1 every record is decided in the state that the record before left, which is the
//! sequential rule. The size of the batches is a function of the number of records. So the result never
//! depends on the threads. While one thread commits, the others read the next batch. The stream order of a
//! typed graph is that of [`scattered`](super::scattered).
//!
//! **Memory.** [`memory`]: the records of two batches, and the records of these that survive.

use std::num::NonZeroU64;
use std::ops::Range;

use rayon::prelude::*;

use super::pass::in_order;
use super::scattered::Scattered;
use super::side_by_side::join;
use crate::base::{Result, Run};
use crate::edges::{BLOCK, EdgeStream, Record};

/// Fewer records than this are followed by the sequential rule.
const SEQUENTIAL_BELOW: u64 = 1 << 18;
/// The first batch. Batches double until [`LARGEST_BATCH`].
const FIRST_BATCH: u64 = 1 << 10;
const LARGEST_BATCH: u64 = 1 << 16;
/// Records that one thread filters at a time.
const SLICE: u64 = 1 << 13;

/// A state that follows the records.
pub(crate) trait Follower: Send + Sync {
    /// Replaces `survivors` by the records that may change something in the current state. Meets each record
    /// once.
    fn filter(&self, records: &[Record], survivors: &mut Vec<Record>);
    /// Commits what the records change, in order.
    fn commit(&mut self, records: &[Record]);
    /// Filters and commits each record.
    fn follow(&mut self, records: &[Record]) {
        self.commit(records);
    }
}

/// The largest batch that `batch` means for `m` records.
fn largest_batch(batch: Option<NonZeroU64>, m: u64) -> u64 {
    batch.map_or(if m < SEQUENTIAL_BELOW { 1 } else { LARGEST_BATCH }, NonZeroU64::get).min(m)
}

/// Bytes that following `m` records in batches of `batch` takes.
pub(crate) fn memory(batch: Option<NonZeroU64>, m: u64) -> u64 {
    4 * size_of::<Record>() as u64 * largest_batch(batch, m)
}

/// `follower` follows `edges`, in batches of `batch` records (`None`: chosen by their number).
pub(crate) fn follow<F: Follower>(
    follower: &mut F,
    edges: &dyn EdgeStream,
    batch: Option<NonZeroU64>,
    run: &Run,
) -> Result<()> {
    let scattered = Scattered::new(edges);
    let (edges, m): (&dyn EdgeStream, u64) = (&scattered, edges.num_edges());
    if largest_batch(batch, m) <= 1 {
        return in_order(edges, 0..m, run, |_, records| {
            follower.follow(records);
            Ok(())
        });
    }
    edges.check_unchanged()?;
    run.install(|| in_batches(follower, edges, batch, run))?;
    edges.check_unchanged()
}

fn in_batches<F: Follower>(
    follower: &mut F,
    edges: &dyn EdgeStream,
    batch: Option<NonZeroU64>,
    run: &Run,
) -> Result<()> {
    let m = edges.num_edges();
    // Alone, a thread reads each slice when it filters it, while the cache holds it.
    let alone = run.threads() == 1;
    let (mut ahead, mut live) = (Vec::new(), Vec::new());
    let mut size = batch.map_or(FIRST_BATCH, NonZeroU64::get).min(m);
    let mut end = size;
    cut(0..end, &mut live);
    read(edges, &mut live)?;
    while !live.is_empty() {
        let frozen = &*follower;
        each(&mut live, |slice| {
            if alone {
                slice.read(edges)?;
            }
            frozen.filter(&slice.records, &mut slice.survivors);
            run.advance(slice.records.len() as u64)
        })?;
        if batch.is_none() {
            size = (2 * size).min(LARGEST_BATCH);
        }
        cut(end..m.min(end + size), &mut ahead);
        end = m.min(end + size);
        let commit = || live.iter().for_each(|slice: &Slice| follower.commit(&slice.survivors));
        // While one thread commits, the others read.
        let ((), read) = join(commit, || if alone { Ok(()) } else { read(edges, &mut ahead) });
        read?;
        std::mem::swap(&mut ahead, &mut live);
    }
    Ok(())
}

/// Replaces `slices` by the slices of `range`.
fn cut(range: Range<u64>, slices: &mut Vec<Slice>) {
    slices.resize_with((range.end - range.start).div_ceil(SLICE) as usize, Slice::default);
    for (slice, start) in slices.iter_mut().zip(range.clone().step_by(SLICE as usize)) {
        slice.range = start..range.end.min(start + SLICE);
    }
}

fn read(edges: &dyn EdgeStream, slices: &mut [Slice]) -> Result<()> {
    each(slices, |slice| slice.read(edges))
}

/// Hands each slice to a thread, or a single one to the calling thread.
fn each(slices: &mut [Slice], step: impl Fn(&mut Slice) -> Result<()> + Send + Sync) -> Result<()> {
    match slices {
        [slice] => step(slice),
        _ => slices.par_iter_mut().try_for_each(step),
    }
}

/// The records that one thread filters at a time.
#[derive(Default)]
struct Slice {
    range: Range<u64>,
    records: Vec<Record>,
    survivors: Vec<Record>,
}

impl Slice {
    fn read(&mut self, edges: &dyn EdgeStream) -> Result<()> {
        edges.block(self.range.clone(), &mut self.records).map(drop)
    }
}

const _: () = assert!(SLICE <= BLOCK);
