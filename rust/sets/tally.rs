//! Sums of weights by cluster, in a table that fits the neighbourhood at hand instead of the graph.
//!
//! An array with an item for each cluster costs a miss of the cache per neighbour; a table of twice the neighbourhood
//! stays in the first level for all but hubs.

/// Clusters up to which each has a slot of its own.
const SMALL: usize = 1 << 14;

/// Sums of one neighbourhood; open addressing.
#[derive(Debug, Default)]
pub struct Tally {
    /// Cluster and sum of each slot; a sum of 0 is a free slot.
    slots: Vec<[u32; 2]>,
    /// Slots that are taken, in the order in which their clusters came.
    taken: Vec<u32>,
    factor: u32,
    shift: u32,
}

impl Tally {
    /// Forgets all sums and makes room for `most` of the clusters `0..count`.
    #[inline(always)]
    pub fn begin(&mut self, most: usize, count: usize) {
        for &slot in &self.taken {
            self.slots[slot as usize][1] = 0;
        }
        self.taken.clear();
        let direct = count <= SMALL || most > count / 4;
        let bits = usize::BITS - if direct { count } else { most }.leading_zeros() + u32::from(!direct);
        (self.factor, self.shift) = if direct { (1, 0) } else { (0x9e37_79b9, 32 - bits) };
        if self.slots.len() < 1 << bits {
            self.slots.resize(1 << bits, [0; 2]);
        }
    }

    /// Adds `weight`, which is above 0, to the sum of `cluster`.
    #[inline(always)]
    pub fn add(&mut self, cluster: u32, weight: u32) {
        let mask = u32::MAX >> self.shift;
        // Fibonacci hashing: neighbours often have neighbouring ids.
        let mut slot = cluster.wrapping_mul(self.factor) >> self.shift;
        loop {
            let [key, sum] = &mut self.slots[slot as usize];
            if *sum == 0 {
                (*key, *sum) = (cluster, weight);
                self.taken.push(slot);
                return;
            }
            if *key == cluster {
                *sum += weight;
                return;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Clusters and their sums, in the order in which they came.
    #[inline(always)]
    pub fn sums(&self) -> impl Iterator<Item = [u32; 2]> {
        self.taken.iter().map(|&slot| self.slots[slot as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::base::random::Random;

    #[test]
    fn sums_are_those_of_a_map() {
        let (mut tally, mut random) = (Tally::default(), Random::new(1, 0));
        for round in 0..200 {
            let items = random.below(60) as usize;
            tally.begin(items, 20_000);
            let mut expected: HashMap<u32, u32> = HashMap::new();
            for _ in 0..items {
                // Sums of the round before must be gone, and clusters may collide.
                let (cluster, weight) = (random.below(20 + round) as u32, 1 + random.below(5) as u32);
                tally.add(cluster, weight);
                *expected.entry(cluster).or_default() += weight;
            }
            assert_eq!(
                tally.sums().map(|[cluster, sum]| (cluster, sum)).collect::<HashMap<_, _>>(),
                expected
            );
        }
    }
}
