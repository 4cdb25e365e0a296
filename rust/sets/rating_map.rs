//! Sums of weights by cluster, in a table sized for one neighbourhood instead of the graph.
//!
//! An array with an item for each cluster costs a cache miss per neighbour. A table of twice the
//! neighbourhood stays in the first-level cache for all vertices but hubs.

use crate::base::{Buffer, Result, reserved};

/// With fewer than `DIRECT` clusters, each has a slot of its own.
pub(super) const DIRECT: usize = 1 << 15;
/// Entries from which on a list is *long*. Shorter ones are worth a thread each.
pub(super) const LONG: usize = 1 << 14;
/// Initial capacity, in clusters, of a table that grows: few collide, and the cache holds it.
const INITIAL: usize = 127;

/// Sums of one neighbourhood, in the order in which their clusters came. Open addressing.
///
/// All memory is reserved in the beginning, so that nothing is refused later. Pages are touched when they are
/// needed.
#[derive(Debug)]
pub(crate) struct RatingMap {
    /// Cluster and sum of each slot. A sum of 0 is a free slot.
    slots: Buffer<[u32; 2]>,
    /// Slots that are taken, in the order in which their clusters came.
    taken: Vec<u32>,
    /// Most slots that may be taken before the table grows.
    limit: usize,
    /// The table that clusters grew to so far, in slots.
    grown: usize,
    factor: u32,
    shift: u32,
}

impl RatingMap {
    /// The map for neighbourhoods of at most `most` of the clusters `0..count`.
    pub(crate) fn new(most: usize, count: usize) -> Result<Self> {
        let (slots, most) = (slots(most, count), most.min(count));
        Ok(Self {
            slots: Buffer::zeroed(slots, "sums by cluster")?,
            taken: reserved(most + 1, "clusters with a sum")?,
            limit: usize::MAX,
            grown: 0,
            factor: 1,
            shift: 0,
        })
    }

    /// The map for lists that are not long, of the clusters `0..count`. [`SharedSums`](super::SharedSums)
    /// takes long ones.
    pub(crate) fn of_short(count: usize) -> Result<Self> {
        Self::new(LONG - 1, count)
    }

    /// Bytes of a map for lists that are not long.
    pub(crate) fn memory_of_short() -> u64 {
        Self::memory(LONG as u64 - 1, u64::MAX)
    }

    /// Bytes of a map for at most `most` of the clusters `0..count`.
    pub(crate) fn memory(most: u64, count: u64) -> u64 {
        8 * slots(most as usize, count as usize) as u64 + 4 * most.min(count)
    }

    /// Forgets all sums and prepares for `most` of the clusters `0..count`, for which it was made.
    #[inline(always)]
    pub(crate) fn begin(&mut self, most: usize, count: usize) {
        let (bits, direct) = table(most.min(count), count);
        (self.factor, self.shift) = if direct { (1, 0) } else { (0x9e37_79b9, 32 - bits) };
        self.limit = usize::MAX;
        self.clear();
    }

    /// Forgets all sums. The table grows with the clusters that come, of which there may be far fewer than
    /// `most`.
    #[inline(always)]
    pub(crate) fn begin_growing(&mut self, most: usize) {
        self.clear();
        self.grow_to(most.min(self.grown / 2).saturating_sub(1).max(INITIAL));
    }

    #[inline(always)]
    fn clear(&mut self) {
        for slot in self.taken.drain(..) {
            self.slots[slot as usize][1] = 0;
        }
    }

    /// An empty table that grows beyond `most` clusters.
    #[inline(always)]
    fn grow_to(&mut self, most: usize) {
        let (bits, _) = table(most, usize::MAX);
        (self.factor, self.shift) = (0x9e37_79b9, 32 - bits);
        self.limit = 1 << (bits - 1);
        self.grown = self.grown.max(1 << bits);
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

    /// Number of clusters with a sum.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.taken.len()
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
        // Behind the table that the sums move to.
        let (count, beyond) = (self.taken.len(), 4 * self.limit);
        for (index, &slot) in self.taken.iter().enumerate() {
            self.slots[beyond + index] = self.slots[slot as usize];
        }
        self.clear();
        self.grow_to(2 * self.limit - 1);
        for index in beyond..beyond + count {
            let [cluster, sum] = std::mem::take(&mut self.slots[index]);
            self.add(cluster, sum);
        }
    }
}

/// Slots of all tables for at most `most` of the clusters `0..count`. A quarter of the largest one holds the
/// sums while they move there.
fn slots(most: usize, count: usize) -> usize {
    let growing = table(most.min(count).max(INITIAL), usize::MAX).0;
    let direct = if count < DIRECT { table(0, count).0 } else { 0 };
    let largest = 1 << growing.max(direct);
    largest + largest / 4 + 1
}

/// Bits of the slots of a table for `most` of the clusters `0..count`, and whether each cluster has a slot of
/// its own.
#[inline(always)]
fn table(most: usize, count: usize) -> (u32, bool) {
    let direct = count < DIRECT;
    let bits = usize::BITS - if direct { count } else { most }.leading_zeros();
    (bits + u32::from(!direct), direct)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn sums_are_those_of_a_list() {
        let mut random = Random::new(1, 0);
        let mut maps = [RatingMap::new(3000, 20_000), RatingMap::new(3000, 40_000)].map(Result::unwrap);
        for round in 0..400 {
            let items = random.below(if round % 40 < 2 { 3000 } else { 60 }) as usize;
            let map = &mut maps[(round / 2 % 2) as usize];
            if round % 4 == 0 {
                map.begin(items, 20_000)
            } else if round % 4 == 2 {
                map.begin(items, 40_000)
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
            assert!(expected.iter().all(|&[cluster, sum]| map.sum(cluster) == sum) && map.sum(19_999) == 0);
        }
    }
}
