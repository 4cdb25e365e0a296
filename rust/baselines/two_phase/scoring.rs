//! The second phase's state, and its two scores.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::incidence::{Incidence, parts};
use crate::random::splitmix64;

/// A record, and what does not change of its score.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Number of the record.
    pub(super) record: u64,
    pub(super) ends: [u32; 2],
    /// Parts of the clusters of the ends.
    pub(super) parts: [u32; 2],
    /// What a part gains that holds the end: `2 - d(u) / (d(u) + d(v))`.
    pub(super) gains: [f64; 2],
    /// Share of the cluster of the first end in the volume of both.
    pub(super) share: f64,
}

/// Loads, and where vertices are present.
#[derive(Debug)]
pub(super) struct State {
    pub(super) holds: Incidence,
    pub(super) loads: Vec<u64>,
    cap: u64,
    largest: u64,
    /// What a record less than the largest load is worth to [`Scoring::Hdrf`](super::Scoring::Hdrf).
    scale: f64,
    /// Parts by load, brought up to date when looked at.
    least: BinaryHeap<Reverse<(u64, u32)>>,
    seed: u64,
}

impl State {
    pub(super) fn new(holds: Incidence, loads: Vec<u64>, cap: u64, seed: u64) -> Self {
        let least = loads.iter().zip(0..).map(|(&load, part)| Reverse((load, part))).collect();
        let largest = loads.iter().copied().max().unwrap_or(0);
        let scale = 1.0 / largest.max(1) as f64;
        Self { holds, loads, cap, largest, scale, least, seed }
    }

    /// Places `candidate`, and its ends, in `part`.
    #[inline(always)]
    pub(super) fn put(&mut self, candidate: &Candidate, part: u32) {
        candidate.ends.iter().for_each(|&end| _ = self.holds.insert(end, part));
        let load = &mut self.loads[part as usize];
        *load += 1;
        if *load > self.largest {
            self.largest = *load;
            self.scale = 1.0 / *load as f64;
        }
    }

    /// The part for 2PS-L.
    #[inline(always)]
    pub(super) fn linear(&mut self, candidate: &Candidate) -> u32 {
        let [p, q] = candidate.parts;
        match (self.has_room(p), self.has_room(q)) {
            (true, true) => {
                let (score_p, score_q) = (self.score(candidate, p), self.score(candidate, q));
                if score_p > score_q || (score_p == score_q && p < q) { p } else { q }
            }
            (true, false) => p,
            (false, true) => q,
            (false, false) => self.elsewhere(candidate),
        }
    }

    #[inline(always)]
    fn score(&self, candidate: &Candidate, part: u32) -> f64 {
        let of_cluster = |index: usize, share: f64| if candidate.parts[index] == part { share } else { 0.0 };
        self.gain(candidate, part) + of_cluster(0, candidate.share) + of_cluster(1, 1.0 - candidate.share)
    }

    /// What the ends in `part` are worth.
    #[inline(always)]
    fn gain(&self, candidate: &Candidate, part: u32) -> f64 {
        let [gain_u, gain_v] = [0, 1].map(|index| {
            if self.holds.contains(candidate.ends[index], part) { candidate.gains[index] } else { 0.0 }
        });
        gain_u + gain_v
    }

    /// The part of a record whose two parts are full.
    #[cold]
    fn elsewhere(&mut self, candidate: &Candidate) -> u32 {
        let ([u, v], [gain_u, gain_v]) = (candidate.ends, candidate.gains);
        // The higher the degree, the lower the gain.
        let hub = if gain_u < gain_v || (gain_u == gain_v && u < v) { u } else { v };
        let part = (splitmix64(u64::from(hub) ^ self.seed) % self.loads.len() as u64) as u32;
        if self.has_room(part) { part } else { self.least_loaded() }
    }

    /// The part for 2PS-HDRF: of the parts that hold no end, the best is the least loaded.
    #[inline(always)]
    pub(super) fn hdrf(&mut self, candidate: &Candidate) -> u32 {
        let mut part = self.least_loaded();
        let mut most = self.gain(candidate, part) + self.behind(part);
        let [gains_u, gains_v] = candidate.gains.map(|gain| [0.0, gain]);
        let [row_u, row_v] = candidate.ends.map(|end| self.holds.row(end));
        for (word, (&in_u, &in_v)) in row_u.iter().zip(row_v).enumerate() {
            for bit in parts(&[in_u | in_v]) {
                let held = 64 * word as u32 + bit;
                let gain = gains_u[(in_u >> bit & 1) as usize] + gains_v[(in_v >> bit & 1) as usize];
                let score = gain + self.behind(held);
                if self.has_room(held) && (score > most || (score == most && held < part)) {
                    (most, part) = (score, held);
                }
            }
        }
        part
    }

    /// What the loads add to the score of `part`.
    #[inline(always)]
    fn behind(&self, part: u32) -> f64 {
        (self.largest - self.loads[part as usize]) as f64 * self.scale
    }

    #[inline(always)]
    fn has_room(&self, part: u32) -> bool {
        self.loads[part as usize] < self.cap
    }

    /// The part with the fewest records, the lowest of several. It has room: all caps together hold all records.
    fn least_loaded(&mut self) -> u32 {
        // Loads only grow, so an entry that is no longer true goes back as it is now.
        while let Some(mut top) = self.least.peek_mut() {
            let Reverse((load, part)) = &mut *top;
            let now = self.loads[*part as usize];
            if *load == now {
                return *part;
            }
            *load = now;
        }
        0
    }
}
