//! A random order of all records that depends on the seed alone.
//!
//! **Requirements.** An edge stream of fewer than 2^54 records, and space on the disk.
//!
//! **Algorithm.** The order is that of [`key`], a number of 64 bits for every record number. The key is a
//! bijection of the record number. So no two records tie, and the order is one permutation for any threads,
//! budget and buckets. One pass scatters the records into buckets, which are ranges of keys. Then the buckets
//! are sorted in memory, a few at a time, and delivered in order.
//!
//! **Memory.** 24 MB per worker, 4 KiB per worker and bucket (of half a million records), and 0.2 % of what
//! is written to the disk. If the budget is tight, fewer workers are used.
//!
//! **Disk.** 16 bytes per record, for the time of the call.
//!
//! **Parallelism.** The pass runs on all threads. Then each worker sorts one bucket at a time.
//!
//! **Complexity.** O(m log b) for buckets of b records. Each record is written and read once, in pieces of 4
//! to 64 KiB.
//!
//! **Source.** Sorting random keys (Knuth, "The Art of Computer Programming" 2, section 3.4.2). For
//! splitmix64 see [`crate::base::random`].

use std::path::Path;

use super::spill::{Entry, ID_BITS, SpillReader, spill_edges};
use crate::base::{Error, Result, Run, reserved, splitmix64};
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::scan::map;

/// Records that one bucket has on average: what a worker holds at once is bounded, and milliseconds of work.
pub(crate) const BUCKET: u64 = 1 << 19;

/// Refuses more records than temporary files have bits for.
pub(crate) fn check_records(m: u64) -> Result<()> {
    if m >> ID_BITS == 0 {
        return Ok(());
    }
    Err(Error::Capacity(format!("{m} records are too many. At most 2^{ID_BITS} - 1 can be reordered")))
}

/// All records in buckets, which are ranges of keys, in ascending order.
pub(crate) struct Buckets {
    pub(crate) spilled: SpillReader,
    /// Number of buckets: a function of the number of records alone.
    pub(crate) count: usize,
    /// Most buckets that are searched at a time.
    pub(crate) workers: usize,
}

impl Buckets {
    /// Writes each record as `keyed` returns it to the bucket of its key; keys must spread evenly. Temporary
    /// files lie in the directory `into`. `held` bytes are in use afterwards, and `searching` for each
    /// worker.
    pub(crate) fn of(
        edges: &dyn EdgeStream,
        into: &Path,
        run: &Run,
        what: &str,
        [held, searching]: [u64; 2],
        keyed: impl Fn(u64, Record) -> (u64, Record) + Sync,
    ) -> Result<Self> {
        let m = edges.num_edges();
        check_records(m)?;
        let count = m.div_ceil(BUCKET).max(1);
        let (directory, buffers) = super::spill::memory(m, count);
        let (files, what) = run.temporary(into, size_of::<Entry>() as u64 * m, what);
        let fixed = directory + files + held;
        let workers = run.workers(count as usize, fixed, buffers.max(searching), &what)?;
        let spilled = spill_edges(edges, run, workers, into, count as usize, |writer, first, records| {
            for (&record, index) in records.iter().zip(first..) {
                let (key, [source, target]) = keyed(index, record);
                let bucket = (u128::from(key) * u128::from(count)) >> 64;
                writer.push(bucket as usize, Entry::new(source, target, index, 0, false))?;
            }
            Ok(())
        })?;
        Ok(Self { spilled, count: count as usize, workers })
    }
}

/// Bytes that a worker holds of its bucket, which may exceed the mean: keys, and then records.
const SORTING: u64 = (BUCKET + BUCKET / 16) * (size_of::<u128>() + size_of::<Record>()) as u64;

/// Where record number `index` belongs in the order of `seed`: a bijection of the number, for every seed.
#[inline(always)]
pub fn key(seed: u64, index: u64) -> u64 {
    splitmix64(splitmix64(seed) ^ index)
}

/// Hands `deliver` all records in the order of their [`key`]s. Temporary files lie in the directory `into`.
pub fn shuffle(
    edges: &dyn EdgeStream,
    seed: u64,
    into: &Path,
    run: &Run,
    mut deliver: impl FnMut(&[Record]) -> Result<()>,
) -> Result<()> {
    let m = edges.num_edges();
    run.begin("shuffle", 3 * m);
    let keyed = |index, record| (key(seed, index), record);
    let Buckets { spilled, count, workers } =
        Buckets::of(edges, into, run, "shuffling", [0, SORTING], keyed)?;
    for first in (0..count).step_by(workers) {
        let count = workers.min(count - first);
        let sort = |(): &mut (), bucket| sorted_bucket(&spilled, first + bucket, seed, run);
        for records in map(run, workers, count, || Ok(()), sort)? {
            for block in records.chunks(BLOCK as usize) {
                deliver(block)?;
                run.advance(block.len() as u64)?;
            }
        }
    }
    Ok(())
}

/// The records of one bucket by key.
fn sorted_bucket(spilled: &SpillReader, bucket: usize, seed: u64, run: &Run) -> Result<Vec<Record>> {
    let count = spilled.count(bucket) as usize;
    // The key is the upper half: equal keys do not occur.
    let mut keyed: Vec<u128> = reserved(count, "shuffling")?;
    spilled.read(bucket, run, |entries| {
        keyed.extend(entries.iter().map(|entry| {
            let record = u64::from(entry.source) << 32 | u64::from(entry.target);
            u128::from(key(seed, entry.id())) << 64 | u128::from(record)
        }));
        Ok(())
    })?;
    if keyed.len() != count {
        return Err(Error::Internal(format!("a bucket of {count} records holds {}", keyed.len())));
    }
    keyed.sort_unstable();
    run.check()?;
    let mut records = reserved(count, "shuffling")?;
    records.extend(keyed.iter().map(|&keyed| [(keyed >> 32) as u32, keyed as u32]));
    Ok(records)
}
