//! Zeroed arrays of any size, in memory or in files.
//!
//! A large array is one anonymous map: a refusal of the operating system is an error instead of an abort, the
//! memory returns to the operating system the moment the array is dropped (so that peaks are what the docs
//! state), and huge pages halve the time of the random accesses that bound every partitioner here. A small
//! one lies on the heap, without a system call: the coarse levels of the multilevel partitioner make
//! thousands of a few hundred items each.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use bytemuck::{Pod, Zeroable};
use memmap2::MmapMut;

use super::error::{Error, Result, shown};
use super::system::{self, Access};
use super::temporary::{Taken, TempFile};

/// Bytes from which on an array is a map of its own.
const LARGE: usize = 1 << 20;

/// `len` values of `T`, initially zero.
#[derive(Debug)]
pub struct Buffer<T> {
    items: NonNull<T>,
    len: usize,
    /// The map that holds them. `None`: they lie on the heap.
    map: Option<MmapMut>,
    /// The bytes of the temporary file that is mapped.
    taken: Option<Taken>,
}

// SAFETY: it owns its values, as a `Vec` does.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T: Zeroable> Buffer<T> {
    /// Allocates `len` zeros. `what` names the array in the error.
    pub fn zeroed(len: usize, what: &str) -> Result<Self> {
        let bytes = size::<T>(0, len, what)?;
        if bytes >= LARGE {
            let map = MmapMut::map_anon(bytes).map_err(|_| refused(what, bytes))?;
            // A hint only: without huge pages the array is as good, just slower.
            system::advise(map.as_ptr(), bytes, Access::HugePages);
            return Ok(Self::within(map, 0, len));
        }
        let mut items = reserved(len, what)?;
        items.resize_with(len, T::zeroed);
        Ok(Self {
            items: NonNull::from(Box::leak(items.into_boxed_slice())).cast(),
            len,
            map: None,
            taken: None,
        })
    }

    /// The `len` values behind the first `start` bytes of `map`, which is long enough.
    fn within(mut map: MmapMut, start: usize, len: usize) -> Self {
        let items = map[start..].as_mut_ptr().cast();
        Self { items: NonNull::new(items).unwrap_or(NonNull::dangling()), len, map: Some(map), taken: None }
    }
}

impl<T: Pod> Buffer<T> {
    /// `len` zeros in a temporary file in `dir`, mapped: they take no anonymous memory, and the operating
    /// system writes them out when memory is short.
    pub fn in_file(len: usize, dir: &Path) -> Result<Self> {
        Self::of_file(TempFile::create(dir)?, len)
    }

    /// The first `len` values of a temporary file, mapped. Values beyond its end are zeros.
    pub fn of_file(file: TempFile, len: usize) -> Result<Self> {
        Self::of_sparse_file(file, len, 0..len)
    }

    /// Like [`Self::of_file`], but only the values in `used`, which may be empty, are going to be written
    /// through the map. Values outside of `used` take no space on the disk.
    pub fn of_sparse_file(
        TempFile { path, file, mut taken }: TempFile,
        len: usize,
        used: Range<usize>,
    ) -> Result<Self> {
        if len == 0 {
            return Self::zeroed(len, "nothing");
        }
        let bytes = size::<T>(0, len, &shown(&path))?;
        file.set_len(bytes as u64).map_err(|error| Error::io(&path, error))?;
        taken.set((used.len() * size_of::<T>()) as u64);
        allocate(&file, &path, used.start * size_of::<T>()..used.end * size_of::<T>())?;
        // SAFETY: the file has no name, so that nobody else can change or cut it.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(|error| not_mapped(&path, bytes, error))?;
        let mut mapped = Self::within(map, 0, len);
        mapped.taken = Some(taken);
        Ok(mapped)
    }

    /// `len` zeros behind the first `start` bytes of `file`, which ends there.
    ///
    /// # Safety
    /// Nobody changes or cuts the file meanwhile. `start` is a multiple of the alignment of `T`.
    pub unsafe fn mapped(file: &File, path: &Path, start: usize, len: usize) -> Result<Self> {
        let bytes = size::<T>(start, len, &shown(path))?;
        allocate(file, path, 0..bytes)?;
        // SAFETY: the caller vouches for the file.
        let map = unsafe { MmapMut::map_mut(file) }.map_err(|error| not_mapped(path, bytes, error))?;
        Ok(Self::within(map, start, len))
    }

    /// Tells the operating system whether the next accesses go to any place. If so, the pages beside a page
    /// of a temporary file are not read with it.
    pub fn expect_random(&self, random: bool) {
        if let (Some(map), Some(_)) = (&self.map, &self.taken) {
            let access = if random { Access::Random } else { Access::Normal };
            system::advise(map.as_ptr(), map.len(), access);
        }
    }

    /// Its bytes as values of another type of the same size.
    pub fn reinterpret<U: Pod>(self) -> Buffer<U> {
        const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) }
        let mut whole = ManuallyDrop::new(self);
        Buffer { items: whole.items.cast(), len: whole.len, map: whole.map.take(), taken: whole.taken.take() }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.map.is_none() {
            let items = std::ptr::slice_from_raw_parts_mut(self.items.as_ptr(), self.len);
            // SAFETY: without a map they are the box that `zeroed` leaked.
            drop(unsafe { Box::from_raw(items) });
        }
    }
}

/// Takes the disk that these bytes need.
fn allocate(file: &File, path: &Path, bytes: Range<usize>) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let bytes = bytes.start as u64..bytes.end as u64;
    system::allocate(file, bytes).map_err(|error| Error::io(path, error))
}

/// Bytes of `len` values behind `start` bytes. An error if they exceed the address space.
fn size<T>(start: usize, len: usize, what: &str) -> Result<usize> {
    let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(start));
    let fits = |&bytes: &usize| bytes <= isize::MAX as usize;
    bytes.filter(fits).ok_or_else(|| Error::Capacity(format!("{what}: {len} items exceed the address space")))
}

/// An empty vector that holds `len` items before it grows, or an error instead of an abort.
pub fn reserved<T>(len: usize, what: &str) -> Result<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| refused(what, len.saturating_mul(size_of::<T>())))?;
    Ok(items)
}

/// Makes place for `more` items behind the others of a vector that grows, or returns an error instead of an
/// abort.
pub(crate) fn reserve<T>(items: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    let needed = items.len().saturating_add(more).saturating_mul(size_of::<T>());
    items.try_reserve(more).map_err(|_| refused(what, needed))
}

/// A vector that grows where errors cannot be returned. A refusal is told in the end.
#[derive(Debug)]
pub(crate) struct Growing<T> {
    items: Vec<T>,
    is_refused: bool,
}

impl<T> Default for Growing<T> {
    fn default() -> Self {
        Self { items: Vec::new(), is_refused: false }
    }
}

impl<T> Growing<T> {
    /// Appends an item, if there is memory for it.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        if self.items.len() == self.items.capacity() {
            self.is_refused |= self.items.try_reserve(1).is_err();
            if self.is_refused {
                return;
            }
        }
        self.items.push(item);
    }

    /// All items, or an error if there was no memory for one.
    pub(crate) fn finish(self, what: &str) -> Result<Vec<T>> {
        let needed = 2 * self.items.len() * size_of::<T>();
        if self.is_refused { Err(refused(what, needed)) } else { Ok(self.items) }
    }

    /// The items of all, one after the other.
    pub(crate) fn concat(all: impl IntoIterator<Item = Self>, what: &str) -> Result<Vec<T>> {
        let mut items = Vec::new();
        for each in all {
            let mut each = each.finish(what)?;
            if items.is_empty() {
                items = each;
            } else {
                reserve(&mut items, each.len(), what)?;
                items.append(&mut each);
            }
        }
        Ok(items)
    }
}

/// `len` zeros on the heap, or an error instead of an abort.
pub(crate) fn zeros<T: Zeroable + Clone>(len: usize, what: &str) -> Result<Vec<T>> {
    let mut items = reserved(len, what)?;
    items.resize(len, T::zeroed());
    Ok(items)
}

/// A number that several threads can change.
///
/// # Safety
/// Every value of `Atomic` must be laid out as one of the number.
pub(crate) unsafe trait Number {
    /// The number, atomic.
    type Atomic: Sync;
}

// SAFETY: what the standard library promises.
unsafe impl Number for u32 {
    type Atomic = AtomicU32;
}

// SAFETY: as above.
unsafe impl Number for u64 {
    type Atomic = AtomicU64;
}

/// Numbers, to be changed by several threads.
pub(crate) fn shared<T: Number>(items: &mut [T]) -> &[T::Atomic] {
    const { assert!(size_of::<T::Atomic>() == size_of::<T>() && align_of::<T::Atomic>() == align_of::<T>()) }
    // SAFETY: size and alignment are equal, and the mutable borrow keeps everything else from the numbers as
    // long as the atomic ones are in use.
    unsafe { std::slice::from_raw_parts(items.as_mut_ptr().cast(), items.len()) }
}

/// The error for a file of `bytes` bytes that cannot be mapped: maybe the address space is exhausted.
fn not_mapped(path: &Path, bytes: usize, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::OutOfMemory => refused(&shown(path), bytes),
        _ => Error::io(path, error),
    }
}

fn refused(what: &str, bytes: usize) -> Error {
    Error::MemoryRefused { what: what.into(), needed: bytes as u64 }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: here lie `len` values that began as zeros, which `Zeroable` makes valid, borrowed as long
        // as the slice. Measured: a checked cast here costs the hot loops a third of their pace.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.items.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_writable_and_empty() {
        let mut buffer: Buffer<u64> = Buffer::zeroed(3, "test").unwrap();
        assert_eq!(&*buffer, &[0, 0, 0]);
        buffer[1] = 7;
        assert_eq!(&*buffer, &[0, 7, 0]);
        assert!(Buffer::<u32>::zeroed(0, "test").unwrap().is_empty());
        let mut large: Buffer<u32> = Buffer::zeroed(LARGE, "test").unwrap();
        assert!(large.len() == LARGE && large.iter().all(|&value| value == 0));
        large[LARGE - 1] = u32::MAX;
        for (buffer, last) in [(large, -1), (Buffer::zeroed(5, "test").unwrap(), 0)] {
            assert_eq!(buffer.reinterpret::<i32>().last(), Some(&last));
        }
    }

    #[test]
    fn zeros_in_a_file_leave_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut buffer: Buffer<u16> = Buffer::in_file(5000, folder.path()).unwrap();
        assert!(buffer.iter().all(|&value| value == 0));
        buffer[4999] = 7;
        assert_eq!((buffer.len(), buffer[4999]), (5000, 7));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Buffer::<u64>::in_file(0, folder.path()).unwrap().is_empty());
        let absent = folder.path().join("absent");
        let error = Buffer::<u64>::in_file(1, &absent).unwrap_err();
        assert!(matches!(error, Error::Io { path, .. } if path.starts_with(&absent)));
        // A size that no disk has: refused before anything is written.
        assert!(matches!(Buffer::<u64>::in_file(1 << 59, folder.path()), Err(Error::Io { .. })));
        // Sizes that wrap around in 64 bits, or do once they are signed.
        for len in [1 << 61, (1 << 61) + 1, 1 << 60] {
            assert!(matches!(Buffer::<u64>::in_file(len, folder.path()), Err(Error::Capacity(_))));
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(matches!(Buffer::<u64>::zeroed(usize::MAX, "x"), Err(Error::Capacity(_))));
        assert!(matches!(Buffer::<u8>::zeroed(usize::MAX / 2, "x"), Err(Error::MemoryRefused { .. })));
    }
}
