//! Local search: moves of single vertices, some of which may be losses, and a return to the best state met.
//!
//! A round takes the vertices on the boundary by descending gain, moves each at most once to the part that is best for
//! it among those with room, and ends when `patience` moves in a row have improved nothing; then all moves after the best
//! state are undone. Rounds follow as long as they gain.
//!
//! Gains are kept as the ties of every vertex to every part, so that a move costs its degree. The queue is lazy: a vertex
//! whose gain rose is queued again, one whose gain fell is found out when its turn comes. A vertex that fits nowhere is
//! dropped; its neighbours' moves bring it back.
//!
//! **Source.** Fiduccia and Mattheyses, DAC 1982; the k-way form as in Osipov and Sanders, "n-Level Graph
//! Partitioning", ESA 2010.

use std::collections::BinaryHeap;

use super::state::{Quality, State};
use crate::error::Result;
use crate::random::splitmix64;
use crate::run::Run;

/// Rounds at most.
const ROUNDS: u64 = 8;
/// A round that gains less than one part in so many of the cut is the last.
const LEAST_SHARE: u64 = 1000;
/// Above this degree, a move tells only those neighbours whose gain it raises most.
const LOUD: usize = 512;

/// Improves the state until it does not pay any more.
pub fn refine(state: &mut State, patience: usize, seed: u64, run: &Run) -> Result<()> {
    let mut search =
        Search { moved: vec![false; state.graph.len()], queue: BinaryHeap::new(), made: Vec::new(), seed };
    for round in 0..ROUNDS {
        let before = state.quality();
        search.seed = splitmix64(seed ^ round);
        search.round(state, patience, run)?;
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
    /// Gain, a random number for ties, vertex.
    queue: BinaryHeap<(i64, u32, u32)>,
    /// Moves of this round: vertex, and the part it left.
    made: Vec<(u32, u32)>,
    seed: u64,
}

impl Search {
    fn round(&mut self, state: &mut State, patience: usize, run: &Run) -> Result<()> {
        self.made.clear();
        self.queue.clear();
        let overloaded: Vec<bool> = state
            .loads
            .iter()
            .zip(state.caps)
            .map(|(load, cap)| load[0] > cap[0] || load[1] > cap[1])
            .collect();
        for v in 0..state.graph.len() as u32 {
            if state.on_boundary(v) || overloaded[state.part(v)] {
                self.enqueue(state, v);
            }
        }
        run.advance(0)?;
        let mut best = (state.quality(), 0);
        let mut work = 0;
        while let Some((gain, _, v)) = self.queue.pop() {
            if self.moved[v as usize] {
                continue;
            }
            let Some((to, now)) = state.best_move(v) else { continue };
            if now < gain {
                // What others did since has made it worse; it waits for its new turn.
                self.queue.push((now, self.lot(v), v));
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
        Ok(())
    }

    fn enqueue(&mut self, state: &State, v: u32) {
        if let Some((_, gain)) = state.best_move(v) {
            self.queue.push((gain, self.lot(v), v));
        }
    }

    /// Queues the neighbours whose gain rose when `v` went from `from` to `to`.
    fn tell_neighbours(&mut self, state: &State, v: u32, from: usize, to: usize) {
        let edges = state.graph.edges(v);
        let loud = edges.len() > LOUD;
        for &[u, w] in edges {
            if self.moved[u as usize] {
                continue;
            }
            let (own, ties) = (state.part(u), state.ties(u));
            if own == from {
                // Less holds it where it is, whatever part it goes to.
                if !loud || ties[to] >= ties[from] {
                    self.enqueue(state, u);
                }
            } else if own != to && (!loud || ties[to] >= ties[own]) && ties[to] >= w {
                self.queue.push((i64::from(ties[to]) - i64::from(ties[own]), self.lot(u), u));
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
