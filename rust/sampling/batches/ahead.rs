//! The batches of an epoch, made ahead of their use and handed out in order.
//!
//! Threads take the next step each, as long as it is less than `ahead` steps from the one that is handed out
//! next, and the batches that wait take no more memory than they may. So at most `ahead` batches wait,
//! whatever the threads. How large a batch is to be is not known before, so each counts as the largest of the
//! epoch. An error is handed out in the place of its batch.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::workers::{Worker, Workers};
use super::{Batch, Maker};
use crate::base::{Error, Result, locked};
use crate::sampling::levels::sample::{Place, Seeds};

/// The seeds of every step.
#[derive(Debug)]
pub struct Steps {
    seeds: Vec<u32>,
    /// Empty: they have none.
    times: Vec<i64>,
    offsets: Vec<usize>,
    epoch: u64,
}

impl Steps {
    /// Step i of `epoch` has `seeds[offsets[i]..offsets[i + 1]]`, which are rows. Each has a time, or `times`
    /// is empty.
    pub fn new(seeds: Vec<u32>, times: Vec<i64>, offsets: &[i64], epoch: u64) -> Result<Self> {
        let ascend = offsets.is_sorted() && offsets.first() == Some(&0);
        if !ascend || offsets.last() != Some(&(seeds.len() as i64)) {
            let what = format!("expected numbers that ascend from 0 to {}, the number of seeds", seeds.len());
            return Err(Error::parameter("offsets", what));
        }
        if !times.is_empty() && times.len() != seeds.len() {
            let what = format!("{} times for {} seeds", times.len(), seeds.len());
            return Err(Error::parameter("times", what));
        }
        Ok(Self { seeds, times, offsets: offsets.iter().map(|&offset| offset as usize).collect(), epoch })
    }

    /// Number of steps.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Makes the batch of a step.
    pub fn make(
        &self,
        step: usize,
        maker: &Maker,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Batch> {
        let own = self.offsets[step]..self.offsets[step + 1];
        let times = self.times.get(own.clone()).unwrap_or_default();
        let seeds = Seeds { rows: &self.seeds[own], times };
        maker.make(seeds, Place { epoch: self.epoch, step: step as u64 }, worker, check)
    }
}

/// Threads that make batches.
#[derive(Debug)]
pub struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Worker>>,
    workers: Arc<Workers>,
    /// The process that has the threads. A forked one does not.
    process: u32,
}

#[derive(Debug)]
struct Shared {
    maker: Maker,
    steps: Steps,
    ahead: usize,
    /// Most bytes of batches before they are handed out. One is always made.
    max_bytes: u64,
    state: Mutex<State>,
    /// Another batch may fit, or the end has come.
    more: Condvar,
    /// There is another batch.
    ready: Condvar,
    stopped: AtomicBool,
}

#[derive(Debug)]
struct State {
    batches: BTreeMap<usize, Result<Batch>>,
    /// The step that is made next.
    next: usize,
    /// The step that is handed out next.
    wanted: usize,
    /// Bytes of the largest batch so far. None before the first.
    largest: Option<u64>,
}

impl State {
    /// Whether another batch fits beside those that are made or being made.
    fn fits(&self, max_bytes: u64) -> bool {
        let others = (self.next - self.wanted) as u64;
        others == 0
            || self
                .largest
                .map_or(max_bytes == u64::MAX, |largest| (others + 1).saturating_mul(largest) <= max_bytes)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// The next step to make. None at the end.
    fn claim(&self) -> Option<usize> {
        let mut state = self.state();
        while !self.has_stopped()
            && state.next < self.steps.count()
            && (state.next >= state.wanted + self.ahead || !state.fits(self.max_bytes))
        {
            state = self.more.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let step = (!self.has_stopped() && state.next < self.steps.count()).then_some(state.next);
        state.next += usize::from(step.is_some());
        step
    }

    fn work(&self, mut worker: Worker) -> Worker {
        let check = || if self.has_stopped() { Err(Error::Cancelled) } else { Ok(()) };
        while let Some(step) = self.claim() {
            let make = || self.steps.make(step, &self.maker, &mut worker, &check);
            let made = catch_unwind(AssertUnwindSafe(make));
            let batch = made.unwrap_or_else(|_| Err(Error::Internal("a sampler's worker panicked".into())));
            let mut state = self.state();
            if let Ok(batch) = &batch {
                state.largest = state.largest.max(Some(batch.bytes()));
            }
            state.batches.insert(step, batch);
            self.ready.notify_all();
            self.more.notify_all(); // how large a batch is, is known now
        }
        worker
    }

    fn has_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    fn stop(&self) {
        // A thread that saw `stopped == false` and is waiting has released the lock, so the notification
        // below reaches it.
        let _state = self.state();
        self.stopped.store(true, Relaxed);
        self.more.notify_all();
        self.ready.notify_all();
    }
}

impl Ahead {
    /// Starts the threads, with one of the `workers` each. `ahead` is at least 1. Batches take at most
    /// `max_bytes` bytes before they are handed out, but one is always made.
    pub fn start(
        maker: Maker,
        steps: Steps,
        ahead: usize,
        max_bytes: u64,
        threads: usize,
        workers: Arc<Workers>,
    ) -> Result<Self> {
        let shared = Shared {
            maker,
            steps,
            ahead,
            max_bytes,
            state: Mutex::new(State { batches: BTreeMap::new(), next: 0, wanted: 0, largest: None }),
            more: Condvar::new(),
            ready: Condvar::new(),
            stopped: AtomicBool::new(false),
        };
        let (shared, process) = (Arc::new(shared), std::process::id());
        let mut this = Self { shared, threads: Vec::new(), workers, process };
        for _ in 0..threads {
            let worker = this.workers.take()?;
            let shared = Arc::clone(&this.shared);
            let thread = Builder::new().name("fastpart-sample".into()).spawn(move || shared.work(worker));
            this.threads.push(thread.map_err(|error| {
                Error::Capacity(format!("cannot start a thread: {error}. Use fewer threads"))
            })?);
        }
        Ok(this)
    }

    /// The next batch, or nothing if it takes longer than `patience`. `Some(None)` at the end.
    pub fn next(&self, patience: Duration) -> Option<Option<Result<Batch>>> {
        if self.process != std::process::id() {
            let what = "the batches of an epoch belong to the process that began it. Begin it after the fork";
            return Some(Some(Err(Error::parameter("batches", what))));
        }
        let waits = |state: &mut State| {
            let comes = state.wanted < self.shared.steps.count() && !self.shared.has_stopped();
            comes && !state.batches.contains_key(&state.wanted)
        };
        let (mut state, _) = self
            .shared
            .ready
            .wait_timeout_while(self.shared.state(), patience, waits)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if waits(&mut state) {
            return None;
        }
        let wanted = state.wanted;
        let batch = state.batches.remove(&wanted);
        state.wanted += 1;
        self.shared.more.notify_all();
        Some(batch)
    }

    /// Ends the work. Batches that are there are handed out, but no other.
    pub fn stop(&self) {
        if self.process == std::process::id() {
            self.shared.stop();
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The threads do not exist in this process, so nothing unlocks their locks.
            self.threads.drain(..).for_each(std::mem::forget);
            std::mem::forget(Arc::clone(&self.shared));
            return;
        }
        self.shared.stop();
        for thread in self.threads.drain(..) {
            if let Ok(worker) = thread.join() {
                self.workers.put_back(worker);
            }
        }
    }
}
