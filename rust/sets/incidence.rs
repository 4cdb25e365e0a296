//! The parts that each vertex is present in: one bit per vertex and part.
//!
//! **Memory.** `8 * ceil(k / 64)` bytes per vertex.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::bits::{ones, set};
use crate::base::{Buffer, Result, prefetch, shared};

/// An `n × k` matrix of bits.
#[derive(Debug)]
pub struct Incidence {
    words: Buffer<u64>,
    stride: usize,
}

impl Incidence {
    /// `n` vertices that are in none of `k` parts.
    pub fn new(n: usize, k: u32) -> Result<Self> {
        let stride = (k as usize).div_ceil(64);
        Ok(Self { words: Buffer::zeroed(n * stride, "parts of the vertices")?, stride })
    }

    /// Bytes of `n` vertices and `k` parts.
    pub fn memory(n: u64, k: u32) -> u64 {
        n * 8 * u64::from(k.div_ceil(64))
    }

    /// The parts of `v` as words of 64 bits.
    #[inline(always)]
    pub fn row(&self, v: u32) -> &[u64] {
        &self.words[v as usize * self.stride..][..self.stride]
    }

    /// Whether `v` is in `part`.
    #[inline(always)]
    pub fn contains(&self, v: u32, part: u32) -> bool {
        self.row(v)[part as usize / 64] >> (part % 64) & 1 == 1
    }

    /// Puts `v` into `part`. True if it is new there.
    #[inline(always)]
    pub fn insert(&mut self, v: u32, part: u32) -> bool {
        let word = &mut self.words[v as usize * self.stride + part as usize / 64];
        let new = *word >> (part % 64) & 1 == 0;
        *word |= 1 << (part % 64);
        new
    }

    /// Takes all vertices out of all parts.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Prefetches the parts of `v`.
    #[inline(always)]
    pub fn prefetch(&self, v: u32) {
        prefetch(&self.words, v as usize * self.stride);
    }

    /// The matrix, for several threads.
    pub fn shared(&mut self) -> Shared<'_> {
        Shared { words: shared(&mut self.words), stride: self.stride }
    }

    /// The parts of `v`, ascending.
    pub fn parts(&self, v: u32) -> impl Iterator<Item = u32> + '_ {
        ones(self.row(v))
    }
}

/// An [`Incidence`] that several threads put vertices into.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'a> {
    words: &'a [AtomicU64],
    stride: usize,
}

impl Shared<'_> {
    /// Puts `v` into `part`.
    #[inline(always)]
    pub fn insert(&self, v: u32, part: u32) {
        set(&self.words[v as usize * self.stride + part as usize / 64], 1 << (part % 64));
    }

    /// The lowest part that both are in.
    #[inline(always)]
    pub fn first_common(&self, u: u32, v: u32) -> Option<u32> {
        let [u, v] = [u, v].map(|id| &self.words[id as usize * self.stride..][..self.stride]);
        u.iter().zip(v).zip((0..).step_by(64)).find_map(|((u, v), first)| {
            let both = u.load(Relaxed) & v.load(Relaxed);
            (both != 0).then(|| first + both.trailing_zeros())
        })
    }

    /// Prefetches the parts of `v`.
    #[inline(always)]
    pub fn prefetch(&self, v: u32) {
        prefetch(self.words, v as usize * self.stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_by_vertex_and_part() {
        let mut bits = Incidence::new(3, 130).unwrap();
        for part in [129, 0, 64, 63] {
            assert!(bits.insert(1, part) && !bits.insert(1, part) && bits.contains(1, part));
        }
        assert_eq!(bits.parts(1).collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert!(bits.parts(0).next().is_none() && bits.parts(2).next().is_none());
    }
}
