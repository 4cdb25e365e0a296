//! The weights of the entries of an adjacency, from those of the records.
//!
//! **Scale.** The sum of all is kept below 2^31, or little above, so that the weight of what touches a vertex, or
//! of what several do, fits into 32 bits. Weights are halved, and rounded up, until it is. An entry never weighs 0,
//! which would make its vertices look as if they had no neighbours. A record of weight 0 gets 1, and if there is
//! any, the others are doubled as often as there is room. Where all weigh the same, each entry gets 1: equal weights
//! give what no weights give.
//!
//! **Algorithm.** A pass over the records finds each entry in its list by a binary search. The records of one pair add
//! to the first of its parallel entries. In the end each of the others gets 1 of that. So the order of
//! the records does not matter, and with it the threads.
//!
//! **Memory.** 4 bytes per entry.
//!
//! **Complexity.** O(m log d) for lists of d entries.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{Home, changed};
use crate::base::{Buffer, Result, Run, prefetch, shared};
use crate::edges::{BLOCK, EdgeStream, Record, Weights};
use crate::exec::{pass, scan};
use crate::graph::Extent;

/// Bits of the sum of all weights.
const BITS: u32 = 31;

/// How many records ahead the place of a list is looked up, and the middle of the list.
const AHEAD: [usize; 2] = [32, 16];

/// Vertices that a worker finishes at a time.
const VERTICES: usize = 1 << 12;

/// By how many bits weights are shifted.
#[derive(Debug, Clone, Copy)]
struct Scale {
    up: u32,
    down: u32,
    /// The largest weight of an entry.
    most: u32,
}

impl Scale {
    fn of(extent: &Extent) -> Self {
        let bits = u64::BITS - extent.total.leading_zeros();
        let up = if extent.least == 0 { (BITS - 1).saturating_sub(bits) } else { 0 };
        let most = if extent.least == extent.most { 1 } else { u32::MAX };
        Self { up, down: bits.saturating_sub(BITS), most }
    }

    #[inline(always)]
    fn apply(self, weight: u32) -> u32 {
        (u64::from(weight) << self.up).div_ceil(1 << self.down).clamp(1, self.most.into()) as u32
    }
}

/// The adjacency whose entries get weights.
pub struct Entries<'a> {
    /// Where the list of each vertex begins, and the number of entries.
    pub offsets: &'a [u64],
    /// All lists. Each ascends.
    pub neighbours: &'a [u32],
    /// Whether a record is one entry.
    pub symmetric: bool,
}

impl Entries<'_> {
    /// The weight of each entry.
    pub fn weights(
        &self,
        edges: &dyn EdgeStream,
        weights: &Weights,
        extent: &Extent,
        home: Home,
        run: &Run,
    ) -> Result<Buffer<u32>> {
        let mut sums: Buffer<u32> = home.zeroed(self.neighbours.len() as u64, "weights of the adjacency")?;
        let scale = Scale::of(extent);
        run.begin("weights", edges.num_edges());
        let cells = shared(&mut sums);
        weights.check_unchanged()?;
        pass(
            edges,
            run,
            BLOCK,
            usize::MAX,
            || Ok(Vec::new()),
            |buf, first, records| {
                let weights = weights.block(first..first + records.len() as u64, buf)?;
                self.add(records, weights, scale, cells)
            },
        )?;
        weights.check_unchanged()?;
        self.share(&mut sums, run)?;
        Ok(sums)
    }

    /// Adds the weights of records to the first entries of their pairs.
    fn add(&self, records: &[Record], weights: &[u32], scale: Scale, sums: &[AtomicU32]) -> Result<()> {
        for (index, (&[u, v], &weight)) in records.iter().zip(weights).enumerate() {
            self.look_ahead(records, index);
            if u == v {
                continue;
            }
            let weight = scale.apply(weight);
            sums[self.place(u, v)?].fetch_add(weight, Relaxed);
            if !self.symmetric {
                sums[self.place(v, u)?].fetch_add(weight, Relaxed);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn look_ahead(&self, records: &[Record], index: usize) {
        let [far, near] = AHEAD;
        if let Some(record) = records.get(index + far) {
            record.iter().for_each(|&id| prefetch(self.offsets, id as usize));
        }
        if let Some(record) = records.get(index + near) {
            record.iter().for_each(|&id| {
                let middle = (self.offsets[id as usize] + self.offsets[id as usize + 1]) / 2;
                prefetch(self.neighbours, middle as usize);
            });
        }
    }

    /// The first entry of `v` in the list of `u`.
    #[inline(always)]
    fn place(&self, u: u32, v: u32) -> Result<usize> {
        let range = self.offsets[u as usize] as usize..self.offsets[u as usize + 1] as usize;
        let place = range.start + self.neighbours[range.clone()].partition_point(|&other| other < v);
        if place < range.end && self.neighbours[place] == v { Ok(place) } else { Err(changed()) }
    }

    /// Shares the sum of parallel entries among them.
    fn share(&self, sums: &mut [u32], run: &Run) -> Result<()> {
        let n = self.offsets.len() - 1;
        let mut rest = sums;
        let jobs = (0..n).step_by(VERTICES).map(|first| {
            let vertices = first..n.min(first + VERTICES);
            let entries = (self.offsets[vertices.end] - self.offsets[first]) as usize;
            let (sums, after) = std::mem::take(&mut rest).split_at_mut(entries);
            rest = after;
            (vertices, sums)
        });
        let step = |(): &mut (), (vertices, mut sums): (std::ops::Range<usize>, &mut [u32])| {
            for ends in self.offsets[vertices.start..=vertices.end].windows(2) {
                let list = &self.neighbours[ends[0] as usize..ends[1] as usize];
                for equal in list.chunk_by(|one, other| one == other) {
                    let (parallel, after) = std::mem::take(&mut sums).split_at_mut(equal.len());
                    if let [first, others @ ..] = parallel {
                        *first = first.saturating_sub(others.len() as u32).max(1);
                        others.fill(1);
                    }
                    sums = after;
                }
            }
            Ok(())
        };
        scan(run, usize::MAX, jobs, || Ok(()), step).map(drop)
    }
}
