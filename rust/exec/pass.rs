//! One pass over the records, by all threads, or in order.

use std::ops::Range;

use super::scan::scan;
use crate::base::{Result, Run};
use crate::edges::{BLOCK, EdgeStream, Record};

/// Reads every record once. Workers (at most `workers`) take *units* of `unit` records, a multiple of
/// [`BLOCK`], in any order. Within a unit `step` gets the blocks in order, with the number of their first
/// record. Returns the workers' states. The caller combines them by an operation that does not depend on the
/// order.
pub fn pass<S: Send>(
    edges: &dyn EdgeStream,
    run: &Run,
    unit: u64,
    workers: usize,
    init: impl Fn() -> Result<S> + Sync,
    step: impl Fn(&mut S, u64, &[Record]) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let m = edges.num_edges();
    let units = (0..m.div_ceil(unit) as usize).map(|index| {
        let start = index as u64 * unit;
        start..m.min(start + unit)
    });
    edges.check_unchanged()?;
    let states = scan(
        run,
        workers,
        units,
        || Ok((init()?, Vec::new())),
        |(state, buf), unit| {
            blocks(unit).try_for_each(|range| {
                let first = range.start;
                let records = edges.block(range, buf)?;
                step(state, first, records)?;
                run.advance(records.len() as u64)
            })
        },
    );
    edges.check_unchanged()?;
    Ok(states?.into_iter().map(|(state, _)| state).collect())
}

/// Hands `step` every record once, by all threads and block by block, with the number of the first of each.
pub(crate) fn each_block(
    edges: &dyn EdgeStream,
    run: &Run,
    step: impl Fn(u64, &[Record]) -> Result<()> + Sync,
) -> Result<()> {
    pass(edges, run, BLOCK, usize::MAX, || Ok(()), |(), first, records| step(first, records)).map(drop)
}

/// Hands `step` the records `range` in order, block by block, with the number of the first of each.
pub(crate) fn in_order(
    edges: &dyn EdgeStream,
    range: Range<u64>,
    run: &Run,
    mut step: impl FnMut(u64, &[Record]) -> Result<()>,
) -> Result<()> {
    let mut buf = Vec::new();
    edges.check_unchanged()?;
    for range in blocks(range) {
        let first = range.start;
        let records = edges.block(range, &mut buf)?;
        step(first, records)?;
        run.advance(records.len() as u64)?;
    }
    edges.check_unchanged()
}

/// `range` cut into blocks.
pub fn blocks(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    range.clone().step_by(BLOCK as usize).map(move |start| start..range.end.min(start + BLOCK))
}
