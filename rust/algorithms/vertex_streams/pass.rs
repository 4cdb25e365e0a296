//! One pass over the vertices.

use super::room::Room;
use super::score::Score;
use crate::base::NONE;
use crate::base::buffer::{Buffer, reserved};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::exec::batches::{Decider, decide_all};
use crate::graph::csr::Csr;

/// A pass over the vertices in order of their ids.
pub struct Pass<'a, S: Score, R> {
    csr: &'a Csr,
    score: &'a S,
    /// What the pass fills.
    room: R,
    /// The part of each vertex: where this pass put it; before, where the pass before did.
    part_of: &'a mut Buffer<u32>,
    prices: Vec<S::Price>,
    /// Whether nobody had a part before: then the neighbours above a vertex need no look.
    first: bool,
    /// Vertices below have their parts.
    placed: u32,
}

/// Neighbours in each part, and the parts with any.
pub struct Counts {
    /// All zero between two vertices; behind the last part, the neighbours that are nowhere.
    of_part: Vec<u32>,
    parts: Vec<u32>,
}

/// What is decided about a vertex in a frozen state.
pub enum Decision {
    /// The part, as long as it has room.
    Part(u32),
    /// Whatever part is the least loaded.
    Least,
    /// To ask again, since a neighbour finds its part in the same batch.
    Again,
}

impl<'a, S: Score, R: Room> Pass<'a, S, R> {
    /// A pass into the empty `room`; `first` says whether all of `part_of` is [`NONE`].
    pub fn new(
        csr: &'a Csr,
        score: &'a S,
        room: R,
        k: u32,
        part_of: &'a mut Buffer<u32>,
        first: bool,
    ) -> Result<Self> {
        let mut prices = reserved(k as usize, "prices of the parts")?;
        prices.resize(k as usize, score.price(0));
        Ok(Self { csr, score, room, part_of, prices, first, placed: 0 })
    }

    /// Places all vertices, in batches of `batch`, and returns the room that is left.
    pub fn place_all(mut self, batch: usize, run: &Run) -> Result<R> {
        let n = self.csr.num_vertices() as u32;
        decide_all(&mut self, 0..n, batch, run)?;
        Ok(self.room)
    }

    /// The neighbours of `v` that may have a part.
    #[inline(always)]
    fn neighbours(&self, v: u32) -> &[u32] {
        let all = self.csr.neighbours(v);
        if !self.first {
            return all;
        }
        &all[..all.partition_point(|&neighbour| neighbour < v)]
    }

    /// The best part for `v`, and how many neighbours it holds: the highest value, then the lowest load, then the
    /// lowest part. Of the parts without neighbours, the least loaded is the best, so that nobody looks at the others.
    #[inline(always)]
    fn best(&self, counts: &mut Counts, neighbours: &[u32], v: u32) -> Option<(u32, u32)> {
        let touched = counts.count(self.part_of, neighbours);
        let value = |part: u32, count: u32| self.score.value(count, self.prices[part as usize]);
        let mut best = self.room.least(v).map(|part| {
            let count = counts.of_part[part as usize];
            (value(part, count), part, count)
        });
        for &part in &counts.parts[..touched] {
            let count = std::mem::take(&mut counts.of_part[part as usize]);
            if part as usize == self.prices.len() || !self.room.fits(part, v) {
                continue;
            }
            let value = value(part, count);
            let better = best.as_ref().is_none_or(|&(ref most, first, _)| {
                value > *most
                    || value == *most && (self.room.load(part), part) < (self.room.load(first), first)
            });
            if better {
                best = Some((value, part, count));
            }
        }
        best.map(|(_, part, count)| (part, count))
    }
}

impl<S: Score, R: Room> Decider for Pass<'_, S, R> {
    type Scratch = Counts;
    type Decision = Decision;

    fn scratch(&self) -> Result<Counts> {
        Counts::new(self.prices.len())
    }

    #[inline(always)]
    fn decide(&self, counts: &mut Counts, v: u32) -> Decision {
        let neighbours = self.neighbours(v);
        if self.first && neighbours.last().is_some_and(|&neighbour| neighbour >= self.placed) {
            return Decision::Again;
        }
        match self.best(counts, neighbours, v) {
            Some((part, 1..)) => Decision::Part(part),
            _ => Decision::Least,
        }
    }

    #[inline(always)]
    fn commit(&mut self, counts: &mut Counts, v: u32, decision: Decision) {
        let part = match decision {
            Decision::Part(part) if self.room.fits(part, v) => Some(part),
            Decision::Least => self.room.least(v),
            _ => self.best(counts, self.neighbours(v), v).map(|(part, _)| part),
        };
        if let Some(part) = part {
            self.room.add(part, v);
            self.prices[part as usize] = self.score.price(self.room.load(part));
        }
        self.part_of[v as usize] = part.unwrap_or(NONE);
        self.placed = v + 1;
    }

    #[inline(always)]
    fn work(&self, v: u32) -> u64 {
        1 + u64::from(self.csr.degree(v))
    }
}

impl Counts {
    fn new(k: usize) -> Result<Self> {
        let mut counts = Self {
            of_part: reserved(k + 1, "neighbours in each part")?,
            parts: reserved(k + 2, "parts with neighbours")?,
        };
        counts.of_part.resize(k + 1, 0);
        counts.parts.resize(k + 2, 0);
        Ok(counts)
    }

    /// Counts neighbours by their parts, and returns how many parts there are.
    #[inline(always)]
    fn count(&mut self, part_of: &[u32], neighbours: &[u32]) -> usize {
        let nowhere = self.of_part.len() as u32 - 1;
        let mut touched = 0;
        for &neighbour in neighbours {
            let part = part_of[neighbour as usize].min(nowhere);
            // Written in any case, and overwritten unless it is new: cheaper than a branch.
            self.parts[touched] = part;
            let count = &mut self.of_part[part as usize];
            touched += usize::from(*count == 0);
            *count += 1;
        }
        touched
    }
}
