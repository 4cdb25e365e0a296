//! A run that is divided among replicas, on one machine or on several.
//!
//! All replicas run the same program on the same state, and each has only the lists of a range of the
//! vertices. A decision from lists is a *proposal*. A replica makes the proposals for its own vertices, and
//! gets all others from the replicas that have the lists ([`Division::share`]). Every replica commits what
//! one thread would commit on one machine. So all replicas have the state of a single machine after every
//! round, for any number of replicas and any ranges. Sums over replicas are of integers.
//!
//! **Messages.** Every exchange is one superstep: each replica sends the same bytes to all. Only proposals
//! that changed are sent, and one bit for each of the others. Every message begins with the number of the
//! superstep and the kind of its content. Replicas that differ in these have diverged, and the run ends.
//!
//! **Memory.** A copy of the replica's own proposals during an exchange, and the messages.
//!
//! **Source.** Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", 1990.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::{Pod, cast_slice, pod_read_unaligned};

use crate::base::{Error, Result, reserved};

/// The way to the other replicas.
pub trait Peers: Send + Sync {
    /// Sends `mine` to all replicas. Returns the messages of all replicas, in the order of their numbers, its
    /// own included.
    fn exchange(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>>;

    /// The folder that all replicas see.
    fn folder(&self) -> &Path;
}

/// Bytes of a message before its content: the superstep, and the size of an item.
const HEADER: usize = 16;

/// A range of the vertices of a graph for each replica.
#[derive(Clone)]
pub struct Division {
    peers: Arc<dyn Peers>,
    steps: Arc<AtomicU64>,
    number: usize,
    /// The first vertex of each replica, and the number of all vertices.
    starts: Arc<[u32]>,
}

impl fmt::Debug for Division {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "replica {} of {}", self.number, self.count())
    }
}

impl Division {
    /// The division whose replica `number` this is. `starts` has the first vertex of each replica, and the
    /// number of all vertices.
    pub fn new(peers: Arc<dyn Peers>, number: usize, starts: Vec<u32>) -> Result<Self> {
        if number + 1 >= starts.len() || starts[0] != 0 || !starts.is_sorted() {
            return Err(Error::Internal(format!("replica {number} of the ranges {starts:?}")));
        }
        Ok(Self { peers, steps: Arc::default(), number, starts: starts.into() })
    }

    /// The division of another graph, whose vertices begin at `starts`, among the same replicas.
    pub fn of(&self, starts: Vec<u32>) -> Self {
        Self { starts: starts.into(), ..self.clone() }
    }

    /// The way to the other replicas.
    pub fn peers(&self) -> Arc<dyn Peers> {
        self.peers.clone()
    }

    /// The number of this replica.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Number of replicas.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The folder that all replicas see.
    pub fn folder(&self) -> &Path {
        self.peers.folder()
    }

    /// The vertices of a replica.
    pub fn range(&self, replica: usize) -> Range<u32> {
        self.starts[replica]..self.starts[replica + 1]
    }

    /// The vertices whose lists are here.
    pub fn here(&self) -> Range<u32> {
        self.range(self.number)
    }

    /// Sends `mine`, and returns the items of all replicas in the order of their numbers.
    pub fn all<T: Pod>(&self, mine: &[T]) -> Result<Vec<Vec<T>>> {
        let step = self.steps.fetch_add(1, Relaxed);
        let header = [step, size_of::<T>() as u64];
        let mut message = reserved(HEADER + size_of_val(mine), "a message to the other replicas")?;
        message.extend_from_slice(cast_slice(&header));
        message.extend_from_slice(cast_slice(mine));
        let sent = self.peers.exchange(message)?;
        let items = |message: &Vec<u8>| {
            let (its, content) = message.split_at_checked(HEADER)?;
            let whole = its == cast_slice::<_, u8>(&header) && content.len().is_multiple_of(size_of::<T>());
            whole.then(|| content.chunks_exact(size_of::<T>()).map(pod_read_unaligned).collect())
        };
        let items: Option<Vec<Vec<T>>> = sent.iter().map(items).collect();
        items.filter(|items| items.len() == self.count()).ok_or_else(diverged)
    }

    /// The items of all replicas, those of the first replica first.
    pub fn concatenated<T: Pod>(&self, mine: &[T]) -> Result<Vec<T>> {
        Ok(self.all(mine)?.concat())
    }

    /// Sends `mine` from the first replica, and returns its items in all replicas.
    pub fn of_first<T: Pod>(&self, mine: &[T]) -> Result<Vec<T>> {
        let all = self.all(if self.number == 0 { mine } else { &[] })?;
        Ok(all.into_iter().next().unwrap_or_default())
    }

    /// The sum over all replicas.
    pub fn sum(&self, mine: u64) -> Result<u64> {
        Ok(self.concatenated(&[mine])?.into_iter().fold(0, u64::wrapping_add))
    }

    /// Refuses to go on if the replicas do not have the same number.
    pub fn agree(&self, number: u64) -> Result<()> {
        let all = self.concatenated(&[number])?;
        if all.iter().all(|&other| other == number) { Ok(()) } else { Err(diverged()) }
    }

    /// The ranges of `blocks`, which ascend, that belong to a replica.
    pub fn ranges(
        &self,
        replica: usize,
        blocks: impl Iterator<Item = Range<u32>> + Clone,
    ) -> impl Iterator<Item = Range<u32>> + Clone {
        let here = self.range(replica);
        let within = move |block: Range<u32>| block.start.max(here.start)..block.end.min(here.end);
        blocks.map(within).filter(|range| !range.is_empty())
    }

    /// Has this replica make the proposals for its vertices in `blocks`, which ascend, and exchanges them
    /// with all replicas. `make` gets all proposals.
    pub fn share<T: Pod>(
        &self,
        blocks: impl Iterator<Item = Range<u32>> + Clone,
        proposals: &mut [T],
        make: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<()> {
        if size_of::<T>() == 0 {
            return make(proposals);
        }
        let own = || self.ranges(self.number, blocks.clone());
        let items = own().map(|range| range.len()).sum();
        let mut before = reserved(items, "proposals before a round")?;
        own()
            .for_each(|range| before.extend_from_slice(&proposals[range.start as usize..range.end as usize]));
        make(proposals)?;
        let now = own().flatten().map(|v| proposals[v as usize]);
        let message = changes(&before, now)?;
        drop(before);
        for (replica, message) in self.all(&message)?.into_iter().enumerate() {
            if replica != self.number {
                let vertices = self.ranges(replica, blocks.clone()).flatten();
                apply(&message, vertices, proposals).ok_or_else(diverged)?;
            }
        }
        Ok(())
    }
}

/// The replicas do not do the same.
fn diverged() -> Error {
    Error::Internal("the replicas of a divided run differ".into())
}

/// One bit per item says whether it changed. The new values of the changed items follow.
fn changes<T: Pod>(before: &[T], now: impl Iterator<Item = T> + Clone) -> Result<Vec<u8>> {
    let differs = |(old, new): (&T, T)| bytemuck::bytes_of(old) != bytemuck::bytes_of(&new);
    let count = before.iter().zip(now.clone()).filter(|&(old, new)| differs((old, new))).count();
    let bits = before.len().div_ceil(8);
    let mut message = reserved(bits + count * size_of::<T>(), "changed proposals")?;
    message.resize(bits, 0_u8);
    for (index, (old, new)) in before.iter().zip(now).enumerate() {
        if differs((old, new)) {
            message[index / 8] |= 1 << (index % 8);
            message.extend_from_slice(bytemuck::bytes_of(&new));
        }
    }
    Ok(message)
}

/// Sets the items of these vertices that changed. `None` if the message is of other vertices.
fn apply<T: Pod>(message: &[u8], vertices: impl Iterator<Item = u32> + Clone, items: &mut [T]) -> Option<()> {
    let bits = vertices.clone().count().div_ceil(8);
    let (changed, values) = message.split_at_checked(bits)?;
    let mut values = values.chunks_exact(size_of::<T>());
    for (index, v) in vertices.enumerate() {
        if changed[index / 8] >> (index % 8) & 1 == 1 {
            items[v as usize] = pod_read_unaligned(values.next()?);
        }
    }
    values.next().is_none().then_some(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::sync::{Barrier, Mutex};

    use super::*;

    /// Replicas in threads of one process.
    pub(crate) struct Threads {
        folder: PathBuf,
        messages: Vec<Mutex<Vec<u8>>>,
        barrier: Barrier,
    }

    struct Thread(Arc<Threads>, usize);

    impl Peers for Thread {
        fn exchange(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
            *self.0.messages[self.1].lock().unwrap() = mine;
            self.0.barrier.wait();
            let all = self.0.messages.iter().map(|message| message.lock().unwrap().clone()).collect();
            self.0.barrier.wait();
            Ok(all)
        }

        fn folder(&self) -> &Path {
            &self.0.folder
        }
    }

    /// Runs all replicas of a graph with these ranges, and returns the result of each.
    pub(crate) fn replicas<R: Send>(
        starts: &[u32],
        folder: &Path,
        work: impl Fn(Division) -> R + Sync,
    ) -> Vec<R> {
        let count = starts.len() - 1;
        let messages = (0..count).map(|_| Mutex::default()).collect();
        let threads = Arc::new(Threads { folder: folder.into(), messages, barrier: Barrier::new(count) });
        std::thread::scope(|scope| {
            let start = |number: usize| {
                let peers = Arc::new(Thread(threads.clone(), number));
                let division = Division::new(peers, number, starts.to_vec()).unwrap();
                let work = &work;
                scope.spawn(move || work(division))
            };
            let all: Vec<_> = (0..count).map(start).collect();
            all.into_iter().map(|replica| replica.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_replicas_have_the_proposals_of_one_machine() {
        let n = 100_u32;
        let blocks = [3..9, 20..21, 40..77, 90..100];
        for starts in [vec![0, n], vec![0, 5, 50, n], vec![0, 0, 30, 30, n]] {
            let all = replicas(&starts, Path::new(""), |division| {
                let mut proposals: Vec<[u32; 2]> = (0..n).map(|v| [v, 0]).collect();
                for round in 0..4_u32 {
                    let make = |items: &mut [[u32; 2]]| {
                        for v in division.ranges(division.number(), blocks.iter().cloned()).flatten() {
                            items[v as usize] = [v / (1 + round), round * u32::from(v % 3 == 0)];
                        }
                        Ok(())
                    };
                    division.share(blocks.iter().cloned(), &mut proposals, make).unwrap();
                }
                assert_eq!(division.sum(u64::from(division.here().end)).unwrap(), {
                    starts[1..].iter().map(|&end| u64::from(end)).sum()
                });
                let here: Vec<u32> = division.here().collect();
                assert_eq!(division.concatenated(&here).unwrap(), (0..n).collect::<Vec<_>>());
                assert_eq!(division.of_first(&[division.number() as u32 + 7]).unwrap(), [7]);
                division.agree(5).unwrap();
                proposals
            });
            let expected = |v: u32| match blocks.iter().any(|block| block.contains(&v)) {
                true => [v / 4, 3 * u32::from(v.is_multiple_of(3))],
                false => [v, 0],
            };
            for proposals in all {
                assert_eq!(proposals, (0..n).map(expected).collect::<Vec<_>>(), "{starts:?}");
            }
        }
    }

    #[test]
    fn replicas_that_differ_are_told() {
        let outcomes =
            replicas(&[0, 5, 10], Path::new(""), |division| division.agree(division.number() as u64));
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Internal(_)))));
        let outcomes = replicas(&[0, 5, 10], Path::new(""), |division| match division.number() {
            0 => division.all::<u32>(&[1]).map(|_| ()),
            _ => division.all::<u64>(&[1]).map(|_| ()),
        });
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Internal(_)))));
    }
}
