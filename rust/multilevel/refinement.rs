//! Local search: moves of single vertices, some of which may be losses, and a return to the best state met.
//!
//! A round takes the vertices on the boundary by descending gain, moves each at most once to the part that is best for
//! it among those with room, and ends when `patience` moves in a row have improved nothing; then all moves after the best
//! state are undone. Rounds follow as long as they gain.
//!
//! Gains are kept as the ties of every vertex to every part, so that a move costs its degree. The queue holds upper
//! bounds of the gains, which a neighbour's move updates in constant time; the gain itself is computed when the turn of a
//! vertex comes, and if it is lower the vertex waits for a later turn. A vertex that fits nowhere is dropped; its
//! neighbours' moves bring it back.
//!
//! **Source.** Fiduccia and Mattheyses, DAC 1982; the k-way form as in Osipov and Sanders, "n-Level Graph
//! Partitioning", ESA 2010.

use std::collections::BinaryHeap;

use super::array::Array;
use super::graph::Graph;
use super::state::{Quality, State};
use crate::error::Result;
use crate::random::splitmix64;
use crate::run::Run;

/// A round that gains less than one part in so many of the cut is the last.
const LEAST_SHARE: u64 = 500;
/// A vertex that is not in the queue.
const ABSENT: i64 = 0;
/// What is added to gains in the queue, so that 0 is none of them.
const SHIFT: i64 = 1 << 40;

/// When the local search gives up.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Moves without an improvement that end a round.
    pub moves: usize,
    /// Rounds at most.
    pub rounds: u64,
}

impl Patience {
    /// That for a graph on the way back.
    pub fn of(graph: &Graph) -> Self {
        Self { moves: (graph.len() / 50).clamp(100, 1000), rounds: 8 }
    }
}

/// Improves the state until it does not pay any more.
pub fn refine(state: &mut State, patience: Patience, seed: u64, run: &Run) -> Result<()> {
    let n = state.graph.len();
    let bounds = Array::zeroed(n, "queue of moves")?;
    let moved = vec![false; n];
    let mut search = Search { moved, bounds, queue: BinaryHeap::new(), made: Vec::new(), seed };
    for round in 0..patience.rounds {
        let before = state.quality();
        search.seed = splitmix64(seed ^ round);
        search.round(state, patience.moves, run)?;
        let after = state.quality();
        if after.excess >= before.excess && (before.cut - after.cut) * LEAST_SHARE <= before.cut {
            break;
        }
    }
    Ok(())
}

struct Search {
    /// Whether a vertex had its move in this round.
    moved: Vec<bool>,
    /// Upper bound of the gain of each vertex in the queue, shifted.
    bounds: Array<i64>,
    /// Bound, a random number for ties, vertex.
    queue: BinaryHeap<(i64, u32, u32)>,
    /// Moves of this round: vertex, and the part it left.
    made: Vec<(u32, u32)>,
    seed: u64,
}

impl Search {
    fn round(&mut self, state: &mut State, patience: usize, run: &Run) -> Result<()> {
        self.fill(state, run)?;
        let mut best = (state.quality(), 0);
        let mut work = 0;
        while let Some((bound, lot, v)) = self.queue.pop() {
            if self.moved[v as usize] || self.bounds[v as usize] != bound {
                continue;
            }
            let Some((to, gain)) = state.best_move(v) else {
                self.bounds[v as usize] = ABSENT;
                continue;
            };
            if gain + SHIFT < bound {
                self.bounds[v as usize] = gain + SHIFT;
                self.queue.push((gain + SHIFT, lot, v));
                continue;
            }
            let from = state.part(v);
            state.shift(v, to);
            self.moved[v as usize] = true;
            self.made.push((v, from as u32));
            self.tell_neighbours(state, v, from, to);
            let quality = state.quality();
            if better(quality, best.0) {
                best = (quality, self.made.len());
            } else if self.made.len() - best.1 > patience {
                break;
            }
            work += state.graph.degree(v) + state.k;
            if work > 1 << 16 {
                work = 0;
                run.advance(0)?;
            }
        }
        for &(v, _) in &self.made {
            self.moved[v as usize] = false;
        }
        for (v, from) in self.made.drain(best.1..).rev() {
            state.shift(v, from as usize);
        }
        self.made.clear();
        Ok(())
    }

    /// Queues the vertices on the boundary and those of overloaded parts.
    fn fill(&mut self, state: &State, run: &Run) -> Result<()> {
        let mut queue = std::mem::take(&mut self.queue).into_vec();
        queue.clear();
        for v in 0..state.graph.len() as u32 {
            self.bounds[v as usize] = ABSENT;
            if (state.on_boundary(v) || state.exceeds(state.part(v)))
                && let Some((_, gain)) = state.best_move(v)
            {
                self.bounds[v as usize] = gain + SHIFT;
                queue.push((gain + SHIFT, self.lot(v), v));
            }
            if v % 4096 == 0 {
                run.advance(0)?;
            }
        }
        self.queue = BinaryHeap::from(queue);
        Ok(())
    }

    /// Queues the neighbours whose gain rose when `v` went from `from` to `to`.
    fn tell_neighbours(&mut self, state: &State, v: u32, from: usize, to: usize) {
        for &[u, w] in state.graph.edges(v) {
            let own = state.part(u);
            if own == to || self.moved[u as usize] {
                continue;
            }
            let (ties, old) = (state.ties(u), self.bounds[u as usize]);
            let mut bound = i64::from(ties[to]) - i64::from(ties[own]) + SHIFT;
            if own == from && old != ABSENT {
                // It can leave for any part more easily.
                bound = bound.max(old + i64::from(w));
            }
            if bound > old {
                self.bounds[u as usize] = bound;
                self.queue.push((bound, self.lot(u), u));
            }
        }
    }

    /// Orders vertices of the same gain.
    fn lot(&self, v: u32) -> u32 {
        splitmix64(self.seed ^ u64::from(v)) as u32
    }
}

/// Loads within their caps count more than the cut.
pub fn better(one: Quality, other: Quality) -> bool {
    one.excess < other.excess - 1e-12 || one.excess <= other.excess + 1e-12 && one.cut < other.cut
}
