//! Seeded randomness: splitmix64, frozen here so that no release changes a result.
//!
//! Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.

/// 2^64 over the golden ratio, made odd: its multiples are spread evenly.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijective scrambling of 64 bits.
#[inline]
pub fn splitmix64(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers that belongs to one (seed, index): item `index` is the same on any thread.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of item `index` under `seed`.
    pub fn new(seed: u64, index: u64) -> Self {
        Self { state: splitmix64(splitmix64(seed) ^ index) }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let value = splitmix64(self.state);
        self.state = self.state.wrapping_add(GOLDEN);
        value
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in 0..bound, with a bias below 2^-32 for bounds below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// A random order of `0..len` that no memory holds: a Feistel network over just enough bits, walked until it
/// lands below `len` (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002).
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    keys: [u64; 4],
    half: u32,
    len: u64,
}

impl Permutation {
    /// The order under `seed`.
    pub fn new(seed: u64, len: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let keys = std::array::from_fn(|round| splitmix64(splitmix64(seed) ^ round as u64));
        Self { keys, half: bits.div_ceil(2).max(1), len }
    }

    /// The place of `index`, which is below `len`. Every place is that of one index.
    pub fn of(&self, index: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let mut value = index;
        // The network has less than four times as many values as there are places, so a few walks do.
        loop {
            let (mut left, mut right) = (value >> self.half, value & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (splitmix64(right ^ key) & mask));
            }
            value = left << self.half | right;
            if value < self.len {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_takes_every_place_once() {
        for len in [0, 1, 2, 3, 5, 64, 65, 1000] {
            let order = Permutation::new(7, len);
            let mut places: Vec<u64> = (0..len).map(|index| order.of(index)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..len).collect::<Vec<_>>());
        }
        let order = Permutation::new(1, 1 << 32);
        assert!((0..1000).any(|index| order.of(index) != Permutation::new(2, 1 << 32).of(index)));
    }

    #[test]
    fn frozen() {
        // The reference sequence of splitmix64 from state 0.
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(GOLDEN), 0x6e78_9e6a_a1b9_65f4);
        let mut random = Random::new(1, 2);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit()) && random.below(3) < 3));
    }
}
