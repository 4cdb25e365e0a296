//! One run of a long operation: its threads, memory budget, progress and cancellation.
//!
//! Every long function takes a [`Run`]. The pool is private to it, so that a forked child never meets a pool
//! whose threads it lost, and the caller reads progress and cancels from any other thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::budget;
use super::error::{Error, Result, bytes, shown};
use super::spare;
use super::system::{lies_in_memory, processor_time};

/// More threads than any machine has. A larger number is a mistake.
pub const MAX_THREADS: usize = 1024;

/// Threads, budget, progress and cancellation of one call.
#[derive(Debug)]
pub struct Run {
    pool: Mutex<Arc<ThreadPool>>,
    budget: u64,
    limited: bool,
    taken: AtomicU64,
    reserved: AtomicU64,
    tmp_dir: PathBuf,
    cancelled: AtomicBool,
    phase: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
    notes: Mutex<Vec<String>>,
    watch: Option<Mutex<Watch>>,
}

/// The state of a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The step at work: "degrees", "clustering", ...
    pub phase: &'static str,
    /// Units done in this step.
    pub done: u64,
    /// Units this step has.
    pub total: u64,
}

/// A step of a watched run.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Its progress.
    pub progress: Progress,
    /// Most processor time between two polls of the cancel flag.
    pub longest: Duration,
}

/// The steps of a run, and the time of the last poll of the cancel flag.
#[derive(Debug)]
struct Watch {
    steps: Vec<Step>,
    last: Duration,
}

/// Numbers between two looks of [`Run::each`].
const STRIDE: u32 = 4096;

/// The number of CPUs that the process may use.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

impl Run {
    /// A run on `threads` threads (`None` or 0: as many CPUs as the process may use) within `budget` bytes
    /// (`None`: 80 % of the memory available).
    pub fn new(threads: Option<usize>, budget: Option<u64>) -> Result<Run> {
        let threads = match threads {
            None | Some(0) => default_threads(),
            Some(count) if count <= MAX_THREADS => count,
            Some(count) => {
                let what = format!("{count} threads are too many. Use 1..={MAX_THREADS}, or 0 for all CPUs");
                return Err(Error::parameter("threads", what));
            }
        };
        spare::set_aside()?;
        let pool = pool_of(threads).map_err(|error| {
            Error::Capacity(format!("cannot start {threads} threads: {error}. Use fewer"))
        })?;
        Ok(Run {
            pool: Mutex::new(Arc::new(pool)),
            budget: budget.unwrap_or_else(budget::available),
            limited: budget.is_some(),
            taken: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            tmp_dir: std::env::temp_dir(),
            cancelled: AtomicBool::new(false),
            phase: Mutex::new("start"),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            notes: Mutex::default(),
            watch: None,
        })
    }

    /// The run, with its temporary files in `dir`.
    pub fn with_tmp_dir(self, dir: Option<PathBuf>) -> Run {
        match dir {
            Some(tmp_dir) => Run { tmp_dir, ..self },
            None => self,
        }
    }

    /// The run, which keeps account of its steps, for tests.
    pub fn watched(self) -> Run {
        Run { watch: Some(Mutex::new(Watch { steps: Vec::new(), last: processor_time() })), ..self }
    }

    /// The steps of a watched run.
    pub fn steps(&self) -> Vec<Step> {
        self.watch.as_ref().map_or_else(Vec::new, |watch| locked(watch).steps.clone())
    }

    /// The directory of temporary files. The default is that of the operating system.
    pub fn tmp_dir(&self) -> &Path {
        &self.tmp_dir
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool().current_num_threads()
    }

    fn pool(&self) -> Arc<ThreadPool> {
        Arc::clone(&locked(&self.pool))
    }

    /// Lets at most `most` threads work from now on, where memory is too short for the scratch space of all.
    /// The other threads end, because a waiting thread keeps the free memory of its heap.
    pub fn limit_threads(&self, most: usize) {
        if most >= self.threads() {
            return;
        }
        // If the operating system refuses, all threads go on.
        if let Ok(pool) = pool_of(most.max(1)) {
            *locked(&self.pool) = Arc::new(pool);
        }
    }

    /// Bytes this run may still take.
    pub fn budget(&self) -> u64 {
        self.budget.saturating_sub(self.taken.load(Relaxed))
    }

    /// Whether the budget was given, and does not depend on the memory that happened to be free.
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    /// Takes `bytes` off the budget for good: they stay in use for the rest of the run.
    pub fn hold(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Relaxed);
    }

    /// Reserves `bytes` for later steps, until the returned value is dropped. Data that can lie in memory or
    /// in files leaves these bytes free. An inner reservation replaces the outer one.
    pub fn reserve(&self, bytes: u64) -> Reservation<'_> {
        Reservation { run: self, before: self.reserved.swap(bytes, Relaxed) }
    }

    /// Bytes that are to be left free.
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Relaxed)
    }

    /// Runs `work` on the private pool.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let mut result = None;
        self.enter(Box::new(|| result = Some(work())));
        match result {
            Some(result) => result,
            None => unreachable!("the pool runs what it is given, or passes its panic on"),
        }
    }

    /// Not generic: the three ways of rayon into a pool are compiled once.
    fn enter(&self, work: Box<dyn FnOnce() + Send + '_>) {
        self.pool().install(work);
    }

    /// Refuses work that needs more than the budget. Called before anything is allocated.
    pub fn require(&self, needed: u64, what: impl Into<String>) -> Result<()> {
        let budget = self.budget();
        if needed <= budget {
            return Ok(());
        }
        Err(Error::MemoryBudget { what: what.into(), needed, budget })
    }

    /// The bytes of memory that `files` bytes of temporary files in `dir` take: none on a disk, all on a file
    /// system in memory. In that case `what` also says so and names the remedy.
    pub fn temporary(&self, dir: &Path, files: u64, what: impl Into<String>) -> (u64, String) {
        if files == 0 || !lies_in_memory(dir) {
            return (0, what.into());
        }
        let remedy =
            if dir == self.tmp_dir { "tmp_dir=, or TMPDIR, on a disk" } else { "a folder on a disk" };
        let taken = format!("{} of temporary files in {}, which is memory", bytes(files), shown(dir));
        (files, format!("{}, with {taken} ({remedy} takes none),", what.into()))
    }

    /// The number of workers, at most `most`, that the budget allows with `fixed` bytes and `each` for a
    /// worker. An error if it allows not even one.
    pub fn workers(&self, most: usize, fixed: u64, each: u64, what: &str) -> Result<usize> {
        self.require(fixed.saturating_add(each), what)?;
        let fitting = (self.budget() - fixed).checked_div(each).unwrap_or(u64::MAX);
        Ok(fitting.min(self.threads() as u64).min(most as u64).max(1) as usize)
    }

    /// Begins a step of `total` units. A step of 0 units is skipped.
    pub fn begin(&self, phase: &'static str, total: u64) {
        if total == 0 {
            return;
        }
        *locked(&self.phase) = phase;
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
        if let Some(watch) = &self.watch {
            locked(watch).steps.push(Step { progress: self.progress(), longest: Duration::ZERO });
        }
    }

    /// Tells the caller something while the run goes on.
    pub fn note(&self, text: impl Into<String>) {
        locked(&self.notes).push(text.into());
    }

    /// Notes of the run since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.notes))
    }

    /// Counts `units` as done. An error once the run is cancelled. Call it at least every millisecond of
    /// work.
    pub fn advance(&self, units: u64) -> Result<()> {
        self.done.fetch_add(units, Relaxed);
        self.check()
    }

    /// Fails once the run is cancelled or memory is exhausted. It reads two flags, which costs next to
    /// nothing.
    pub fn check(&self) -> Result<()> {
        if let Some(watch) = &self.watch {
            self.look(watch);
        }
        if self.cancelled.load(Relaxed) { Err(Error::Cancelled) } else { spare::check() }
    }

    /// Calls `each` for the numbers below `n`, in order, and polls the cancel flag now and then.
    pub fn each(&self, n: usize, mut each: impl FnMut(u32)) -> Result<()> {
        let n = u32::try_from(n)
            .map_err(|_| Error::Capacity(format!("{n} numbers are too many. There may be 2^32 - 1")))?;
        for start in (0..n).step_by(STRIDE as usize) {
            (start..start + STRIDE.min(n - start)).for_each(&mut each);
            self.check()?;
        }
        Ok(())
    }

    #[cold]
    fn look(&self, watch: &Mutex<Watch>) {
        let mut watch = locked(watch);
        let (now, progress) = (processor_time(), self.progress());
        let stretch = now - std::mem::replace(&mut watch.last, now);
        if let Some(step) = watch.steps.last_mut() {
            *step = Step { progress, longest: step.longest.max(stretch) };
        }
    }

    /// Asks the run to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// The progress of the run.
    pub fn progress(&self) -> Progress {
        Progress {
            phase: *locked(&self.phase),
            done: self.done.load(Relaxed),
            total: self.total.load(Relaxed),
        }
    }
}

fn pool_of(threads: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    let name = |index| format!("fastpart-{index}");
    ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build()
}

/// Bytes that are left free as long as this value lives. Dropping it restores the reservation before.
#[must_use]
#[derive(Debug)]
pub struct Reservation<'a> {
    run: &'a Run,
    before: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.run.reserved.store(self.before, Relaxed);
    }
}

/// Locks `item` even if a thread panicked while it held the lock: the item is then complete or never used
/// again.
pub fn locked<T>(item: &Mutex<T>) -> MutexGuard<'_, T> {
    item.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Polls the cancel flag of a run once in `STRIDE` units of work.
#[derive(Debug)]
pub(crate) struct CancelCheck<'a> {
    run: &'a Run,
    /// Units since the last poll.
    done: usize,
}

impl<'a> CancelCheck<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        Self { run, done: 0 }
    }

    /// Counts units of work. An error once the run is cancelled.
    #[inline(always)]
    pub(crate) fn count(&mut self, units: usize) -> Result<()> {
        self.done += units;
        if self.done < STRIDE as usize {
            return Ok(());
        }
        self.done = 0;
        self.run.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_bounded() {
        assert_eq!(Run::new(Some(3), None).unwrap().threads(), 3);
        assert!(Run::new(Some(0), None).unwrap().threads() >= 1);
        assert!(matches!(Run::new(Some(1_000_000), None), Err(Error::Parameter { name: "threads", .. })));
    }

    #[test]
    fn an_inner_reservation_gives_way_to_the_outer_one() {
        let run = Run::new(Some(1), Some(1000)).unwrap();
        let outer = run.reserve(100);
        let inner = run.reserve(40);
        assert_eq!(run.reserved(), 40);
        drop(inner);
        assert_eq!(run.reserved(), 100);
        drop(outer);
        assert_eq!(run.reserved(), 0);
    }

    #[test]
    fn threads_are_limited_for_good() {
        let run = Run::new(Some(3), None).unwrap();
        for (most, threads) in [(4, 3), (2, 2), (3, 2), (0, 1)] {
            run.limit_threads(most);
            assert_eq!((run.threads(), run.install(rayon::current_num_threads)), (threads, threads));
        }
    }

    #[test]
    fn budget_and_cancellation_are_errors() {
        let run = Run::new(Some(1), Some(1000)).unwrap();
        assert!(run.require(1000, "x").is_ok());
        assert!(matches!(
            run.require(1001, "x"),
            Err(Error::MemoryBudget { needed: 1001, budget: 1000, .. })
        ));
        run.hold(300);
        assert!(run.require(700, "x").is_ok() && run.require(701, "x").is_err());
        run.begin("step", 10);
        run.advance(4).unwrap();
        assert_eq!(run.progress(), Progress { phase: "step", done: 4, total: 10 });
        run.cancel();
        assert!(matches!(run.advance(1), Err(Error::Cancelled)));
    }

    #[test]
    fn more_numbers_than_ids_are_refused() {
        let run = Run::new(Some(1), None).unwrap();
        let error = run.each((1 << 32) + 5, |_| ()).unwrap_err();
        assert!(matches!(error, Error::Capacity(_)), "{error}");
    }
}
