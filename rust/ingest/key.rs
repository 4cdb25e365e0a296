//! How ids are compared and looked up.

use xxhash_rust::xxh3::xxh3_128;

use super::arrow::{Column, Ids};
use crate::base::{Error, Result, error};

/// The ids of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers as i64.
    Signed,
    /// Integers as u64.
    Unsigned,
    /// Text, by its bytes.
    Text,
    /// Bytes.
    Binary,
}

impl Kind {
    /// The kind of that name.
    pub fn named(name: &str) -> Result<Self> {
        let known = [
            ("signed", Self::Signed),
            ("unsigned", Self::Unsigned),
            ("string", Self::Text),
            ("binary", Self::Binary),
        ];
        error::named("kind", "kind of ids", name, &known)
    }

    /// Whether the ids are integers.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Signed | Self::Unsigned)
    }

    /// Bytes of a key in a file: integers are their own keys.
    pub fn key_bytes(self) -> usize {
        if self.is_integer() { 8 } else { 12 }
    }

    /// Refuses a column of another kind.
    pub fn check(self, column: &Column<'_>) -> Result<()> {
        let same = match &column.ids {
            Ids::Integers([], _) => true,
            Ids::Integers(_, signed) => self == if *signed { Self::Signed } else { Self::Unsigned },
            Ids::Views { .. } => !self.is_integer(),
        };
        if same { Ok(()) } else { Err(Error::Internal(format!("ids that are not {self:?} were not cast"))) }
    }
}

/// The sign bit: with it flipped, integers with a sign have the order of those without.
const SIGN: u64 = 1 << 63;

/// An integer whose order is that of the ids, from the bits of an id.
#[inline(always)]
pub(super) fn ordered(bits: u64, kind: Kind) -> u64 {
    if kind == Kind::Signed { bits ^ SIGN } else { bits }
}

/// The key of an id: 96 bits, and a byte that chooses its bucket.
///
/// For integers the key is a bijection of the id, so it is exact. For bytes it is 96 of the 128 bits of XXH3,
/// and the bucket comes from others. Two declared ids with one key are found when a table is filled. An id
/// that nobody declared passes for a declared one with a probability of n / 2^96, which is 2^-64 for four
/// billion vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Key {
    /// The first 64 bits.
    pub low: u64,
    /// The others: 0 for integers.
    pub high: u32,
    /// The byte that chooses the bucket.
    pub byte: u8,
}

impl Key {
    /// The key of an integer in the order of [`ordered`].
    #[inline(always)]
    pub(super) fn of_integer(value: u64) -> Self {
        // The finaliser of splitmix64, a bijection.
        let mut x = value;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        Key { low: x, high: 0, byte: (x >> 56) as u8 }
    }

    /// The key of text or bytes.
    #[inline(always)]
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let hash = xxh3_128(bytes);
        Key { low: hash as u64, high: (hash >> 64) as u32, byte: (hash >> 120) as u8 }
    }

    /// The bucket, one of `buckets`.
    #[inline(always)]
    pub(super) fn bucket(self, buckets: usize) -> usize {
        (self.byte as usize * buckets) >> 8
    }

    /// Its bytes in a file, of which [`Kind::key_bytes`] are written.
    #[inline(always)]
    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.low.to_le_bytes());
        bytes[8..].copy_from_slice(&self.high.to_le_bytes());
        bytes
    }

    /// A key from its 8 or 12 bytes in a file. The bucket is known from the file.
    #[inline(always)]
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut whole = [0; 12];
        whole[..bytes.len()].copy_from_slice(bytes);
        let [a, b, c] = bytemuck::cast::<[u8; 12], [u32; 3]>(whole);
        Key { low: u64::from(a) | u64::from(b) << 32, high: c, byte: 0 }
    }
}

/// Keys of the rows of a column from `start` on, into `keys`. Keys of null rows are not used.
pub(super) fn keys_of(column: &Column<'_>, kind: Kind, start: usize, keys: &mut [Key]) -> Result<()> {
    match &column.ids {
        Ids::Integers(bits, _) => {
            for (key, &bits) in keys.iter_mut().zip(&bits[start..]) {
                *key = Key::of_integer(ordered(bits, kind));
            }
        }
        Ids::Views { .. } => {
            for (row, key) in (start..).zip(keys) {
                *key = Key::of_bytes(column.bytes(row)?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_order() {
        let ids = [i64::MIN, -1, 0, 7, i64::MAX].map(|id| ordered(id as u64, Kind::Signed));
        assert!(ids.is_sorted());
        assert_eq!(ordered(5, Kind::Unsigned), 5);
    }

    #[test]
    fn keys_survive_files() {
        for key in [Key::of_integer(12), Key::of_bytes(b"paper-1")] {
            let bytes = key.to_bytes();
            let read = Key::from_bytes(&bytes[..if key.high == 0 { 8 } else { 12 }]);
            assert_eq!((read.low, read.high), (key.low, key.high));
        }
        assert!(Key { byte: 255, ..Key::default() }.bucket(7) == 6 && Key::default().bucket(255) == 0);
    }
}
