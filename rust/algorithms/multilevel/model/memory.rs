//! The ledger of memory: the sizes that it depends on, and what threads take.
//!
//! Each step says beside its code how many bytes it takes for a [`Size`]. The [driver](super::super::driver)
//! adds the bytes of what is held meanwhile, and takes the maximum of all steps. Numbers are sums of arrays
//! where the arrays are few, and bounds on measured peaks where they are many. Tests compare them with what a
//! process takes.
//!
//! The length of the longest list does not count: lists that are long share one array of 4 bytes per vertex
//! ([`SharedSums`](crate::sets::SharedSums)), which steps always count.

use crate::base::{Run, bytes};
use crate::exec::most_threads;
use crate::sets::RatingMap;

/// The sizes that memory depends on.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Vertices.
    pub n: u64,
    /// Entries: twice the edges.
    pub entries: u64,
    /// Parts.
    pub k: u64,
    /// Bounds, padded.
    pub bounds: u64,
    /// Threads at work.
    pub threads: u64,
}

/// Bytes of a thread beside its tables: its stack, and what its heap keeps.
const THREAD: u64 = 1 << 19;
/// Bytes per part of a thread's tables.
const PART: u64 = 16;

impl Size {
    /// Bytes of the scratch space of all threads except the first, whose space the steps count.
    pub fn of_threads(&self) -> u64 {
        let each = THREAD + RatingMap::memory_of_short() + PART * self.k;
        (most_threads(self.entries, self.threads) - 1).saturating_mul(each)
    }

    /// Limits the run to as many threads as its budget allows if a size takes this much `memory`. One thread
    /// is always allowed.
    pub fn limit_threads(self, run: &Run, what: &str, memory: impl Fn(&Size) -> u64) {
        let all = run.threads() as u64;
        let fits = |&threads: &u64| memory(&Size { threads, ..self }) <= run.budget();
        let threads = (1..=all).rev().find(fits).unwrap_or(1);
        if threads < most_threads(self.entries, all) {
            let needed = bytes(memory(&Size { threads: all, ..self }));
            run.note(format!(
                "{what}: {threads} of {all} threads work, because {needed} beside the graph would be needed for all. Raise \
                 memory_limit for more. The result is the same"
            ));
        }
        run.limit_threads(threads as usize);
    }
}
