//! Rows of files that stay in memory.

use std::path::Path;

use super::packs::checksum;
use crate::base::{Buffer, Error, Result, shown};
use crate::sampling::topology::arrays::MappedRows;
use crate::sets::LocalSet;

/// Some rows, in memory.
pub(crate) struct RowCache {
    members: LocalSet,
    rows: Buffer<u8>,
    row_bytes: usize,
}

impl std::fmt::Debug for RowCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RowCache of {} bytes", self.rows.len())
    }
}

impl RowCache {
    /// Reads the rows `ids`, which ascend and are below `n`, from a file that has no others. `sum` is their
    /// checksum.
    pub(crate) fn read(ids: &[u32], n: u32, file: &Path, row_bytes: usize, sum: u64) -> Result<Self> {
        let found = MappedRows::open(file)?;
        if found.len() != ids.len() || found.row_bytes() != row_bytes {
            let what = format!(
                "{} rows of {} bytes, expected {} of {row_bytes}",
                found.len(),
                found.row_bytes(),
                ids.len()
            );
            return Err(Error::format(shown(file), what));
        }
        if !ids.is_sorted_by(|low, high| low < high) || ids.last().is_some_and(|&last| last >= n) {
            return Err(Error::parameter("ids", format!("expected rows below {n} that ascend")));
        }
        let mut members = LocalSet::new(u64::from(n))?;
        ids.iter().for_each(|&id| members.insert(id));
        members.number();
        let mut rows = Buffer::<u8>::zeroed(ids.len() * row_bytes, "cached rows")?;
        if let Some(start) = found.row(0) {
            // SAFETY: the map has the bytes of all rows. They are copied as they are, even if another process
            // changes them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(start, rows.as_mut_ptr(), rows.len()) };
        }
        let of_row = |(place, &id): (usize, &u32)| checksum(id, &rows[place * row_bytes..][..row_bytes]);
        if ids.iter().enumerate().map(of_row).fold(0, u64::wrapping_add) != sum {
            let what = "its rows are not those that were packed. The plan is damaged. Make it again";
            return Err(Error::format(shown(file), what));
        }
        Ok(Self { members, rows, row_bytes })
    }

    /// Address of a row, if it is cached.
    #[inline(always)]
    pub(crate) fn row(&self, id: u32) -> Option<*const u8> {
        let place = self.members.contains(id).then(|| self.members.local(id) as usize);
        place.map(|place| self.rows.as_ptr().wrapping_add(place * self.row_bytes))
    }
}
