//! One wrapper for every long call: the GIL is released, the work runs on a private pool, and the calling
//! thread looks for signals and reports progress every 50 ms. And one for short calls, which start no thread.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::errors::raise;
use fastpart::internals::base::{Error, Result, Run};

/// Time between two checks for signals.
pub const POLL: Duration = Duration::from_millis(50);

/// The options of every long call: threads, memory limit in bytes, and the progress callback.
#[derive(Default, FromPyObject)]
pub struct Options {
    threads: Option<usize>,
    memory_limit: Option<u64>,
    tmp_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
}

/// Runs `work` without the GIL. Ctrl-C, or an exception of the progress callback, cancels it and is raised. A
/// panic becomes an `InternalError`.
pub fn detached<R: Send>(
    py: Python<'_>,
    options: &Options,
    work: impl FnOnce(&Run) -> Result<R> + Send,
) -> PyResult<R> {
    let mut result = None;
    detach(py, options, Box::new(|run| work(run).map(|made| result = Some(made))))?;
    result.ok_or_else(|| raise(py, Error::Internal("work that is done has no result".into())))
}

/// The work of a thread, without a type of its own, so that the code around it is compiled once.
type Work<'a> = Box<dyn FnOnce(&Run) -> Result<()> + Send + 'a>;

fn detach(py: Python<'_>, options: &Options, work: Work<'_>) -> PyResult<()> {
    let run = Run::new(options.threads, options.memory_limit).map_err(|error| raise(py, error))?;
    let run = run.with_tmp_dir(options.tmp_dir.clone());
    let (outcome, interruption) = py.detach(|| watched(&run, options.progress.as_ref(), work));
    if let Some(interruption) = interruption {
        return Err(interruption);
    }
    tell(py, &run)?;
    outcome.map_err(|error| raise(py, error))?;
    options.progress.as_ref().map_or(Ok(()), |callback| report(py, callback, &run))
}

fn watched(run: &Run, progress: Option<&Py<PyAny>>, work: Work<'_>) -> (Result<()>, Option<PyErr>) {
    thread::scope(|scope| {
        let (done, finished) = channel();
        let worker = thread::Builder::new().name("fastpart".into()).spawn_scoped(scope, move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(run)));
            // The receiver waits until this arrives.
            let _ = done.send(());
            outcome
        });
        let worker = match worker {
            Ok(worker) => worker,
            Err(error) => return (Err(Error::Capacity(format!("cannot start a thread: {error}"))), None),
        };
        let mut interruption = None;
        while finished.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            if interruption.is_some() {
                continue;
            }
            let look = |py: Python<'_>| {
                py.check_signals()?;
                tell(py, run)?;
                progress.map_or(Ok(()), |callback| report(py, callback, run))
            };
            if let Err(error) = Python::attach(look) {
                run.cancel();
                interruption = Some(error);
            }
        }
        let outcome = match worker.join() {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) | Err(panic) => Err(Error::Internal(panic_text(&*panic))),
        };
        (outcome, interruption)
    })
}

/// Runs `work` without the GIL on the calling thread, for calls that take milliseconds: no thread is started.
/// `work` calls its argument now and then, which checks for signals every 50 ms.
pub fn in_place<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> Result<()>) -> Result<R> + Send,
) -> PyResult<R> {
    let (outcome, interruption) = py.detach(|| {
        let (looked, interruption) = (Cell::new(Instant::now()), Cell::new(None));
        let check = || {
            if looked.get().elapsed() < POLL {
                return Ok(());
            }
            looked.set(Instant::now());
            Python::attach(|py| py.check_signals()).map_err(|error| {
                interruption.set(Some(error));
                Error::Cancelled
            })
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&check)));
        (outcome, interruption.take())
    });
    let outcome = outcome.unwrap_or_else(|panic| Err(Error::Internal(panic_text(&*panic))));
    outcome.map_err(|error| interruption.unwrap_or_else(|| raise(py, error)))
}

fn report(py: Python<'_>, callback: &Py<PyAny>, run: &Run) -> PyResult<()> {
    let progress = run.progress();
    callback.call1(py, (progress.phase, progress.done.min(progress.total), progress.total)).map(drop)
}

/// Passes on what the run tells.
fn tell(py: Python<'_>, run: &Run) -> PyResult<()> {
    for note in run.take_notes() {
        py.import("fastpart.core.notes")?.getattr("log")?.call_method1("info", ("%s", note))?;
    }
    Ok(())
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without text".into())
}

/// The number of threads that `threads=None` means.
#[pyfunction]
pub fn default_threads() -> usize {
    fastpart::internals::base::default_threads()
}

/// The bytes that `memory_limit=None` means at this moment.
#[pyfunction]
pub fn memory_budget() -> u64 {
    fastpart::internals::base::available()
}
