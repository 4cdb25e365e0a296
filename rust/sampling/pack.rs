//! The rows of planned batches, from the file that [`super::packing`] wrote.
//!
//! **Requirements.** The batch that a piece was packed for: the pieces carry checksums of their rows, their
//! numbers and their bytes, so that a batch of other samples and a piece that is damaged are refused.
//!
//! **Algorithm.** The rows of the batch are sorted. Row number i of the distinct ones is number i of its
//! piece of the pack, which is read from its begin to its end. The checksum is taken of the bytes that were
//! read, while they are in the cache of the processor.
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

/// The term of a row in the checksum of rows, which is a sum, since rows are packed in any order.
#[inline]
pub(super) fn checksum(number: u32, row: &[u8]) -> u64 {
    // The number also goes to the high bits, so the sum changes if two equal rows exchange their numbers.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    (xxh3_64(row) ^ u64::from(number).wrapping_mul(ODD)).wrapping_mul(ODD)
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
    /// Opens a pack of rows of `row_bytes` bytes. `offsets` has the first row of each batch and the number of
    /// all rows.
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

    /// Calls `put` with the bytes of the rows at some places of a batch, and with the place. The rows at
    /// these places ascend, and are all that the pack has of the batch. Returns the bytes that were read.
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
        let refused = |what: &str| {
            let what = format!("step {step}: {what}. The plan is of other samples or damaged. Make it again");
            Err(Error::format(shown(self.rows.path()), what))
        };
        if range.len() != distinct.len() {
            return refused(&format!("needs {} rows, but {} were packed", distinct.len(), range.len()));
        }
        let (mut index, mut sum) = (0, 0_u64);
        let mut visit = |row: &[u8]| {
            sum = sum.wrapping_add(checksum(distinct[index], row));
            let places = &places[firsts[index]..firsts[index + 1]];
            places.iter().for_each(|&place| put(row.as_ptr(), place as usize));
            index += 1;
        };
        let bytes = match &self.direct {
            Some(file) if !range.is_empty() => file.stream(range, visit, check)?,
            _ => {
                let mut copy = vec![0; self.rows.row_bytes()];
                for number in range.clone() {
                    self.rows.copy(number as usize, &mut copy);
                    visit(&copy);
                }
                check()?;
                (range.len() * copy.len()) as u64
            }
        };
        if self.checksums.get(step) != Some(&sum) {
            return refused("its rows are not those that were packed");
        }
        Ok(bytes)
    }
}
