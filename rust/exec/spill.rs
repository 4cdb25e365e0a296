//! A pass over the records that sends entries to the buckets of a temporary file.

use std::path::Path;

use super::pass::pass;
use crate::base::{Result, Run};
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::sets::spill::{self, Entry, Pieces, Spill, SpillReader, Writer};

/// Units that the stream is cut into: enough to keep all workers busy, and the directory small.
const UNITS: u64 = 1024;

/// Bytes of the directory of so many entries in so many buckets, and of the buffers of each worker.
pub(crate) fn memory(entries: u64, buckets: u64) -> (u64, u64) {
    spill::memory::<Entry>(entries, buckets, UNITS.min(entries / BLOCK + 1))
}

/// Spills the entries that `emit` makes of each block of records (with the number of its first), in one pass.
pub(crate) fn spill_edges(
    edges: &dyn EdgeStream,
    run: &Run,
    workers: usize,
    into: &Path,
    buckets: usize,
    emit: impl Fn(&mut Writer, u64, &[Record]) -> Result<()> + Sync,
) -> Result<SpillReader> {
    let unit = (edges.num_edges() / UNITS).next_multiple_of(BLOCK).max(8 * BLOCK);
    let spill = Spill::create(into, buckets)?;
    let writers = pass(
        edges,
        run,
        unit,
        workers,
        || spill.writer(),
        |writer, first, records| {
            writer.begin(first / unit)?;
            emit(writer, first, records)
        },
    )?;
    let pieces = Pieces::of(writers)?;
    spill.seal(pieces)
}
