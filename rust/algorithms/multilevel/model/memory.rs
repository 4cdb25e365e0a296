//! The sizes that memory depends on, and what follows from them for all steps.

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

/// Bytes of a thread, beside its tables: its stack, and what its heap keeps.
const THREAD: u64 = 1 << 19;
/// Bytes per part of a thread's tables.
const PART: u64 = 16;
/// Parts up to which the coarsest graph is small beside the given one.
const FEW_PARTS: u64 = 64;

impl Size {
    /// Bytes of the scratch space of all threads but the first, which is counted where it is used. Lists that are long
    /// take no memory of a thread ([`SharedSums`](crate::sets::SharedSums)).
    pub fn of_threads(&self) -> u64 {
        let each = THREAD + RatingMap::memory_of_short() + PART * self.k;
        (most_threads(self.entries, self.threads) - 1).saturating_mul(each)
    }

    /// Bytes that the partition of a graph of this size takes beside its lists, with one thread.
    pub fn of_partition(&self) -> u64 {
        let &Size { n, entries, k, bounds, .. } = self;
        let per_entry = if k > FEW_PARTS { 24 } else { 12 };
        entries.saturating_mul(per_entry).saturating_add(n * (80 + 24 * bounds)).saturating_add(128 * k)
    }

    /// Has as many threads work as the budget of the run allows, if a size takes so much `memory`. The first is always
    /// allowed.
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
