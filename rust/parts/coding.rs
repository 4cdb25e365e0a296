//! Rows of features with 8 bits per number.
//!
//! **Format.** Number j of a row is `low + step * code[j]`, in float32. Without columns, the row ends with its own
//! `low` and `step`: so whatever moves rows moves all that is needed to decode them. With columns, each column has its
//! own for all rows. `low` is the smallest number of a row or column, and `step` the 255th part of its range.
//!
//! **Complexity.** O(width) per row, in loops without branches.

use crate::base::{Error, Result};

/// Codes that are copied at a time.
const CHUNK: usize = 64;

/// The bytes of a number, which need not be aligned.
pub(crate) type Number = [u8; size_of::<f32>()];

/// The largest code.
const LEVELS: f32 = 255.0;

/// Above this the floats are the integers: adding it rounds a smaller number, half to even, to its last bits.
const INTEGERS: f32 = (1 << 23) as f32;

/// How rows are coded and decoded.
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

    /// Rows of so many numbers, each with a scale of its own.
    pub fn by_row(width: usize) -> Self {
        Self { width, columns: None }
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

    /// The type of a row that has a scale of its own, as numpy spells it in a `.npy` file.
    pub fn descr(width: usize) -> String {
        format!("[('codes', '|u1', ({width},)), ('low', '<f4'), ('step', '<f4')]")
    }

    /// Codes a row of finite numbers, whose differences are finite, to [`Self::coded_bytes`] at `row`.
    pub fn encode(&self, numbers: &[f32], row: &mut [u8]) {
        let (codes, own) = row.split_at_mut(self.width);
        let coded = codes.iter_mut().zip(numbers);
        if let Some(columns) = &self.columns {
            let (low, step) = columns.split_at(self.width);
            coded
                .zip(low.iter().zip(step))
                .for_each(|((code, &number), (&low, &step))| *code = encoded(low, step, number));
        } else {
            let [low, high] = range(numbers);
            let step = (high - low) / LEVELS;
            coded.for_each(|(code, &number)| *code = encoded(low, step, number));
            own.copy_from_slice([low.to_ne_bytes(), step.to_ne_bytes()].as_flattened());
        }
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

#[inline(always)]
fn encoded(low: f32, step: f32, number: f32) -> u8 {
    let level = if step > 0.0 { (number - low) / step } else { 0.0 };
    (level.clamp(0.0, LEVELS) + INTEGERS).to_bits() as u8
}

/// The smallest and the largest number. Zeros have no sign, so that the bits do not depend on the order of a search.
fn range(numbers: &[f32]) -> [f32; 2] {
    const LANES: usize = 8;
    let Some(&first) = numbers.first() else {
        return [0.0; 2];
    };
    let [mut low, mut high] = [[first; LANES]; 2];
    for lanes in numbers.chunks(LANES) {
        for ((low, high), &number) in low.iter_mut().zip(&mut high).zip(lanes) {
            *low = if number < *low { number } else { *low };
            *high = if number > *high { number } else { *high };
        }
    }
    [low.into_iter().fold(first, f32::min) + 0.0, high.into_iter().fold(first, f32::max) + 0.0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_coded_by_its_range_or_by_those_of_the_columns() {
        let numbers = [-1.0, 0.0, 126.5, 1.24, 1.25, 1.75];
        let mut row = vec![0; 6 + 8];
        Coding::new(6, None).unwrap().encode(&numbers, &mut row);
        let own = [(-1f32).to_ne_bytes(), 0.5f32.to_ne_bytes()];
        assert_eq!(row, [[0, 2, 255, 4, 4, 6].as_slice(), own.as_flattened()].concat()); // half to even
        let columns = [0.0, 0.0, 0.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.25];
        Coding::new(6, Some(&columns)).unwrap().encode(&numbers, &mut row[..6]);
        assert_eq!(row[..6], [0, 0, 126, 0, 0, 3]);
        let mut signed = [0; 10];
        Coding::new(2, None).unwrap().encode(&[0.0, -0.0], &mut signed);
        assert_eq!(signed, [0; 10]);
    }

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
