//! Large zeroed arrays, outside the allocator's heap.
//!
//! One anonymous map per array: a refusal of the system is an error instead of an abort, the memory returns to
//! the system the moment the array is dropped (so that peaks are what the docs state), and huge pages halve the
//! time of the random accesses that bound every partitioner here.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use bytemuck::{Pod, Zeroable};
use memmap2::MmapMut;

use super::error::{Error, Result};

/// `len` zeroed values of `T`.
#[derive(Debug)]
pub struct Buffer<T> {
    map: Option<MmapMut>,
    len: usize,
    item: PhantomData<T>,
}

impl<T: Zeroable> Buffer<T> {
    /// Allocates `len` zeros; `what` names the array in the error.
    pub fn zeroed(len: usize, what: &str) -> Result<Self> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .ok_or_else(|| Error::Capacity(format!("{what}: {len} items exceed the address space")))?;
        if bytes == 0 {
            return Ok(Self { map: None, len: 0, item: PhantomData });
        }
        let map = MmapMut::map_anon(bytes).map_err(|_| refused(what, bytes))?;
        // A hint only: without huge pages the array is as good, just slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { map: Some(map), len, item: PhantomData })
    }
}

impl<T: Pod> Buffer<T> {
    /// `len` zeros in a temporary file in `dir`, mapped: they take no anonymous memory, and the system writes them
    /// out when memory is short. The file loses its name as soon as it is open, so that nothing is left of it,
    /// however the process ends.
    pub fn in_file(len: usize, dir: &Path) -> Result<Self> {
        let bytes = len as u64 * size_of::<T>() as u64;
        if bytes == 0 {
            return Ok(Self { map: None, len: 0, item: PhantomData });
        }
        let (file, path) = temporary(dir)?;
        let io = |error| Error::io(&path, error);
        // The blocks are taken now: a write through the map that finds the disk full would end the process.
        // SAFETY: a call on an open file.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
            0 => {}
            errno => return Err(io(io::Error::from_raw_os_error(errno))),
        }
        // SAFETY: the file was made here and has no name, so that nobody else can change or cut it.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(io)?;
        Ok(Self { map: Some(map), len, item: PhantomData })
    }

    /// The same bytes as values of another type of the same size.
    pub fn reinterpret<U: Pod>(self) -> Buffer<U> {
        const { assert!(size_of::<T>() == size_of::<U>()) }
        Buffer { map: self.map, len: self.len, item: PhantomData }
    }
}

/// A new file in `dir` that has lost its name already, and that name.
fn temporary(dir: &Path) -> Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let path = dir.join(format!(".fastpart-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed)));
        let created = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
        match created {
            Ok(file) => {
                std::fs::remove_file(&path).map_err(|error| Error::io(&path, error))?;
                return Ok((file, path));
            }
            // Left by a process of the same number that was killed right here.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(&path, error)),
        }
    }
}

/// An empty vector with room for `len` items, or an error instead of an abort.
pub fn reserved<T>(len: usize, what: &str) -> Result<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| refused(what, len.saturating_mul(size_of::<T>())))?;
    Ok(items)
}

/// A number that several threads can change.
///
/// # Safety
/// Every value of `Atomic` must be laid out as one of the number.
pub unsafe trait Number {
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

/// The same numbers, to be changed by several threads.
pub fn shared<T: Number>(items: &mut [T]) -> &[T::Atomic] {
    const { assert!(size_of::<T::Atomic>() == size_of::<T>() && align_of::<T::Atomic>() == align_of::<T>()) }
    // SAFETY: size and alignment are equal, and the mutable borrow keeps everything else from the numbers as long as
    // the atomic ones are in use.
    unsafe { std::slice::from_raw_parts(items.as_mut_ptr().cast(), items.len()) }
}

fn refused(what: &str, bytes: usize) -> Error {
    Error::MemoryRefused { what: what.into(), needed: bytes as u64 }
}

impl<T: Zeroable> Deref for Buffer<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: the map is page-aligned, holds `len` values that began as zeros, which `Zeroable` makes valid, and is
        // borrowed as long as the slice. Measured: a checked cast here costs the hot loops a third of their pace.
        unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), self.len) }
    }
}

impl<T: Zeroable> DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        let Some(map) = &mut self.map else { return &mut [] };
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), self.len) }
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
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(matches!(Buffer::<u64>::zeroed(usize::MAX, "x"), Err(Error::Capacity(_))));
        assert!(matches!(Buffer::<u8>::zeroed(usize::MAX / 2, "x"), Err(Error::MemoryRefused { .. })));
    }
}
