//! Sums of weights by cluster, in a table sized for one neighbourhood instead of the graph.
//!
//! An array with an item for each cluster costs a cache miss per neighbour. A table of twice the neighbourhood
//! stays in the first-level cache for all vertices but hubs.

/// Clusters up to which each has a slot of its own.
const SMALL: usize = 1 << 14;
/// Initial capacity, in clusters, of a table that grows: few collide, and the cache holds it.
const INITIAL: usize = 127;

/// Sums of one neighbourhood, in the order in which their clusters came. Open addressing.
#[derive(Debug, Default)]
pub(crate) struct RatingMap {
    /// Cluster and sum of each slot. A sum of 0 is a free slot.
    slots: Vec<[u32; 2]>,
    /// Slots that are taken, in the order in which their clusters came.
    taken: Vec<u32>,
    /// Most slots that may be taken before the table grows.
    limit: usize,
    factor: u32,
    shift: u32,
}

impl RatingMap {
    /// Bytes for up to `most` clusters, if it grows with them.
    pub(crate) fn memory(most: u64) -> u64 {
        // While it grows, its content is there a second time.
        16 * most.next_power_of_two().max(INITIAL as u64 + 1) * 3 / 2 + 4 * most
    }

    /// Forgets all sums and prepares for `most` of the clusters `0..count`.
    #[inline(always)]
    pub(crate) fn begin(&mut self, most: usize, count: usize) {
        let direct = count <= SMALL || most > count / 4;
        let bits = usize::BITS - if direct { count } else { most }.leading_zeros() + u32::from(!direct);
        (self.factor, self.shift) = if direct { (1, 0) } else { (0x9e37_79b9, 32 - bits) };
        self.limit = if direct { usize::MAX } else { 1 << (bits - 1) };
        self.clear(1 << bits);
    }

    /// Forgets all sums. The table grows with the clusters that come, of which there may be far fewer than `most`.
    #[inline(always)]
    pub(crate) fn begin_growing(&mut self, most: usize) {
        self.begin(most.min(self.slots.len() / 2).saturating_sub(1).max(INITIAL), usize::MAX);
    }

    #[inline(always)]
    fn clear(&mut self, len: usize) {
        for slot in self.taken.drain(..) {
            self.slots[slot as usize][1] = 0;
        }
        if self.slots.len() < len {
            self.slots = Vec::new();
            self.slots.resize(len, [0; 2]);
        }
    }

    /// Adds `weight`, which is above 0, to the sum of `cluster`. True if it is the first.
    #[inline(always)]
    pub(crate) fn add(&mut self, cluster: u32, weight: u32) -> bool {
        let slot = self.slot(cluster);
        let [key, sum] = &mut self.slots[slot];
        let first = *sum == 0;
        *sum += weight;
        if first {
            *key = cluster;
            self.taken.push(slot as u32);
            if self.taken.len() > self.limit {
                self.grow();
            }
        }
        first
    }

    /// The sum of `cluster`.
    #[inline(always)]
    pub(crate) fn sum(&self, cluster: u32) -> u32 {
        self.slots[self.slot(cluster)][1]
    }

    /// Clusters and their sums, in the order in which they came.
    #[inline(always)]
    pub(crate) fn sums(&self) -> impl Iterator<Item = [u32; 2]> {
        self.taken.iter().map(|&slot| self.slots[slot as usize])
    }

    /// Where `cluster` is or belongs.
    #[inline(always)]
    fn slot(&self, cluster: u32) -> usize {
        let mask = u32::MAX >> self.shift;
        // Fibonacci hashing: neighbours often have neighbouring ids.
        let mut slot = cluster.wrapping_mul(self.factor) >> self.shift;
        loop {
            let [key, sum] = self.slots[slot as usize];
            if sum == 0 || key == cluster {
                return slot as usize;
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let sums: Vec<_> = self.sums().collect();
        self.begin(2 * self.limit - 1, usize::MAX);
        for [cluster, sum] in sums {
            self.add(cluster, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn sums_are_those_of_a_list() {
        let (mut map, mut random) = (RatingMap::default(), Random::new(1, 0));
        for round in 0..400 {
            let items = random.below(60) as usize;
            if round % 2 == 0 {
                map.begin(items, 20_000)
            } else {
                map.begin_growing(items)
            }
            let mut expected: Vec<[u32; 2]> = Vec::new();
            for _ in 0..items {
                // Sums of the round before must not remain, and clusters may collide.
                let (cluster, weight) = (random.below(20 + round) as u32, 1 + random.below(5) as u32);
                let known = expected.iter_mut().find(|known| known[0] == cluster);
                assert_eq!(map.add(cluster, weight), known.is_none());
                match known {
                    Some([_, sum]) => *sum += weight,
                    None => expected.push([cluster, weight]),
                }
            }
            assert!(map.sums().eq(expected.iter().copied()));
            assert!(expected.iter().all(|&[cluster, sum]| map.sum(cluster) == sum) && map.sum(1 << 20) == 0);
        }
    }
}
