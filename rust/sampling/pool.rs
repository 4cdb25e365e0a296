//! Memory of batches, used again for the next ones. Fresh memory would cost more time than filling it: the system clears
//! every page.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

/// Items that wait at most. As many batches may be used up at once after a long one, and fresh memory would be cleared.
const SPARE: usize = 16;

/// Items that are used again.
#[derive(Debug)]
pub struct Pool<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// An item, which returns to its pool in the end.
#[derive(Debug)]
pub struct Pooled<T: Default> {
    item: T,
    pool: Arc<Mutex<Vec<T>>>,
}

impl<T: Default> Pool<T> {
    /// An item that was used before, or a new one.
    pub fn take(&self) -> Pooled<T> {
        // Never waits: a forked process would do so for ever if a thread that it lost was just here.
        let item = self.0.try_lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
        Pooled { item, pool: Arc::clone(&self.0) }
    }
}

impl<T: Default> Drop for Pooled<T> {
    fn drop(&mut self) {
        if let Ok(mut spare) = self.pool.try_lock()
            && spare.len() < SPARE
        {
            spare.push(std::mem::take(&mut self.item));
        }
    }
}

impl<T: Default> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Default> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.item
    }
}
