//! The checksum of a graph's records, the same for files and arrays.
//!
//! xxh3-128 of the records as little-endian u32 pairs in stream order: blocks of 8 MiB are hashed in
//! parallel, and the result is xxh3-128 of the 16-byte block digests in order.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::edges::Record;

/// Records per hashed block: 8 MiB.
pub const UNIT: u64 = 1 << 20;

/// Hashes the units of one worker.
#[derive(Default)]
pub struct Hasher {
    current: Xxh3,
    digests: Vec<(u64, u128)>,
}

impl Hasher {
    /// Adds `records`, the first of which is number `first` of `m`. A unit's records come in order.
    pub fn update(&mut self, first: u64, records: &[Record], m: u64) {
        self.current.update(bytemuck::cast_slice(records));
        let end = first + records.len() as u64;
        if end.is_multiple_of(UNIT) || end == m {
            self.digests.push((first / UNIT, self.current.digest128()));
            self.current.reset();
        }
    }
}

impl Hasher {
    /// The numbers and the digests of the units that it hashed.
    pub(super) fn digests(self) -> Vec<(u64, u128)> {
        self.digests
    }
}

/// The checksum of all that the workers hashed, as 32 hexadecimal digits.
pub fn combine(hashers: impl IntoIterator<Item = Hasher>) -> String {
    of_digests(hashers.into_iter().flat_map(|hasher| hasher.digests).collect())
}

/// The checksum of numbered blocks with these digests.
pub(super) fn of_digests(mut digests: Vec<(u64, u128)>) -> String {
    digests.sort_unstable();
    let bytes: Vec<u8> = digests.iter().flat_map(|(_, digest)| digest.to_be_bytes()).collect();
    format!("{:032x}", xxh3_128(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_among_workers_does_not_matter() {
        let records: Vec<Record> = (0..3 * UNIT as u32 / 2).map(|r| [r, r / 7]).collect();
        let m = records.len() as u64;
        let (head, tail) = records.split_at(UNIT as usize);
        let mut one = Hasher::default();
        one.update(0, head, m);
        one.update(UNIT, tail, m);
        let (mut first, mut second) = (Hasher::default(), Hasher::default());
        second.update(UNIT, &tail[..1000], m);
        second.update(UNIT + 1000, &tail[1000..], m);
        first.update(0, head, m);
        let sum = combine([one]);
        assert_eq!(sum.len(), 32);
        assert_eq!(sum, combine([second, first]));
        let digests: Vec<u8> =
            [head, tail].iter().flat_map(|part| xxh3_128(bytemuck::cast_slice(part)).to_be_bytes()).collect();
        assert_eq!(sum, format!("{:032x}", xxh3_128(&digests)));
    }
}
