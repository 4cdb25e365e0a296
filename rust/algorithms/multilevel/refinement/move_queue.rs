//! A queue of moves, which are made one by one.
//!
//! The vertex with the least key has its turn first. Every move changes the keys of others, so a key is an
//! estimate. When a vertex has its turn, its key is computed again. If that is worse than what it was queued
//! by, the vertex is queued again. Otherwise it moves.
//!
//! **Order.** By key, then by a hash of the vertex, then by the vertex. Without a seed the hash is left out.
//!
//! **Followers.** Where the moves of a vertex lower the keys of its neighbours, these are queued once more.
//! Then only the last entry of a vertex counts, and ties go to the vertex that was queued more often. When
//! the queue is full, the entries that do not count are dropped. So its memory is allocated at once.
//!
//! Fixed vertices are never queued by [`Moves::of`]. Code that queues vertices one by one asks
//! [`Graph::may_move`] before.
//!
//! **Parallelism.** The first keys of all vertices are computed and sorted in parallel ([`Moves::of`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::algorithms::multilevel::model::Graph;
use crate::base::{Buffer, Error, Growing, Result, Run, reserved, splitmix64};
use crate::exec::{propose, scratches, sort_by_key};

/// Steps of work between two polls of the cancel flag.
const STRIDE: usize = 1 << 14;
/// The work of one turn, beside that which depends on the degree.
const TURN: usize = 1 << 6;

/// Purpose of the memory, for errors.
const MOVES: &str = "vertices that may move";

/// A number in the order of [`f64::total_cmp`], such as a loss per relief.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct OrderedF64(pub f64);
impl Eq for OrderedF64 {}
impl PartialOrd for OrderedF64 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OrderedF64 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A vertex that may move: its key, what ties go by, and the vertex.
type Entry<K> = (K, u32, u32);

/// A queue of vertices, or of groups of them, that may move. The least key comes first.
pub(crate) struct Moves<'a, K> {
    /// Entries that were known from the beginning, the last one first.
    sorted: Vec<Entry<K>>,
    /// Entries that were queued later.
    later: BinaryHeap<Reverse<Entry<K>>>,
    /// Number of the last entry of each vertex, which is the one that counts, if only one does.
    last: Option<Buffer<u32>>,
    seed: Option<u64>,
    /// Whether there was no memory for an entry.
    is_refused: bool,
    /// Work since the last poll of the cancel flag.
    pub work: usize,
    run: &'a Run,
}

impl<'a, K: Ord + Copy + Send> Moves<'a, K> {
    /// An empty queue. Ties are broken by a hash with the seed, if there is one.
    pub(crate) fn new(seed: Option<u64>, run: &'a Run) -> Self {
        Self {
            sorted: Vec::new(),
            later: BinaryHeap::new(),
            last: None,
            seed,
            is_refused: false,
            work: 0,
            run,
        }
    }

    /// An empty queue of `n` vertices. The last entry of each counts.
    pub(crate) fn with_followers(n: usize, run: &'a Run) -> Result<Self> {
        let later = BinaryHeap::from(reserved(n + n / 4 + 1, MOVES)?);
        let last = Some(Buffer::zeroed(n, "queue entries of vertices")?);
        Ok(Self { later, last, ..Self::new(None, run) })
    }

    /// The free vertices for which `key` returns one. It may note a proposal for each of them.
    pub(crate) fn of<const D: usize, S: Send, T: Send>(
        graph: &Graph<D>,
        proposals: &mut [T],
        seed: Option<u64>,
        run: &'a Run,
        mut scratch: impl FnMut() -> Result<S>,
        key: impl Fn(&mut S, u32, &mut T) -> Option<K> + Sync,
    ) -> Result<Self> {
        let mut found = scratches(run, graph.num_entries(), || Ok((scratch()?, Growing::default())))?;
        let all = graph.ranges(0..graph.len() as u32);
        propose(&mut found, all, proposals, run, |(scratch, entries): &mut (S, Growing<_>), v, proposal| {
            if graph.may_move(v)
                && let Some(key) = key(scratch, v, proposal)
            {
                entries.push(Self::entry(seed, key, v));
            }
        })?;
        let entries = Growing::concat(found.into_iter().map(|(_, entries)| entries), MOVES)?;
        Ok(Self::of_entries(entries, seed, run))
    }

    /// The vertices with these keys. Ties go by the vertex.
    pub(crate) fn sorted(keys: impl Iterator<Item = (K, u32)>, run: &'a Run) -> Result<Self> {
        let mut entries = Growing::default();
        keys.for_each(|(key, v)| entries.push(Self::entry(None, key, v)));
        Ok(Self::of_entries(entries.finish(MOVES)?, None, run))
    }

    fn of_entries(mut sorted: Vec<Entry<K>>, seed: Option<u64>, run: &'a Run) -> Self {
        sort_by_key(&mut sorted, run, |&entry| Reverse(entry));
        Self { sorted, ..Self::new(seed, run) }
    }

    /// The entry of a vertex that may move.
    #[inline(always)]
    fn entry(seed: Option<u64>, key: K, v: u32) -> Entry<K> {
        (key, seed.map_or(0, |seed| splitmix64(seed ^ u64::from(v)) as u32), v)
    }

    /// Queues a vertex, for the first time or once more. If there is no memory for that, [`Self::next`] says
    /// so.
    pub(crate) fn push(&mut self, key: K, v: u32) {
        let Self { later, last, seed, .. } = self;
        let mut entry = Self::entry(*seed, key, v);
        if let Some(last) = last {
            last[v as usize] = last[v as usize].wrapping_add(1);
            entry.1 = !last[v as usize];
            if later.len() == later.capacity() {
                // At most one entry of each vertex is left.
                later.retain(|Reverse((_, number, v))| last[*v as usize] == !number);
            }
        }
        match later.try_reserve(1) {
            Ok(()) => later.push(Reverse(entry)),
            Err(_) => self.is_refused = true,
        }
    }

    /// The vertex whose turn it is, and the key that it was queued by.
    pub(crate) fn next(&mut self) -> Result<Option<(K, u32)>> {
        if self.is_refused {
            let needed = (2 * self.later.len() * size_of::<Entry<K>>()) as u64;
            return Err(Error::MemoryRefused { what: MOVES.into(), needed });
        }
        self.work += TURN;
        if self.work >= STRIDE {
            self.work = 0;
            self.run.check()?;
        }
        while let Some((key, number, v)) = self.first() {
            if self.last.as_ref().is_none_or(|last| last[v as usize] == !number) {
                return Ok(Some((key, v)));
            }
        }
        Ok(None)
    }

    fn first(&mut self) -> Option<Entry<K>> {
        let later_first = match (self.sorted.last(), self.later.peek()) {
            (Some(known), Some(Reverse(later))) => later < known,
            (known, _) => known.is_none(),
        };
        if later_first { self.later.pop().map(|Reverse(entry)| entry) } else { self.sorted.pop() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    fn all(mut moves: Moves<u64>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| moves.next().unwrap()).collect()
    }

    #[test]
    fn moves_come_by_key_then_hash_then_vertex() {
        let run = Run::new(Some(1), None).unwrap();
        for seed in [None, Some(7)] {
            let (mut moves, mut random, mut expected) =
                (Moves::new(seed, &run), Random::new(3, 0), Vec::new());
            for step in 0..500 {
                if random.below(3) > 0 || expected.is_empty() {
                    let (key, v) = (random.below(5), step);
                    moves.push(key, v);
                    let hash = seed.map_or(0, |seed| splitmix64(seed ^ u64::from(v)) as u32);
                    expected.push((key, hash, v));
                    expected.sort();
                } else {
                    let (key, _, v) = expected.remove(0);
                    assert_eq!(moves.next().unwrap(), Some((key, v)));
                }
            }
            assert_eq!(all(moves), expected.iter().map(|&(key, _, v)| (key, v)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_last_entry_of_a_follower_counts_and_memory_does_not_grow() {
        let (n, run) = (100_u32, Run::new(Some(1), None).unwrap());
        let mut moves = Moves::with_followers(n as usize, &run).unwrap();
        let before = moves.later.capacity();
        assert!(before <= 2 * n as usize, "{before}");
        let key = |round: u32, v: u32| (u64::from(v) * 7919 + u64::from(round) * 104_729) % 1009;
        for round in 0..50 {
            (0..n).for_each(|v| moves.push(key(round, v), v));
        }
        assert_eq!(moves.later.capacity(), before);
        let mut expected: Vec<(u64, u32)> = (0..n).map(|v| (key(49, v), v)).collect();
        expected.sort();
        assert_eq!(all(moves), expected);
    }

    #[test]
    fn a_cancelled_run_ends_it() {
        let run = Run::new(Some(1), None).unwrap();
        let mut moves: Moves<u64> = Moves::new(None, &run);
        run.cancel();
        moves.work = STRIDE;
        assert!(matches!(moves.next(), Err(Error::Cancelled)));
    }
}
