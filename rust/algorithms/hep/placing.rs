//! The records of the parts that vertices have joined.

use super::expansion::{HIGH, LowParts};
use crate::base::{NONE, Result, Run, prefetch};
use crate::edges::{EdgeStream, Record};
use crate::partition::EdgeParts;
use crate::sets::incidence::Shared;

/// Records by which data is prefetched ahead.
const AHEAD: usize = 24;

/// Gives each record that the expansion has placed its part, and the others the mark. High vertices become
/// present where their records are.
pub(crate) fn place(
    edges: &dyn EdgeStream,
    grown: &mut LowParts,
    parts: &mut EdgeParts,
    run: &Run,
) -> Result<()> {
    let LowParts { present, home, .. } = grown;
    let present = present.shared();
    run.begin("placing", edges.num_edges());
    let part = |records: &[Record], place: usize, _| {
        if let Some(later) = records.get(place + AHEAD) {
            later.iter().for_each(|&id| {
                prefetch(home, id as usize);
                present.prefetch(id);
            });
        }
        part_of(records[place], home, &present)
    };
    parts.fill(edges, 0, run, part).map(drop)
}

#[inline(always)]
fn part_of([u, v]: Record, home: &[u32], present: &Shared) -> u32 {
    if u == v {
        return NONE;
    }
    let (low, high) = match [home[u as usize], home[v as usize]] {
        [HIGH, part] => (part, u),
        [part, HIGH] => (part, v),
        _ => return present.first_common(u, v).unwrap_or(NONE),
    };
    if low >= HIGH {
        return NONE;
    }
    present.insert(high, low);
    low
}

const _: () = assert!(HIGH < NONE);
