//! Local search: moves of single vertices, some of which may be losses, and a return to the best state found.
//!
//! A round takes the vertices on the boundary by descending gain. It moves each at most once, to the part
//! that is best for it among those with slack. It ends when `patience` moves in a row have improved nothing.
//! Then all moves after the best state are undone. Rounds follow as long as they gain.
//!
//! The queue holds upper bounds of the gains, which a neighbour's move updates in constant time. The gain
//! itself is computed when a vertex reaches the head of the queue. If the gain is lower than its bound, the
//! vertex is queued again. A vertex that fits nowhere is dropped. Moves of its neighbours queue it again.
//!
//! Where gains come from is up to [`MoveGains`]. A small graph has a table of them ([`GainTable`]). On a
//! large one whose parts have short boundaries they are summed when they are asked for ([`BoundaryGains`]). A
//! round looks only at vertices that are or were on the boundary.
//!
//! **Parallelism.** The gains at the start of a round. Moves are made one by one.
//!
//! **Memory.** 9 bytes per vertex, and 28 for each that is on the boundary, beside the gains, and 12 per part
//! and thread.
//!
//! **Source.** Fiduccia and Mattheyses, DAC 1982; the k-way form as in Osipov and Sanders, "n-Level Graph
//! Partitioning", ESA 2010.

use std::collections::BinaryHeap;

use super::Refiner;
use super::gains::MoveGains;
use super::gains::boundary::BoundaryGains;
use super::gains::table::GainTable;
use crate::algorithms::multilevel::model::{Assignment, Connections, Graph, Problem, Quality, Size};
use crate::base::{Buffer, Result, Run, splitmix64, zeros};
use crate::exec::{scratches, share};
use crate::sets::Bits;

/// A round that gains less than the cut divided by this is the last.
const LEAST_SHARE: u64 = 1000;
/// The key of a vertex that is not in the queue.
const ABSENT: u64 = 0;
/// Bits of a key for the random tie-break, below the gain. A gain is at most 2^32 either way.
const TIE_BITS: u32 = 30;
/// Added to gains in keys, so that no key is negative.
const SHIFT: i64 = 1 << 33;

/// Vertices whose gains a thread computes at a time.
const CHUNK: usize = 1 << 10;

/// A boundary is short if its vertices have at most 1/SHORT of all entries.
const SHORT: u64 = 2;

/// When the local search gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Moves without an improvement that end a round.
    pub moves: usize,
    /// Most rounds.
    pub rounds: u64,
}

impl Limits {
    /// The limits for a level of the uncoarsening.
    pub(crate) fn of<const D: usize>(graph: &Graph<D>) -> Self {
        Self { moves: (graph.len() / 50).clamp(100, 1000), rounds: 8 }
    }
}

/// FM on graphs with a table of at most this many gains, and on those with short boundaries.
pub struct Fm {
    /// Most gains in the table.
    pub table: u64,
    /// Whether short boundaries count. Lists around them are read in any order, which files are too slow for.
    pub boundaries: bool,
}

impl Fm {
    fn has_table<const D: usize>(&self, problem: &Problem<D>) -> bool {
        problem.graph.len() as u64 * problem.caps.len() as u64 <= self.table
    }
}

impl<const D: usize> Refiner<D> for Fm {
    fn applies(&self, problem: &Problem<D>, _: &Assignment<D>) -> bool {
        self.boundaries || self.has_table(problem)
    }

    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        let &Problem { graph, caps, seed, run, .. } = problem;
        let limits = Limits::of(graph);
        if self.has_table(problem) {
            let mut table = GainTable::new(graph, assignment, caps, run)?;
            refine(&mut table, limits, seed, run)?;
            return Ok(Some(table.quality()));
        }
        let (boundary, cut) = assignment.boundary(graph, run)?;
        let entries: u64 = boundary.iter().map(|&v| graph.degree(v) as u64).sum();
        let mut gains = BoundaryGains::new(graph, assignment, caps, cut);
        if entries.saturating_mul(SHORT) <= graph.num_entries() {
            LocalSearch::new(&gains, boundary, run)?.refine(&mut gains, limits, seed, run)?;
        }
        Ok(Some(gains.quality()))
    }

    /// The table, unless it is too large, and the queue.
    fn memory(&self, size: &Size) -> u64 {
        let gains = Some(size.n.saturating_mul(size.k)).filter(|&gains| gains <= self.table);
        4 * gains.unwrap_or(0) + 40 * size.n
    }
}

/// Improves the table until it does not pay any more.
pub(crate) fn refine<const D: usize>(
    table: &mut GainTable<D>,
    limits: Limits,
    seed: u64,
    run: &Run,
) -> Result<()> {
    let near = (0..table.graph.len() as u32).filter(|&v| table.may_begin(v)).collect();
    LocalSearch::new(table, near, run)?.refine(table, limits, seed, run)
}

struct LocalSearch {
    /// Whether a vertex had its move in this round.
    moved: Vec<bool>,
    /// The valid key of each vertex in the queue.
    keys: Buffer<u64>,
    /// Upper bound of the gain with a random tie-break, and the vertex.
    queue: BinaryHeap<(u64, u32)>,
    /// Vertices that are or were on the boundary, or in parts above a cap.
    near: Vec<u32>,
    /// The vertices of `near` as a set.
    is_near: Bits,
    /// Moves of this round: vertex, and the part it left.
    made: Vec<(u32, u32)>,
    /// Scratch space of each thread for gains. The first one is that of the thread which makes the moves.
    scratches: Vec<Connections>,
    seed: u64,
}

impl LocalSearch {
    /// A search that begins at the vertices that are `near` the boundary.
    fn new<'a, const D: usize>(gains: &impl MoveGains<'a, D>, near: Vec<u32>, run: &Run) -> Result<Self> {
        let (graph, n) = (gains.graph(), gains.graph().len());
        // An estimate: vertices of mean degree.
        let entries = (near.len() as u64).saturating_mul(graph.num_entries()) / n.max(1) as u64;
        let scratches = scratches(run, entries, || Connections::new(gains.assignment()))?;
        let keys = Buffer::zeroed(n, "queue of moves")?;
        let mut is_near = Bits::new(n as u64, "vertices near the boundary")?;
        near.iter().for_each(|&v| is_near.insert(v));
        let (queue, made) = (BinaryHeap::new(), Vec::new());
        Ok(Self { moved: vec![false; n], keys, queue, near, is_near, made, scratches, seed: 0 })
    }

    fn refine<'a, const D: usize>(
        mut self,
        gains: &mut impl MoveGains<'a, D>,
        limits: Limits,
        seed: u64,
        run: &Run,
    ) -> Result<()> {
        for round in 0..limits.rounds {
            let before = gains.quality();
            self.seed = splitmix64(seed ^ round);
            self.round(gains, limits.moves, run)?;
            let after = gains.quality();
            if after.excess >= before.excess && (before.cut - after.cut) * LEAST_SHARE <= before.cut {
                break;
            }
        }
        Ok(())
    }

    fn round<'a, const D: usize>(
        &mut self,
        gains: &mut impl MoveGains<'a, D>,
        patience: usize,
        run: &Run,
    ) -> Result<()> {
        self.fill(gains, run)?;
        let mut best = (gains.quality(), 0);
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
            let Some((to, gain)) = gains.best_move(&mut self.scratches[0], v) else {
                self.keys[v as usize] = ABSENT;
                continue;
            };
            if gain < bound(key) {
                self.push(v, gain);
                continue;
            }
            let from = gains.assignment().part(v);
            gains.shift(&mut self.scratches[0], v, to);
            self.moved[v as usize] = true;
            self.made.push((v, from));
            self.tell_neighbours(gains, v, [from, to]);
            let quality = gains.quality();
            if quality.beats(best.0) {
                best = (quality, self.made.len());
            } else if self.made.len() - best.1 > patience {
                break;
            }
            work += gains.graph().degree(v) + gains.assignment().loads.len();
        }
        for &(v, _) in &self.made {
            self.moved[v as usize] = false;
        }
        for (v, from) in self.made.drain(best.1..).rev() {
            gains.shift(&mut self.scratches[0], v, from);
        }
        self.made.clear();
        Ok(())
    }

    /// Queues the vertices that are near the boundary.
    fn fill<'a, const D: usize>(&mut self, gains: &impl MoveGains<'a, D>, run: &Run) -> Result<()> {
        let mut scratches = std::mem::take(&mut self.scratches);
        let mut first: Vec<u64> = zeros(self.near.len(), "gains of vertices near the boundary")?;
        share(
            &mut scratches,
            self.near.chunks(CHUNK).zip(first.chunks_mut(CHUNK)),
            run,
            |scratch, (near, keys)| {
                for (&v, key) in near.iter().zip(keys) {
                    let best = if gains.may_begin(v) { gains.best_move(scratch, v) } else { None };
                    *key = best.map_or(ABSENT, |(_, gain)| self.key(v, gain));
                }
                run.check()
            },
        )?;
        self.scratches = scratches;
        let mut queue = std::mem::take(&mut self.queue).into_vec();
        queue.clear();
        for (&v, key) in self.near.iter().zip(first) {
            self.keys[v as usize] = key;
            if key != ABSENT {
                queue.push((key, v));
            }
        }
        self.queue = BinaryHeap::from(queue);
        Ok(())
    }

    /// Queues the neighbours whose gain rose when `v` moved.
    fn tell_neighbours<'a, const D: usize>(
        &mut self,
        gains: &mut impl MoveGains<'a, D>,
        v: u32,
        parts: [u32; 2],
    ) {
        let graph = gains.graph();
        graph.each(v, |u, w| {
            if gains.assignment().part(u) == parts[1] || self.moved[u as usize] {
                return;
            }
            let old = (self.keys[u as usize] != ABSENT).then(|| bound(self.keys[u as usize]));
            if let Some(gain) = gains.raised(&mut self.scratches[0], u, parts, w, old)
                && old.is_none_or(|old| gain > old)
            {
                self.push(u, gain);
                if !self.is_near.contains(u) {
                    self.is_near.insert(u);
                    self.near.push(u);
                }
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
