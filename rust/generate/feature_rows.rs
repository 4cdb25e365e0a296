//! How rows of features are written to a `.npy` file.

use crate::base::npy;
use crate::parts::Coding;

/// The type of the numbers in a file of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureDtype {
    /// 4 bytes per number.
    Float32,
    /// 2 bytes per number, rounded half to even.
    Float16,
    /// 8 bits per number, and 8 bytes per row for its scale: see [`Coding`].
    Int8,
}

/// Appends rows of features to bytes.
#[derive(Debug)]
pub(super) struct FeatureRows {
    dtype: FeatureDtype,
    coding: Coding,
}

impl FeatureRows {
    /// Rows of `width` numbers.
    pub(super) fn new(dtype: FeatureDtype, width: usize) -> Self {
        Self { dtype, coding: Coding::by_row(width) }
    }

    /// The header of a file of `n` rows.
    pub(super) fn header(&self, n: u64) -> Vec<u8> {
        let width = self.coding.width();
        match self.dtype {
            FeatureDtype::Float32 => npy::header("<f4", &[n, width as u64]),
            FeatureDtype::Float16 => npy::header("<f2", &[n, width as u64]),
            FeatureDtype::Int8 => npy::header(&Coding::descr(width), &[n]),
        }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        match self.dtype {
            FeatureDtype::Float32 => self.coding.decoded_bytes(),
            FeatureDtype::Float16 => self.coding.decoded_bytes() / 2,
            FeatureDtype::Int8 => self.coding.coded_bytes(),
        }
    }

    /// Appends a row.
    pub(super) fn append(&self, numbers: &[f32], bytes: &mut Vec<u8>) {
        match self.dtype {
            FeatureDtype::Float32 => bytes.extend_from_slice(bytemuck::cast_slice(numbers)),
            FeatureDtype::Float16 => {
                bytes.extend(numbers.iter().flat_map(|&number| half(number).to_le_bytes()))
            }
            FeatureDtype::Int8 => {
                let start = bytes.len();
                bytes.resize(start + self.coding.coded_bytes(), 0);
                self.coding.encode(numbers, &mut bytes[start..]);
            }
        }
    }
}

/// The bits of the float16 nearest to a finite number, half to even.
fn half(number: f32) -> u16 {
    /// Bits of a significand that float16 does not have.
    const DROPPED: u32 = 13;
    let sign = (number.to_bits() >> 16 & 0x8000) as u16;
    let size = number.abs();
    let bits = if size < f32::from_bits(0x3880_0000) {
        // Below 2^-14 float16 has multiples of 2^-24, as float32 from 0.5 to 1.
        (size + 0.5).to_bits() - 0.5f32.to_bits()
    } else {
        let rounded = size.to_bits() + (1 << (DROPPED - 1)) - 1 + (size.to_bits() >> DROPPED & 1);
        // The exponent is less by 112. Beyond the largest number is infinity.
        ((rounded >> DROPPED) - (112 << 10)).min(0x7c00)
    };
    sign | bits as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a float16.
    fn number(half: u16) -> f32 {
        let (exponent, significand) = (i32::from(half >> 10 & 31), f32::from(half & 1023));
        let size = match exponent {
            0 => significand * 2f32.powi(-24),
            _ => (1024.0 + significand) * 2f32.powi(exponent - 25),
        };
        if half >> 15 == 1 { -size } else { size }
    }

    #[test]
    fn every_float16_is_kept_and_what_lies_between_two_goes_to_the_nearer_one_half_to_even() {
        for low in 0..0x7bffu16 {
            for sign in [0, 0x8000] {
                let (low, high) = (low | sign, (low + 1) | sign);
                assert_eq!(half(number(low)), low);
                let middle = (number(low) + number(high)) / 2.0;
                assert_eq!(half(middle), if low % 2 == 0 { low } else { high });
                assert_eq!(half(f32::from_bits(middle.to_bits() - 1)), low);
                assert_eq!(half(f32::from_bits(middle.to_bits() + 1)), high);
            }
        }
        assert_eq!(
            [65504.0, 65519.9, 65520.0, f32::MAX, -1e9].map(half),
            [0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00]
        );
    }
}
