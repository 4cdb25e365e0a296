//! Randomness of samples: a function of (seed, epoch, step, hop, vertex), and of nothing else.
//!
//! So a batch does not depend on threads, on the partition, or on who asks. The vertex is its original id.
//! The hash is splitmix64 over the five numbers one after the other.

use crate::base::random::GOLDEN;
use crate::base::{Random, splitmix64};

/// The key of all draws of one hop.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HopKey(u64);

impl HopKey {
    /// The key under that seed.
    pub(crate) fn new(seed: u64, epoch: u64, step: u64, hop: u64) -> Self {
        Self([epoch, step, hop].iter().fold(splitmix64(seed), |key, &part| splitmix64(key ^ part)))
    }

    /// The key of the draws of one relation.
    pub(crate) fn of_relation(self, relation: u16) -> Self {
        Self(splitmix64(self.0 ^ (u64::from(relation) + 1)))
    }

    /// The draws of a vertex.
    #[inline(always)]
    pub(crate) fn draws(self, vertex: i64) -> Draws {
        Draws(splitmix64(self.0 ^ vertex as u64))
    }

    /// The draws of a vertex for seeds of one time.
    #[inline(always)]
    pub(crate) fn draws_at(self, vertex: i64, time: i64) -> Draws {
        Draws(splitmix64(splitmix64(self.0 ^ vertex as u64) ^ time as u64))
    }

    /// The draws of a walk that is at a vertex.
    #[inline(always)]
    pub(crate) fn of_walk(self, walk: u64, root: i64) -> Draws {
        HopKey(splitmix64(self.0 ^ walk)).draws(root)
    }

    /// A stream of random numbers.
    pub(crate) fn stream(self) -> Random {
        Random::new(self.0, 0)
    }

    /// 32 random bits of a vertex, cheaper than [`Self::draws`].
    #[inline(always)]
    pub(crate) fn bits(self, vertex: u32) -> u32 {
        let mut bits = (vertex ^ self.0 as u32).wrapping_mul(0x7feb_352d);
        bits ^= bits >> 15;
        bits = bits.wrapping_add((self.0 >> 32) as u32).wrapping_mul(0x846c_a68b);
        bits ^ bits >> 16
    }
}

/// Random numbers, each by its index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws(u64);

impl Draws {
    #[inline(always)]
    fn bits(self, index: u64) -> u64 {
        splitmix64(self.0.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Number `index`, uniform in 0..bound, with a bias below 2^-32 for bounds below 2^32.
    #[inline(always)]
    pub(crate) fn below(self, index: u64, bound: u64) -> u64 {
        ((u128::from(self.bits(index)) * u128::from(bound)) >> 64) as u64
    }

    /// Number `index`, uniform in (0, 1].
    #[inline(always)]
    pub(crate) fn unit(self, index: u64) -> f64 {
        ((self.bits(index) >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}
