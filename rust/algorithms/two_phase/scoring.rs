//! The second phase's state, and the score of 2PS-L.

use crate::base::splitmix64;
use crate::capacity::LeastLoaded;
use crate::sets::Incidence;

/// A record, and the constant terms of its score.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) ends: [u32; 2],
    /// Parts of the clusters of the ends.
    pub(super) parts: [u32; 2],
    /// The gain of a part that holds the end: `2 - d(u) / (d(u) + d(v))`.
    pub(super) gains: [f64; 2],
    /// Share of the cluster of the first end in the volume of both.
    pub(super) share: f64,
}

/// Loads, and where vertices are present.
#[derive(Debug)]
pub(super) struct State {
    pub(super) holds: Incidence,
    pub(super) parts: LeastLoaded,
    cap: u64,
    seed: u64,
}

impl State {
    pub(super) fn new(holds: Incidence, loads: Vec<u64>, cap: u64, seed: u64) -> Self {
        Self { holds, parts: LeastLoaded::new(loads), cap, seed }
    }

    /// Places `candidate`, and its ends, in `part`.
    #[inline(always)]
    pub(super) fn put(&mut self, candidate: &Candidate, part: u32) {
        candidate.ends.iter().for_each(|&end| _ = self.holds.insert(end, part));
        self.parts.add(part, 1);
    }

    /// The part for 2PS-L.
    #[inline(always)]
    pub(super) fn linear(&mut self, candidate: &Candidate) -> u32 {
        let [p, q] = candidate.parts;
        match (self.has_slack(p), self.has_slack(q)) {
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

    /// The gain of the ends in `part`.
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
        let part = (splitmix64(u64::from(hub) ^ self.seed) % u64::from(self.parts.k())) as u32;
        // The least loaded part has slack: all caps together hold all records.
        if self.has_slack(part) { part } else { self.parts.least() }
    }

    #[inline(always)]
    fn has_slack(&self, part: u32) -> bool {
        self.parts.load(part) < self.cap
    }
}
