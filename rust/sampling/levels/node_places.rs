//! The rows that a batch has met, and their places in it.
//!
//! One stamp of 4 bytes per vertex. A stamp below the base is of an earlier scope, so that beginning a new
//! one costs nothing. The stamps are cleared once they run out, after four billion entries.

use std::hint::select_unpredictable;

use crate::base::{Buffer, Result, prefetch_at};

/// Places of rows within a scope.
#[derive(Debug)]
pub(crate) struct IdTable {
    stamps: Buffer<u32>,
    /// Stamp of the first place in this scope.
    base: u32,
    count: u32,
}

impl IdTable {
    /// A table of rows below `num_rows`.
    pub(crate) fn new(num_rows: u32) -> Result<Self> {
        let stamps = Buffer::zeroed(num_rows as usize, "table of a sampler's worker")?;
        Ok(Self { stamps, base: 1, count: 0 })
    }

    /// Bytes of a table.
    pub(crate) fn memory(num_rows: u32) -> u64 {
        4 * u64::from(num_rows)
    }

    /// Begins a new, empty scope.
    pub(crate) fn begin(&mut self) {
        self.base += self.count;
        self.count = 0;
        if u64::from(self.base) + self.stamps.len() as u64 > u64::from(u32::MAX) {
            self.stamps.fill(0);
            self.base = 1;
        }
    }

    /// Brings the stamp of a row into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: u32) {
        prefetch_at(self.address(row));
    }

    /// Address of the stamp of a row.
    #[inline(always)]
    pub(crate) fn address(&self, row: u32) -> *const u32 {
        self.stamps.as_ptr().wrapping_add(row as usize)
    }

    /// The place of a row in this scope: the next one, with `true`, if it is new.
    #[inline(always)]
    pub(crate) fn place(&mut self, row: u32) -> (u32, bool) {
        // Whether it is new cannot be predicted, so there is no branch.
        let stamp = &mut self.stamps[row as usize];
        let new = *stamp < self.base;
        *stamp = select_unpredictable(new, self.base + self.count, *stamp);
        self.count += u32::from(new);
        (*stamp - self.base, new)
    }

    /// The place of a row, if it has one in this scope.
    #[inline(always)]
    pub(crate) fn get(&self, row: u32) -> Option<u32> {
        self.stamps[row as usize].checked_sub(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_do_not_see_each_other() {
        let mut table = IdTable::new(5).unwrap();
        table.begin();
        assert_eq!([3, 1, 3].map(|row| table.place(row)), [(0, true), (1, true), (0, false)]);
        assert_eq!((table.get(1), table.get(2)), (Some(1), None));
        table.begin();
        assert_eq!((table.get(1), table.place(1)), (None, (0, true)));
        // Just before the stamps run out, and when they do.
        table.base = u32::MAX - 6;
        for _ in 0..4 {
            table.begin();
            assert_eq!([4, 0, 4].map(|row| table.place(row)), [(0, true), (1, true), (0, false)]);
        }
    }
}
