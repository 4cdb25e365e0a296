//! Records in a temporary file: appended once, then read as an edge stream.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::decode::largest;
use super::{EdgeStream, Record};
use crate::base::error::{Error, Result};
use crate::base::output::unnamed;

/// Records in a file without a name, 8 bytes each.
#[derive(Debug)]
pub struct TempRecords {
    path: PathBuf,
    file: File,
    n: u64,
    m: u64,
}

impl TempRecords {
    /// An empty file in the directory `into`.
    pub fn create(into: &Path) -> Result<Self> {
        let (path, file) = unnamed(into)?;
        Ok(Self { path, file, n: 0, m: 0 })
    }

    /// Adds `records` at the end.
    pub fn append(&mut self, records: &[Record]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        write_at(&self.file, &self.path, self.m, records)?;
        self.n = self.n.max(u64::from(largest(records)) + 1);
        self.m += records.len() as u64;
        Ok(())
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
        read_at(&self.file, &self.path, range.start..range.end.min(self.m), buf)?;
        // A disk may fail; an id beyond `n` must not get further.
        if !buf.is_empty() && u64::from(largest(buf)) >= self.n {
            let what = "a temporary file came back changed; check the disk, or choose another folder";
            return Err(Error::format(crate::base::error::shown(&self.path), what));
        }
        Ok(buf)
    }
}

/// Writes `records` from record number `first` on.
pub fn write_at(file: &File, path: &Path, first: u64, records: &[Record]) -> Result<()> {
    let written = file.write_all_at(bytemuck::cast_slice(records), offset(first));
    written.map_err(|error| Error::io(path, error))
}

/// Reads the records `range`, none if it ends before it begins.
pub fn read_at(file: &File, path: &Path, range: Range<u64>, buf: &mut Vec<Record>) -> Result<()> {
    let start = range.start.min(range.end);
    buf.resize((range.end - start) as usize, [0; 2]);
    let read = file.read_exact_at(bytemuck::cast_slice_mut(buf), offset(start));
    read.map_err(|error| Error::io(path, error))
}

fn offset(record: u64) -> u64 {
    record * size_of::<Record>() as u64
}
