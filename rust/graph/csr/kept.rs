//! The adjacency of edges that several calls need, perhaps at the same time.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use super::Csr;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::edges::EdgeStream;
use crate::graph::degrees;

/// How often a call that waits for another one's adjacency looks whether it is cancelled.
const POLL: Duration = Duration::from_millis(10);

/// The adjacency of some edges, once a call has built it.
#[derive(Debug, Default)]
pub struct Kept(Mutex<Option<Arc<Csr>>>);

impl Kept {
    /// The adjacency of `edges`, always the same ones: built by the first call, and kept for the others. Edges that
    /// may change without notice, as those of an array, are read again to see whether they are what they were.
    ///
    /// The call that builds it takes what it keeps off its budget. For later ones it is memory in use, as everything
    /// else that the process holds: not available, and not theirs.
    pub fn get(
        &self,
        edges: &dyn EdgeStream,
        may_change: bool,
        symmetric: bool,
        run: &Run,
    ) -> Result<Arc<Csr>> {
        let mut kept = self.lock(run)?;
        edges.check_unchanged()?;
        if let Some(csr) = kept.take_if(|csr| csr.is_symmetric() == symmetric)
            && (!may_change || degrees::identify(edges, run)?.checksum == csr.graph().checksum)
        {
            *kept = Some(csr.clone());
            return Ok(csr);
        }
        // The old one is freed before the new one is built. Both are never needed.
        *kept = None;
        let csr = Csr::build(edges, symmetric, run)?;
        run.hold(csr.bytes());
        *kept = Some(csr.clone());
        Ok(csr)
    }

    /// Frees it, unless a call is at work on it, which then keeps it.
    pub fn forget(&self) {
        match self.0.try_lock() {
            Ok(mut kept) => *kept = None,
            Err(TryLockError::Poisoned(kept)) => *kept.into_inner() = None,
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Waits for the lock, but not longer than the run may last.
    fn lock(&self, run: &Run) -> Result<MutexGuard<'_, Option<Arc<Csr>>>> {
        loop {
            match self.0.try_lock() {
                Ok(kept) => return Ok(kept),
                // What a call that failed left behind is a complete adjacency, or none.
                Err(TryLockError::Poisoned(kept)) => return Ok(kept.into_inner()),
                Err(TryLockError::WouldBlock) => thread::sleep(POLL),
            }
            run.check()?;
        }
    }
}
