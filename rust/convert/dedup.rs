//! The first record of each undirected pair.
//!
//! **Requirements.** An edge stream of fewer than 2^54 records, and space on the disk.
//!
//! **Algorithm.** (u, v) and (v, u) are the same pair. The record with the lowest number of each pair is
//! kept. Kept records stay in order. One pass scatters the pairs by a hash into buckets, whose entries stay
//! in stream order. A set of the pairs of one bucket finds the entries that are not the first, and a bit per
//! record stores that. A second pass delivers the others. The result is a function of the records alone.
//!
//! **Memory.** One bit per record, 16 MB per worker, 4 KiB per worker and bucket (of half a million records),
//! and 0.2 % of what is written to the disk, however often a pair occurs. If the budget is tight, fewer
//! workers are used.
//!
//! **Disk.** 16 bytes per record, for the time of the call.
//!
//! **Parallelism.** The first pass runs on all threads, buckets are searched in parallel, and the last pass
//! is sequential.
//!
//! **Complexity.** O(m): two passes, and each pair is written, read and looked up once.

use std::path::Path;

use rustc_hash::FxHashSet;

use crate::base::{Error, Result, Run, splitmix64};
use crate::edges::{EdgeStream, Record};
use crate::exec::shuffle::{BUCKET, Buckets};
use crate::exec::{in_order, scan};
use crate::sets::Bits;

/// Bytes of the set of a worker: a table of twice the pairs at the least, and half of it again while it
/// grows.
const SET: u64 = 3 * BUCKET * (size_of::<u64>() as u64 + 1);

/// Hands `deliver` the first record of each undirected pair, in the order of the stream, and returns how many
/// others there were. Temporary files lie in the directory `into`.
pub fn dedup(
    edges: &dyn EdgeStream,
    into: &Path,
    run: &Run,
    mut deliver: impl FnMut(&[Record]) -> Result<()>,
) -> Result<u64> {
    let m = edges.num_edges();
    let dropped = repeated(edges, into, run)?;
    let (mut kept, mut count) = (Vec::new(), 0);
    in_order(edges, 0..m, run, |first, records| {
        kept.clear();
        let first_ones = records.iter().zip(first..).filter(|&(_, index)| !dropped.contains(index));
        kept.extend(first_ones.map(|(record, _)| *record));
        count += (records.len() - kept.len()) as u64;
        deliver(&kept)
    })?;
    Ok(count)
}

/// The records whose pair a record before them has.
fn repeated(edges: &dyn EdgeStream, into: &Path, run: &Run) -> Result<Bits> {
    let m = edges.num_edges();
    run.begin("dedup", 3 * m);
    let keyed = |_, [u, v]: Record| (splitmix64(pair(u.min(v), u.max(v))), [u.min(v), u.max(v)]);
    let memory = [Bits::memory(m), SET];
    let Buckets { spilled, count, workers } =
        Buckets::of(edges, into, run, "finding duplicates", memory, keyed)?;
    let mut repeated = Bits::new(m, "duplicates")?;
    let marks = repeated.shared();
    scan(
        run,
        workers,
        0..count,
        || Ok(FxHashSet::default()),
        |seen, bucket| {
            seen.clear();
            spilled.read(bucket, run, |entries| {
                // An error instead of an abort where the operating system refuses memory.
                let refused = |_| Error::MemoryRefused { what: "finding duplicates".into(), needed: SET };
                seen.try_reserve(entries.len()).map_err(refused)?;
                for entry in entries {
                    if !seen.insert(pair(entry.source, entry.target)) {
                        marks.insert(entry.id());
                    }
                }
                Ok(())
            })
        },
    )?;
    Ok(repeated)
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) << 32 | u64::from(high)
}
