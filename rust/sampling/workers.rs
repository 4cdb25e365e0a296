//! Scratch space in which threads make batches, kept for the next epoch.

use std::sync::{Arc, Mutex};

use super::ids::IdTable;
use super::labor;
use super::picks::Picks;
use super::temporal::Scratch;
use super::topology::Topology;
use super::weighted::Candidates;
use crate::base::{Result, locked};

/// Scratch space in which one thread makes batches. Takes 4 bytes per vertex.
#[derive(Debug)]
pub struct Worker {
    /// The rows of the batch.
    pub ids: IdTable,
    /// In-edges that were picked.
    pub picks: Picks,
    /// In-edges that may be picked.
    pub candidates: Candidates,
    /// For LABOR.
    pub labor: labor::Scratch,
    /// Relations of the in-edges of the batch, if the graph has types.
    pub relations: Vec<u16>,
    /// For seeds with times.
    pub(crate) temporal: Scratch,
}

impl Worker {
    /// A worker for that topology.
    pub fn new(topology: &Topology) -> Result<Self> {
        let ids = IdTable::new(topology.num_vertices())?;
        let (picks, candidates, labor) = (Picks::default(), Candidates::new(), labor::Scratch::default());
        Ok(Self { ids, picks, candidates, labor, relations: Vec::new(), temporal: Scratch::default() })
    }

    /// Begins a batch. One that an error ended may have left picks.
    pub fn begin(&mut self) {
        self.ids.begin();
        self.picks.clear();
    }
}

/// The workers of a topology.
#[derive(Debug)]
pub struct Workers {
    topology: Arc<Topology>,
    idle: Mutex<Vec<Worker>>,
}

impl Workers {
    /// No workers yet.
    pub fn new(topology: Arc<Topology>) -> Self {
        Self { topology, idle: Mutex::default() }
    }

    /// A worker that has nothing to do, or a new one.
    pub fn take(&self) -> Result<Worker> {
        let idle = locked(&self.idle).pop();
        idle.map_or_else(|| Worker::new(&self.topology), Ok)
    }

    /// Keeps a worker for later.
    pub fn put_back(&self, worker: Worker) {
        locked(&self.idle).push(worker);
    }

    /// Bytes that `workers` workers take beyond the idle ones.
    pub fn memory(&self, workers: usize) -> u64 {
        let new = workers.saturating_sub(locked(&self.idle).len());
        new as u64 * IdTable::memory(self.topology.num_vertices())
    }
}
