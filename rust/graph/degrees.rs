//! Degrees, loops and checksum of a graph, in one pass.
//!
//! Up to [`PRIVATE`] workers count into arrays of their own, which are added up at the end: that keeps the pass within 24
//! bytes per vertex, below what the partitioners take afterwards. More workers share one array, whose increments are
//! locked instructions. The counters are fetched some records ahead. One pass over the records, one over the vertices.

use std::sync::atomic::Ordering::Relaxed;

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

/// How many records ahead a counter is asked for.
const AHEAD: usize = 24;

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
    let states = if private {
        let init = || Ok((zeros()?, S::default()));
        let workers =
            pass(edges, run, checksum::UNIT, usize::MAX, init, |(degree, state), first, records| {
                see(state, first, records);
                raise(degree, records, &worth);
                Ok(())
            })?;
        let (counts, states): (Vec<_>, Vec<S>) = workers.into_iter().unzip();
        add_up(counts, &mut total, run)?;
        states
    } else {
        let degree = shared(&mut total);
        pass(
            edges,
            run,
            checksum::UNIT,
            usize::MAX,
            || Ok(S::default()),
            |state, first, records| {
                see(state, first, records);
                for (index, &record) in records.iter().enumerate() {
                    if let Some(ahead) = records.get(index + AHEAD) {
                        ahead[..ENDS].iter().for_each(|&id| prefetch(degree, id as usize));
                    }
                    for (id, worth) in record.into_iter().zip(worth(record)) {
                        let before = degree[id as usize].fetch_add(worth, Relaxed);
                        if before.checked_add(worth).is_none() {
                            // Whatever others do meanwhile, the last one to pass the bound leaves this behind.
                            degree[id as usize].store(u32::MAX, Relaxed);
                        }
                    }
                }
                Ok(())
            },
        )?
    };
    if edges.num_edges() >= u64::from(u32::MAX)
        && let Some(v) = total.iter().position(|&degree| degree == u32::MAX)
    {
        return Err(Error::Capacity(format!("vertex {v} has 2^32 - 1 records or more; degrees are 32 bits")));
    }
    Ok((total, states))
}

/// Adds what each record is worth to its first `ENDS` ends.
fn raise<const ENDS: usize>(degree: &mut [u32], records: &[Record], worth: impl Fn(Record) -> [u32; ENDS]) {
    for (index, &record) in records.iter().enumerate() {
        if let Some(ahead) = records.get(index + AHEAD) {
            ahead[..ENDS].iter().for_each(|&id| prefetch(degree, id as usize));
        }
        for (id, worth) in record.into_iter().zip(worth(record)) {
            // SAFETY: ids from a block are below `num_vertices`, the length of `degree`. Measured: 1.3 times as fast
            // as the checked access.
            let degree = unsafe { degree.get_unchecked_mut(id as usize) };
            // Saturating, so that a degree beyond 32 bits is seen in the end.
            *degree = degree.saturating_add(worth);
        }
    }
}

/// The sums of the workers' counts.
fn add_up(counts: Vec<Buffer<u32>>, total: &mut Buffer<u32>, run: &Run) -> Result<()> {
    let mut counts = counts.into_iter();
    if let Some(first) = counts.next() {
        *total = first;
    }
    for part in counts {
        run.install(|| {
            total.par_chunks_mut(CHUNK).zip(part.par_chunks(CHUNK)).try_for_each(|(total, part)| {
                total.iter_mut().zip(part).for_each(|(total, &part)| *total = total.saturating_add(part));
                run.check()
            })
        })?;
    }
    Ok(())
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
