//! The ends of records by bucket, on disk: the first half of a radix join.
//!
//! Each end goes to the bucket of its key, in a file of its own, and its bucket is noted in the order of the
//! records: one byte per end. When a bucket's keys have become vertices, these bytes lead them back into the
//! order of the records. The files have names and known lengths, so that a process that was killed goes on
//! behind the last unit that is whole.
//!
//! **Disk.** 9 bytes per end for integers and 13 for text. **Memory.** 64 kB per bucket.

use std::path::{Path, PathBuf};

use super::appended::Appended;
use super::arrow::{Chunk, Column};
use super::key::{Key, Kind, keys_of};
use crate::base::{Error, Result};

/// Rows whose keys are made at a time.
pub(super) const ROWS: usize = 1 << 12;

/// Bytes of a bucket that are written at a time.
const BUFFER: usize = 1 << 16;

/// The bucket of a null end.
pub(super) const NULL: u8 = u8::MAX;

/// Most buckets of a type.
pub(super) const MOST_BUCKETS: usize = NULL as usize;

/// The ends of one side of a relation.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// The kind of its ids.
    pub kind: Kind,
    /// Number of its first bucket.
    pub first: usize,
    /// Number of its buckets.
    pub buckets: usize,
}

/// The buckets that ends go to.
pub struct Spill {
    sides: [Side; 2],
    buckets: Vec<Appended>,
    order: Option<Appended>,
    records: u64,
    keys: [Vec<Key>; 2],
    bytes: Vec<u8>,
}

impl Spill {
    /// Opens the files of the buckets, each behind its first bytes, which units before have written.
    pub fn open(sides: [Side; 2], files: &[(PathBuf, u64)]) -> Result<Self> {
        let most = sides.iter().map(|side| side.first + side.buckets).max().unwrap_or(0);
        if most > files.len() || sides.iter().any(|side| side.buckets > MOST_BUCKETS) {
            return Err(Error::Internal("buckets without files".into()));
        }
        let buckets =
            files.iter().map(|(path, len)| Appended::open(path, *len, BUFFER)).collect::<Result<_>>()?;
        let keys = [vec![Key::default(); ROWS], vec![Key::default(); ROWS]];
        Ok(Spill { sides, buckets, order: None, records: 0, keys, bytes: Vec::new() })
    }

    /// Begins a unit, whose order of buckets goes to a file.
    pub fn begin(&mut self, order: &Path) -> Result<()> {
        self.order = Some(Appended::open(order, 0, BUFFER)?);
        self.records = 0;
        Ok(())
    }

    /// Adds the records of a chunk: its first two columns. The first row with a null end is returned, unless
    /// they are kept for [`super::joining`] to drop.
    pub fn push(&mut self, chunk: &Chunk<'_>, keep_nulls: bool) -> Result<Option<u64>> {
        let columns = [chunk.column(0)?, chunk.column(1)?];
        for (column, side) in columns.iter().zip(&self.sides) {
            side.kind.check(column)?;
        }
        let nulls = columns.iter().any(Column::has_nulls);
        if !keep_nulls && let Some(row) = first_null(&columns, chunk.rows()) {
            return Ok(Some(row));
        }
        for start in (0..chunk.rows()).step_by(ROWS) {
            let rows = ROWS.min(chunk.rows() - start);
            for (side, column) in columns.iter().enumerate() {
                keys_of(column, self.sides[side].kind, start, &mut self.keys[side][..rows])?;
            }
            self.append(rows, |row| nulls && columns.iter().any(|column| column.is_null(start + row)))?;
        }
        self.records += chunk.rows() as u64;
        Ok(None)
    }

    #[inline(always)]
    fn append(&mut self, rows: usize, null: impl Fn(usize) -> bool) -> Result<()> {
        let Some(order) = &mut self.order else { return Err(Error::Internal("no unit was begun".into())) };
        self.bytes.clear();
        for row in 0..rows {
            if null(row) {
                self.bytes.extend([NULL, NULL]);
                continue;
            }
            for (side, keys) in self.sides.iter().zip(&self.keys) {
                let bucket = keys[row].bucket(side.buckets);
                self.bytes.push(bucket as u8);
                let file = &mut self.buckets[side.first + bucket];
                if side.kind.is_integer() {
                    file.push(&keys[row].low.to_le_bytes())?;
                } else {
                    file.push(&keys[row].to_bytes())?;
                }
            }
        }
        order.push_all(&self.bytes)
    }

    /// Ends a unit: all of it is on the disk. Returns the number of its records, and the length of each
    /// bucket's file.
    pub fn end(&mut self) -> Result<(u64, Vec<u64>)> {
        if let Some(mut order) = self.order.take() {
            order.sync()?;
        }
        let lengths = self.buckets.iter_mut().map(Appended::sync).collect::<Result<_>>()?;
        Ok((self.records, lengths))
    }
}

/// The first row that is null in either column.
pub(super) fn first_null(columns: &[Column<'_>; 2], rows: usize) -> Option<u64> {
    if !columns.iter().any(Column::has_nulls) {
        return None;
    }
    (0..rows).find(|&row| columns.iter().any(|column| column.is_null(row))).map(|row| row as u64)
}
