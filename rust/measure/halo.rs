//! Halos: the vertices outside a part that have a neighbour in it.
//!
//! **Memory.** 8 bytes per vertex: a mask of 64 parts, one bit for each part that has the vertex in its halo.
//!
//! **Algorithm.** One pass over the records for every 64 parts. A record whose ends are in two parts puts
//! each end in the halo of the other's part. Then the bits are counted per part.
//!
//! **Parallelism.** Masks are shared. Setting a bit commutes, so the order does not matter. Most bits are
//! already set, so a plain load comes first, and only a missing bit costs a locked instruction.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use super::{CHUNK, check_sizes, validate};
use crate::base::{Buffer, Result, Run, ahead, prefetch_ends, shared};
use crate::edges::{EdgeStream, Record};
use crate::exec::{each_block, scan};
use crate::sets::bits::{ones, set};

/// Parts per pass: the bits of a mask.
pub(super) const PARTS: usize = 64;

/// For each part the number of vertices outside it that have a neighbour in it: `|N(V_i) \ V_i|`.
pub fn halo_sizes(edges: &dyn EdgeStream, assignment: &[i32], k: u32, run: &Run) -> Result<Vec<u64>> {
    let mut sizes = halo_sizes_of_types(edges, assignment, k, 0..k, &[edges.num_vertices()], run)?;
    Ok(sizes.swap_remove(0))
}

/// The halos of a range of `parts`, by type of the vertices. Types are ranges of vertices of the sizes
/// `types`, one after the other.
pub fn halo_sizes_of_types(
    edges: &dyn EdgeStream,
    assignment: &[i32],
    k: u32,
    parts: Range<u32>,
    types: &[u64],
    run: &Run,
) -> Result<Vec<Vec<u64>>> {
    let n = edges.num_vertices();
    validate(assignment, k, n, run)?;
    check_sizes("types", types, n)?;
    let counts = types.len() as u64 * parts.len() as u64;
    run.require(8 * (n + counts), format!("halo counts of {n} vertices (8 bytes each)"))?;
    let passes = parts.len().div_ceil(PARTS) as u64;
    run.begin("halo", passes * (edges.num_edges() + n));
    let mut masks: Buffer<u64> = Buffer::zeroed(n as usize, "halo masks")?;
    let mut sizes = vec![Vec::new(); types.len()];
    for first in parts.clone().step_by(PARTS) {
        let shared = shared(&mut masks);
        each_block(edges, run, |_, records| {
            mark(shared, assignment, first, records);
            Ok(())
        })?;
        for (sizes, masks) in sizes.iter_mut().zip(by_type(&mut masks, types)) {
            sizes.extend(count_and_clear(masks, run)?);
        }
    }
    sizes.iter_mut().for_each(|sizes| sizes.truncate(parts.len()));
    Ok(sizes)
}

/// Puts the ends of cut records in each other's halo, for the 64 parts from `first`. The only branch is a
/// rare one, a missing bit: whether a record is cut cannot be predicted.
fn mark(masks: &[AtomicU64], assignment: &[i32], first: u32, records: &[Record]) {
    for (index, &[u, v]) in records.iter().enumerate() {
        prefetch_ends(assignment, records, index + ahead::RECORDS);
        prefetch_ends(masks, records, index + ahead::RECORDS);
        let (p, q) = (assignment[u as usize] as u32, assignment[v as usize] as u32);
        let bit = |part: u32| {
            let index = part.wrapping_sub(first);
            u64::from((p != q) & (index < PARTS as u32)) << (index % PARTS as u32)
        };
        set(&masks[v as usize], bit(p));
        set(&masks[u as usize], bit(q));
    }
}

/// The items of the vertices of each type.
pub(super) fn by_type<'a, T>(mut each: &'a mut [T], types: &'a [u64]) -> impl Iterator<Item = &'a mut [T]> {
    types.iter().map(move |&size| each.split_off_mut(..size as usize).unwrap_or_default())
}

/// Number of masks that hold each bit. The masks are zero afterwards.
pub(super) fn count_and_clear(masks: &mut [u64], run: &Run) -> Result<[u64; PARTS]> {
    let count = |sizes: &mut [u64; PARTS], masks: &mut [u64]| {
        for mask in masks.iter_mut() {
            ones(&[std::mem::take(mask)]).for_each(|bit| sizes[bit as usize] += 1);
        }
        run.advance(masks.len() as u64)
    };
    let sizes = scan(run, usize::MAX, masks.chunks_mut(CHUNK), || Ok([0; PARTS]), count)?;
    Ok(std::array::from_fn(|part| sizes.iter().map(|sizes| sizes[part]).sum()))
}
