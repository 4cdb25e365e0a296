//! Rows of parts, numbered from the first row of the first part to the last row of the last one.
//!
//! The vertices of a topology are numbered so, and its in-edges, and whatever else a part has a file of rows
//! for, as the vertices of one type.

use std::fmt::{Debug, Display};

use crate::base::{Error, Result};

/// Number of a row: u32 for vertices, i64 for in-edges, of which there may be more than 2^32.
pub trait RowId: Copy + Ord + Display + Debug {
    /// The number. One below 0 becomes larger than any number of rows.
    fn number(self) -> u64;
}

impl RowId for u32 {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl RowId for i64 {
    #[inline(always)]
    fn number(self) -> u64 {
        self as u64
    }
}

/// The number of rows of each part, and the part of each row.
#[derive(Debug)]
pub struct RowSpace {
    /// First row of each part, and the number of rows.
    starts: Vec<u64>,
    finder: Finder,
}

impl RowSpace {
    /// Parts with rows that begin at `starts`, whose last number is that of rows.
    pub fn new(starts: Vec<u64>) -> Result<Self> {
        if starts.first() != Some(&0) || !starts.is_sorted() || starts.last() > Some(&(i64::MAX as u64)) {
            let what = "expected the first row of each part and the number of rows, which ascend from 0";
            return Err(Error::parameter("starts", what));
        }
        let finder = Finder::new(&starts);
        Ok(Self { starts, finder })
    }

    /// Parts with `sizes` rows.
    pub fn of(sizes: impl Iterator<Item = u64>) -> Self {
        let mut starts = vec![0];
        starts.extend(sizes.scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        }));
        let finder = Finder::new(&starts);
        Self { starts, finder }
    }

    /// First row of each part, and the number of rows.
    #[inline(always)]
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Number of rows.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Number of rows, if it fits the rows of vertices.
    pub fn count_u32(&self) -> Result<u32> {
        u32::try_from(self.count()).map_err(|_| {
            Error::Capacity(format!("{} rows, where only rows of fewer than 2^32 are handled", self.count()))
        })
    }

    /// Refuses rows outside the space. `name` is the parameter.
    pub fn check(&self, name: &'static str, rows: &[impl RowId]) -> Result<()> {
        let n = self.count();
        match rows.iter().find(|row| row.number() >= n) {
            Some(row) => Err(Error::parameter(name, format!("the row {row} is outside 0..{n}"))),
            None => Ok(()),
        }
    }

    /// The part of a row below [`Self::count`].
    #[inline(always)]
    pub fn part_of(&self, row: u64) -> usize {
        self.finder.part_of(&self.starts, row)
    }
}

/// Finds the part of a row with one look at a small table, and a few steps.
#[derive(Debug)]
struct Finder {
    /// Rows of an entry, as a power of two.
    shift: u32,
    /// Part of the first row of each such range.
    first: Vec<u32>,
}

impl Finder {
    fn new(starts: &[u64]) -> Self {
        let (n, parts) = (starts[starts.len() - 1], starts.len() - 1);
        // At least sixteen ranges for each part, so that most have rows of one part only.
        let shift = (n / (16 * parts.max(1) as u64).max(1024)).checked_ilog2().unwrap_or(0);
        let mut part = 0;
        let first = (0..=n >> shift).map(|range| {
            while part + 1 < parts && starts[part + 1] <= range << shift {
                part += 1;
            }
            part as u32
        });
        Self { shift, first: first.collect() }
    }

    #[inline(always)]
    fn part_of(&self, starts: &[u64], row: u64) -> usize {
        let mut part = self.first[(row >> self.shift) as usize] as usize;
        while starts[part + 1] <= row {
            part += 1;
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_part() {
        for sizes in [&[5_u64][..], &[0, 3, 0, 0, 1, 0], &[1, 100_000, 2, 0, 70_001, 1], &[1; 3000], &[]] {
            let space = RowSpace::of(sizes.iter().copied());
            for (part, size) in sizes.iter().enumerate() {
                let start = space.starts()[part];
                (start..start + size).for_each(|row| assert_eq!(space.part_of(row), part));
            }
        }
    }

    #[test]
    fn rows_beyond_32_bits_have_their_part() {
        let space = RowSpace::of([1 << 33, 0, 5, 1 << 40].into_iter());
        for (row, part) in [(0, 0), ((1 << 33) - 1, 0), (1 << 33, 2), ((1 << 33) + 5, 3), (1 << 40, 3)] {
            assert_eq!(space.part_of(row), part);
        }
        assert!(space.check("rows", &[-1_i64]).is_err());
        assert!(space.check("rows", &[1_i64 << 40]).is_ok());
        assert!(space.count_u32().is_err());
    }

    #[test]
    fn starts_that_are_none_are_refused() {
        for starts in [vec![], vec![1, 2], vec![0, 3, 2], vec![0, u64::MAX]] {
            assert!(RowSpace::new(starts).is_err());
        }
    }
}
