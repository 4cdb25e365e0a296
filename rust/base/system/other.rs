//! Plain stand-ins for calls that only Linux has.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

/// Names cannot be exchanged in one step.
pub(crate) fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Makes a file as long as these bytes need. A full disk is noticed when they are written.
pub(crate) fn allocate(file: &File, bytes: Range<u64>) -> io::Result<()> {
    if file.metadata()?.len() < bytes.end { file.set_len(bytes.end) } else { Ok(()) }
}

/// Initially every file has a name.
pub(crate) fn nameless(_dir: &Path, _options: &mut OpenOptions) -> Option<File> {
    None
}

/// Files are read through the page cache only.
pub(crate) fn open_direct(_path: &Path) -> Option<File> {
    None
}

/// The operating system is told nothing.
pub(crate) fn expect_random(_file: &File) {}

/// The allocator is left alone.
pub(crate) fn trim_heaps() {}

/// The operating system does not count these bytes.
pub(crate) fn counted_io() -> Option<[u64; 2]> {
    None
}

/// No directory is known to lie in memory.
pub(crate) fn lies_in_memory(_dir: &Path) -> bool {
    false
}

/// No reads are under way: the callers read one block after another.
#[derive(Debug)]
pub(crate) struct Reads;

impl Reads {
    /// Refused.
    pub(crate) fn new(_most: usize) -> io::Result<Self> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Refused.
    ///
    /// # Safety
    /// It does nothing.
    pub(crate) unsafe fn begin(
        &mut self,
        _number: usize,
        _file: &File,
        _offset: u64,
        _buffer: *mut u8,
        _bytes: usize,
    ) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// None is done.
    pub(crate) fn wait(
        &mut self,
        _least: usize,
    ) -> io::Result<impl Iterator<Item = (usize, io::Result<usize>)>> {
        Ok(std::iter::empty())
    }
}
