//! The records that no cluster decides, placed in stream order by the score of 2PS-L.

use rayon::prelude::*;

use super::Vertex;
use super::scoring::{Candidate, State};
use crate::base::NONE;
use crate::base::error::Result;
use crate::base::prefetch::prefetch;
use crate::base::run::Run;
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::partition::EdgeParts;

/// Records that are gathered while those before are placed. Never changes the result.
const BATCH: u64 = 1 << 17;
/// Records that one thread gathers at a time.
const SLICE: u64 = 1 << 13;
/// Bytes of what is kept of a record of a batch, and of the next batch.
const BYTES_PER_RECORD: u64 =
    2 * (size_of::<Record>() + size_of::<u32>() + size_of::<Candidate>() + size_of::<(u64, u32)>()) as u64;
/// How many records ahead memory is asked for.
const AHEAD: usize = 16;

/// Bytes that streaming `m` records takes.
pub(super) fn memory(m: u64) -> u64 {
    m.min(BATCH) * BYTES_PER_RECORD
}

/// Places all records with the mark but loops.
pub(super) fn stream(
    edges: &dyn EdgeStream,
    vertices: &[Vertex],
    parts: &mut EdgeParts,
    state: &mut State,
    run: &Run,
) -> Result<()> {
    let m = edges.num_edges();
    run.begin("streaming", m);
    edges.check_unchanged()?;
    let [mut gathered, mut placing] = [(); 2].map(|()| {
        let mut slices = Vec::new();
        slices.resize_with((BATCH / SLICE) as usize, Slice::default);
        slices
    });
    run.install(|| {
        // One batch more than there are: when the last is placed, nothing is left to gather.
        for start in (0..m + BATCH).step_by(BATCH as usize) {
            std::mem::swap(&mut gathered, &mut placing);
            let (gathering, placed) = rayon::join(
                || gather(edges, vertices, parts, start, &mut gathered, run),
                || place(state, &mut placing, run),
            );
            gathering.and(placed)?;
            for slice in &placing {
                slice.found.iter().for_each(|&(record, part)| parts.write(record, &[part]));
            }
        }
        Ok(())
    })?;
    edges.check_unchanged()
}

/// What one thread gathers at a time, and the parts found for it.
#[derive(Default)]
struct Slice {
    buf: Vec<Record>,
    parts: Vec<u32>,
    candidates: Vec<Candidate>,
    found: Vec<(u64, u32)>,
}

/// Gathers the open records of the batch from `start` on.
fn gather(
    edges: &dyn EdgeStream,
    vertices: &[Vertex],
    parts: &EdgeParts,
    start: u64,
    slices: &mut [Slice],
    run: &Run,
) -> Result<()> {
    let m = edges.num_edges();
    slices.par_iter_mut().enumerate().try_for_each(|(index, slice)| {
        let first = m.min(start + index as u64 * SLICE);
        let range = first..m.min(first + SLICE);
        let parts = parts.read(range.clone(), &mut slice.parts);
        let records = edges.block(range, &mut slice.buf)?;
        slice.candidates.clear();
        for (index, (&[u, v], &part)) in records.iter().zip(parts).enumerate() {
            if let Some(&[u, v]) = records.get(index + AHEAD) {
                prefetch(vertices, u as usize);
                prefetch(vertices, v as usize);
            }
            if part == NONE && u != v {
                slice.candidates.push(candidate(vertices, first + index as u64, [u, v]));
            }
        }
        run.advance(records.len() as u64)
    })
}

fn candidate(vertices: &[Vertex], record: u64, ends: Record) -> Candidate {
    let [u, v] = ends.map(|id| vertices[id as usize]);
    let degrees = f64::from(u.degree) + f64::from(v.degree);
    Candidate {
        record,
        ends,
        parts: [u.part, v.part],
        gains: [u.degree, v.degree].map(|degree| 2.0 - f64::from(degree) / degrees),
        share: u.volume as f64 / (u.volume + v.volume) as f64,
    }
}

/// Finds the parts of what was gathered.
fn place(state: &mut State, slices: &mut [Slice], run: &Run) -> Result<()> {
    for slice in slices {
        slice.found.clear();
        for (index, candidate) in slice.candidates.iter().enumerate() {
            if let Some(ahead) = slice.candidates.get(index + AHEAD) {
                ahead.ends.iter().for_each(|&end| state.holds.prefetch(end));
            }
            let part = state.linear(candidate);
            state.put(candidate, part);
            slice.found.push((candidate.record, part));
        }
        run.advance(0)?;
    }
    Ok(())
}

const _: () = assert!(SLICE <= BLOCK);
