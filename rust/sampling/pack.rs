//! The rows of planned batches, from the file that [`super::packing`] wrote.
//!
//! **Requirements.** The batch that a piece was packed for: the pieces carry checksums of their row numbers, so that a
//! batch of other samples is refused.
//!
//! **Algorithm.** The rows of the batch are sorted. Row number i of the distinct ones is number i of its piece of the
//! pack, which is read from its begin to its end.
//!
//! **Memory.** A piece of 4 MiB, and 12 bytes per row of the batch.
//!
//! **Parallelism.** Over the batches.
//!
//! **Complexity.** O(rows log rows), with the sort.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::array::MappedRows;
use super::direct::DirectFile;
use super::row_space::RowId;
use crate::base::{Error, Result, shown};

/// A checksum of the numbers of rows.
pub(super) fn checksum(rows: &[u32]) -> u64 {
    xxh3_64(bytemuck::cast_slice(rows))
}

/// The rows of the batches of an epoch.
#[derive(Debug)]
pub struct Pack {
    rows: MappedRows,
    direct: Option<DirectFile>,
    offsets: Vec<u32>,
    checksums: Vec<u64>,
}

impl Pack {
    /// Opens a pack of rows of so many bytes, given where the rows of each batch begin, the number of all, and the checksums.
    pub fn open(path: &Path, row_bytes: usize, offsets: &[i64], checksums: Vec<u64>) -> Result<Self> {
        let rows = MappedRows::open(path)?;
        let fits = offsets.is_sorted()
            && offsets.first() == Some(&0)
            && offsets.last() == Some(&(rows.len() as i64))
            && rows.len() <= u32::MAX as usize
            && offsets.len() == checksums.len() + 1
            && rows.row_bytes() == row_bytes;
        if !fits {
            let what = format!("{} rows of {} bytes are not those of the plan", rows.len(), rows.row_bytes());
            return Err(Error::format(shown(path), what));
        }
        let direct = if rows.row_bytes() == 0 {
            None
        } else {
            DirectFile::open(path, rows.offset(), rows.row_bytes())
        };
        Ok(Self { rows, direct, offsets: offsets.iter().map(|&offset| offset as u32).collect(), checksums })
    }

    /// Calls `put` with the bytes of the rows at some places of a batch, and with the place. The rows at these places
    /// ascend, and are all that the pack has of the batch. Returns the bytes that were read.
    pub(super) fn read<R: RowId>(
        &self,
        step: usize,
        rows: &[R],
        places: &[u32],
        put: &impl Fn(*const u8, usize),
        check: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        // The places of row number i of the batch are `places[firsts[i]..firsts[i + 1]]`.
        let (mut distinct, mut firsts) =
            (Vec::with_capacity(places.len()), Vec::with_capacity(places.len() + 1));
        for (index, &place) in places.iter().enumerate() {
            let row = rows[place as usize].number() as u32; // packs are of fewer than 2^32 rows
            if distinct.last() != Some(&row) {
                distinct.push(row);
                firsts.push(index);
            }
        }
        firsts.push(places.len());
        let range =
            self.offsets.get(step).zip(self.offsets.get(step + 1)).map_or(0..0, |(&from, &to)| from..to);
        if range.len() != distinct.len() || self.checksums.get(step) != Some(&checksum(&distinct)) {
            let what = format!(
                "step {step} needs other rows than those that were packed. The plan is of other samples or damaged. Make it again"
            );
            return Err(Error::format(shown(self.rows.path()), what));
        }
        let mut index = 0;
        let mut visit = |row: *const u8| {
            places[firsts[index]..firsts[index + 1]].iter().for_each(|&place| put(row, place as usize));
            index += 1;
        };
        match &self.direct {
            Some(file) if !range.is_empty() => file.stream(range, |row| visit(row.as_ptr()), check),
            _ => {
                let bytes = range.len() * self.rows.row_bytes();
                range.filter_map(|number| self.rows.row(number as usize)).for_each(visit);
                check()?;
                Ok(bytes as u64)
            }
        }
    }
}
