//! Records in a temporary file without a name, written at any place.
//!
//! The records of all sub-problems of a level lie in one file, each sub-problem's within the range that its parent had in
//! the file of the level before: two files do for any number of parts.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::edges::{EdgeStream, Record};
use crate::error::{Error, Result};
use crate::output::unnamed;

/// A file of records, 8 bytes each. Whoever reads checks the ids, since each sub-problem has its own.
pub struct Scratch {
    path: PathBuf,
    file: File,
    n: u64,
    m: u64,
}

impl Scratch {
    /// A file in the directory `into` with room for `m` records of `n` vertices.
    pub fn create(into: &Path, n: u64, m: u64) -> Result<Self> {
        let (path, file) = unnamed(into)?;
        Ok(Self { path, file, n, m })
    }

    /// Writes `records` from record number `first` on.
    pub fn write(&self, first: u64, records: &[Record]) -> Result<()> {
        let written = self.file.write_all_at(bytemuck::cast_slice(records), offset(first));
        written.map_err(|error| Error::io(&self.path, error))
    }
}

impl EdgeStream for Scratch {
    fn num_vertices(&self) -> u64 {
        self.n
    }

    fn num_edges(&self) -> u64 {
        self.m
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        let end = range.end.min(self.m);
        let start = range.start.min(end);
        buf.resize((end - start) as usize, [0; 2]);
        let read = self.file.read_exact_at(bytemuck::cast_slice_mut(buf), offset(start));
        read.map_err(|error| Error::io(&self.path, error))?;
        Ok(buf)
    }
}

fn offset(record: u64) -> u64 {
    record * size_of::<Record>() as u64
}
