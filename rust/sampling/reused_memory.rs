//! Memory of batches, used again for the next ones. Fresh memory would cost more time than filling it: the
//! operating system clears every page.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Most items that wait. After a long batch, up to `SPARE` batches may be used up at once, and fresh memory
/// would have to be cleared.
const SPARE: usize = 16;

/// Something that keeps its memory when it has nothing to hold.
pub trait Memory: Default {
    /// Bytes that it takes.
    fn bytes(&self) -> u64;
}

/// Items that are used again.
#[derive(Debug)]
pub(crate) struct Pool<T>(Arc<Waiting<T>>);

/// The items that wait, and the most bytes that they may take.
#[derive(Debug)]
struct Waiting<T> {
    items: Mutex<Vec<T>>,
    most: AtomicU64,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Arc::new(Waiting { items: Mutex::default(), most: AtomicU64::new(u64::MAX) }))
    }
}

/// An item, which returns to its pool in the end.
#[derive(Debug)]
pub struct Pooled<T: Memory> {
    item: T,
    pool: Arc<Waiting<T>>,
}

impl<T: Memory> Pool<T> {
    /// An item that was used before, or a new one.
    pub(crate) fn take(&self) -> Pooled<T> {
        // Never waits: a forked process would do so for ever if a thread that it lost was just here.
        let item = self.0.items.try_lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
        Pooled { item, pool: Arc::clone(&self.0) }
    }

    /// Lets items wait only as long as all of them take no more than `most` bytes.
    pub(crate) fn keep_at_most(&self, most: u64) {
        self.0.most.store(most, Relaxed);
        if let Ok(mut spare) = self.0.items.try_lock() {
            let mut kept = 0;
            spare.retain(|item| {
                kept += item.bytes();
                kept <= most
            });
        }
    }
}

impl<T: Memory> Drop for Pooled<T> {
    fn drop(&mut self) {
        if let Ok(mut spare) = self.pool.items.try_lock() {
            let bytes = spare.iter().map(T::bytes).sum::<u64>() + self.item.bytes();
            if spare.len() < SPARE && bytes <= self.pool.most.load(Relaxed) {
                spare.push(std::mem::take(&mut self.item));
            }
        }
    }
}

impl<T: Memory> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Memory> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Memory for Vec<u8> {
        fn bytes(&self) -> u64 {
            self.capacity() as u64
        }
    }

    fn waiting(pool: &Pool<Vec<u8>>) -> Vec<u64> {
        pool.0.items.lock().unwrap().iter().map(Memory::bytes).collect()
    }

    #[test]
    fn items_that_wait_take_no_more_than_they_may() {
        let pool = Pool::<Vec<u8>>::default();
        pool.keep_at_most(250);
        let mut items = [pool.take(), pool.take(), pool.take()];
        items.iter_mut().for_each(|item| **item = Vec::with_capacity(100));
        drop(items);
        assert_eq!(waiting(&pool), [100, 100]);
        pool.keep_at_most(100);
        assert_eq!(waiting(&pool), [100]);
        assert_eq!(pool.take().bytes(), 100);
    }
}
