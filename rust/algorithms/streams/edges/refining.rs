//! Refinement of any given edge partition: fewer replicas within the same cap.
//!
//! **Requirements.** A part for each record, loops included, and no part above the cap.
//!
//! **Memory.** 2 k bits per vertex ([`Incidence`]), 48 bytes per part, and up to 6 MB of buffers. The records
//! are streamed, and so are their parts.
//!
//! **Algorithm.** Passes. Each begins with the parts that every vertex is present in, and finds new ones
//! within these: a record may only go to parts that hold both of its ends already. So no vertex ever becomes
//! present in a further part, and a pass cannot make a replica, whatever it does.
//! 1. A record whose ends have just one part in common must stay. Its ends are *pinned* to that part.
//! 2. The others are streamed. Each goes to the part of the largest score among those that both ends have in
//!    common: 1 for every end that is pinned to it already, plus the term of records and replicas
//!    ([`Balance::RecordsAndReplicas`]). Parts at the cap are excluded, except the record's own part. Then
//!    both ends are pinned to the chosen part.
//!
//! A vertex stays in the parts that hold it in the end, and leaves the others. So whole groups of records
//! move in one pass, of which no single move gains anything. Every other pass goes backwards, so that a
//! vertex is not pinned to a part by the same first record again. The last pass is one that removes less than
//! 0.1 % of the replicas.
//!
//! **Parallelism.** All threads mark what must stay, and choose the records that have a choice. One thread
//! places these, each in the state that the one before left. So the result is the same for any number of
//! threads.
//!
//! **Figures.** Of edge partitions made of multilevel partitions of 17 real graphs, into 4, 8 and 32 parts,
//! it removes 1.1 %, 1.8 % and 1.8 % of the replicas in the geometric mean; of SIGMA's 1.2 %, 1.5 % and 2.2
//! %; of HEP's 0.1 %, 0.2 % and 0.9 %. Five passes of single moves that gain at once, with a counter for each
//! vertex and part, find less: on amazon-computers 0.3 %, 0.6 % and 0.8 %, where these find 1.6 %, 0.9 % and
//! 2.3 %.
//!
//! **Complexity.** Each pass reads the records twice. O(k / 64) per record, and O(common parts) for one that
//! has a choice.

use super::loads::{Balance, EdgeLoads};
use super::search::best_common;
use super::{BYTES_PER_RECORD, Slice, choose};
use crate::base::{Result, Run, ahead};
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::pipeline::{self, SLICE, slices};
use crate::exec::{blocks, pass};
use crate::partition::{EdgePartition, EdgeParts};
use crate::sets::Incidence;

/// Most passes, unless others are asked for.
pub(crate) const PASSES: u32 = 5;
/// A pass that removes fewer replicas than all divided by this is the last.
const FEW: u64 = 1000;
/// Records that are placed between two polls of the cancel flag.
const STRIDE: usize = 1024;

/// Bytes that it takes for `n` vertices and `m` records, result included.
pub(crate) fn memory(n: u64, m: u64, k: u32, in_file: bool) -> u64 {
    let sets = 2 * Incidence::memory(n, k) + EdgeLoads::memory(k);
    sets + pipeline::memory(m, BYTES_PER_RECORD) + EdgeParts::memory(m, k, in_file)
}

/// How an edge partition is refined.
#[derive(Debug, Clone, Copy)]
pub struct Refining {
    /// Most passes.
    pub passes: u32,
    /// Weight of the balance of records and replicas in the score.
    pub lambda: f64,
}

impl Refining {
    /// The defaults.
    pub const DEFAULT: Self = Self { passes: PASSES, lambda: 1.0 };

    /// Refines `partition`, whose records are `edges`.
    pub fn refine(self, edges: &dyn EdgeStream, partition: &mut EdgePartition, run: &Run) -> Result<()> {
        let (n, k) = (edges.num_vertices(), partition.k);
        if self.passes == 0 || n == 0 {
            return Ok(());
        }
        let EdgePartition { parts, loads, cap, .. } = partition;
        let [mut present, mut pinned] = [Incidence::new(n as usize, k)?, Incidence::new(n as usize, k)?];
        pin(edges, parts, None, &mut present, run)?;
        let mut replicas = count(&present, n, k, run)?.iter().sum::<u64>();
        for pass in 0..self.passes {
            pinned.clear();
            pin(edges, parts, Some(&present), &mut pinned, run)?;
            let balance = Balance::RecordsAndReplicas(self.lambda);
            let mut state = EdgeLoads::new(k, balance, 0)?;
            state.resume(loads, &count(&pinned, n, k, run)?);
            state.settle(cap.unwrap_or(u64::MAX));
            stream(edges, parts, (&present, &mut pinned), (&mut state, pass % 2 == 1), run)?;
            *loads = state.records();
            std::mem::swap(&mut present, &mut pinned);
            let before = std::mem::replace(&mut replicas, state.replicas());
            if (before - replicas) * FEW < before {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the ends of a record have several parts in common.
#[inline(always)]
fn has_choice(present: &Incidence, [u, v]: Record) -> bool {
    let rows = present.row(u).iter().zip(present.row(v));
    rows.map(|(u, v)| (u & v).count_ones()).sum::<u32>() > 1
}

/// Pins the ends of each record to its part, or only the ends of those without a choice among the parts that
/// their ends are `present` in.
fn pin(
    edges: &dyn EdgeStream,
    parts: &EdgeParts,
    present: Option<&Incidence>,
    pinned: &mut Incidence,
    run: &Run,
) -> Result<()> {
    run.begin("replicas", edges.num_edges());
    let pinned = pinned.shared();
    let see = |known: &mut Vec<u32>, first: u64, records: &[Record]| {
        let known = parts.read(first..first + records.len() as u64, known);
        for (index, (&record, &part)) in records.iter().zip(known).enumerate() {
            if let Some(&later) = records.get(index + ahead::ENTRIES) {
                present.iter().for_each(|present| later.iter().for_each(|&id| present.prefetch(id)));
                later.iter().for_each(|&id| pinned.prefetch(id));
            }
            if present.is_none_or(|present| !has_choice(present, record)) {
                record.iter().for_each(|&id| pinned.insert(id, part));
            }
        }
        Ok(())
    };
    pass(edges, run, BLOCK, usize::MAX, || Ok(Vec::new()), see).map(drop)
}

/// The number of vertices in each part.
fn count(pinned: &Incidence, n: u64, k: u32, run: &Run) -> Result<Vec<u64>> {
    let mut counts = vec![0; k as usize];
    for block in blocks(0..n) {
        for v in block {
            pinned.parts(v as u32).for_each(|part| counts[part as usize] += 1);
        }
        run.check()?;
    }
    Ok(counts)
}

/// One pass over the records with a choice, maybe backwards, from the parts that vertices are `present` in to
/// those that hold them.
fn stream(
    edges: &dyn EdgeStream,
    parts: &mut EdgeParts,
    (present, pinned): (&Incidence, &mut Incidence),
    (loads, backwards): (&mut EdgeLoads, bool),
    run: &Run,
) -> Result<()> {
    let m = edges.num_edges();
    let count = m.div_ceil(SLICE);
    let gather = |parts: &EdgeParts, index: u64, slice: &mut Slice| {
        let index = if backwards { count - 1 - index } else { index };
        let range = index * SLICE..m.min((index + 1) * SLICE);
        slice.read(edges, parts, range.clone())?;
        let Slice { records, chosen, .. } = slice;
        choose(records.len(), chosen, |index| {
            if let Some(&later) = records.get(index + ahead::ENTRIES) {
                later.iter().for_each(|&id| present.prefetch(id));
            }
            has_choice(present, records[index])
        });
        if backwards {
            chosen.reverse();
        }
        run.advance(range.end - range.start)
    };
    let place = |Slice { records, parts, chosen, .. }: &mut Slice| {
        for (place, &index) in chosen.iter().enumerate() {
            if let Some(&later) = chosen.get(place + ahead::ENTRIES) {
                records[later as usize].iter().for_each(|&id| pinned.prefetch(id));
            }
            if place.is_multiple_of(STRIDE) {
                run.check()?;
            }
            let (record, part) = (records[index as usize], &mut parts[index as usize]);
            loads.remove(*part);
            let [within, rows] = [present, &*pinned].map(|sets| record.map(|id| sets.row(id)));
            *part = best_common(loads, within, rows).unwrap_or(*part);
            let new = record.map(|id| u32::from(pinned.insert(id, *part)));
            loads.add(*part, new[0] + new[1]);
        }
        Ok(())
    };
    run.begin("refining", m);
    edges.check_unchanged()?;
    slices(count, parts, run, gather, |_| {}, place, Slice::write)?;
    edges.check_unchanged()
}
