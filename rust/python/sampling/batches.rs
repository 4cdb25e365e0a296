//! The batches of an epoch.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::prelude::*;

use super::batch::SampledBatch;
use super::features::Features;
use crate::errors::raise;
use crate::run::{POLL, in_place};
use fastpart::internals::base::{Error, MAX_THREADS, Result, available, locked};
use fastpart::internals::sampling::{Ahead, Batch, BatchMaker, EdgeColumns, Maker, Steps, Workers};

/// Where batches come from.
pub(super) enum Source<M: BatchMaker> {
    /// From threads that are ahead.
    Ahead(Ahead<M>),
    /// From the caller's, one after the other.
    Calls { maker: M, steps: Steps, workers: Arc<Workers>, next: AtomicUsize },
}

impl<M: BatchMaker> Source<M> {
    pub(super) fn new(
        maker: M,
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

    fn next(&self, py: Python<'_>) -> PyResult<Option<M::Batch>> {
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

    fn stop(&self) {
        if let Source::Ahead(ahead) = self {
            ahead.stop();
        }
    }
}

/// A source until its end, or until it is closed.
pub(super) struct Open<M: BatchMaker>(Mutex<Option<Arc<Source<M>>>>);

impl<M: BatchMaker> Open<M> {
    pub(super) fn new(source: Source<M>) -> Self {
        Self(Mutex::new(Some(Arc::new(source))))
    }

    fn source(&self) -> MutexGuard<'_, Option<Arc<Source<M>>>> {
        locked(&self.0)
    }

    /// The next batch, none at the end.
    pub(super) fn next(&self, py: Python<'_>) -> PyResult<Option<M::Batch>> {
        let Some(source) = self.source().clone() else { return Ok(None) };
        let batch = source.next(py);
        if !matches!(batch, Ok(Some(_))) {
            self.close();
        }
        batch
    }

    /// Ends the threads.
    pub(super) fn close(&self) {
        let source = self.source().take();
        if let Some(source) = source {
            source.stop();
        }
    }
}

/// The batches of an epoch. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Batches {
    /// Dropped first: its threads use the others.
    source: Open<Maker>,
    columns: Columns,
    /// Keeps what the source reads.
    _sampler: Py<PyAny>,
}

impl Batches {
    pub(super) fn new(source: Source<Maker>, columns: Columns, sampler: Py<PyAny>) -> Self {
        Self { source: Open::new(source), columns, _sampler: sampler }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<SampledBatch>> {
        let Some(batch) = self.source.next(py)? else { return Ok(None) };
        self.columns.of(py, batch).map(Some)
    }

    /// Ends the threads.
    fn close(&self) {
        self.source.close();
    }
}

/// The arrays of batches beside their nodes and the sources of in-edges.
pub(super) struct Columns {
    pub(super) edges: EdgeColumns,
    pub(super) features: Option<Py<Features>>,
    pub(super) edge_features: Option<Py<Features>>,
}

impl Columns {
    /// The arrays of a batch.
    pub(super) fn of(&self, py: Python<'_>, batch: Batch) -> PyResult<SampledBatch> {
        let Batch { sample, features, edge_features } = batch;
        let array = |of: &Option<Py<Features>>, memory, count| match (of, memory) {
            (Some(of), Some(memory)) => of.get().array(py, memory, count).map(|array| Some(array.unbind())),
            _ => Ok(None),
        };
        let features = array(&self.features, features, sample.rows.len())?;
        let edge_features = array(&self.edge_features, edge_features, sample.edge_rows.len())?;
        SampledBatch::new(py, sample, self.edges, [features, edge_features])
    }
}
