//! Degrees, loops and checksum of a graph, in one pass.
//!
//! Up to [`PRIVATE`] workers count into arrays of their own, which are added up at the end: that keeps the pass within 24
//! bytes per vertex, below what the partitioners take afterwards. More workers share one array, whose increments are
//! locked instructions. The counters are fetched some records ahead. One pass over the records, one over the vertices.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::checksum;
use super::checksum::Hasher;
use crate::base::buffer::{Buffer, shared};
use crate::base::error::{Error, Result};
use crate::base::prefetch::prefetch;
use crate::base::run::Run;
use crate::edges::{EdgeStream, Record};
use crate::exec::pass::pass;

/// Up to so many workers have an array of their own.
pub const PRIVATE: usize = 6;

/// Vertices between two looks at the cancel flag.
const CHUNK: usize = 1 << 16;

/// How many records ahead a counter is asked for, if there are more of them than a cache holds: fewer are there anyway,
/// and asking costs a fifth of the time.
const AHEAD: usize = 24;
const CACHED: usize = 1 << 21;

/// What one pass over the records tells.
#[derive(Debug)]
pub struct Degrees {
    /// Number of non-loop records that touch each vertex.
    pub degree: Buffer<u32>,
    /// Number of loops.
    pub loops: u64,
    /// See [`checksum`].
    pub checksum: String,
}

/// Bytes that [`scan`] takes.
pub fn memory(edges: &dyn EdgeStream, run: &Run) -> u64 {
    needed(edges.num_vertices(), run.threads())
}

/// The same for `n` vertices and so many threads.
pub fn needed(n: u64, threads: usize) -> u64 {
    4 * n * if threads <= PRIVATE { threads as u64 } else { 1 }
}

/// Counts degrees and loops, and hashes the records.
pub fn scan(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    // A loop adds 0: cheaper than a branch.
    scan_ends::<2>(edges, run, |[u, v]| [u32::from(u != v); 2])
}

/// The same with out-degrees: a record counts for its first end alone.
pub fn scan_sources(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    scan_ends::<1>(edges, run, |[u, v]| [u32::from(u != v); 1])
}

fn scan_ends<const ENDS: usize>(
    edges: &dyn EdgeStream,
    run: &Run,
    worth: impl Fn(Record) -> [u32; ENDS] + Sync,
) -> Result<Degrees> {
    let m = edges.num_edges();
    run.begin("degrees", m);
    let see = |(loops, hasher): &mut (u64, Hasher), first, records: &[Record]| {
        hasher.update(first, records, m);
        *loops += records.iter().map(|&[u, v]| u64::from(u == v)).sum::<u64>();
    };
    let (degree, states) = count(edges, run.threads() <= PRIVATE, run, worth, see)?;
    let (loops, hashers): (Vec<u64>, Vec<Hasher>) = states.into_iter().unzip();
    Ok(Degrees { degree, loops: loops.iter().sum(), checksum: checksum::combine(hashers) })
}

/// Adds to the first `ENDS` ends of each record what it is `worth` to them, by all threads, each in `private` counters or
/// not; `see` gets all records with the state of a worker, and the states are returned.
pub fn count<const ENDS: usize, S: Default + Send>(
    edges: &dyn EdgeStream,
    private: bool,
    run: &Run,
    worth: impl Fn(Record) -> [u32; ENDS] + Sync,
    see: impl Fn(&mut S, u64, &[Record]) + Sync,
) -> Result<(Buffer<u32>, Vec<S>)> {
    let zeros = || Buffer::<u32>::zeroed(edges.num_vertices() as usize, "degrees");
    let mut total = zeros()?;
    let common = shared(&mut total);
    let init = || Ok((private.then(zeros).transpose()?, S::default()));
    let workers = pass(edges, run, checksum::UNIT, usize::MAX, init, |(own, state), first, records| {
        see(state, first, records);
        match own {
            Some(own) => raise(shared(own), records, &worth, |count, worth| {
                count.store(count.load(Relaxed).saturating_add(worth), Relaxed);
            }),
            None => raise(common, records, &worth, |count, worth| {
                if count.fetch_add(worth, Relaxed).checked_add(worth).is_none() {
                    // Whatever others do meanwhile, the last one to pass the bound leaves this behind.
                    count.store(u32::MAX, Relaxed);
                }
            }),
        }
        Ok(())
    })?;
    let (counts, states): (Vec<_>, Vec<S>) = workers.into_iter().unzip();
    for (index, counts) in counts.into_iter().flatten().enumerate() {
        if index == 0 {
            total = counts;
            continue;
        }
        run.install(|| {
            total.par_chunks_mut(CHUNK).zip(counts.par_chunks(CHUNK)).try_for_each(|(total, counts)| {
                total.iter_mut().zip(counts).for_each(|(total, &count)| *total = total.saturating_add(count));
                run.check()
            })
        })?;
    }
    if edges.num_edges() >= u64::from(u32::MAX)
        && let Some(v) = total.iter().position(|&degree| degree == u32::MAX)
    {
        return Err(Error::Capacity(format!("vertex {v} has 2^32 - 1 records or more; degrees are 32 bits")));
    }
    Ok((total, states))
}

/// Has `add` add to the count of the first `ENDS` ends of each record what it is worth.
#[inline(always)]
fn raise<const ENDS: usize>(
    counts: &[AtomicU32],
    records: &[Record],
    worth: impl Fn(Record) -> [u32; ENDS],
    add: impl Fn(&AtomicU32, u32),
) {
    let ahead = if counts.len() > CACHED { AHEAD } else { records.len() };
    for (index, &record) in records.iter().enumerate() {
        if let Some(ahead) = records.get(index + ahead) {
            ahead[..ENDS].iter().for_each(|&id| prefetch(counts, id as usize));
        }
        for (id, worth) in record.into_iter().zip(worth(record)) {
            // SAFETY: ids from a block are below `num_vertices`, the length of `counts`. Measured: 1.3 times as fast
            // as the checked access.
            add(unsafe { counts.get_unchecked(id as usize) }, worth);
        }
    }
}

/// Loops and checksum alone; the degrees stay empty.
pub fn identify(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    let m = edges.num_edges();
    run.begin("checksum", m);
    let init = || Ok((0, Hasher::default()));
    let workers = pass(edges, run, checksum::UNIT, usize::MAX, init, |(loops, hasher), first, records| {
        hasher.update(first, records, m);
        *loops += records.iter().map(|&[u, v]| u64::from(u == v)).sum::<u64>();
        Ok(())
    })?;
    let (loops, hashers): (Vec<u64>, Vec<Hasher>) = workers.into_iter().unzip();
    Ok(Degrees {
        degree: Buffer::zeroed(0, "degrees")?,
        loops: loops.iter().sum(),
        checksum: checksum::combine(hashers),
    })
}
