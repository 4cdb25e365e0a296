//! Rows of features with 8 bits per number.
//!
//! **Format.** Number j of a row is `low + step * code[j]`, in float32. Without columns, the row ends with
//! its own `low` and `step`: so whatever moves rows moves all that is needed to decode them. With columns,
//! each column has its own for all rows. `low` is the smallest number of a row or column, and `step` the
//! 255th part of its range.
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
    /// Whether rows are decoded eight numbers at a time, with AVX2.
    wide: bool,
    /// `low` of every column, then `step` of every column.
    columns: Option<Box<[f32]>>,
}

impl Coding {
    /// Rows of `width` numbers. `columns` has the lows and then the steps of all columns, if rows have no
    /// scales of their own.
    pub fn new(width: usize, columns: Option<&[f32]>) -> Result<Self> {
        if columns.is_some_and(|columns| columns.len() != 2 * width) {
            return Err(Error::parameter(
                "columns",
                format!("expected 2 numbers for each of {width} columns"),
            ));
        }
        Ok(Self { columns: columns.map(Into::into), ..Self::by_row(width) })
    }

    /// Rows of `width` numbers, each row with a scale of its own.
    pub fn by_row(width: usize) -> Self {
        Self { width, wide: wide::takes(width), columns: None }
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

    /// Decodes the row at `row` to as many numbers as are there, which need not be aligned. It may lie in a
    /// map, whose bytes others may change: so codes are copied before they are used, and never lie under a
    /// reference.
    ///
    /// # Safety
    /// There are [`Self::coded_bytes`] at `row`.
    #[inline(always)]
    pub unsafe fn decode(&self, row: *const u8, target: &mut [Number]) {
        if self.wide && target.len() == self.width {
            let scales = self.columns.as_deref();
            // SAFETY: as the caller vouches. The processor has AVX2, and there are as many numbers as it
            // takes at a time.
            return unsafe { wide::decode(row, scales, target) };
        }
        // SAFETY: as the caller vouches.
        unsafe { self.decode_plainly(row, target) }
    }

    /// Decodes a row without instructions that only some processors have.
    ///
    /// # Safety
    /// As for [`Self::decode`].
    #[inline(always)]
    unsafe fn decode_plainly(&self, row: *const u8, target: &mut [Number]) {
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

/// The smallest and the largest number. Zeros have no sign, so that the bits do not depend on the order of a
/// search.
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

/// Rows decoded with AVX2. Compiled for the oldest processors, decoding takes longer than reading four times
/// the bytes.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256, _mm_loadl_epi64, _mm256_add_ps, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_loadu_ps,
        _mm256_mul_ps, _mm256_set1_ps, _mm256_storeu_ps,
    };

    use super::Number;

    /// Numbers decoded at a time.
    const LANES: usize = 8;

    /// Whether the processor has AVX2, and a row has at least `LANES` numbers.
    pub(super) fn takes(width: usize) -> bool {
        width >= LANES && is_x86_feature_detected!("avx2")
    }

    /// Decodes a row, with the same bits as one number at a time: a product, and then a sum. The last eight
    /// numbers may overlap those before.
    ///
    /// # Safety
    /// [`takes`] accepts the length of `target`. At `row` there is a code for each number of `target`, and
    /// behind the codes are `low` and `step`, unless `columns` has both.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn decode(row: *const u8, columns: Option<&[f32]>, target: &mut [Number]) {
        let (width, target) = (target.len(), target.as_mut_ptr().cast::<f32>());
        let last = width - LANES;
        let starts = (0..=last.div_ceil(LANES)).map(|index| (index * LANES).min(last));
        // SAFETY: there are eight codes, numbers and columns from each start on, and two numbers behind the
        // codes.
        unsafe {
            if let Some(columns) = columns {
                let (low, step) = (columns.as_ptr(), columns[width..].as_ptr());
                for at in starts {
                    let (low, step) = (_mm256_loadu_ps(low.add(at)), _mm256_loadu_ps(step.add(at)));
                    eight(row.add(at), low, step, target.add(at));
                }
            } else {
                let own = row.add(width).cast::<f32>();
                let low = _mm256_set1_ps(own.read_unaligned());
                let step = _mm256_set1_ps(own.add(1).read_unaligned());
                for at in starts {
                    eight(row.add(at), low, step, target.add(at));
                }
            }
        }
    }

    /// Decodes eight codes, which are copied to a register at once.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn eight(codes: *const u8, low: __m256, step: __m256, target: *mut f32) {
        // SAFETY: the caller has eight codes and places.
        unsafe {
            let codes = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(codes.cast())));
            _mm256_storeu_ps(target, _mm256_add_ps(low, _mm256_mul_ps(step, codes)));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod wide {
    pub(super) fn takes(_: usize) -> bool {
        false
    }

    pub(super) unsafe fn decode(_: *const u8, _: Option<&[f32]>, _: &mut [super::Number]) {}
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
    fn eight_numbers_at_a_time_have_the_same_bits_as_one() {
        for width in (1..40).chain([100, 128, 200]) {
            let codes: Vec<u8> = (0..width).map(|place| (place * 37 % 256) as u8).collect();
            let own = [(-0.3f32).to_ne_bytes(), 0.1f32.to_ne_bytes()];
            let row = [codes.as_slice(), own.as_flattened()].concat();
            let columns: Vec<f32> = (0..2 * width).map(|place| (place as f32).sin() / 3.0).collect();
            for coding in [Coding::by_row(width), Coding::new(width, Some(&columns)).unwrap()] {
                let [mut wide, mut plain] = [(); 2].map(|()| vec![[7; 4]; width + 1]);
                // SAFETY: a whole row.
                unsafe {
                    coding.decode(row.as_ptr(), &mut wide[..width]);
                    coding.decode_plainly(row.as_ptr(), &mut plain[..width]);
                }
                assert_eq!(wide, plain);
                assert_eq!(wide[width], [7; 4]);
            }
        }
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
