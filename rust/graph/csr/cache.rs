//! The adjacency of a graph, kept for the calls that need it, perhaps at the same time.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use super::Csr;
use crate::base::{Result, Run};
use crate::edges::{EdgeStream, Weights};
use crate::graph::{degrees, weights::extent};

/// Time between two polls of the cancel flag while a call waits for another one's adjacency.
const POLL: Duration = Duration::from_millis(10);

/// The adjacency of a graph, once a call has built it.
#[derive(Debug, Default)]
pub struct AdjacencyCache(Mutex<Option<Arc<Csr>>>);

impl AdjacencyCache {
    /// The adjacency of `edges`, which must be the same in all calls. The first call builds it, the others
    /// reuse it. Edges and weights that may change without notice, such as arrays, are read again and
    /// compared by checksum. An adjacency with weights also serves calls that have none.
    ///
    /// The call that builds it subtracts its size from the budget. Later calls see it as memory in use.
    pub fn get(
        &self,
        edges: &dyn EdgeStream,
        weights: Option<&Weights>,
        symmetric: bool,
        run: &Run,
    ) -> Result<Arc<Csr>> {
        let mut cached = self.lock(run)?;
        edges.check_unchanged()?;
        if let Some(csr) = cached.take_if(|csr| csr.is_symmetric() == symmetric)
            && (!edges.may_change() || degrees::identify(edges, run)?.checksum == csr.graph().checksum)
            && has_weights(&csr, weights, run)?
        {
            *cached = Some(csr.clone());
            return Ok(csr);
        }
        // The old one is freed before the new one is built. Both are never needed.
        *cached = None;
        let csr = Csr::build_weighted(edges, weights, symmetric, run)?;
        run.hold(csr.bytes());
        *cached = Some(csr.clone());
        Ok(csr)
    }

    /// Frees it, unless a call holds the lock.
    pub fn forget(&self) {
        match self.0.try_lock() {
            Ok(mut cached) => *cached = None,
            Err(TryLockError::Poisoned(cached)) => *cached.into_inner() = None,
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Waits for the lock, but not longer than the run may last.
    fn lock(&self, run: &Run) -> Result<MutexGuard<'_, Option<Arc<Csr>>>> {
        loop {
            match self.0.try_lock() {
                Ok(cached) => return Ok(cached),
                // A call that failed left a complete adjacency, or none.
                Err(TryLockError::Poisoned(cached)) => return Ok(cached.into_inner()),
                Err(TryLockError::WouldBlock) => thread::sleep(POLL),
            }
            run.check()?;
        }
    }
}

/// Whether the adjacency has these weights, or none are asked for.
fn has_weights(csr: &Csr, weights: Option<&Weights>, run: &Run) -> Result<bool> {
    let Some(weights) = weights else { return Ok(true) };
    weights.check_unchanged()?;
    match csr.extent() {
        Some(known) if weights.may_change() => Ok(extent(weights, run)? == *known),
        known => Ok(known.is_some()),
    }
}
