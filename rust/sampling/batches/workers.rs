//! Scratch space in which threads make batches, kept for the next epoch.

use std::sync::{Arc, Mutex};

use super::by_type;
use crate::base::{Result, locked};
use crate::sampling::levels::expansion::Tables;
use crate::sampling::levels::node_places::IdTable;
use crate::sampling::levels::picked_edges::Picks;
use crate::sampling::levels::sample::Sample;
use crate::sampling::topology::Topology;
use crate::sampling::{methods, temporal};

/// Scratch space of one thread that makes batches. Takes 4 bytes per vertex, from 2^27 vertices on up to 32
/// bytes per node of a batch, and, in a graph with types, a batch.
#[derive(Debug)]
pub struct Worker {
    /// Rows, picks and relations of the batch.
    pub(crate) tables: Tables,
    /// For the methods.
    pub(crate) methods: methods::Scratch,
    /// For seeds with times.
    pub(crate) temporal: temporal::Scratch,
    /// The batch level by level, before it is ordered by type.
    pub(crate) levels: Sample,
    /// For the order by type.
    pub(crate) by_type: by_type::Scratch,
}

impl Worker {
    /// A worker for that topology.
    pub fn new(topology: &Topology) -> Result<Self> {
        let ids = IdTable::new(topology.num_vertices())?;
        Ok(Self {
            tables: Tables { ids, picks: Picks::default(), relations: Vec::new() },
            methods: methods::Scratch::default(),
            temporal: temporal::Scratch::default(),
            levels: Sample::default(),
            by_type: by_type::Scratch::default(),
        })
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
        new as u64 * Self::memory_of_one(self.topology.num_vertices())
    }

    /// Bytes that a worker takes in a graph with `num_vertices` vertices.
    pub fn memory_of_one(num_vertices: u32) -> u64 {
        IdTable::memory(num_vertices)
    }
}
