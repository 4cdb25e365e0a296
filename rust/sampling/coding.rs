//! Rows of features with 8 bits per number.
//!
//! **Format.** Number j of a row is `low + step * code[j]`, in float32. Without columns, the row ends with its own `low` and
//! `step`: so whatever moves rows moves all that is needed to decode them. With columns, each column has its own for all rows.
//!
//! **Complexity.** O(width) per row, in a loop without branches.

use crate::base::{Error, Result};

/// The bytes of a number, which need not be aligned.
pub(super) type Number = [u8; size_of::<f32>()];

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
        self.width + if self.columns.is_some() { 0 } else { 2 * size_of::<Number>() }
    }

    /// Bytes of a decoded row.
    pub fn decoded_bytes(&self) -> usize {
        self.width * size_of::<Number>()
    }

    /// Decodes a row of [`Self::coded_bytes`] to as many numbers as are there, which need not be aligned.
    pub fn decode(&self, row: &[u8], target: &mut [Number]) {
        let (codes, scale) = row.split_at(self.width);
        let numbers = target.iter_mut().zip(codes);
        match &self.columns {
            None => {
                let (low, step) = scale.split_at(size_of::<Number>());
                let (low, step) = (number(low), number(step));
                numbers.for_each(|(to, &code)| *to = decoded(low, step, code));
            }
            Some(columns) => {
                let (low, step) = columns.split_at(self.width);
                let scales = low.iter().zip(step);
                numbers.zip(scales).for_each(|((to, &code), (&low, &step))| *to = decoded(low, step, code));
            }
        }
    }
}

#[inline(always)]
fn decoded(low: f32, step: f32, code: u8) -> Number {
    (low + step * f32::from(code)).to_ne_bytes()
}

fn number(bytes: &[u8]) -> f32 {
    bytemuck::pod_read_unaligned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_decoded_by_their_own_numbers_or_by_those_of_the_columns() {
        let codes = [0, 2, 255];
        let row = [codes.as_slice(), &(-1f32).to_ne_bytes(), &0.5f32.to_ne_bytes()].concat();
        let mut found = [[0; 4]; 3];
        let by_row = Coding::new(3, None).unwrap();
        assert_eq!(by_row.coded_bytes(), row.len());
        by_row.decode(&row, &mut found);
        assert_eq!(found.map(f32::from_ne_bytes), [-1.0, 0.0, 126.5]);
        let by_column = Coding::new(3, Some(&[1.0, 2.0, 3.0, 0.0, 0.25, 1.0])).unwrap();
        assert_eq!(by_column.coded_bytes(), codes.len());
        by_column.decode(&codes, &mut found);
        assert_eq!(found.map(f32::from_ne_bytes), [1.0, 2.5, 258.0]);
        assert!(Coding::new(3, Some(&[1.0])).is_err());
    }
}
