//! Counting the neighbours of a vertex by cluster.

use crate::base::NONE;

/// Clusters that the table has room for at first.
const ROOM: usize = 128;

/// A hash table of counts that remembers the order in which its keys came. It grows with the number of keys, to at
/// most 36 bytes for each, and is emptied in time proportional to them.
#[derive(Debug)]
pub struct Counter {
    /// Key and count; [`NONE`] is an empty slot. At most half of them are taken.
    slots: Vec<(u32, u32)>,
    /// The slots taken, in the order of their keys' arrival.
    taken: Vec<u32>,
}

impl Default for Counter {
    fn default() -> Self {
        Self { slots: vec![(NONE, 0); 2 * ROOM], taken: Vec::with_capacity(ROOM) }
    }
}

impl Counter {
    /// Bytes for up to `keys` keys.
    pub fn memory(keys: u64) -> u64 {
        // While it grows, half of the slots are there a second time.
        16 * keys.next_power_of_two().max(ROOM as u64) * 3 / 2 + 4 * keys
    }

    /// Counts one `key`; says whether it is the first.
    #[inline(always)]
    pub fn add(&mut self, key: u32) -> bool {
        let slot = self.slot(key);
        let (found, count) = &mut self.slots[slot];
        *count += 1;
        if *found == key {
            return false;
        }
        *found = key;
        self.taken.push(slot as u32);
        if 2 * self.taken.len() > self.slots.len() {
            self.grow();
        }
        true
    }

    /// How often `key` was counted.
    pub fn count(&self, key: u32) -> u32 {
        self.slots[self.slot(key)].1
    }

    /// Keys and counts, in the order in which the keys came.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.taken.iter().map(|&slot| self.slots[slot as usize])
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for slot in self.taken.drain(..) {
            self.slots[slot as usize] = (NONE, 0);
        }
    }

    /// Where `key` is or belongs.
    #[inline(always)]
    fn slot(&self, key: u32) -> usize {
        let mask = self.slots.len() - 1;
        // The upper bits of the product depend on all bits of the key.
        let hash = u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut slot = hash as usize & mask;
        while self.slots[slot].0 != key && self.slots[slot].0 != NONE {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[cold]
    fn grow(&mut self) {
        let size = 2 * self.slots.len();
        let old = std::mem::replace(&mut self.slots, vec![(NONE, 0); size]);
        let mut taken = std::mem::take(&mut self.taken);
        for place in &mut taken {
            let item = old[*place as usize];
            let slot = self.slot(item.0);
            self.slots[slot] = item;
            *place = slot as u32;
        }
        self.taken = taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_the_order_of_arrival() {
        let mut counter = Counter::default();
        for round in 0..3 {
            let keys: Vec<u32> = (0..1000).map(|i| i * 7919 % 613).collect();
            let mut first = Vec::new();
            for &key in &keys {
                assert_eq!(counter.add(key), !first.contains(&key), "round {round}");
                if !first.contains(&key) {
                    first.push(key);
                }
            }
            let expected: Vec<_> =
                first.iter().map(|&key| (key, keys.iter().filter(|&&k| k == key).count() as u32)).collect();
            assert_eq!(counter.iter().collect::<Vec<_>>(), expected);
            assert_eq!(
                (counter.count(5), counter.count(1_000_000)),
                (expected.iter().find(|e| e.0 == 5).unwrap().1, 0)
            );
            counter.clear();
            assert_eq!(counter.iter().count(), 0);
        }
    }
}
