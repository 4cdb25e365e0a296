//! Records in a temporary file without a name, 8 bytes each, read as an edge stream.

use std::ops::Range;
use std::path::Path;

use super::decode::largest;
use super::{EdgeStream, Record};
use crate::base::{Error, Result, TempFile, shown};

/// Records in a file without a name, appended or written at any place.
#[derive(Debug)]
pub struct TempRecords {
    file: TempFile,
    n: u64,
    m: u64,
}

impl TempRecords {
    /// An empty file in the directory `into`.
    pub fn create(into: &Path) -> Result<Self> {
        Self::of_size(into, 0, 0)
    }

    /// A file in the directory `into` for `m` records of `n` vertices, to be written before they are read.
    pub fn of_size(into: &Path, n: u64, m: u64) -> Result<Self> {
        Ok(Self { file: TempFile::create(into)?, n, m })
    }

    /// Adds `records` at the end.
    pub fn append(&mut self, records: &[Record]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.file.write(self.m, records)?;
        self.n = self.n.max(u64::from(largest(records)) + 1);
        self.m += records.len() as u64;
        Ok(())
    }

    /// Writes `records` from record number `first` on.
    pub fn write(&self, first: u64, records: &[Record]) -> Result<()> {
        self.file.write(first, records)
    }
}

// SAFETY: `block` compares the largest id with `n`, which changes by `&mut self` alone.
unsafe impl EdgeStream for TempRecords {
    fn num_vertices(&self) -> u64 {
        self.n
    }

    fn num_edges(&self) -> u64 {
        self.m
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        let end = range.end.min(self.m);
        buf.resize(end.saturating_sub(range.start) as usize, [0; 2]);
        self.file.read(range.start.min(end), buf)?;
        check_ids(buf, self.n, self.file.path())?;
        Ok(buf)
    }
}

/// Refuses ids from `n` on in what a temporary file gave: a disk may fail, and they must not get further.
pub(crate) fn check_ids(records: &[Record], n: u64, file: &Path) -> Result<()> {
    if records.is_empty() || u64::from(largest(records)) < n {
        return Ok(());
    }
    let what = "a temporary file came back changed. Check the disk or choose another folder";
    Err(Error::format(shown(file), what))
}
