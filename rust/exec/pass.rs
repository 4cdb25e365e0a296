//! One pass over all records, by all threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::error::{Error, Result};
use crate::base::run::Run;
use crate::edges::{BLOCK, EdgeStream, Record};

/// Reads every record once. Workers (at most `workers`) take *units* of `unit` records, a multiple of [`BLOCK`],
/// in any order; within a unit `step` gets the blocks in order, with the number of their first record. Returns the
/// workers' states; the caller combines them by an operation that does not depend on the order.
pub fn pass<S: Send>(
    edges: &dyn EdgeStream,
    run: &Run,
    unit: u64,
    workers: usize,
    init: impl Fn() -> Result<S> + Sync,
    step: impl Fn(&mut S, u64, &[Record]) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    edges.check_unchanged()?;
    let m = edges.num_edges();
    let units = m.div_ceil(unit);
    let next = AtomicU64::new(0);
    let work = || -> Result<S> {
        let mut state = init()?;
        let mut buf = Vec::new();
        loop {
            let taken = next.fetch_add(1, Relaxed);
            if taken >= units {
                return Ok(state);
            }
            let start = taken * unit;
            let done = blocks(start..m.min(start + unit)).try_for_each(|range| {
                let first = range.start;
                let records = edges.block(range, &mut buf)?;
                step(&mut state, first, records)?;
                run.advance(records.len() as u64)
            });
            if done.is_err() {
                // Nobody takes another unit. Those taken before are finished, so that of several bad records the
                // first is found whatever the threads.
                next.store(u64::MAX / 2, Relaxed);
                done?;
            }
        }
    };
    let workers = workers.clamp(1, run.threads()).min(units.max(1) as usize);
    let states = run.install(|| {
        let mut states: Vec<Option<Result<S>>> = (0..workers).map(|_| None).collect();
        rayon::scope(|scope| {
            for state in &mut states {
                let work = &work;
                scope.spawn(move |_| *state = Some(work()));
            }
        });
        states
    });
    edges.check_unchanged()?;
    let (states, errors): (Vec<_>, Vec<_>) =
        states.into_iter().map(|state| state.unwrap_or(Err(Error::Cancelled))).partition(Result::is_ok);
    match errors.into_iter().filter_map(Result::err).min_by_key(position) {
        Some(error) => Err(error),
        None => Ok(states.into_iter().flatten().collect()),
    }
}

/// Where an error lies in the stream; errors without a place come last.
fn position(error: &Error) -> u64 {
    if let Error::IdOutOfRange { record, .. } = error { *record } else { u64::MAX }
}

/// `range` cut into blocks.
pub fn blocks(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    range.clone().step_by(BLOCK as usize).map(move |start| start..range.end.min(start + BLOCK))
}
