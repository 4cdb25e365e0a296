//! Which parts each vertex is present in: where it or one of its neighbours is a member.
//!
//! One bit per vertex and part, which all threads may set at once: whichever comes first, the bits are the same.
//! `8 * ceil(k / 64)` bytes per vertex.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::graph::csr::Csr;

/// Vertices that a thread places at a time.
const SLICE: usize = 16;

pub struct Presence {
    words: Buffer<AtomicU64>,
    stride: usize,
}

impl Presence {
    /// `n` vertices that are nowhere.
    pub fn new(n: usize, k: u32) -> Result<Self> {
        let stride = (k as usize).div_ceil(64);
        Ok(Self { words: Buffer::zeroed(n * stride, "parts of the vertices")?, stride })
    }

    /// Bytes for `n` vertices and `k` parts.
    pub fn memory(n: u64, k: u32) -> u64 {
        n * 8 * u64::from(k.div_ceil(64))
    }

    /// The parts of `v`, as words of 64 bits.
    #[inline(always)]
    pub fn row(&self, v: u32) -> impl Iterator<Item = u64> {
        self.words[v as usize * self.stride..][..self.stride].iter().map(|word| word.load(Relaxed))
    }

    /// Makes `v` a member of `part`.
    #[inline(always)]
    pub fn place(&self, csr: &Csr, v: u32, part: u32) {
        self.mark(v, part);
        csr.neighbours(v).iter().for_each(|&u| self.mark(u, part));
    }

    /// Makes all `vertices` members of their parts.
    pub fn place_all(&self, csr: &Csr, vertices: &[u32], parts: &[u32]) {
        vertices
            .par_chunks(SLICE)
            .for_each(|vertices| vertices.iter().for_each(|&v| self.place(csr, v, parts[v as usize])));
    }

    #[inline(always)]
    fn mark(&self, v: u32, part: u32) {
        let word = &self.words[v as usize * self.stride + part as usize / 64];
        let bit = 1 << (part % 64);
        // Most bits are set already, and looking is cheaper than a locked instruction.
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }
}
