//! The `.npy` files of a part, written from front to back.
//!
//! Plain files: they lie in a directory that appears as a whole or not at all, and that its owner forces to the disk.

use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::base::{Error, Result, Run};
use crate::edges::npy;
use crate::edges::npy::Item;

/// Bytes of the header of every one-dimensional array, however long.
pub(crate) const HEADER: u64 = 128;

/// Bytes collected before the system is called.
const BUFFER: usize = 1 << 16;

/// Bytes written between two looks at the cancel flag: a busy disk may take its time.
const AT_ONCE: usize = 1 << 20;

/// The folder of a part.
pub(crate) fn part_folder(into: &Path, part: usize) -> PathBuf {
    into.join(format!("part-{part:05}"))
}

/// Where an [`ArrayFile`] begins to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// In a new file, in place of what is there.
    Anew,
    /// At the end of a file that a former one finished.
    AtEnd,
}

/// A one-dimensional array that is being written. `finish` makes it valid.
pub(crate) struct ArrayFile<'a, T> {
    run: &'a Run,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Where the buffer goes.
    offset: u64,
    item: PhantomData<T>,
}

impl<'a, T: Item> ArrayFile<'a, T> {
    /// Creates `folder/name`. What is there is replaced.
    pub(crate) fn create(folder: &Path, name: &str, run: &'a Run) -> Result<Self> {
        Self::open(folder, name, Start::Anew, run)
    }

    /// Opens `folder/name`.
    pub(crate) fn open(folder: &Path, name: &str, begin: Start, run: &'a Run) -> Result<Self> {
        let (path, anew) = (folder.join(name), begin == Start::Anew);
        let opened = File::options().write(true).create(anew).truncate(anew).open(&path);
        let opened = opened.and_then(|file| Ok((file.metadata()?.len().max(HEADER), file)));
        let (offset, file) = opened.map_err(|error| Error::io(&path, error))?;
        Ok(Self { run, path, file, buffer: Vec::new(), offset, item: PhantomData })
    }

    /// Appends an item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Result<()> {
        self.buffer.extend_from_slice(bytemuck::bytes_of(&item));
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Appends items.
    pub(crate) fn extend(&mut self, items: &[T]) -> Result<()> {
        self.flush()?;
        self.write(bytemuck::cast_slice(items))
    }

    fn flush(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for bytes in bytes.chunks(AT_ONCE) {
            self.file.write_all_at(bytes, self.offset).map_err(|error| Error::io(&self.path, error))?;
            self.offset += bytes.len() as u64;
            self.run.check()?;
        }
        Ok(())
    }

    /// Number of items so far.
    pub(crate) fn count(&self) -> u64 {
        (self.offset - HEADER + self.buffer.len() as u64) / size_of::<T>() as u64
    }

    /// Writes the header.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        let head = npy::header(T::DESCR, &[self.count()]);
        debug_assert_eq!(head.len() as u64, HEADER);
        self.file.write_all_at(&head, 0).map_err(|error| Error::io(&self.path, error))
    }
}

/// A one-dimensional int64 array that an [`ArrayFile`] wrote, read piece by piece.
pub(crate) struct Ids {
    path: PathBuf,
    file: File,
    next: u64,
    end: u64,
    buffer: Vec<i64>,
}

impl Ids {
    /// Opens `folder/name` at the items `start..end`.
    pub(crate) fn open(folder: &Path, name: &str, start: u64, end: u64) -> Result<Self> {
        let path = folder.join(name);
        let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
        Ok(Self { path, file, next: start, end, buffer: Vec::new() })
    }

    /// The next ids, at most 64 KiB of them. None at the end.
    pub(crate) fn read(&mut self) -> Result<&[i64]> {
        let count = (self.end - self.next.min(self.end)).min((BUFFER / 8) as u64);
        self.buffer.resize(count as usize, 0);
        let offset = HEADER + 8 * self.next;
        let read = self.file.read_exact_at(bytemuck::cast_slice_mut(&mut self.buffer), offset);
        read.map_err(|error| Error::io(&self.path, error))?;
        self.next += count;
        Ok(&self.buffer)
    }

    /// Hands all ids to `each`.
    pub(crate) fn for_each(mut self, run: &Run, mut each: impl FnMut(u64) -> Result<()>) -> Result<()> {
        loop {
            let ids = self.read()?;
            if ids.is_empty() {
                return Ok(());
            }
            ids.iter().try_for_each(|&id| each(id as u64))?;
            run.check()?;
        }
    }
}
