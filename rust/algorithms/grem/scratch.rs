//! Records in a temporary file without a name, written at any place.
//!
//! The records of all sub-problems of a level lie in one file, each sub-problem's within the range that its parent had in
//! the file of the level before: two files do for any number of parts.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result, shown};
use crate::base::output::unnamed;
use crate::edges::decode::largest;
use crate::edges::temporary::{read_at, write_at};
use crate::edges::{EdgeStream, Record};

/// A file of records, 8 bytes each. Whoever reads checks the ids again, since each sub-problem has its own.
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
        write_at(&self.file, &self.path, first, records)
    }
}

// SAFETY: `block` compares the largest id with `n`, which never changes.
unsafe impl EdgeStream for Scratch {
    fn num_vertices(&self) -> u64 {
        self.n
    }

    fn num_edges(&self) -> u64 {
        self.m
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        read_at(&self.file, &self.path, range.start..range.end.min(self.m), buf)?;
        if !buf.is_empty() && u64::from(largest(buf)) >= self.n {
            let what = "a temporary file came back changed; check the disk, or choose another folder";
            return Err(Error::format(shown(&self.path), what));
        }
        Ok(buf)
    }
}
