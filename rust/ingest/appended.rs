//! Files that grow at their ends.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::base::{Error, Result};

/// A file that small entries are appended to. Their lengths are known to the compiler: copies of unknown
/// length took an eighth of the time of a merge.
pub(super) struct Appended {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    len: u64,
}

impl Appended {
    /// Goes on behind the first `len` bytes. Bytes behind them were written by a unit that did not end.
    pub(super) fn open(path: &Path, len: u64, buffer: usize) -> Result<Self> {
        let at = |error| Error::io(path, error);
        let mut file = File::options().write(true).create(true).truncate(false).open(path).map_err(at)?;
        file.set_len(len).map_err(at)?;
        file.seek(SeekFrom::Start(len)).map_err(at)?;
        Ok(Appended { path: path.into(), file, buffer: Vec::with_capacity(buffer), len })
    }

    /// Appends an entry.
    #[inline(always)]
    pub(super) fn push<const N: usize>(&mut self, entry: &[u8; N]) -> Result<()> {
        if self.buffer.len() + N > self.buffer.capacity() {
            self.flush()?;
        }
        self.buffer.extend_from_slice(entry);
        Ok(())
    }

    /// Appends bytes.
    pub(super) fn push_all(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > self.buffer.capacity() {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self) -> Result<()> {
        self.file.write_all(&self.buffer).map_err(|error| Error::io(&self.path, error))?;
        self.len += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Forces it to the disk, and returns its length.
    pub(super) fn sync(&mut self) -> Result<u64> {
        if !self.buffer.is_empty() {
            self.flush()?;
        }
        self.file.sync_data().map_err(|error| Error::io(&self.path, error))?;
        Ok(self.len)
    }
}
