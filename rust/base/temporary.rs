//! Unnamed files: nothing is left of them, however the process ends.
//!
//! The process keeps account of the bytes of all of them, and of the most at one time.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::error::{Error, Result};
use super::regular_file::open_own;
use super::system::{self, FileExt as _};

/// A file without a name, read and written at any place, by several threads if need be.
#[derive(Debug)]
pub struct TempFile {
    /// For messages: its directory, or the name it had for a moment.
    pub(super) path: PathBuf,
    /// The open file, which nobody else can name: a map over it relies on that.
    pub(super) file: File,
    /// The bytes that it takes.
    pub(super) taken: Taken,
}

/// Bytes of the temporary files of the process, and the most since [`forget_most`].
static USED: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

/// Most bytes that the temporary files of the process took at one time since [`forget_most`].
pub(crate) fn most_used() -> u64 {
    MOST.load(Relaxed)
}

/// Sets the maximum to the bytes that the temporary files take now.
pub(crate) fn forget_most() {
    MOST.store(USED.load(Relaxed), Relaxed);
}

/// Bytes of a temporary file. They count as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct Taken(AtomicU64);

impl Taken {
    /// Says that the file has at least this length.
    pub(crate) fn grow(&self, len: u64) {
        let more = len.saturating_sub(self.0.fetch_max(len, Relaxed));
        MOST.fetch_max(USED.fetch_add(more, Relaxed) + more, Relaxed);
    }

    /// Says that the file has exactly this length.
    pub(crate) fn set(&mut self, len: u64) {
        USED.fetch_sub(self.0.get_mut().saturating_sub(len), Relaxed);
        let before = *self.0.get_mut();
        *self.0.get_mut() = before.min(len);
        self.grow(len);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        USED.fetch_sub(*self.0.get_mut(), Relaxed);
    }
}

impl TempFile {
    /// An empty file in the directory `into` that never had a name, or where the file system knows no such
    /// files lost it at once.
    pub fn create(into: &Path) -> Result<Self> {
        if let Some(file) = system::nameless(into, &mut fresh()) {
            return Ok(Self { path: into.into(), file, taken: Taken::default() });
        }
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let path = into.join(format!(".fastpart-{}.{}", std::process::id(), COUNT.fetch_add(1, Relaxed)));
            match fresh().create_new(true).open(&path) {
                // The file of a process that was killed just then, perhaps on another host of a shared disk.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::io(&path, error)),
                Ok(file) => {
                    std::fs::remove_file(&path).map_err(|error| Error::io(&path, error))?;
                    return Ok(Self { path, file, taken: Taken::default() });
                }
            }
        }
    }

    /// A file that has this name until somebody removes it, for other processes. A file that had the name
    /// loses it, since a process that was taken for dead may go on writing to that one.
    pub fn named(path: &Path) -> Result<Self> {
        let io = |error| Error::io(path, error);
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let file = fresh().create_new(true).open(path).map_err(io)?;
        Ok(Self { path: path.into(), file, taken: Taken::default() })
    }

    /// The file with this name, which another process has written.
    pub fn open(path: &Path) -> Result<Self> {
        let file = open_own(path, File::options().read(true))?;
        Ok(Self { path: path.into(), file, taken: Taken::default() })
    }

    /// Waits until other machines also see the bytes written.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::io(&self.path, error))
    }

    /// For messages: its directory, or the name it had for a moment.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `items` from item number `first` on, of items of this type.
    pub fn write<T: Pod>(&self, first: u64, items: &[T]) -> Result<()> {
        let written = self.file.write_all_at(cast_slice(items), first * size_of::<T>() as u64);
        self.taken.grow((first + items.len() as u64) * size_of::<T>() as u64);
        written.map_err(|error| Error::io(&self.path, error))
    }

    /// Tells the operating system that reads are at random places, so it does not read ahead.
    pub fn expect_random(&self) {
        system::expect_random(&self.file);
    }

    /// Reads items from number `first` on.
    pub fn read<T: Pod>(&self, first: u64, items: &mut [T]) -> Result<()> {
        let read = self.file.read_exact_at(cast_slice_mut(items), first * size_of::<T>() as u64);
        read.map_err(|error| Error::io(&self.path, error))
    }
}

fn fresh() -> OpenOptions {
    system::private(File::options().read(true).write(true)).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_is_not_the_one_that_another_process_still_writes_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill");
        let old = TempFile::named(&path).unwrap();
        let new = TempFile::named(&path).unwrap();
        old.file.write_all_at(b"late", 0).unwrap();
        assert_eq!(new.file.metadata().unwrap().len(), 0);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }
}
