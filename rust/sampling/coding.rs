//! Rows of features with 8 bits per number.
//!
//! **Format.** Number j of a row is `low + step * code[j]`, in float32. Without columns, the row ends with its own `low` and
//! `step`: so whatever moves rows moves all that is needed to decode them. With columns, each column has its own for all rows.
//!
//! **Complexity.** O(width) per row, in a loop without branches.

use crate::base::{Error, Result};

/// Bytes of a number at the end of a row.
const NUMBER: usize = size_of::<f32>();

/// How rows are decoded.
#[derive(Clone, Debug)]
pub struct Coding {
    width: usize,
    /// `low` of every column, then `step` of every column.
    columns: Option<Box<[f32]>>,
}

impl Coding {
    /// Rows of so many numbers.
    pub fn new(width: usize, columns: Option<&[f32]>) -> Result<Self> {
        if columns.is_some_and(|columns| columns.len() != 2 * width) {
            return Err(Error::parameter(
                "columns",
                format!("expected 2 numbers for each of {width} columns"),
            ));
        }
        Ok(Self { width, columns: columns.map(Into::into) })
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of a coded row.
    pub fn coded_bytes(&self) -> usize {
        self.width + if self.columns.is_some() { 0 } else { 2 * NUMBER }
    }

    /// Bytes of a decoded row.
    pub fn decoded_bytes(&self) -> usize {
        self.width * NUMBER
    }

    /// Decodes a row.
    ///
    /// # Safety
    /// There are [`Self::coded_bytes`] at `row` and [`Self::decoded_bytes`] at `target`, which nobody else uses meanwhile.
    /// Neither need be aligned.
    #[inline(always)]
    pub unsafe fn decode(&self, row: *const u8, target: *mut u8) {
        let target = target.cast::<f32>();
        // SAFETY: as the caller vouches, for all bytes below.
        unsafe {
            match &self.columns {
                None => {
                    let ends = row.add(self.width).cast::<f32>();
                    let (low, step) = (ends.read_unaligned(), ends.add(1).read_unaligned());
                    for column in 0..self.width {
                        let code = f32::from(row.add(column).read());
                        target.add(column).write_unaligned(low + step * code);
                    }
                }
                Some(columns) => {
                    let (low, step) = columns.split_at(self.width);
                    for (column, (low, step)) in low.iter().zip(step).enumerate() {
                        let code = f32::from(row.add(column).read());
                        target.add(column).write_unaligned(low + step * code);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_decoded_by_their_own_numbers_or_by_those_of_the_columns() {
        let codes = [0, 2, 255];
        let row = [codes.as_slice(), &(-1f32).to_ne_bytes(), &0.5f32.to_ne_bytes()].concat();
        let mut found = [0f32; 3];
        let by_row = Coding::new(3, None).unwrap();
        assert_eq!(by_row.coded_bytes(), row.len());
        // SAFETY: both have the bytes of a row.
        unsafe { by_row.decode(row.as_ptr(), found.as_mut_ptr().cast()) };
        assert_eq!(found, [-1.0, 0.0, 126.5]);
        let by_column = Coding::new(3, Some(&[1.0, 2.0, 3.0, 0.0, 0.25, 1.0])).unwrap();
        assert_eq!(by_column.coded_bytes(), codes.len());
        // SAFETY: as above.
        unsafe { by_column.decode(codes.as_ptr(), found.as_mut_ptr().cast()) };
        assert_eq!(found, [1.0, 2.5, 258.0]);
        assert!(Coding::new(3, Some(&[1.0])).is_err());
    }
}
