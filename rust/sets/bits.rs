//! Sets of ids, with one bit for each id.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::{Buffer, Result, shared};

/// A set of ids up to `n`.
#[derive(Debug)]
pub(crate) struct Bits(Buffer<u64>);

impl Bits {
    /// An empty set of ids `0..=n`. `what` names it in errors.
    pub(crate) fn new(n: u64, what: &str) -> Result<Self> {
        Ok(Self(Buffer::zeroed(n as usize / 64 + 1, what)?))
    }

    /// Bytes that it takes.
    pub(crate) fn memory(n: u64) -> u64 {
        8 * (n / 64 + 1)
    }

    /// Adds `id`.
    #[inline(always)]
    pub(crate) fn insert(&mut self, id: impl Into<u64>) {
        let id = id.into();
        self.0[id as usize / 64] |= 1 << (id % 64);
    }

    /// Whether `id` is a member.
    #[inline(always)]
    pub(crate) fn contains(&self, id: impl Into<u64>) -> bool {
        let id = id.into();
        self.0[id as usize / 64] >> (id % 64) & 1 != 0
    }

    /// Number of members below `id` among the ids of its word.
    #[inline(always)]
    pub(crate) fn below(&self, id: impl Into<u64>) -> u32 {
        let id = id.into();
        (self.0[id as usize / 64] & ((1 << (id % 64)) - 1)).count_ones()
    }

    /// The members, ascending, which are below 2^32.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        ones(&self.0)
    }

    /// Whether there is no member.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Removes all members.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Removes `first..=last`, and all ids of the same words.
    pub(crate) fn clear_around(&mut self, first: u32, last: u32) {
        self.0[first as usize / 64..=last as usize / 64].fill(0);
    }

    /// The bits, 64 a word.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }

    /// The bits, 64 a word, mutable.
    #[inline(always)]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }

    /// The set, for several threads.
    pub(crate) fn shared(&mut self) -> Shared<'_> {
        Shared(shared(&mut self.0))
    }
}

/// [`Bits`] that several threads add to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared<'a>(&'a [AtomicU64]);

impl Shared<'_> {
    /// Adds `id`.
    #[inline(always)]
    pub(crate) fn insert(&self, id: impl Into<u64>) {
        let id = id.into();
        set(&self.0[id as usize / 64], 1 << (id % 64));
    }
}

/// Sets `bits` of a word. Most often they are set, and only a missing one costs a locked instruction.
#[inline(always)]
pub(crate) fn set(word: &AtomicU64, bits: u64) {
    if word.load(Relaxed) & bits != bits {
        word.fetch_or(bits, Relaxed);
    }
}

/// Numbers of the bits that are set, ascending.
pub(crate) fn ones(words: &[u64]) -> impl Iterator<Item = u32> + '_ {
    words.iter().zip((0..).step_by(64)).flat_map(|(&word, first)| {
        let next = |&rest: &u64| Some(rest & rest.wrapping_sub(1)).filter(|&rest| rest != 0);
        std::iter::successors(Some(word).filter(|&word| word != 0), next)
            .map(move |rest| first + rest.trailing_zeros())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_what_was_added() {
        let mut bits = Bits::new(200, "test").unwrap();
        [200_u32, 0, 64, 63].into_iter().for_each(|id| bits.insert(id));
        [130_u64, 64].into_iter().for_each(|id| bits.shared().insert(id));
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 200]);
        assert!(bits.contains(130_u32) && !bits.contains(129_u64) && !bits.is_empty());
        assert_eq!([0_u32, 63, 64, 65, 200].map(|id| bits.below(id)), [0, 1, 0, 1, 0]);
        bits.clear_around(64, 140);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 200]);
        bits.clear();
        assert!(bits.is_empty());
    }
}
