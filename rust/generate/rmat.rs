//! R-MAT: recursive matrices, with the skewed degrees of social and web graphs.
//!
//! Source: Chakrabarti, Zhan, Faloutsos, "R-MAT: A Recursive Model for Graph Mining", SDM 2004, with the
//! probabilities of the Graph500 benchmark (0.57, 0.19, 0.19, 0.05).
//!
//! The adjacency matrix of 2^L >= n ids is halved L times both ways. Each time a record falls into one of the
//! four quadrants. This takes 16 random bits per level, so the probabilities are exact to 2^-16. Ids are not
//! shuffled: low ids have the high degrees. Loops and parallel edges occur and stay. If n is no power of two,
//! a record outside `0..n` is drawn again, at most 1.8 times on average (n = 2^k + 1 keeps at least the 57 %
//! of the first quadrant). There is no state and no memory. A record costs L / 4 random numbers and no branch
//! on them.

use super::{Generator, below_max_vertices};
use crate::base::{Random, Result};
use crate::edges::Record;

/// Bounds of the quadrants, in 2^-16: a, a + b, a + b + c.
const A: u64 = 37_356;
const AB: u64 = 49_807;
const ABC: u64 = 62_259;

/// An R-MAT graph.
#[derive(Debug, Clone)]
pub struct Rmat {
    n: u64,
    m: u64,
    seed: u64,
    levels: u32,
}

impl Rmat {
    /// `m` records over `n` vertices. If `n` is no power of two, records outside `0..n` are drawn again.
    pub fn new(n: u64, m: u64, seed: u64) -> Result<Self> {
        below_max_vertices(n, m)?;
        Ok(Self { n, m, seed, levels: n.max(1).next_power_of_two().trailing_zeros() })
    }
}

impl Generator for Rmat {
    fn size(&self) -> (u64, u64) {
        (self.n, self.m)
    }

    fn record(&self, index: u64) -> Record {
        let mut random = Random::new(self.seed, index);
        loop {
            let (mut u, mut v) = (0_u64, 0_u64);
            let mut bits = 0;
            for level in 0..self.levels {
                if level % 4 == 0 {
                    bits = random.next_u64();
                }
                let x = bits & 0xffff;
                bits >>= 16;
                u = 2 * u + u64::from(x >= AB);
                v = 2 * v + (u64::from(x >= A) & u64::from(x < AB) | u64::from(x >= ABC));
            }
            if u < self.n && v < self.n {
                return [u as u32, v as u32];
            }
        }
    }
}
