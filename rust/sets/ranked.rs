//! Sets of vertices that number their members: the local ids of a part.
//!
//! **Memory.** 0.19 bytes per vertex of the graph: a bit per vertex, for each 64 of them the number of
//! members below, and a tree that marks the words with members. Because of the tree a small set costs little,
//! however large the graph. One worker uses one set for part after part.

use super::bits::{Bits, ones};
use crate::base::{Buffer, Result};

/// A set of ids below `n`.
pub(crate) struct LocalSet {
    members: Bits,
    below: Buffer<u32>,
    /// Bit i of a level is set if word i of the level below is not 0. The last level is one word.
    tree: Vec<Bits>,
}

impl LocalSet {
    /// Bytes that a set takes.
    pub(crate) fn memory(n: u64) -> u64 {
        let words = n / 64 + 1;
        12 * words + words / 7 + 64
    }

    /// An empty set.
    pub(crate) fn new(n: u64) -> Result<Self> {
        let mut len = n as usize / 64 + 1;
        let (members, below) = (Bits::new(n, "set of vertices")?, Buffer::zeroed(len, "local ids")?);
        let mut tree = Vec::new();
        while len > 1 || tree.is_empty() {
            tree.push(Bits::new(len as u64 - 1, "set of vertices")?);
            len = len.div_ceil(64);
        }
        Ok(Self { members, below, tree })
    }

    /// Adds `id`.
    #[inline(always)]
    pub(crate) fn insert(&mut self, id: impl Into<u64>) {
        let id = id.into();
        let first = self.members.words()[id as usize / 64] == 0;
        self.members.insert(id);
        if first {
            self.mark(id / 64);
        }
    }

    fn mark(&mut self, mut index: u64) {
        for level in &mut self.tree {
            let first = level.words()[index as usize / 64] == 0;
            level.insert(index);
            if !first {
                return;
            }
            index /= 64;
        }
    }

    /// Whether `id` is a member.
    #[inline(always)]
    pub(crate) fn contains(&self, id: impl Into<u64>) -> bool {
        self.members.contains(id)
    }

    /// Numbers the members in ascending order, and returns how many there are.
    pub(crate) fn number(&mut self) -> u64 {
        let (mut total, mut from) = (0_u64, 0);
        while let Some(word) = self.next_word(from) {
            // Callers refuse more than 2^32 members.
            self.below[word] = total as u32;
            total += u64::from(self.members.words()[word].count_ones());
            from = word + 1;
        }
        total
    }

    /// The number that [`LocalSet::number`] gave a member.
    #[inline(always)]
    pub(crate) fn local(&self, id: impl Into<u64>) -> u32 {
        let id = id.into();
        self.below[id as usize / 64] + self.members.below(id)
    }

    /// The members in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let words = std::iter::successors(self.next_word(0), |&word| self.next_word(word + 1));
        words.flat_map(|word| {
            ones(&self.members.words()[word..=word]).map(move |bit| word as u64 * 64 + u64::from(bit))
        })
    }

    /// Removes all members.
    pub(crate) fn clear(&mut self) {
        while let Some(mut index) = self.next_word(0) {
            self.members.words_mut()[index] = 0;
            for level in &mut self.tree {
                let word = &mut level.words_mut()[index / 64];
                *word &= !(1 << (index % 64));
                if *word != 0 {
                    break;
                }
                index /= 64;
            }
        }
    }

    /// The first word from `index` on that is not 0.
    fn next_word(&self, mut index: usize) -> Option<usize> {
        for height in 0..self.tree.len() {
            let word = self.tree[height].words().get(index / 64)? >> (index % 64);
            if word != 0 {
                index += word.trailing_zeros() as usize;
                for level in self.tree[..height].iter().rev() {
                    index = index * 64 + level.words()[index].trailing_zeros() as usize;
                }
                return Some(index);
            }
            index = index / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn like_a_sorted_list() {
        for (n, members) in [(1, 1), (64, 3), (65, 65), (300_000, 5), (300_000, 40_000), (1 << 24, 1000)] {
            let mut set = LocalSet::new(n).unwrap();
            for round in 0..3 {
                let mut random = Random::new(round, n);
                let mut ids: Vec<u64> = (0..members).map(|_| random.below(n)).collect();
                ids.push(n - 1);
                ids.iter().for_each(|&id| set.insert(id));
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(set.number(), ids.len() as u64);
                assert!(set.iter().eq(ids.iter().copied()));
                assert!(ids.iter().zip(0..).all(|(&id, local)| set.local(id) == local && set.contains(id)));
                assert_eq!((0..n).filter(|&id| set.contains(id)).count(), ids.len());
                set.clear();
                assert_eq!(set.iter().count(), 0);
                assert_eq!(set.number(), 0);
            }
        }
    }
}
