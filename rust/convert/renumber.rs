//! A graph under other ids, in a file of its own.
//!
//! Record `r` of the output is record `r` of the input. So whatever belongs to the records, such as their
//! weights, their features or an edge partition, belongs to those of the output as it is. `TARGET.ids.npy`
//! leads back. It has the format of a conversion that relabels.
//!
//! **Memory.** Buffers of a megabyte, beside what the caller holds.
//!
//! **Parallelism.** None. A record takes some nanoseconds.

use std::path::Path;

use super::sink::{RawWriter, write_ids};
use super::{Conversion, ids_beside};
use crate::base::{Result, Run, ahead, prefetch_ends};
use crate::edges::{EdgeStream, Record};
use crate::exec::in_order;

/// Records that are renumbered at a time.
const STEP: usize = 1 << 13;

/// Writes the records to `target`, with `places[v]` for v, and the ids in the order of their places beside
/// it.
pub fn renumber(
    edges: &dyn EdgeStream,
    ids: &[u32],
    places: &[u32],
    target: &Path,
    run: &Run,
) -> Result<Conversion> {
    let ids = write_ids(ids, &ids_beside(target), run)?;
    let mut writer = RawWriter::create(target)?;
    let mut renumbered: Vec<Record> = Vec::with_capacity(STEP);
    run.begin("write", edges.num_edges());
    in_order(edges, 0..edges.num_edges(), run, |_, records| {
        for start in (0..records.len()).step_by(STEP) {
            renumbered.clear();
            for index in start..records.len().min(start + STEP) {
                prefetch_ends(places, records, index + ahead::RECORDS);
                renumbered.push(records[index].map(|id| places[id as usize]));
            }
            writer.push(&renumbered)?;
            run.check()?;
        }
        Ok(())
    })?;
    let (n, m, loops) = (edges.num_vertices(), writer.m, writer.loops);
    ids.commit()?;
    Ok(Conversion { n, m, loops, checksum: writer.finish()?, notes: vec![], both: None })
}
