//! Sums by part, of which few are not 0: a slot for each of k parts, and a list of the parts with a sum.
//!
//! Whether a part is new to the list is unpredictable. So it is written there in any case, and overwritten
//! unless it is new. This is cheaper than a branch.

use std::ops::AddAssign;

use bytemuck::Zeroable;

use crate::base::{Result, zeros};

/// Minimum number of slots, so that the sums of two threads do not lie in one cache line.
const LEAST: usize = 64;

/// Sums by part. A sum that is added to stays above 0 until all are cleared.
pub struct SparseSums<T> {
    /// One sum per part. The last one is the sum of items without a part.
    sums: Vec<T>,
    /// The first `touched` are the parts with a sum, in the order in which they came.
    parts: Vec<u32>,
    touched: usize,
    k: u32,
}

impl<T: Copy + PartialEq + AddAssign + Zeroable> SparseSums<T> {
    /// Zeros for `k` parts.
    pub fn new(k: u32) -> Result<Self> {
        let len = (k as usize + 2).max(LEAST);
        Ok(Self { sums: zeros(len, "sums by part")?, parts: zeros(len, "parts with a sum")?, touched: 0, k })
    }

    /// Sets all sums to 0.
    #[inline(always)]
    pub fn clear(&mut self) {
        let Self { sums, parts, touched, .. } = self;
        parts[..std::mem::take(touched)].iter().for_each(|&part| sums[part as usize] = T::zeroed());
    }

    /// Adds `value`, which is above 0, to the sum of `part`.
    #[inline(always)]
    pub fn add(&mut self, part: u32, value: T) {
        let sum = &mut self.sums[part as usize];
        self.parts[self.touched] = part;
        self.touched += usize::from(*sum == T::zeroed());
        *sum += value;
    }

    /// Adds `value`, which is above 0, to the sum of `part`, or of nothing if that is
    /// [`NONE`](crate::base::NONE).
    #[inline(always)]
    pub fn add_if_any(&mut self, part: u32, value: T) {
        self.add(part.min(self.k), value);
    }

    /// The sum of `part`.
    #[inline(always)]
    pub fn of(&self, part: u32) -> T {
        self.sums[part as usize]
    }

    /// Adds `value` to the sum of `part`, if it has one.
    #[inline(always)]
    pub fn raise(&mut self, part: u32, value: T) {
        let sum = &mut self.sums[part as usize];
        if *sum != T::zeroed() {
            *sum += value;
        }
    }

    /// Adds what `value` says to the sum of each part that has one.
    #[inline(always)]
    pub fn raise_each(&mut self, value: impl Fn(u32) -> T) {
        let Self { sums, parts, touched, .. } = self;
        parts[..*touched].iter().for_each(|&part| sums[part as usize] += value(part));
    }

    /// The parts with a sum, and the sum.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (u32, T)> {
        self.parts().map(|part| (part, self.sums[part as usize]))
    }

    /// The parts with a sum.
    #[inline(always)]
    pub fn parts(&self) -> impl Iterator<Item = u32> {
        self.parts[..self.touched].iter().copied().filter(|&part| part != self.k)
    }

    /// Has [`iter`](Self::iter) name the parts in ascending order.
    pub fn sort(&mut self) {
        self.parts[..self.touched].sort_unstable();
    }
}

impl SparseSums<u32> {
    /// Counts neighbours by their parts, instead of what was summed before.
    #[inline(always)]
    pub fn count(&mut self, neighbours: &[u32], part_of: &[u32]) {
        self.clear();
        neighbours.iter().for_each(|&u| self.add_if_any(part_of[u as usize], 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{NONE, Random};

    #[test]
    fn sums_are_those_of_a_list() {
        let (k, mut random) = (70, Random::new(1, 0));
        let mut sums = SparseSums::<u64>::new(k).unwrap();
        for round in 0..200 {
            sums.clear();
            let mut expected: Vec<(u32, u64)> = Vec::new();
            for _ in 0..random.below(200) {
                let (part, value) = (random.below(u64::from(k) + 1) as u32, 1 + random.below(9));
                if part == k {
                    sums.add_if_any(NONE, value);
                    continue;
                }
                sums.add(part, value);
                match expected.iter_mut().find(|known| known.0 == part) {
                    Some((_, sum)) => *sum += value,
                    None => expected.push((part, value)),
                }
            }
            if round % 3 == 0 {
                sums.sort();
                expected.sort();
            }
            (0..k).step_by(7).for_each(|part| sums.raise(part, 5));
            expected.iter_mut().filter(|(part, _)| part % 7 == 0).for_each(|(_, sum)| *sum += 5);
            assert!(sums.iter().eq(expected.iter().copied()));
            let of = |part| expected.iter().find(|known| known.0 == part).map_or(0, |&(_, sum)| sum);
            assert!((0..k).all(|part| sums.of(part) == of(part)));
        }
    }

    #[test]
    fn neighbours_are_counted_by_part() {
        let mut sums = SparseSums::new(3).unwrap();
        sums.count(&[0, 1, 2, 3, 4], &[2, NONE, 0, 2, NONE]);
        assert!(sums.iter().eq([(2, 2), (0, 1)]));
        sums.count(&[1, 2], &[2, NONE, 0]);
        assert!(sums.iter().eq([(0, 1)]));
    }
}
