//! Degrees, loops and checksum of a graph, in one pass.
//!
//! Each worker counts into an array of its own (random increments of a shared one would need locked instructions,
//! which cannot overlap their cache misses); the arrays are added up at the end. At most [`WORKERS`] workers keep
//! the pass within 24 bytes per vertex, below what the partitioners take afterwards. One pass over the records, one
//! over the vertices.

use rayon::prelude::*;

use super::checksum;
use super::checksum::Hasher;
use crate::base::buffer::Buffer;
use crate::base::error::{Error, Result};
use crate::base::run::Run;
use crate::edges::{EdgeStream, Record};
use crate::exec::pass::pass;

/// Most workers of the pass; memory bandwidth is used up before.
pub const WORKERS: usize = 6;

/// Vertices between two looks at the cancel flag.
const CHUNK: usize = 1 << 16;

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

struct Worker {
    degree: Buffer<u32>,
    loops: u64,
    hasher: Hasher,
}

/// Bytes that [`scan`] takes.
pub fn memory(edges: &dyn EdgeStream, run: &Run) -> u64 {
    edges.num_vertices() * 4 * run.threads().min(WORKERS) as u64
}

/// Counts degrees and loops, and hashes the records.
pub fn scan(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    scan_ends::<2>(edges, run)
}

/// The same with out-degrees: a record counts for its first end alone.
pub fn scan_sources(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    scan_ends::<1>(edges, run)
}

fn scan_ends<const ENDS: usize>(edges: &dyn EdgeStream, run: &Run) -> Result<Degrees> {
    let (n, m) = (edges.num_vertices() as usize, edges.num_edges());
    run.begin("degrees", m);
    let init = || Ok(Worker { degree: Buffer::zeroed(n, "degrees")?, loops: 0, hasher: Hasher::default() });
    let mut workers = pass(edges, run, checksum::UNIT, WORKERS, init, |worker, first, records| {
        worker.hasher.update(first, records, m);
        worker.loops += count::<ENDS>(&mut worker.degree, records);
        Ok(())
    })?;
    let mut total = match workers.pop() {
        Some(worker) => worker,
        None => init()?,
    };
    let mut hashers = vec![total.hasher];
    for worker in workers {
        total.loops += worker.loops;
        hashers.push(worker.hasher);
        run.install(|| {
            let chunks = total.degree.par_chunks_mut(CHUNK).zip(worker.degree.par_chunks(CHUNK));
            chunks.try_for_each(|(total, part)| {
                total.iter_mut().zip(part).for_each(|(total, &part)| *total = total.saturating_add(part));
                run.check()
            })
        })?;
    }
    if m > u64::from(u32::MAX)
        && let Some(v) = total.degree.iter().position(|&degree| degree == u32::MAX)
    {
        return Err(Error::Capacity(format!("vertex {v} has 2^32 - 1 records or more; degrees are 32 bits")));
    }
    Ok(Degrees { degree: total.degree, loops: total.loops, checksum: checksum::combine(hashers) })
}

/// Adds the first `ENDS` ends of `records` to `degree`, and returns the number of loops.
fn count<const ENDS: usize>(degree: &mut [u32], records: &[Record]) -> u64 {
    let mut loops = 0;
    for &[u, v] in records {
        // A loop adds 0: cheaper than a branch. Saturating, so that a degree beyond 32 bits is seen in the end.
        let end = u32::from(u != v);
        loops += u64::from(u == v);
        for &id in &[u, v][..ENDS] {
            // SAFETY: ids from a block are below `num_vertices`, the length of `degree`. Measured: 1.3 times as fast
            // as the checked access.
            let degree = unsafe { degree.get_unchecked_mut(id as usize) };
            *degree = degree.saturating_add(end);
        }
    }
    loops
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
