//! Records inside and between parts.
//!
//! **Algorithm.** Each record increments the number of its pair of parts. Up to [`PRIVATE_PARTS`] parts every
//! worker has a matrix of its own (at most 512 KiB, which its cache holds). Up to [`DENSE_PARTS`] all workers
//! share one matrix (at most 128 MiB) and add with relaxed atomics. Above that only the sums per part are
//! counted, and [`sparse_matrix`] makes the matrix on request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustc_hash::FxHashMap;

use super::validate;
use crate::base::{Buffer, Error, Result, Run, ahead, prefetch_ends, reserved, shared};
use crate::edges::{BLOCK, EdgeStream};
use crate::exec::{pass, sort_by_key};
use crate::graph::{Hasher, checksum};

/// Up to this many parts the matrix is dense.
pub const DENSE_PARTS: u32 = 4096;

/// Up to this many parts every worker has a matrix of its own.
const PRIVATE_PARTS: usize = 256;

/// Where the records of a graph lie in a vertex partition.
#[derive(Debug)]
pub struct Cut {
    /// Non-loop records with both ends in the part.
    pub internal: Vec<u64>,
    /// Non-loop records with one end in the part.
    pub cut: Vec<u64>,
    /// Up to [`DENSE_PARTS`] parts: non-loop records between parts, `k × k`, symmetric, row by row. Internal
    /// records on the diagonal.
    pub matrix: Option<Buffer<u64>>,
    /// Number of loops.
    pub loops: u64,
    /// See [`crate::graph::checksum`].
    pub checksum: String,
}

impl Cut {
    /// Sum of the degrees of each part's vertices.
    pub fn volume(&self) -> Vec<u64> {
        self.internal.iter().zip(&self.cut).map(|(internal, cut)| 2 * internal + cut).collect()
    }
}

/// The cut matrix of many parts: record counts of those pairs of parts that have any, each pair once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SparseMatrix {
    /// The lower part of each pair. Pairs are sorted.
    pub first: Vec<u32>,
    /// The higher part of each pair, or the same one.
    pub second: Vec<u32>,
    /// Non-loop records between the two.
    pub records: Vec<u64>,
}

/// Counts the records inside and between the parts, and hashes them all, in one pass.
pub fn cut(edges: &dyn EdgeStream, assignment: &[i32], k: u32, run: &Run) -> Result<Cut> {
    validate(assignment, k, edges.num_vertices(), run)?;
    if k > DENSE_PARTS {
        by_part(edges, assignment, k as usize, run)
    } else {
        by_pair(edges, assignment, k as usize, run)
    }
}

/// Counts ends and internal records of each part.
fn by_part(edges: &dyn EdgeStream, assignment: &[i32], k: usize, run: &Run) -> Result<Cut> {
    let Tally { cells, loops, checksum } =
        tally(edges, assignment, run, 2 * k, |cells: &mut [u64], p, q, one| {
            cells[2 * p] += one;
            cells[2 * q] += one;
            cells[2 * p + 1] += if p == q { one } else { 0 };
        })?;
    let (counts, _) = cells.as_chunks::<2>();
    let internal = counts.iter().map(|&[_, internal]| internal).collect();
    let cut = counts.iter().map(|&[ends, internal]| ends - 2 * internal).collect();
    Ok(Cut { internal, cut, matrix: None, loops, checksum })
}

/// Counts the records of each pair of parts.
fn by_pair(edges: &dyn EdgeStream, assignment: &[i32], k: usize, run: &Run) -> Result<Cut> {
    let Tally { cells: mut matrix, loops, checksum } = if k <= PRIVATE_PARTS {
        tally(edges, assignment, run, k * k, |cells: &mut [u64], p, q, one| cells[p * k + q] += one)?
    } else {
        run.require(8 * (k * k) as u64, format!("the cut matrix of {k} parts"))?;
        let mut matrix: Buffer<u64> = Buffer::zeroed(k * k, "cut matrix")?;
        let cells = shared(&mut matrix);
        let counted = tally(edges, assignment, run, 0, |_: &mut [u64], p, q, one| {
            cells[p * k + q].fetch_add(one, Relaxed);
        })?;
        Tally { cells: matrix, ..counted }
    };
    make_symmetric(&mut matrix, k, run)?;
    let internal: Vec<u64> = (0..k).map(|part| matrix[part * k + part]).collect();
    let cut =
        matrix.chunks(k).zip(&internal).map(|(row, internal)| row.iter().sum::<u64>() - internal).collect();
    Ok(Cut { internal, cut, matrix: Some(matrix), loops, checksum })
}

/// The counts of all workers.
struct Tally {
    cells: Buffer<u64>,
    loops: u64,
    checksum: String,
}

/// One pass, in which `add` gets its worker's `cells`, the two parts of a record, and 1, or 0 for a loop.
fn tally(
    edges: &dyn EdgeStream,
    assignment: &[i32],
    run: &Run,
    cells: usize,
    add: impl Fn(&mut [u64], usize, usize, u64) + Sync,
) -> Result<Tally> {
    let m = edges.num_edges();
    let each = 8 * cells as u64;
    let workers = run.workers(usize::MAX, each, each, "the cut counts")?;
    run.begin("cut", m);
    let init = || Ok((Buffer::zeroed(cells, "cut counts")?, 0, Hasher::default()));
    let states =
        pass(edges, run, checksum::UNIT, workers, init, |(cells, loops, hasher), first, records| {
            hasher.update(first, records, m);
            let cells: &mut [u64] = cells;
            for (index, &[u, v]) in records.iter().enumerate() {
                prefetch_ends(assignment, records, index + ahead::RECORDS);
                // A loop adds 0: cheaper than a branch.
                add(
                    cells,
                    assignment[u as usize] as usize,
                    assignment[v as usize] as usize,
                    u64::from(u != v),
                );
                *loops += u64::from(u == v);
            }
            Ok(())
        })?;
    let (mut total, mut loops, mut hashers) = (Buffer::zeroed(cells, "cut counts")?, 0, Vec::new());
    for (cells, some, hasher) in states {
        total.iter_mut().zip(cells.iter()).for_each(|(total, count)| *total += count);
        loops += some;
        hashers.push(hasher);
    }
    Ok(Tally { cells: total, loops, checksum: checksum::combine(hashers) })
}

/// Adds each cell to its mirror image.
fn make_symmetric(matrix: &mut [u64], k: usize, run: &Run) -> Result<()> {
    for row in 0..k {
        for column in 0..row {
            let sum = matrix[row * k + column] + matrix[column * k + row];
            matrix[row * k + column] = sum;
            matrix[column * k + row] = sum;
        }
        run.check()?;
    }
    Ok(())
}

/// The cut matrix of any number of parts, in memory that grows with the pairs of parts that share records:
/// about 40 bytes per pair and worker, refused as soon as it is too much.
pub fn sparse_matrix(edges: &dyn EdgeStream, assignment: &[i32], k: u32, run: &Run) -> Result<SparseMatrix> {
    validate(assignment, k, edges.num_vertices(), run)?;
    let in_use = AtomicU64::new(0);
    run.begin("cut", edges.num_edges());
    let init = || Ok(FxHashMap::default());
    let maps = pass(edges, run, BLOCK, usize::MAX, init, |pairs, _, records| {
        reserve(pairs, records.len(), &in_use, run)?;
        for &[u, v] in records.iter().filter(|&&[u, v]| u != v) {
            let (p, q) = (assignment[u as usize] as u64, assignment[v as usize] as u64);
            *pairs.entry(p.min(q) << 32 | p.max(q)).or_insert(0_u64) += 1;
        }
        Ok(())
    })?;
    let total: usize = maps.iter().map(FxHashMap::len).sum();
    run.require(in_use.into_inner() + 32 * total as u64, "the sparse cut matrix")?;
    let mut pairs: Vec<(u64, u64)> = reserved(total, "sparse cut matrix")?;
    for map in maps {
        pairs.extend(map);
    }
    sort_by_key(&mut pairs, run, |&pair| pair);
    let same = pairs.chunk_by(|(a, _), (b, _)| a == b);
    let mut matrix = SparseMatrix::default();
    for pair in same {
        let (key, records) = (pair[0].0, pair.iter().map(|&(_, records)| records).sum());
        matrix.first.push((key >> 32) as u32);
        matrix.second.push(key as u32);
        matrix.records.push(records);
    }
    Ok(matrix)
}

/// Lets a table grow by `more` pairs, if the budget allows what all workers then have `in_use`.
fn reserve(pairs: &mut FxHashMap<u64, u64>, more: usize, in_use: &AtomicU64, run: &Run) -> Result<()> {
    if pairs.capacity() - pairs.len() >= more {
        return Ok(());
    }
    // 17 bytes a slot, 8 slots for 7 pairs, and a number of slots that is a power of two.
    let bytes = |capacity: usize| 17 * (capacity as u64 * 8).div_ceil(7).next_power_of_two();
    let (old, new) = (bytes(pairs.capacity()), bytes((pairs.len() + more).max(2 * pairs.capacity())));
    // The old table is kept until the new one is filled.
    run.require(in_use.fetch_add(new, Relaxed) + new, "the sparse cut matrix")?;
    let refused =
        |_| Error::Capacity(format!("the sparse cut matrix: the operating system refused {new} bytes"));
    pairs.try_reserve((pairs.len() + more).max(2 * pairs.capacity()) - pairs.len()).map_err(refused)?;
    in_use.fetch_sub(old, Relaxed);
    Ok(())
}
