//! The in-edges of a target that were there before a time, and which of them are picked.
//!
//! They lie in the order of records, not of times. Short lists are read as a whole. From a long list, a
//! uniform sample draws a few places at a time until enough of them were early: the first ones of a random
//! order. If too few are early, all are read, and the sample goes on among those that were not drawn. For the
//! latest ones, the times of all edges are read, but the times of sources only for the few edges that are
//! late enough.

use std::cmp::Reverse;

use super::times::{EdgeTimes, Times};
use crate::base::Result;
use crate::sampling::levels::targets::Target;
use crate::sampling::random::Draws;
use crate::sampling::topology::part::Part;

/// In-edges that are looked up together.
pub(crate) const CHUNK: usize = 64;

/// In-edges of a short list.
const SHORT: usize = 256;

/// Samples up to this size are drawn from long lists. The draws of a round fit in a chunk.
const FEW: usize = 32;

/// Rounds that each draw as many places as are to be picked. If they do not suffice, few in-edges are early.
const ROUNDS: usize = 4;

/// An in-edge that may be picked: its time, and its place in the part.
pub(crate) type Candidate = (i64, usize);

/// The in-edges of a target, of which those may be picked that were there before a time.
pub(crate) struct InEdges<'a> {
    pub of_edges: EdgeTimes<'a>,
    pub times: &'a Times,
    pub target: &'a Target,
    pub part: &'a Part,
    /// In-edges and sources strictly before it may be picked.
    pub before: i64,
}

impl InEdges<'_> {
    /// Picks `fanout` of them, all subsets with the same probability.
    pub(crate) fn pick_uniform(
        &self,
        fanout: usize,
        draws: Draws,
        picked: &mut Vec<Candidate>,
        tried: &mut Vec<usize>,
    ) -> Result<()> {
        tried.clear();
        let long = self.target.degree > SHORT.max(2 * ROUNDS * fanout);
        if long && fanout <= FEW && self.draw(fanout, draws, picked, tried)? {
            return Ok(());
        }
        let mut drawn = Vec::new();
        drawn.append(picked);
        self.append_early(picked)?;
        picked.retain(|candidate| !drawn.contains(candidate));
        let wanted = picked.len().min(fanout - drawn.len());
        if wanted < picked.len() {
            for (index, number) in (0..wanted).zip(tried.len() as u64..) {
                let left = picked.len() - index;
                picked.swap(index, index + draws.below(number, left as u64) as usize);
            }
            picked.truncate(wanted);
        }
        picked.extend(drawn);
        Ok(())
    }

    /// Draws places until `fanout` of them are early, and returns whether they are.
    fn draw(
        &self,
        fanout: usize,
        draws: Draws,
        picked: &mut Vec<Candidate>,
        tried: &mut Vec<usize>,
    ) -> Result<bool> {
        let (target, mut early) = (self.target, [(0, 0); CHUNK]);
        for round in 0..ROUNDS {
            let begin = tried.len();
            for number in round * fanout..(round + 1) * fanout {
                let edge = target.first + draws.below(number as u64, target.degree as u64) as usize;
                if !tried.contains(&edge) {
                    self.of_edges.prefetch(edge);
                    self.part.indices.prefetch(edge);
                    tried.push(edge);
                }
            }
            let mut count = 0;
            for &edge in &tried[begin..] {
                early[count] = (self.of_edges.get(edge)?, edge);
                count += usize::from(early[count].0 < self.before);
            }
            self.append_of_early_sources(early[..count].iter().copied(), picked)?;
            if picked.len() >= fanout {
                picked.truncate(fanout);
                return Ok(true);
            }
        }
        // Numbers of draws go on behind those of the rounds, whatever was drawn twice.
        tried.resize(ROUNDS * fanout, usize::MAX);
        Ok(false)
    }

    /// Picks the `fanout` latest of them. If times are equal, later records win.
    pub(crate) fn pick_last(&self, fanout: usize, picked: &mut Vec<Candidate>) -> Result<()> {
        let long = self.target.degree > SHORT.max(2 * fanout);
        if !(long && self.of_edges.exist() && self.find_latest(fanout, picked)?) {
            picked.clear();
            self.append_early(picked)?;
        }
        keep_latest(fanout, picked);
        Ok(())
    }

    /// Finds the latest edges, and returns whether enough of their sources are early.
    fn find_latest(&self, fanout: usize, found: &mut Vec<Candidate>) -> Result<bool> {
        let wanted = if self.times.of_vertices() { 2 * fanout + CHUNK } else { fanout };
        let (mut from, mut all) = (i64::MIN, true);
        self.each_chunk(|times, first| {
            for (edge, &time) in (first..).zip(times) {
                if from <= time && time < self.before {
                    found.push((time, edge));
                }
            }
            if found.len() > 2 * wanted {
                keep_latest(wanted, found);
                (from, all) = (found.iter().map(|&(time, _)| time).min().unwrap_or(from), false);
            }
            Ok(())
        })?;
        if !self.times.of_vertices() {
            return Ok(true);
        }
        if !all {
            keep_latest(wanted, found); // there may be gaps between the others
        }
        let latest = std::mem::take(found);
        for chunk in latest.chunks(CHUNK) {
            self.append_of_early_sources(chunk.iter().copied(), found)?;
        }
        Ok(all || found.len() >= fanout)
    }

    /// Appends all that may be picked, in the order of records.
    pub(crate) fn append_early(&self, found: &mut Vec<Candidate>) -> Result<()> {
        self.each_chunk(|times, first| {
            // Whether one is early cannot be predicted, so there is no branch.
            let (mut early, mut count) = ([(0, 0); CHUNK], 0);
            for (edge, &time) in (first..).zip(times) {
                early[count] = (time, edge);
                count += usize::from(time < self.before);
            }
            self.append_of_early_sources(early[..count].iter().copied(), found)
        })
    }

    /// Calls `step` with the times of the edges of each chunk, and its first edge.
    fn each_chunk(&self, mut step: impl FnMut(&[i64], usize) -> Result<()>) -> Result<()> {
        let mut times = [0; CHUNK];
        for start in (0..self.target.degree).step_by(CHUNK) {
            let times = &mut times[..CHUNK.min(self.target.degree - start)];
            let first = self.target.first + start;
            self.of_edges.copy(first, times)?;
            step(times, first)?;
        }
        Ok(())
    }

    /// Appends those of early edges, no more than a chunk, whose sources are early.
    fn append_of_early_sources(
        &self,
        edges: impl Iterator<Item = Candidate> + Clone,
        found: &mut Vec<Candidate>,
    ) -> Result<()> {
        let times = self.times;
        if !times.of_vertices() {
            found.extend(edges);
            return Ok(());
        }
        let mut rows = [0; CHUNK];
        for (row, (_, edge)) in rows.iter_mut().zip(edges.clone()) {
            *row = self.part.source(edge)?;
            self.part.prefetch_row(*row, |_| std::ptr::null());
        }
        for (row, _) in rows.iter_mut().zip(edges.clone()) {
            *row = self.part.row_of(*row)?;
            times.prefetch_row(*row);
        }
        for (&row, (of_edge, edge)) in rows.iter().zip(edges) {
            let of_source = times.of_row(row)?;
            if of_source < self.before {
                found.push((if self.of_edges.exist() { of_edge } else { of_source }, edge));
            }
        }
        Ok(())
    }
}

/// Leaves the latest candidates, in any order.
fn keep_latest(count: usize, candidates: &mut Vec<Candidate>) {
    if count < candidates.len() {
        if count > 0 {
            candidates.select_nth_unstable_by_key(count - 1, |&candidate| Reverse(candidate));
        }
        candidates.truncate(count);
    }
}
