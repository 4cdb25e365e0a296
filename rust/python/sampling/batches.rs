//! The batches of an epoch.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use super::batch::{Arrays, Columns};
use crate::errors::raise;
use crate::run::{POLL, in_place};
use fastpart::internals::base::{Error, MAX_THREADS, Result, available, locked};
use fastpart::internals::sampling::{Ahead, Batch, Maker, Steps, Workers};

/// Bytes that a thread which samples takes beside its batches. See `_core.pyi`.
#[pyfunction]
pub fn sampler_memory(num_vertices: u64) -> u64 {
    Workers::memory_of_one(u32::try_from(num_vertices).unwrap_or(u32::MAX))
}

/// Where batches come from.
pub(super) enum Source {
    /// From threads that are ahead.
    Ahead(Ahead),
    /// From the caller's, one after the other.
    Calls { maker: Maker, steps: Steps, workers: Arc<Workers>, next: AtomicUsize },
}

impl Source {
    pub(super) fn new(
        maker: Maker,
        steps: Steps,
        ahead: usize,
        max_bytes: u64,
        threads: usize,
        workers: Arc<Workers>,
    ) -> Result<Self> {
        if ahead == 0 {
            return Ok(Source::Calls { maker, steps, workers, next: AtomicUsize::new(0) });
        }
        let threads = threads.clamp(1, ahead.min(MAX_THREADS)).min(steps.count());
        let needed = workers.memory(threads);
        if needed > 0 {
            let budget = available();
            if needed > budget {
                let what = format!("{threads} threads that sample");
                return Err(Error::MemoryBudget { what, needed, budget });
            }
        }
        Ahead::start(maker, steps, ahead, max_bytes, threads, workers).map(Source::Ahead)
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        match self {
            Source::Ahead(ahead) => loop {
                if let Some(batch) = py.detach(|| ahead.next(POLL)) {
                    return batch.transpose().map_err(|error| raise(py, error));
                }
                py.check_signals()?;
            },
            Source::Calls { maker, steps, workers, next } => {
                let step = next.fetch_add(1, Relaxed);
                if step >= steps.count() {
                    return Ok(None);
                }
                let mut worker = workers.take().map_err(|error| raise(py, error))?;
                let make = |check: &dyn Fn() -> Result<()>| steps.make(step, maker, &mut worker, check);
                let batch = in_place(py, make);
                workers.put_back(worker);
                batch.map(Some)
            }
        }
    }
}

/// The batches of an epoch. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Batches {
    /// None: at its end, or closed. Dropped first: its threads use the others.
    source: Mutex<Option<Arc<Source>>>,
    columns: Columns,
    /// Keeps what the source reads.
    _sampler: Py<PyAny>,
}

impl Batches {
    pub(super) fn new(source: Source, columns: Columns, sampler: Py<PyAny>) -> Self {
        Self { source: Mutex::new(Some(Arc::new(source))), columns, _sampler: sampler }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Arrays>> {
        let Some(source) = locked(&self.source).clone() else { return Ok(None) };
        let batch = source.next(py);
        if !matches!(batch, Ok(Some(_))) {
            self.close();
        }
        batch?.map(|batch| self.columns.of(py, batch)).transpose()
    }

    /// Ends the threads.
    fn close(&self) {
        let source = locked(&self.source).take();
        if let Some(Source::Ahead(ahead)) = source.as_deref() {
            ahead.stop();
        }
    }
}
