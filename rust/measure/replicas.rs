//! Replicas of an edge partition: the number of parts in which each vertex has a record.
//!
//! **Memory.** 8 bytes per vertex, and one bit per vertex for those with any record.
//!
//! **Algorithm and parallelism.** As for [halos](super::halo_sizes): a mask of 64 parts per vertex, one pass
//! over the records for every 64 parts. Loops count: they make their vertex a member of their part.

use std::sync::atomic::AtomicU64;

use super::halo::{PARTS, by_type, count_and_clear};
use super::{check_sizes, total, validate_records};
use crate::base::{Buffer, Result, Run, ahead, prefetch_ends, shared};
use crate::edges::EdgeStream;
use crate::exec::pass;
use crate::graph::{Hasher, checksum};
use crate::sets::bits::set;

/// Replica counts of an edge partition.
#[derive(Debug)]
pub struct Replicas {
    /// Vertices with a record in each part.
    pub sizes: Vec<u64>,
    /// Vertices with a record in any part.
    pub touched: u64,
    /// Replica counts of each type.
    pub types: Vec<TypeReplicas>,
    /// Number of loops.
    pub loops: u64,
    /// See [`crate::graph::checksum`].
    pub checksum: String,
}

/// Replica counts of the vertices of one type.
#[derive(Debug)]
pub struct TypeReplicas {
    /// Vertices with a record in each part.
    pub sizes: Vec<u64>,
    /// Vertices with a record in any part.
    pub touched: u64,
}

#[derive(Default)]
struct Worker {
    hasher: Hasher,
    loops: u64,
}

/// Counts replicas of an edge partition, given as the part of each record (`u8`, `i16` or `i32`).
pub fn replicas<P: Copy + Into<i32> + Sync>(
    edges: &dyn EdgeStream,
    assignment: &[P],
    k: u32,
    run: &Run,
) -> Result<Replicas> {
    replicas_of_types(edges, assignment, k, &[edges.num_vertices()], run)
}

/// Counts replicas, also by type. Types are ranges of vertices of the sizes `types`, one after the other.
pub fn replicas_of_types<P: Copy + Into<i32> + Sync>(
    edges: &dyn EdgeStream,
    assignment: &[P],
    k: u32,
    types: &[u64],
    run: &Run,
) -> Result<Replicas> {
    let (n, m) = (edges.num_vertices(), edges.num_edges());
    validate_records(edges, assignment, k)?;
    check_sizes("types", types, n)?;
    let counts = (1 + types.len() as u64) * u64::from(k);
    run.require(9 * n + 8 * counts, format!("replica counts of {n} vertices (9 bytes each)"))?;
    let passes = k.div_ceil(PARTS as u32);
    run.begin("replicas", u64::from(passes) * (m + n));
    let mut masks: Buffer<u64> = Buffer::zeroed(n as usize, "replica masks")?;
    let mut touched: Buffer<u8> = Buffer::zeroed(n as usize, "touched vertices")?;
    let (mut sizes, mut loops, mut sum) = (vec![Vec::new(); types.len()], 0, String::new());
    for first in (0..k).step_by(PARTS) {
        let masks_shared: &[AtomicU64] = shared(&mut masks);
        let workers = pass(
            edges,
            run,
            checksum::UNIT,
            usize::MAX,
            || Ok(Worker::default()),
            |worker, start, records| {
                if first == 0 {
                    worker.hasher.update(start, records, m);
                    worker.loops += records.iter().map(|&[u, v]| u64::from(u == v)).sum::<u64>();
                }
                let parts = &assignment[start as usize..];
                for (index, (&[u, v], &part)) in records.iter().zip(parts).enumerate() {
                    prefetch_ends(masks_shared, records, index + ahead::RECORDS);
                    // A part outside 0..k would be dropped here, and is refused where partitions are made.
                    let part = (part.into() as u32).wrapping_sub(first);
                    let bit = u64::from(part < PARTS as u32) << (part % PARTS as u32);
                    set(&masks_shared[u as usize], bit);
                    set(&masks_shared[v as usize], bit);
                }
                Ok(())
            },
        )?;
        if first == 0 {
            loops = workers.iter().map(|worker| worker.loops).sum();
            sum = checksum::combine(workers.into_iter().map(|worker| worker.hasher));
        }
        for (touched, &mask) in touched.iter_mut().zip(masks.iter()) {
            *touched |= u8::from(mask != 0);
        }
        for (sizes, masks) in sizes.iter_mut().zip(by_type(&mut masks, types)) {
            sizes.extend(count_and_clear(masks, run)?);
        }
    }
    let types: Vec<TypeReplicas> = sizes
        .into_iter()
        .zip(by_type(&mut touched, types))
        .map(|(mut sizes, touched)| {
            sizes.truncate(k as usize);
            TypeReplicas { sizes, touched: touched.iter().map(|&touched| u64::from(touched)).sum() }
        })
        .collect();
    let touched = types.iter().map(|each| each.touched).sum();
    let sizes = total(types.iter().map(|each| each.sizes.clone()).collect(), k as usize);
    Ok(Replicas { sizes, touched, types, loops, checksum: sum })
}
