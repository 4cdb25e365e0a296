//! The records that no cluster decides, placed in stream order by the score of 2PS-L.

use std::ops::Range;

use super::Vertex;
use super::scoring::{Candidate, State};
use crate::algorithms::streams::edges::{Slice, choose_open};
use crate::base::{Result, Run, ahead, prefetch};
use crate::edges::{EdgeStream, Record};
use crate::exec::pipeline;
use crate::partition::EdgeParts;

/// Bytes that are kept of a record.
const BYTES_PER_RECORD: u64 = (size_of::<Record>() + 2 * size_of::<u32>() + size_of::<Candidate>()) as u64;

/// Bytes that streaming `m` records takes.
pub(super) fn memory(m: u64) -> u64 {
    pipeline::memory(m, BYTES_PER_RECORD)
}

/// The records that one thread gathers at a time, and the terms of the score for records without a part.
#[derive(Default)]
struct Candidates {
    slice: Slice,
    open: Vec<Candidate>,
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
    let gather = |parts: &EdgeParts, range: Range<u64>, Candidates { slice, open }: &mut Candidates| {
        slice.read(edges, parts, range)?;
        let Slice { records, parts, chosen, .. } = slice;
        choose_open(records, parts, chosen);
        open.clear();
        open.extend(chosen.iter().enumerate().map(|(place, &index)| {
            if let Some(&later) = chosen.get(place + ahead::ENTRIES) {
                records[later as usize].iter().for_each(|&id| prefetch(vertices, id as usize));
            }
            candidate(vertices, records[index as usize])
        }));
        Ok(())
    };
    let place = |Candidates { slice, open }: &mut Candidates| {
        for (place, (candidate, &index)) in open.iter().zip(&slice.chosen).enumerate() {
            if let Some(later) = open.get(place + ahead::ENTRIES) {
                later.ends.iter().for_each(|&end| state.holds.prefetch(end));
            }
            let part = state.linear(candidate);
            state.put(candidate, part);
            slice.parts[index as usize] = part;
        }
        run.check()
    };
    pipeline(edges, parts, run, gather, place, |parts, candidates| Slice::write(parts, &candidates.slice))
}

fn candidate(vertices: &[Vertex], ends: Record) -> Candidate {
    let [u, v] = ends.map(|id| vertices[id as usize]);
    let degrees = f64::from(u.degree) + f64::from(v.degree);
    Candidate {
        ends,
        parts: [u.part, v.part],
        gains: [u.degree, v.degree].map(|degree| 2.0 - f64::from(degree) / degrees),
        share: u.volume as f64 / (u.volume + v.volume) as f64,
    }
}
