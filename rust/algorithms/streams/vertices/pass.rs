//! One pass over the vertices.

use super::score::Score;
use super::slack::Slack;
use crate::base::{Buffer, NONE, Result, Run, reserved};
use crate::exec::{Decider, decide_all};
use crate::graph::Csr;
use crate::sets::SparseSums;

/// A pass over the vertices in order of their ids.
pub(crate) struct Pass<'a, S: Score, R> {
    csr: &'a Csr,
    score: &'a S,
    /// The loads of the parts that the pass fills.
    slack: R,
    /// The part of each vertex: from this pass, or until it gets there, from the pass before.
    part_of: &'a mut Buffer<u32>,
    prices: Vec<S::Price>,
    /// Whether no vertex had a part before. Then neighbours above a vertex need no lookup.
    first: bool,
    /// Vertices below have their parts.
    placed: u32,
}

/// A decision about a vertex in a frozen state.
pub(crate) enum Decision {
    /// The part, as long as it has slack.
    Part(u32),
    /// The least loaded part.
    Least,
    /// Undecided, since a neighbour finds its part in the same batch.
    Again,
}

impl<'a, S: Score, R: Slack> Pass<'a, S, R> {
    /// A pass into `slack`. `first` says whether all of `part_of` is [`NONE`].
    pub(crate) fn new(
        csr: &'a Csr,
        score: &'a S,
        slack: R,
        k: u32,
        part_of: &'a mut Buffer<u32>,
        first: bool,
    ) -> Result<Self> {
        let mut prices = reserved(k as usize, "prices of the parts")?;
        prices.extend((0..k).map(|part| score.price(slack.load(part))));
        Ok(Self { csr, score, slack, part_of, prices, first, placed: 0 })
    }

    /// Places all vertices, in batches of `batch`. Returns the loads of the parts.
    pub(crate) fn place_all(self, batch: usize, run: &Run) -> Result<R> {
        let n = self.csr.num_vertices() as u32;
        self.place(0..n, batch, run)
    }

    /// Places these vertices, which ascend.
    pub(crate) fn place(
        mut self,
        vertices: impl Iterator<Item = u32> + Send,
        batch: usize,
        run: &Run,
    ) -> Result<R> {
        decide_all(&mut self, vertices, batch, run)?;
        Ok(self.slack)
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

    /// The best part for `v`, and how many neighbours it holds: the highest value, then the lowest load, then
    /// the lowest part. The least loaded part is the best of all parts without neighbours, so the others are
    /// not examined.
    #[inline(always)]
    fn best(&self, counts: &mut SparseSums<u32>, neighbours: &[u32], v: u32) -> Option<(u32, u32)> {
        counts.count(neighbours, self.part_of);
        let value = |part: u32, count: u32| self.score.value(count, self.prices[part as usize]);
        let mut best = self.slack.least(v).map(|part| {
            let count = counts.of(part);
            (value(part, count), part, count)
        });
        for (part, count) in counts.iter().filter(|&(part, _)| self.slack.fits(part, v)) {
            let value = value(part, count);
            let better = best.as_ref().is_none_or(|&(ref most, first, _)| {
                value > *most
                    || value == *most && (self.slack.load(part), part) < (self.slack.load(first), first)
            });
            if better {
                best = Some((value, part, count));
            }
        }
        best.map(|(_, part, count)| (part, count))
    }
}

impl<S: Score, R: Slack> Decider for Pass<'_, S, R> {
    type Scratch = SparseSums<u32>;
    type Decision = Decision;

    fn scratch(&self) -> Result<SparseSums<u32>> {
        SparseSums::new(self.prices.len() as u32)
    }

    #[inline(always)]
    fn decide(&self, counts: &mut SparseSums<u32>, v: u32) -> Decision {
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
    fn commit(&mut self, counts: &mut SparseSums<u32>, v: u32, decision: Decision) {
        let part = match decision {
            Decision::Part(part) if self.slack.fits(part, v) => Some(part),
            Decision::Least => self.slack.least(v),
            _ => self.best(counts, self.neighbours(v), v).map(|(part, _)| part),
        };
        if let Some(part) = part {
            self.slack.add(part, v);
            self.prices[part as usize] = self.score.price(self.slack.load(part));
        }
        self.part_of[v as usize] = part.unwrap_or(NONE);
        self.placed = v + 1;
    }

    #[inline(always)]
    fn work(&self, v: u32) -> u64 {
        1 + u64::from(self.csr.degree(v))
    }
}
