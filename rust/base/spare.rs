//! Address space that is set aside, so that a refused allocation ends a run with an error and not the
//! process.
//!
//! **Why.** Memory that grows with a graph is reserved, with an error where the operating system refuses it
//! ([`super::reserved`], [`Buffer`](super::Buffer)). Small vectors, maps and the queues of threads are not:
//! on stable Rust they end the process. When an allocation is refused, the spare is given back, the
//! allocation is tried again, and every run sees at its next [`Run::check`](super::Run::check) that memory is
//! exhausted. Until then the spare is enough for the small things.
//!
//! **Memory.** None: [`BYTES`] bytes of address space that are never touched.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use memmap2::MmapMut;

use super::error::{Error, Result};

/// Bytes that are set aside.
const BYTES: usize = 16 << 20;

/// The spare of the process.
static SPARE: Spare = Spare { set_aside: AtomicPtr::new(ptr::null_mut()), refused: AtomicUsize::new(0) };

struct Spare {
    /// The memory set aside, if it was not needed yet.
    set_aside: AtomicPtr<MmapMut>,
    /// Bytes of the allocation for which it was given back. 0: there was none.
    refused: AtomicUsize,
}

/// The system allocator, and the spare.
pub struct Allocator;

// SAFETY: all calls go to the system allocator, with the arguments that were given.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        SPARE.again(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        SPARE.again(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises. Memory whose growth was refused has not moved.
        SPARE.again(size, || unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

impl Spare {
    /// Allocates, and once more if that is refused and is small enough for the spare. Code that asks for a
    /// large array handles the error.
    #[inline(always)]
    fn again(&self, size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
        let memory = allocate();
        if memory.is_null() && size < BYTES / 2 && self.give_back(size) { allocate() } else { memory }
    }

    /// Gives the spare back. False if no run has set one aside.
    #[cold]
    fn give_back(&self, size: usize) -> bool {
        let spare = self.set_aside.swap(ptr::null_mut(), Ordering::AcqRel);
        if !spare.is_null() {
            self.refused.store(size.max(1), Ordering::Release);
            // SAFETY: it comes from `Box::into_raw`, and the thread that swapped it out is its only owner.
            // Freeing allocates nothing.
            drop(unsafe { Box::from_raw(spare) });
        }
        self.refused.load(Ordering::Acquire) != 0
    }

    fn set_aside(&self) -> Result<()> {
        if !self.set_aside.load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let map = MmapMut::map_anon(BYTES);
        let map = map.map_err(|_| Error::MemoryRefused { what: "a run".into(), needed: BYTES as u64 })?;
        let spare = Box::into_raw(Box::new(map));
        let (order, null) = (Ordering::AcqRel, ptr::null_mut());
        if self.set_aside.compare_exchange(null, spare, order, Ordering::Acquire).is_err() {
            // SAFETY: another thread was first, and nobody else has this one.
            drop(unsafe { Box::from_raw(spare) });
        }
        self.refused.store(0, Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    fn check(&self) -> Result<()> {
        match self.refused.load(Ordering::Relaxed) {
            0 => Ok(()),
            size => refused(size),
        }
    }
}

#[cold]
fn refused(size: usize) -> Result<()> {
    Err(Error::MemoryRefused { what: "an array on the way".into(), needed: size as u64 })
}

/// Sets address space aside for a run, unless that is done.
pub(super) fn set_aside() -> Result<()> {
    SPARE.set_aside()
}

/// An error if an allocation was refused since the last run began.
#[inline(always)]
pub(super) fn check() -> Result<()> {
    SPARE.check()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_refused_allocation_is_tried_again_and_told() {
        let spare = Spare { set_aside: AtomicPtr::default(), refused: AtomicUsize::default() };
        let (tries, mut byte) = (Cell::new(0), 0_u8);
        let memory = &raw mut byte;
        // The first and the third try are refused.
        let allocate = || if tries.replace(tries.get() + 1) % 2 == 0 { ptr::null_mut() } else { memory };
        assert!(spare.again(100, allocate).is_null() && spare.check().is_ok(), "nothing was set aside");
        tries.set(0);
        spare.set_aside().unwrap();
        assert_eq!(spare.again(100, allocate), memory);
        assert!(matches!(spare.check(), Err(Error::MemoryRefused { needed: 100, .. })));
        spare.set_aside().unwrap();
        assert!(spare.check().is_ok());
        assert!(spare.again(BYTES, allocate).is_null() && spare.check().is_ok(), "too large for the spare");
        assert!(spare.give_back(1));
    }
}
