//! Workers that take items, as many as the memory has room for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use rayon::prelude::*;

use super::error::Result;
use super::run::Run;

/// The number of workers, at most `most`, that `fixed` and `each` bytes leave room for; an error if not even one has room.
pub fn workers(run: &Run, most: usize, fixed: u64, each: u64, what: &str) -> Result<usize> {
    run.require(fixed.saturating_add(each), what)?;
    let room = (run.budget() - fixed).checked_div(each).unwrap_or(u64::MAX);
    Ok(room.min(run.threads() as u64).min(most as u64).max(1) as usize)
}

/// Does the items `0..count`, which at most `workers` workers take in ascending order, and returns the workers' states.
pub fn for_each<S: Send>(
    run: &Run,
    workers: usize,
    count: usize,
    init: impl Fn() -> Result<S> + Sync,
    step: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = |_| {
        let mut state = init()?;
        while !failed.load(Relaxed) {
            let item = next.fetch_add(1, Relaxed);
            if item >= count {
                break;
            }
            let done = step(&mut state, item).and_then(|()| run.check());
            if done.is_err() {
                failed.store(true, Relaxed);
                done?;
            }
        }
        Ok(state)
    };
    let workers = workers.clamp(1, run.threads()).min(count.max(1));
    run.install(|| (0..workers).into_par_iter().with_max_len(1).map(work).collect())
}
