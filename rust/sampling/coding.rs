//! Rows of features with 8 bits per number.
//!
//! **Format.** Number j of a row is `low + step * code[j]`, in float32. Without columns, the row ends with its own
//! `low` and `step`: so whatever moves rows moves all that is needed to decode them. With columns, each column has its
//! own for all rows.
//!
//! **Complexity.** O(width) per row, in a loop without branches.

use crate::base::{Error, Result};

/// Codes that are copied at a time.
const CHUNK: usize = 64;

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

    /// Decodes the row at `row` to as many numbers as are there, which need not be aligned. It may lie in a map, whose
    /// bytes others may change: so codes are copied before they are used, and never lie under a reference.
    ///
    /// # Safety
    /// There are [`Self::coded_bytes`] at `row`.
    #[inline(always)]
    pub unsafe fn decode(&self, row: *const u8, target: &mut [Number]) {
        let mut codes = [0; CHUNK];
        // SAFETY: behind the codes, as the caller vouches.
        let number = |place| unsafe { row.add(self.width).cast::<f32>().add(place).read_unaligned() };
        let of_row = self.columns.is_none().then(|| (number(0), number(1)));
        for (chunk, target) in target.chunks_mut(CHUNK).enumerate() {
            let first = chunk * CHUNK;
            // SAFETY: codes of the row, copied into memory of this function.
            unsafe { std::ptr::copy_nonoverlapping(row.add(first), codes.as_mut_ptr(), target.len()) };
            let numbers = target.iter_mut().zip(&codes);
            match (&self.columns, of_row) {
                (Some(columns), _) => {
                    let (low, step) = columns.split_at(self.width);
                    let scales = low[first..].iter().zip(&step[first..]);
                    numbers
                        .zip(scales)
                        .for_each(|((to, &code), (&low, &step))| *to = decoded(low, step, code));
                }
                (None, Some((low, step))) => numbers.for_each(|(to, &code)| *to = decoded(low, step, code)),
                (None, None) => {}
            }
        }
    }
}

#[inline(always)]
fn decoded(low: f32, step: f32, code: u8) -> Number {
    (low + step * f32::from(code)).to_ne_bytes()
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
        // SAFETY: a whole row.
        unsafe { by_row.decode(row.as_ptr(), &mut found) };
        assert_eq!(found.map(f32::from_ne_bytes), [-1.0, 0.0, 126.5]);
        let by_column = Coding::new(3, Some(&[1.0, 2.0, 3.0, 0.0, 0.25, 1.0])).unwrap();
        assert_eq!(by_column.coded_bytes(), codes.len());
        // SAFETY: as above.
        unsafe { by_column.decode(codes.as_ptr(), &mut found) };
        assert_eq!(found.map(f32::from_ne_bytes), [1.0, 2.5, 258.0]);
        assert!(Coding::new(3, Some(&[1.0])).is_err());
        for width in [CHUNK - 1, CHUNK, 3 * CHUNK + 1] {
            let codes: Vec<u8> = (0..width).map(|place| (place * 7 % 256) as u8).collect();
            let scales: Vec<f32> = (0..2 * width).map(|place| place as f32).collect();
            let mut found = vec![[0; 4]; width];
            // SAFETY: as above.
            unsafe { Coding::new(width, Some(&scales)).unwrap().decode(codes.as_ptr(), &mut found) };
            for (place, number) in found.into_iter().enumerate() {
                let expected = place as f32 + (width + place) as f32 * f32::from(codes[place]);
                assert_eq!(f32::from_ne_bytes(number), expected);
            }
        }
    }
}
