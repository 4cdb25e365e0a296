//! The rows of planned batches, from the file that [`super::pack`] wrote.
//!
//! **Requirements.** The batch that a piece was packed for: the pieces carry checksums of their row numbers, so that a
//! batch of other samples is refused.
//!
//! **Algorithm.** The rows of the batch are sorted. Row number i of the distinct ones is number i of its piece of the
//! pack, which is read from its begin to its end.
//!
//! **Memory.** As [`super::direct`], and 8 bytes per row of the batch.
//!
//! **Parallelism.** Over the batches.
//!
//! **Complexity.** O(rows log rows), with the sort.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::array::MappedRows;
use super::direct::{self, DirectFile, Wanted};
use crate::base::{Error, Result, shown};

/// A checksum of the numbers of rows.
pub(super) fn checksum(rows: &[u32]) -> u64 {
    xxh3_64(bytemuck::cast_slice(rows))
}

/// The rows of the batches of an epoch.
#[derive(Debug)]
pub struct Packed {
    rows: MappedRows,
    direct: Option<DirectFile>,
    offsets: Vec<u32>,
    checksums: Vec<u64>,
}

impl Packed {
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
    pub(super) fn read(
        &self,
        step: usize,
        rows: &[u32],
        places: &[u32],
        put: &impl Fn(*const u8, usize),
        check: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        let (mut distinct, mut numbers) = (Vec::with_capacity(places.len()), vec![0; rows.len()]);
        let first = self.offsets.get(step).copied().unwrap_or(0);
        for &place in places {
            let row = rows[place as usize];
            if distinct.last() != Some(&row) {
                distinct.push(row);
            }
            numbers[place as usize] = first + (distinct.len() - 1) as u32;
        }
        if self.checksums.get(step) != Some(&checksum(&distinct)) {
            let what = format!(
                "step {step} needs other rows than those that were packed. The plan is of other samples or damaged. Make it again"
            );
            return Err(Error::format(shown(self.rows.path()), what));
        }
        match &self.direct {
            Some(file) => {
                let mut visit = |place: u32, row: &[u8]| put(row.as_ptr(), place as usize);
                direct::read(&[Wanted { file, base: 0, rows: &numbers, places }], &mut visit, check)
            }
            None => {
                for &place in places {
                    if let Some(row) = self.rows.row(numbers[place as usize] as usize) {
                        put(row, place as usize);
                    }
                }
                check()?;
                Ok((distinct.len() * self.rows.row_bytes()) as u64)
            }
        }
    }
}
