//! Sums of one long list by cluster, which several threads sum up together.
//!
//! A table of one neighbourhood ([`RatingMap`](super::RatingMap)) grows with the list. With one for each
//! thread, the lists of hubs would take the memory of the whole graph many times. So there is one array with
//! a sum for each cluster, and the threads share the entries of a list instead of the lists.
//!
//! **Memory.** 4 bytes per cluster, however many threads there are.
//!
//! **Source.** The second phase of label propagation in Gottesbüren et al., "Deep Multilevel Graph
//! Partitioning", ESA 2021.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::rating_map::{DIRECT, LONG};
use crate::base::{Buffer, Result, prefetch, shared};

/// Entries of a list that a thread looks up ahead.
const AHEAD: usize = 32;

/// A sum for each cluster, 0 between two lists. The array is there from the first long list on.
#[derive(Debug)]
pub(crate) struct SharedSums {
    sums: Option<Buffer<u32>>,
    count: usize,
}

impl SharedSums {
    /// For `count` clusters.
    pub(crate) fn new(count: usize) -> Self {
        Self { sums: None, count }
    }

    /// Whether a list of `entries` entries is summed up here. A [`RatingMap`](super::RatingMap) sums up
    /// shorter lists, and all lists if there are few clusters.
    #[inline(always)]
    pub(crate) fn takes(entries: usize, count: usize) -> bool {
        entries >= LONG && count >= DIRECT
    }

    /// The sums, for one thread or for several.
    pub(crate) fn share(&mut self, threads: usize) -> Result<Sums<'_>> {
        let zeros = || Buffer::zeroed(self.count, "sums of a long list by cluster");
        let sums = self.sums.take().map_or_else(zeros, Ok)?;
        Ok(Sums { sums: shared(self.sums.insert(sums)), is_shared: threads > 1 })
    }
}

/// The sums of the list at work.
#[derive(Clone, Copy)]
pub(crate) struct Sums<'a> {
    sums: &'a [AtomicU32],
    is_shared: bool,
}

impl<'a> Sums<'a> {
    /// A thread that adds to the sums.
    pub(crate) fn adder(self) -> Adder<'a> {
        Adder { sums: self, ahead: [[0; 2]; AHEAD], len: 0 }
    }

    #[inline(always)]
    fn raise(self, cluster: u32, weight: u32) {
        let sum = &self.sums[cluster as usize];
        if self.is_shared {
            sum.fetch_add(weight, Relaxed);
        } else {
            sum.store(sum.load(Relaxed) + weight, Relaxed);
        }
    }

    /// Takes the sum of a cluster: 0 if some thread has taken it.
    #[inline(always)]
    pub(crate) fn take(self, cluster: u32) -> u32 {
        let sum = &self.sums[cluster as usize];
        match sum.load(Relaxed) {
            0 => 0,
            _ if self.is_shared => sum.swap(0, Relaxed),
            found => {
                sum.store(0, Relaxed);
                found
            }
        }
    }
}

/// Adds clusters and weights. The sums of those to come are prefetched.
pub(crate) struct Adder<'a> {
    sums: Sums<'a>,
    ahead: [[u32; 2]; AHEAD],
    len: usize,
}

impl Adder<'_> {
    /// Adds `weight`, which is above 0, to the sum of `cluster`.
    #[inline(always)]
    pub(crate) fn add(&mut self, cluster: u32, weight: u32) {
        prefetch(self.sums.sums, cluster as usize);
        self.ahead[self.len] = [cluster, weight];
        self.len += 1;
        if self.len == AHEAD {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let len = std::mem::take(&mut self.len);
        self.ahead[..len].iter().for_each(|&[cluster, weight]| self.sums.raise(cluster, weight));
    }
}

impl Drop for Adder<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    #[test]
    fn sums_are_those_of_a_list_and_each_is_taken_once() {
        let mut sums = SharedSums::new(50);
        let mut random = Random::new(1, 0);
        for threads in [1, 4] {
            let list: Vec<[u32; 2]> =
                (0..4000).map(|_| [random.below(50) as u32, random.below(9) as u32 + 1]).collect();
            let mut expected = [0; 50];
            list.iter().for_each(|&[cluster, weight]| expected[cluster as usize] += weight);
            let sums = sums.share(threads).unwrap();
            std::thread::scope(|scope| {
                for piece in list.chunks(4000 / threads) {
                    scope.spawn(move || {
                        let mut adder = sums.adder();
                        piece.iter().for_each(|&[cluster, weight]| adder.add(cluster, weight));
                    });
                }
            });
            let found = std::thread::scope(|scope| {
                let take = || (0..50).map(|cluster| sums.take(cluster)).collect::<Vec<_>>();
                let all: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            for (cluster, &sum) in expected.iter().enumerate() {
                let taken: Vec<u32> =
                    found.iter().map(|taken| taken[cluster]).filter(|&sum| sum > 0).collect();
                assert_eq!(taken, [sum]);
            }
        }
    }
}
