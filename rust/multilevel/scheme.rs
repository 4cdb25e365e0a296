//! How levels, attempts and blocks make up a partition.
//!
//! The graph is coarsened once until a fourth of its entries is left. From there, several attempts with different
//! ratings go down to the coarsest graph and back; the best comes up to the given graph. So the finest levels, which
//! take most of the time, are clustered and refined once.
//!
//! The caps of coarse levels are loosened by their heaviest vertex: clusters are large beside what balances allow, and
//! caps that leave no choice cost more than bringing the loads back among smaller vertices.

use rayon::prelude::*;

use super::array::Array;
use super::balancing::balance;
use super::coarsening::{Clustered, Coarsening, Rating};
use super::graph::{Graph, Weight};
use super::initial;
use super::refinement::{Patience, better, refine};
use super::state::{Quality, State};
use crate::error::Result;
use crate::random::splitmix64;
use crate::run::Run;

/// Parts that are made at once: every vertex knows its ties to each.
pub const MOST_PARTS: usize = 64;
/// The part of the entries below which several attempts are made.
const FEW: usize = 4;
/// Rounds of label propagation on each level.
const ROUNDS: u32 = 3;
/// Clusters that a part has room for, at least: under one bound, and under two, which only small ones can be made to keep.
const CLUSTERS_PER_PART: [u64; 2] = [8, 60];
/// A level that keeps more of the vertices is the coarsest.
const STALLED: f64 = 0.95;

/// How a graph is partitioned.
#[derive(Debug, Clone)]
pub struct Scheme {
    /// Ratings of the attempts; the first is that of the finest levels.
    pub ratings: Vec<Rating>,
    /// Vertices per part of the coarsest graph.
    pub coarsest: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Scheme {
    fn default() -> Self {
        Self { ratings: vec![Rating::Density, Rating::Weight, Rating::Density], coarsest: 30, seed: 0 }
    }
}

/// Clusters of the level above, and the graph that they make.
type Level = (Clustered, Graph);

/// Parts of all vertices, and how good they are.
pub type Found = (Array<u32>, Quality);

impl Scheme {
    /// Parts of the vertices of `graph`, one for each of `caps`, which are exceeded where nothing else was found.
    pub fn partition(&self, graph: &Graph, caps: &[Weight], run: &Run) -> Result<Found> {
        if caps.len() > MOST_PARTS {
            return self.blocks(graph, caps, run);
        }
        run.begin("partition", 0);
        let levels = self.coarsen(graph, caps, self.ratings[0], graph.num_entries() / FEW, self.seed, run)?;
        let middle = levels.last().map_or(graph, |level| &level.1);
        let attempt = |(index, &rating): (usize, &Rating)| {
            self.cycle(middle, caps, rating, splitmix64(self.seed ^ splitmix64(index as u64 + 1)), run)
        };
        let attempts: Vec<Found> =
            run.install(|| self.ratings.par_iter().enumerate().map(attempt).collect::<Result<_>>())?;
        let Some(best) = attempts.into_iter().reduce(|a, b| if better(b.1, a.1) { b } else { a }) else {
            return Ok((Array::zeroed(graph.len(), "parts")?, Quality { excess: 0.0, cut: 0 }));
        };
        if levels.is_empty() { Ok(best) } else { self.uncoarsen(graph, levels, best.0, true, caps, run) }
    }

    /// More parts than are made at once: blocks of parts, then the parts of each.
    fn blocks(&self, graph: &Graph, caps: &[Weight], run: &Run) -> Result<Found> {
        let count = caps.len().div_ceil(MOST_PARTS).min(MOST_PARTS);
        let bounds: Vec<usize> = (0..=count).map(|block| block * caps.len() / count).collect();
        let blocks: Vec<&[Weight]> = bounds.windows(2).map(|ends| &caps[ends[0]..ends[1]]).collect();
        let (block_of, _) = self.partition(graph, &initial::shares(graph.total(), &blocks), run)?;
        let mut part_of: Array<u32> = Array::zeroed(graph.len(), "parts")?;
        for (block, (caps, &first)) in (0..).zip(blocks.iter().zip(&bounds)) {
            let (inner, ids) = graph.induced(&block_of, block)?;
            let scheme = Scheme { seed: splitmix64(self.seed ^ (u64::from(block) + 1)), ..self.clone() };
            let (inner_of, _) = scheme.partition(&inner, caps, run)?;
            ids.iter().zip(&*inner_of).for_each(|(&v, &part)| part_of[v as usize] = first as u32 + part);
        }
        let quality = Quality::of(graph, &part_of, caps);
        Ok((part_of, quality))
    }

    /// Down to the coarsest graph and back.
    pub fn cycle(
        &self,
        graph: &Graph,
        caps: &[Weight],
        rating: Rating,
        seed: u64,
        run: &Run,
    ) -> Result<Found> {
        let levels = self.coarsen(graph, caps, rating, 0, seed, run)?;
        let coarsest = levels.last().map_or(graph, |level| &level.1);
        let part_of = initial::partition(self, coarsest, caps, seed, run)?;
        self.uncoarsen(graph, levels, part_of, false, caps, run)
    }

    /// Levels until a graph has at most `entries` entries or is the coarsest.
    fn coarsen(
        &self,
        graph: &Graph,
        caps: &[Weight],
        rating: Rating,
        entries: usize,
        seed: u64,
        run: &Run,
    ) -> Result<Vec<Level>> {
        let total = graph.total();
        let clusters = caps.len() as u64 * CLUSTERS_PER_PART[usize::from(total[1] > 0)];
        let cap = total.map(|total| total.div_ceil(clusters));
        let mut levels: Vec<Level> = Vec::new();
        loop {
            let finest = levels.last().map_or(graph, |level| &level.1);
            if finest.len() <= self.coarsest * caps.len() || finest.num_entries() <= entries {
                return Ok(levels);
            }
            let seed = splitmix64(seed ^ levels.len() as u64);
            let clustered = Coarsening { rating, cap, rounds: ROUNDS, seed }.cluster(finest, run)?;
            if clustered.count as f64 > STALLED * finest.len() as f64 {
                return Ok(levels);
            }
            let coarse = finest.contract(&clustered.cluster_of, clustered.count, run)?;
            levels.push((clustered, coarse));
        }
    }

    /// The way back to `graph` from the parts of the last level, which may be `refined` already.
    fn uncoarsen(
        &self,
        graph: &Graph,
        mut levels: Vec<Level>,
        mut part_of: Array<u32>,
        mut refined: bool,
        caps: &[Weight],
        run: &Run,
    ) -> Result<Found> {
        loop {
            let here = levels.last().map_or(graph, |level| &level.1);
            if !std::mem::take(&mut refined) {
                let caps = if levels.is_empty() { caps.to_vec() } else { loosened(here, caps) };
                let mut state = State::new(here, part_of, &caps)?;
                balance(&mut state, run)?;
                refine(&mut state, Patience::of(here), self.seed ^ levels.len() as u64, run)?;
                let quality = state.quality();
                part_of = state.part_of;
                if levels.is_empty() {
                    return Ok((part_of, quality));
                }
            }
            let Some((Clustered { cluster_of, .. }, _)) = levels.pop() else { continue };
            let mut fine: Array<u32> = Array::zeroed(cluster_of.len(), "parts")?;
            fine.iter_mut().zip(cluster_of.iter()).for_each(|(part, &c)| *part = part_of[c as usize]);
            part_of = fine;
        }
    }
}

/// The caps, but at least the share of each part and one vertex more.
pub fn loosened(graph: &Graph, caps: &[Weight]) -> Vec<Weight> {
    let (total, heaviest) = (graph.total(), graph.heaviest());
    let all = [0, 1].map(|bound| caps.iter().map(|cap| cap[bound] as f64).sum::<f64>().max(1.0));
    let loosen = |cap: &Weight| {
        [0, 1].map(|bound| {
            let share = total[bound] as f64 * (cap[bound] as f64 / all[bound]);
            cap[bound].max(share as u64 + heaviest[bound])
        })
    };
    caps.iter().map(loosen).collect()
}
