//! Sums of one long list by cluster, which several threads sum up together.
//!
//! A table of one neighbourhood ([`RatingMap`](super::RatingMap)) grows with the list. With one for each
//! thread, the lists of hubs would take the memory of the whole graph many times. So there is one array with
//! a sum for each cluster, and the threads share the entries of a list instead of the lists.
//!
//! **Order.** Threads add to the sums in any order. Several that list the clusters in the order of the list
//! need to know in which piece of it each comes first: its *owner*.
//!
//! **Memory.** 4 bytes per cluster, however many threads there are, and 4 more for owners.
//!
//! **Source.** The second phase of label propagation in Gottesbüren et al., "Deep Multilevel Graph
//! Partitioning", ESA 2021.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::rating_map::{DIRECT, LONG};
use crate::base::{Buffer, NONE, Result, prefetch, shared};

/// Entries of a list that a thread looks up ahead.
const AHEAD: usize = 32;

/// A sum for each cluster, 0 between two lists. The array is there from the first long list on.
#[derive(Debug)]
pub(crate) struct SharedSums {
    sums: Option<Buffer<u32>>,
    owners: Option<Buffer<u32>>,
    count: usize,
}

impl SharedSums {
    /// For `count` clusters.
    pub(crate) fn new(count: usize) -> Self {
        Self { sums: None, owners: None, count }
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
        Ok(Sums { sums: shared(self.sums.insert(sums)), owners: &[], is_shared: threads > 1 })
    }

    /// The sums for threads that list the clusters in the order of the list. A single thread needs no owners.
    pub(crate) fn in_order(&mut self, threads: usize) -> Result<Sums<'_>> {
        if threads == 1 {
            return self.share(1);
        }
        let nobody = || {
            let mut owners = Buffer::zeroed(self.count, "pieces of a long list by cluster")?;
            owners.fill(NONE);
            Ok(owners)
        };
        let owners = self.owners.take().map_or_else(nobody, Ok)?;
        self.owners = Some(owners);
        let owners = self.owners.as_mut().map_or(&[][..], |owners| shared(owners));
        let zeros = || Buffer::zeroed(self.count, "sums of a long list by cluster");
        let sums = self.sums.take().map_or_else(zeros, Ok)?;
        Ok(Sums { sums: shared(self.sums.insert(sums)), owners, is_shared: true })
    }
}

/// The sums of the list at work.
#[derive(Clone, Copy)]
pub(crate) struct Sums<'a> {
    sums: &'a [AtomicU32],
    /// The first piece of the list with each cluster, or [`NONE`]. Empty unless the order counts.
    owners: &'a [AtomicU32],
    is_shared: bool,
}

impl<'a> Sums<'a> {
    /// A thread that adds to the sums.
    pub(crate) fn adder(self) -> Adder<'a> {
        self.adder_of(0)
    }

    /// A thread that adds the entries of a piece of the list.
    pub(crate) fn adder_of(self, piece: u32) -> Adder<'a> {
        Adder { sums: self, piece, ahead: [[0; 2]; AHEAD], len: 0 }
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

    /// Makes `piece` the owner of a cluster, unless an earlier piece has it.
    #[inline(always)]
    fn own(self, cluster: u32, piece: u32) {
        if let Some(owner) = self.owners.get(cluster as usize)
            && owner.load(Relaxed) > piece
        {
            owner.fetch_min(piece, Relaxed);
        }
    }

    /// Takes the sum of a cluster: 0 if an earlier piece of the list owns it, or if this one has taken it.
    #[inline(always)]
    pub(crate) fn take_first(self, cluster: u32, piece: u32) -> u32 {
        let Some(owner) = self.owners.get(cluster as usize) else { return self.take(cluster) };
        if owner.load(Relaxed) != piece {
            return 0;
        }
        // Nobody else touches what a piece owns.
        owner.store(NONE, Relaxed);
        let sum = &self.sums[cluster as usize];
        let found = sum.load(Relaxed);
        sum.store(0, Relaxed);
        found
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
    piece: u32,
    ahead: [[u32; 2]; AHEAD],
    len: usize,
}

impl Adder<'_> {
    /// Adds `weight`, which is above 0, to the sum of `cluster`.
    #[inline(always)]
    pub(crate) fn add(&mut self, cluster: u32, weight: u32) {
        prefetch(self.sums.sums, cluster as usize);
        if !self.sums.owners.is_empty() {
            prefetch(self.sums.owners, cluster as usize);
        }
        self.ahead[self.len] = [cluster, weight];
        self.len += 1;
        if self.len == AHEAD {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let len = std::mem::take(&mut self.len);
        for &[cluster, weight] in &self.ahead[..len] {
            self.sums.raise(cluster, weight);
            self.sums.own(cluster, self.piece);
        }
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

    #[test]
    fn pieces_list_clusters_in_the_order_of_the_list() {
        let (mut sums, mut random) = (SharedSums::new(50), Random::new(2, 0));
        for threads in [1, 4] {
            let list: Vec<[u32; 2]> =
                (0..400).map(|_| [random.below(50) as u32, random.below(9) as u32 + 1]).collect();
            let mut expected: Vec<[u32; 2]> = Vec::new();
            for &[cluster, weight] in &list {
                match expected.iter_mut().find(|sum| sum[0] == cluster) {
                    Some(sum) => sum[1] += weight,
                    None => expected.push([cluster, weight]),
                }
            }
            let sums = sums.in_order(threads).unwrap();
            let pieces: Vec<_> = list.chunks(400 / threads).zip(0..).collect();
            std::thread::scope(|scope| {
                for &(piece, index) in &pieces {
                    scope.spawn(move || {
                        let mut adder = sums.adder_of(index);
                        piece.iter().for_each(|&[cluster, weight]| adder.add(cluster, weight));
                    });
                }
            });
            let taken = std::thread::scope(|scope| {
                let take = |&(piece, index): &(&[[u32; 2]], u32)| {
                    let sum = |&[cluster, _]: &[u32; 2]| [cluster, sums.take_first(cluster, index)];
                    piece.iter().map(sum).filter(|sum| sum[1] > 0).collect::<Vec<_>>()
                };
                let all: Vec<_> = pieces.iter().map(|piece| scope.spawn(move || take(piece))).collect();
                all.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert_eq!(taken, expected);
        }
    }
}
