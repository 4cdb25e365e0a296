//! Degrees, loops and checksum of a graph, in one pass.
//!
//! **Algorithm.** Up to [`PRIVATE`] workers count into one byte per vertex of their own: a cache holds four
//! times as many bytes as words, and the random writes bound the pass. A byte that overflows leaves 256 to
//! the total, which all share. At the end the bytes are added to it. More workers raise the total itself, by
//! locked instructions. The counters are prefetched some records ahead.
//!
//! **Memory.** 4 bytes per vertex, and 1 per vertex and worker: at most 24, below what the partitioners take
//! afterwards.
//!
//! **Complexity.** One pass over the records, one over the vertices.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::checksum;
use super::checksum::Hasher;
use super::identity::Identity;
use crate::base::buffer::{Buffer, shared};
use crate::base::error::{Error, Result};
use crate::base::prefetch::{ahead, prefetch};
use crate::base::run::Run;
use crate::edges::{EdgeStream, Record};
use crate::exec;
use crate::exec::pass::pass;

/// Most workers that have counters of their own.
pub const PRIVATE: usize = 20;

/// Vertices between two polls of the cancel flag.
const CHUNK: usize = 1 << 16;

/// The amount that a byte which overflows leaves to the total.
const CARRY: u32 = 1 << u8::BITS;

/// Degrees of a graph, and its identity.
#[derive(Debug)]
pub struct Degrees {
    /// Number of non-loop records that touch each vertex.
    pub degree: Buffer<u32>,
    /// The identity of the graph, found in the same pass.
    pub graph: Identity,
}

/// Bytes that [`scan`] takes.
pub fn memory(edges: &dyn EdgeStream, run: &Run) -> u64 {
    needed(edges.num_vertices(), run.threads())
}

/// Bytes that [`scan`] takes for `n` vertices and `threads` threads.
pub(crate) fn needed(n: u64, threads: usize) -> u64 {
    n * (4 + if threads <= PRIVATE { threads as u64 } else { 0 })
}

/// Counts degrees and loops, and hashes the records.
pub fn scan(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    // A loop adds 0: cheaper than a branch.
    scan_ends::<2>(edges, run, |_, [u, v]| [u != v; 2])
}

/// Counts out-degrees and loops, and hashes the records: a record counts for its first end alone.
pub fn scan_sources(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    scan_ends::<1>(edges, run, |_, [u, v]| [u != v; 1])
}

fn scan_ends<const ENDS: usize>(
    edges: &dyn EdgeStream,
    run: &Run,
    counts: impl Fn(u64, Record) -> [bool; ENDS] + Sync,
) -> Result<Degrees> {
    let m = edges.num_edges();
    run.begin("degrees", m);
    let see = |hasher: &mut Hasher, first, records: &[Record]| hasher.update(first, records, m);
    let private = run.threads() <= PRIVATE;
    let Counts { degree, passed_over, states } = count(edges, private, run, counts, see)?;
    let (n, checksum) = (edges.num_vertices(), checksum::combine(states));
    Ok(Degrees { degree, graph: Identity { n, m, loops: passed_over, checksum } })
}

/// The result of [`count`].
pub(crate) struct Counts<S> {
    /// For each vertex, how often it counted.
    pub degree: Buffer<u32>,
    /// Records whose last end did not count.
    pub passed_over: u64,
    /// The states of the workers.
    pub states: Vec<S>,
}

/// Counts the first `ENDS` ends of each record, of which it gets the number, for which `counts` says so, by
/// all threads, with `private` counters or without. `see` gets all records with the state of a worker.
pub(crate) fn count<const ENDS: usize, S: Default + Send>(
    edges: &dyn EdgeStream,
    private: bool,
    run: &Run,
    counts: impl Fn(u64, Record) -> [bool; ENDS] + Sync,
    see: impl Fn(&mut S, u64, &[Record]) + Sync,
) -> Result<Counts<S>> {
    let n = edges.num_vertices() as usize;
    let mut degree: Buffer<u32> = Buffer::zeroed(n, "degrees")?;
    let total = shared(&mut degree);
    let own = || Buffer::<u8>::zeroed(n, "degrees of a thread");
    let init = || Ok((private.then(own).transpose()?, 0, S::default()));
    let workers =
        pass(edges, run, checksum::UNIT, usize::MAX, init, |(own, passed, state), first, records| {
            see(state, first, records);
            let counted = match own {
                Some(own) => each_end(
                    Cell::from_mut(&mut **own).as_slice_of_cells(),
                    first,
                    records,
                    &counts,
                    |own, id, by| {
                        let (count, carries) = own.get().overflowing_add(by);
                        own.set(count);
                        if carries {
                            carry(total, id);
                        }
                    },
                ),
                None => each_end(total, first, records, &counts, |count, _, by| raise(count, by.into())),
            };
            *passed += records.len() as u64 - counted;
            Ok(())
        })?;
    let passed_over = workers.iter().map(|(_, passed, _)| passed).sum();
    let (own, states): (Vec<_>, Vec<S>) = workers.into_iter().map(|(own, _, state)| (own, state)).unzip();
    for own in own.into_iter().flatten() {
        let add = |(): &mut (), (degree, own): (&mut [u32], &[u8])| {
            degree.iter_mut().zip(own).for_each(|(sum, &count)| *sum = sum.saturating_add(count.into()));
            Ok(())
        };
        let chunks = degree.chunks_mut(CHUNK).zip(own.chunks(CHUNK));
        exec::scan(run, usize::MAX, chunks, || Ok(()), add)?;
    }
    if edges.num_edges() >= u64::from(u32::MAX)
        && let Some(v) = degree.iter().position(|&degree| degree == u32::MAX)
    {
        return Err(Error::Capacity(format!("vertex {v} has 2^32 - 1 records or more. Degrees are 32 bits")));
    }
    Ok(Counts { degree, passed_over, states })
}

/// Calls `add` for the counters of the first `ENDS` ends of each record, with what they count for: 0 or 1.
/// Returns how many last ends count.
#[inline(always)]
fn each_end<const ENDS: usize, T>(
    counters: &[T],
    first: u64,
    records: &[Record],
    counts: impl Fn(u64, Record) -> [bool; ENDS],
    add: impl Fn(&T, u32, u8),
) -> u64 {
    let mut counted = 0;
    for (index, &record) in records.iter().enumerate() {
        if let Some(ahead) = records.get(index + ahead::ENTRIES) {
            ahead[..ENDS].iter().for_each(|&id| prefetch(counters, id as usize));
        }
        let counts = counts(first + index as u64, record);
        counted += u64::from(counts[ENDS - 1]);
        for (id, counts) in record.into_iter().zip(counts) {
            // SAFETY: ids from a block are below `num_vertices`, the length of `counters`. Measured: 1.3
            // times as fast as the checked access.
            add(unsafe { counters.get_unchecked(id as usize) }, id, counts.into());
        }
    }
    counted
}

#[cold]
fn carry(total: &[AtomicU32], id: u32) {
    raise(&total[id as usize], CARRY);
}

/// Adds to a count that all threads raise, up to the largest number.
#[inline(always)]
fn raise(count: &AtomicU32, by: u32) {
    if count.fetch_add(by, Relaxed).checked_add(by).is_none() {
        // Whatever others do meanwhile, the last one to pass the bound leaves this behind.
        count.store(u32::MAX, Relaxed);
    }
}

/// The identity of a graph, without its degrees.
pub fn identify(edges: &dyn EdgeStream, run: &Run) -> Result<Identity> {
    let m = edges.num_edges();
    run.begin("checksum", m);
    let init = || Ok((0, Hasher::default()));
    let workers = pass(edges, run, checksum::UNIT, usize::MAX, init, |(loops, hasher), first, records| {
        hasher.update(first, records, m);
        // As narrow as a block allows: a vector register holds twice as many u32 as u64.
        *loops += u64::from(records.iter().map(|&[u, v]| u32::from(u == v)).sum::<u32>());
        Ok(())
    })?;
    let (loops, hashers): (Vec<u64>, Vec<Hasher>) = workers.into_iter().unzip();
    let (n, loops, checksum) = (edges.num_vertices(), loops.iter().sum(), checksum::combine(hashers));
    Ok(Identity { n, m, loops, checksum })
}
