//! Local search: moves of single vertices, some of which may be losses, and a return to the best state found.
//!
//! A round takes the vertices on the boundary by descending gain. It moves each at most once, to the part
//! that is best for it among those with slack. It ends when `patience` moves in a row have improved nothing.
//! Then all moves after the best state are undone. Rounds follow as long as they gain.
//!
//! Gains are kept as the connection of every vertex to every part, so that a move costs its degree. The queue
//! holds upper bounds of the gains, which a neighbour's move updates in constant time. The gain itself is
//! computed when a vertex reaches the head of the queue. If the gain is lower than its bound, the vertex is
//! queued again. A vertex that fits nowhere is dropped. Moves of its neighbours queue it again.
//!
//! **Source.** Fiduccia and Mattheyses, DAC 1982; the k-way form as in Osipov and Sanders, "n-Level Graph
//! Partitioning", ESA 2010.

use std::collections::BinaryHeap;

use super::assignment::{Assignment, Quality};
use super::gain_table::GainTable;
use super::graph::Graph;
use super::problem::Problem;
use super::refiner::{Refiner, Size};
use crate::base::{Buffer, Result, Run, splitmix64};

/// A round that gains less than the cut divided by this is the last.
const LEAST_SHARE: u64 = 1000;
/// The key of a vertex that is not in the queue.
const ABSENT: u64 = 0;
/// Bits of a key for the random tie-break, below the gain. A gain is at most 2^32 either way.
const TIE_BITS: u32 = 30;
/// What is added to gains in keys, so that none is negative.
const SHIFT: i64 = 1 << 33;

/// When the local search gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Moves without an improvement that end a round.
    pub moves: usize,
    /// Rounds at most.
    pub rounds: u64,
}

impl Limits {
    /// The limits for a level of the uncoarsening.
    pub(crate) fn of<const D: usize>(graph: &Graph<D>) -> Self {
        Self { moves: (graph.len() / 50).clamp(100, 1000), rounds: 8 }
    }
}

/// FM on graphs with a table of at most this many gains.
pub(crate) struct Fm {
    /// Gains at most.
    pub table: u64,
}

impl<const D: usize> Refiner<D> for Fm {
    fn applies(&self, problem: &Problem<D>, _: &Assignment<D>) -> bool {
        problem.graph.len() as u64 * problem.caps.len() as u64 <= self.table
    }

    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        let &Problem { graph, caps, seed, run, .. } = problem;
        let mut table = GainTable::new(graph, assignment, caps, run)?;
        refine(&mut table, Limits::of(graph), seed, run)?;
        Ok(Some(table.quality()))
    }

    /// The table, and the queue.
    fn memory(&self, size: &Size) -> u64 {
        4 * self.table.min(size.n.saturating_mul(size.k)) + 40 * size.n.min(self.table)
    }
}

/// Improves the table until it does not pay any more.
pub(crate) fn refine<const D: usize>(
    table: &mut GainTable<D>,
    limits: Limits,
    seed: u64,
    run: &Run,
) -> Result<()> {
    let n = table.graph.len();
    let keys = Buffer::zeroed(n, "queue of moves")?;
    let moved = vec![false; n];
    let mut search = LocalSearch { moved, keys, queue: BinaryHeap::new(), made: Vec::new(), seed };
    for round in 0..limits.rounds {
        let before = table.quality();
        search.seed = splitmix64(seed ^ round);
        search.round(table, limits.moves, run)?;
        let after = table.quality();
        if after.excess >= before.excess && (before.cut - after.cut) * LEAST_SHARE <= before.cut {
            break;
        }
    }
    Ok(())
}

struct LocalSearch {
    /// Whether a vertex had its move in this round.
    moved: Vec<bool>,
    /// The valid key of each vertex in the queue.
    keys: Buffer<u64>,
    /// Upper bound of the gain with a random tie-break, and the vertex.
    queue: BinaryHeap<(u64, u32)>,
    /// Moves of this round: vertex, and the part it left.
    made: Vec<(u32, u32)>,
    seed: u64,
}

impl LocalSearch {
    fn round<const D: usize>(&mut self, table: &mut GainTable<D>, patience: usize, run: &Run) -> Result<()> {
        self.fill(table, run)?;
        let mut best = (table.quality(), 0);
        let mut work = 0;
        while let Some((key, v)) = self.queue.pop() {
            work += 1;
            if work > 1 << 16 {
                work = 0;
                run.check()?;
            }
            if self.moved[v as usize] || self.keys[v as usize] != key {
                continue;
            }
            let Some((to, gain)) = table.best_move(v) else {
                self.keys[v as usize] = ABSENT;
                continue;
            };
            if gain < bound(key) {
                self.push(v, gain);
                continue;
            }
            let from = table.part(v);
            table.shift(v, to);
            self.moved[v as usize] = true;
            self.made.push((v, from as u32));
            self.tell_neighbours(table, v, from, to);
            let quality = table.quality();
            if quality.beats(best.0) {
                best = (quality, self.made.len());
            } else if self.made.len() - best.1 > patience {
                break;
            }
            work += table.graph.degree(v) + table.k;
        }
        for &(v, _) in &self.made {
            self.moved[v as usize] = false;
        }
        for (v, from) in self.made.drain(best.1..).rev() {
            table.shift(v, from as usize);
        }
        self.made.clear();
        Ok(())
    }

    /// Queues the vertices on the boundary and those of overloaded parts.
    fn fill<const D: usize>(&mut self, table: &GainTable<D>, run: &Run) -> Result<()> {
        let mut queue = std::mem::take(&mut self.queue).into_vec();
        queue.clear();
        for v in 0..table.graph.len() as u32 {
            self.keys[v as usize] = ABSENT;
            if (table.on_boundary(v) || table.exceeds(table.part(v)))
                && let Some((_, gain)) = table.best_move(v)
            {
                self.keys[v as usize] = self.key(v, gain);
                queue.push((self.keys[v as usize], v));
            }
            if v % 4096 == 0 {
                run.check()?;
            }
        }
        self.queue = BinaryHeap::from(queue);
        Ok(())
    }

    /// Queues the neighbours whose gain rose when `v` went from `from` to `to`.
    fn tell_neighbours<const D: usize>(&mut self, table: &GainTable<D>, v: u32, from: usize, to: usize) {
        let price = table.assignment.price(from as u32, to as u32);
        table.graph.each(v, |u, w| {
            let own = table.part(u);
            if own == to || self.moved[u as usize] {
                return;
            }
            let (connections, old) = (table.connections(u), self.keys[u as usize]);
            let mut gain = i64::from(connections[to]) - i64::from(connections[own]);
            if (own == from || price > 1) && old != ABSENT {
                // It can leave for any part more easily, or for any on that machine.
                gain = gain.max(bound(old) + i64::from(w) * i64::from(price));
            }
            if old == ABSENT || gain > bound(old) {
                self.push(u, gain);
            }
        });
    }

    /// Queues `v` with a new upper bound of its gain.
    #[inline(always)]
    fn push(&mut self, v: u32, gain: i64) {
        let key = self.key(v, gain);
        self.keys[v as usize] = key;
        self.queue.push((key, v));
    }

    /// Gains come first; vertices of the same gain are in random order.
    #[inline(always)]
    fn key(&self, v: u32, gain: i64) -> u64 {
        ((gain + SHIFT) as u64) << TIE_BITS | splitmix64(self.seed ^ u64::from(v)) >> (u64::BITS - TIE_BITS)
    }
}

/// The bound in a key.
#[inline(always)]
fn bound(key: u64) -> i64 {
    (key >> TIE_BITS) as i64 - SHIFT
}
