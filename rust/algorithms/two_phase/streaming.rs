//! The records that no cluster decides, placed in stream order by the score of 2PS-L.

use std::ops::Range;

use super::Vertex;
use super::scoring::{Candidate, State};
use crate::base::{NONE, Result, Run, prefetch_ends};
use crate::edges::{EdgeStream, Record};
use crate::exec::pipeline;
use crate::partition::EdgeParts;

/// Bytes that are kept of a record.
const BYTES_PER_RECORD: u64 =
    (size_of::<Record>() + size_of::<u32>() + size_of::<Candidate>() + size_of::<(u64, u32)>()) as u64;
/// How many records ahead data is prefetched.
const AHEAD: usize = 16;

/// Bytes that streaming `m` records takes.
pub(super) fn memory(m: u64) -> u64 {
    pipeline::memory(m, BYTES_PER_RECORD)
}

/// The records that one thread gathers at a time, and the parts found for them.
#[derive(Default)]
struct Slice {
    buf: Vec<Record>,
    parts: Vec<u32>,
    candidates: Vec<Candidate>,
    found: Vec<(u64, u32)>,
}

/// Places all records with the mark but loops.
pub(super) fn stream(
    edges: &dyn EdgeStream,
    vertices: &[Vertex],
    parts: &mut EdgeParts,
    state: &mut State,
    run: &Run,
) -> Result<()> {
    run.begin("streaming", edges.num_edges());
    let gather = |parts: &EdgeParts, range: Range<u64>, slice: &mut Slice| {
        let first = range.start;
        let parts = parts.read(range.clone(), &mut slice.parts);
        let records = edges.block(range, &mut slice.buf)?;
        slice.candidates.clear();
        for (index, (&[u, v], &part)) in records.iter().zip(parts).enumerate() {
            prefetch_ends(vertices, records, index + AHEAD);
            if part == NONE && u != v {
                slice.candidates.push(candidate(vertices, first + index as u64, [u, v]));
            }
        }
        Ok(())
    };
    let finish = |parts: &mut EdgeParts, slice: &Slice| {
        slice.found.iter().for_each(|&(record, part)| parts.write(record, &[part]));
    };
    pipeline(edges, parts, run, gather, |slice| place(state, slice, run), finish)
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

/// Finds the parts of the gathered records.
fn place(state: &mut State, slice: &mut Slice, run: &Run) -> Result<()> {
    slice.found.clear();
    for (index, candidate) in slice.candidates.iter().enumerate() {
        if let Some(ahead) = slice.candidates.get(index + AHEAD) {
            ahead.ends.iter().for_each(|&end| state.holds.prefetch(end));
        }
        let part = state.linear(candidate);
        state.put(candidate, part);
        slice.found.push((candidate.record, part));
    }
    run.check()
}
