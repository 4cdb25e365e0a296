//! Edges in memory: numpy arrays, torch tensors, Polars columns.

use std::ops::Range;

use super::decode::{BadId, Column, check, decode};
use super::{EdgeStream, Record};
use crate::base::{Error, Result};

/// Edges in two columns of borrowed memory, copied block by block.
#[derive(Debug)]
pub struct MemoryEdges {
    columns: [Column; 2],
    m: u64,
    n: u64,
}

impl MemoryEdges {
    /// Edges of `m` records with ids below `n`.
    ///
    /// # Safety
    /// Both columns must stay readable for `m` ids as long as this value lives.
    pub unsafe fn new(columns: [Column; 2], m: u64, n: u64) -> Self {
        Self { columns, m, n }
    }

    /// Requires ids to be below `n`.
    pub fn set_num_vertices(&mut self, n: u64) {
        self.n = n;
    }
}

// SAFETY: as for a file: `decode` compares the copies with `n`, which changes by `&mut self` alone.
unsafe impl EdgeStream for MemoryEdges {
    fn num_vertices(&self) -> u64 {
        self.n
    }

    fn num_edges(&self) -> u64 {
        self.m
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        let range = range.start.min(self.m)..range.end.min(self.m);
        buf.resize(range.end.saturating_sub(range.start) as usize, [0; 2]);
        // SAFETY: `new` demands that all `m` records are readable, and the range lies within them.
        unsafe { decode(self.columns, range.start, self.n, buf) }
            .map_err(|bad| refuse(range.start, bad, self.n))?;
        Ok(buf)
    }

    fn may_change(&self) -> bool {
        true
    }
}

/// Edges in a vector of its own.
#[derive(Debug, Clone)]
pub(crate) struct OwnedEdges {
    n: u64,
    records: Vec<Record>,
}

impl OwnedEdges {
    /// These records, all of whose ids must be below `n`.
    pub(crate) fn new(n: u64, records: Vec<Record>) -> Result<Self> {
        check(&records, n).map_err(|bad| refuse(0, bad, n))?;
        Ok(Self { n, records })
    }
}

// SAFETY: `new` compares all ids with `n`, and nothing changes either.
unsafe impl EdgeStream for OwnedEdges {
    fn num_vertices(&self) -> u64 {
        self.n
    }

    fn num_edges(&self) -> u64 {
        self.records.len() as u64
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        let end = range.end.min(self.num_edges());
        buf.clear();
        buf.extend_from_slice(&self.records[range.start.min(end) as usize..end as usize]);
        Ok(buf)
    }
}

fn refuse(first: u64, bad: BadId, n: u64) -> Error {
    Error::IdOutOfRange {
        origin: "array".into(),
        record: first + bad.position as u64,
        id: bad.id,
        n,
        remedy: remedy(bad.id, n),
    }
}

/// The remedy for an id outside `0..n`.
pub(super) fn remedy(id: i128, n: u64) -> String {
    if id < 0 {
        "Ids must not be negative. Drop or relabel such records".into()
    } else if n < super::MAX_VERTICES && id < i128::from(super::MAX_VERTICES) {
        format!("Pass num_vertices={} or more, or relabel with `fastpart convert --relabel`", id + 1)
    } else {
        "Ids go up to 2^32 - 2. Relabel with `fastpart convert --relabel`".into()
    }
}
