//! All records in another order, or fewer of them, in bounded memory.
//!
//! [`shuffle`] puts them in random order, [`dedup`] keeps the first of each undirected pair, and [`TempRecords`] holds
//! records between two such steps, or for an algorithm that writes records to read them again. `convert` uses them, and
//! so does every algorithm to which a random order belongs.
//!
//! All temporary files lie in the directory that the caller names and have no name there, so that nothing is left of them,
//! however the process ends.

mod dedup;
mod shuffle;
mod temp;

pub use dedup::dedup;
pub use shuffle::{key, shuffle};
pub use temp::{TempRecords, read_at, write_at};

use crate::error::{Error, Result};
use crate::store::spill::ID_BITS;

/// Records that one bucket has on average: what a worker holds at once is bounded, and milliseconds of work.
const BUCKET: u64 = 1 << 19;

/// Number of buckets: a function of `m` alone.
fn buckets(m: u64) -> u64 {
    m.div_ceil(BUCKET).max(1)
}

/// The bucket of `key` if keys spread evenly: buckets are ranges of keys, in ascending order.
#[inline(always)]
fn bucket_of(key: u64, buckets: u64) -> usize {
    ((u128::from(key) * u128::from(buckets)) >> 64) as usize
}

/// Refuses more records than temporary files have bits for.
fn check_records(m: u64) -> Result<()> {
    if m >> ID_BITS == 0 {
        return Ok(());
    }
    Err(Error::Capacity(format!("{m} records; at most 2^{ID_BITS} - 1 can be reordered")))
}
