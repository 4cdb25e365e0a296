//! A state that follows the records in stream order, in batches.
//!
//! **Algorithm.** All threads drop, against the state that the batch before left, the records of a batch that would change
//! nothing; the others are committed in stream order, by one thread, against the state as it becomes. With a batch of 1
//! every record meets the state that the one before left: the sequential rule. So the result depends on the size of the
//! batches, which is a function of the number of records, never on the threads.
//!
//! **Memory.** The records of the largest batch, twice.

use rayon::prelude::*;

use super::pass::blocks;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::edges::{BLOCK, EdgeStream, Record};

/// Fewer records than this are followed by the sequential rule.
const SEQUENTIAL_BELOW: u64 = 1 << 18;
/// The first batch; batches double until [`LARGEST_BATCH`].
const FIRST_BATCH: u64 = 1 << 10;
const LARGEST_BATCH: u64 = 1 << 16;
/// Records that one thread filters at a time.
const SLICE: u64 = 1 << 13;

/// What follows the records.
pub trait Follower: Send + Sync {
    /// Keeps, in place of what `survivors` held, the records that may change something in the state as it is. Meets each
    /// record once.
    fn filter(&self, records: &[Record], survivors: &mut Vec<Record>);
    /// Carries out what the records change, in order.
    fn commit(&mut self, records: &[Record]);
    /// Meets and commits each record.
    fn follow(&mut self, records: &[Record]) {
        self.commit(records);
    }
}

/// The largest batch that `batch` means for `m` records.
pub fn largest_batch(batch: Option<u64>, m: u64) -> u64 {
    batch.unwrap_or(if m < SEQUENTIAL_BELOW { 1 } else { LARGEST_BATCH }).min(m)
}

/// Has `follower` follow `edges`, in batches of `batch` records (`None`: chosen by their number).
pub fn follow<F: Follower>(
    follower: &mut F,
    edges: &dyn EdgeStream,
    batch: Option<u64>,
    run: &Run,
) -> Result<()> {
    edges.check_unchanged()?;
    if largest_batch(batch, edges.num_edges()) <= 1 {
        let mut buf = Vec::new();
        for range in blocks(0..edges.num_edges()) {
            let records = edges.block(range, &mut buf)?;
            follower.follow(records);
            run.advance(records.len() as u64)?;
        }
    } else {
        run.install(|| in_batches(follower, edges, batch, run))?;
    }
    edges.check_unchanged()
}

fn in_batches<F: Follower>(
    follower: &mut F,
    edges: &dyn EdgeStream,
    batch: Option<u64>,
    run: &Run,
) -> Result<()> {
    let m = edges.num_edges();
    let mut slices: Vec<Slice> = Vec::new();
    let mut size = batch.unwrap_or(FIRST_BATCH).min(m);
    let mut start = 0;
    while start < m {
        let end = m.min(start + size);
        let count = (end - start).div_ceil(SLICE) as usize;
        if slices.len() < count {
            slices.resize_with(count, Slice::default);
        }
        let filter = |(index, slice): (usize, &mut Slice)| {
            let first = start + index as u64 * SLICE;
            let records = edges.block(first..end.min(first + SLICE), &mut slice.buf)?;
            follower.filter(records, &mut slice.survivors);
            run.advance(records.len() as u64)
        };
        if count == 1 {
            filter((0, &mut slices[0]))?;
        } else {
            slices[..count].par_iter_mut().enumerate().try_for_each(filter)?;
        }
        slices[..count].iter().for_each(|slice| follower.commit(&slice.survivors));
        start = end;
        if batch.is_none() {
            size = (2 * size).min(LARGEST_BATCH);
        }
    }
    Ok(())
}

/// What one thread filters at a time.
#[derive(Default)]
struct Slice {
    buf: Vec<Record>,
    survivors: Vec<Record>,
}

const _: () = assert!(SLICE <= BLOCK);
