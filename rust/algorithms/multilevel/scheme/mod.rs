//! How levels, attempts and blocks make up a partition.
//!
//! The graph is coarsened once until a twelfth of its entries is left. From there, several attempts with different
//! ratings go down to the coarsest graph and back. The best is then *crossed* with each of the others. For that,
//! clusters are made again, each within one part of the best and within one part of the other, so that both are
//! partitions of every level. The way back begins with the best, and can use the borders of the other. The result
//! is projected to the given graph. So the finest levels, which take most of the time, are clustered and refined
//! once.
//!
//! The caps of coarse levels are loosened by their heaviest vertex. Clusters are large compared with the slack of
//! the caps. Caps that leave no choice cost more than bringing the loads back among smaller vertices.
//!
//! **Source.** Crossing: Sanders and Schulz, "Distributed Evolutionary Graph Partitioning", ALENEX 2012, section
//! 4.1.

pub mod initial;

use rayon::prelude::*;

use super::balancing::balance;
use super::coarsening::{Clustered, Coarsening, Rating};
use super::graph::{Graph, Weight};
use super::refinement::{Patience, better, refine};
use super::state::{Quality, State};
use crate::base::buffer::Buffer;
use crate::base::error::{Error, Result};
use crate::base::random::splitmix64;
use crate::base::run::Run;

/// Parts that are made at once: every vertex stores its connection to each.
pub const MOST_PARTS: usize = 64;
/// The part of the entries below which several attempts are made.
const FEW: usize = 12;
/// Attempts on a graph that could not be coarsened so far.
const LEAST_ATTEMPTS: usize = 2;
/// Rounds of label propagation on the finest levels, and on those of the attempts and under two bounds.
const ROUNDS: [u32; 2] = [2, 1];
/// Clusters that a part has room for, at least, in a bisection, by weight, and else.
const CLUSTERS_PER_PART: [u64; 3] = [6, 8, 24];
/// The same under two bounds, which only small clusters can be made to keep.
const CLUSTERS_OF_TWO: u64 = 60;
/// Ratio of the mean square to the squared mean of the degrees from which on a graph is *skewed*.
const SKEWED: f64 = 25.0;
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
    /// Units of progress that a partition is worth: a third each for the way down, the attempts and the way back.
    pub units: u64,
}

impl Default for Scheme {
    fn default() -> Self {
        use Rating::{Density, Weight};
        Self { ratings: vec![Density, Weight, Density, Weight], coarsest: 8, seed: 0, units: 0 }
    }
}

impl Scheme {
    /// What it takes to keep two bounds: more attempts, and a coarsest graph that leaves more of a choice.
    pub fn of_two(seed: u64) -> Self {
        use Rating::{Density, Weight};
        Self {
            ratings: vec![Density, Weight, Density, Density, Weight, Density, Density, Density],
            coarsest: 20,
            seed,
            units: 0,
        }
    }
}

/// Clusters of the level above, and the graph that they make.
type Level = (Clustered, Graph);

/// Parts of all vertices, and how good they are.
pub type Found = (Buffer<u32>, Quality);

/// How to go down.
struct Descent {
    rating: Rating,
    /// A graph that has no more entries is the last.
    entries: usize,
    seed: u64,
    /// What the way is worth.
    units: u64,
    /// Clusters lie within one cell each.
    cells: Option<Buffer<u32>>,
}

/// How to come back.
struct Ascent {
    levels: Vec<Level>,
    /// Parts of the vertices of the last level.
    part_of: Buffer<u32>,
    /// Whether these are refined already.
    refined: bool,
    /// What the way is worth.
    units: u64,
}

impl Scheme {
    /// Parts of the vertices of `graph`, one for each of `caps`, which are exceeded where nothing else was found.
    pub fn partition(&self, graph: &Graph, caps: &[Weight], run: &Run) -> Result<Found> {
        if caps.len() > MOST_PARTS {
            return self.blocks(graph, caps, run);
        }
        if graph.total()[1] == 0 && self.ratings.first() == Some(&Rating::Density) && skewed(graph, run)? {
            let ratings = self.ratings.iter().map(|rating| rating.opposite()).collect();
            return Self { ratings, ..self.clone() }.partition(graph, caps, run);
        }
        let rating = self.first()?;
        let entries = graph.num_entries() / FEW;
        let (third, last) = (self.units / 3, self.units - self.units / 3 * 2);
        let descent = Descent { rating, entries, seed: self.seed, units: third, cells: None };
        let levels = self.coarsen(graph, caps, descent, run)?;
        let middle = levels.last().map_or(graph, |level| &level.1);
        // A graph that did not get small is not worth as many attempts.
        let affordable = (graph.num_entries() / middle.num_entries().max(1)).max(LEAST_ATTEMPTS);
        let best = self.best(middle, caps, affordable, third, run)?;
        if !levels.is_empty() {
            let ascent = Ascent { levels, part_of: best.0, refined: true, units: last };
            return self.uncoarsen(graph, ascent, caps, run);
        }
        run.advance(last)?;
        Ok(best)
    }

    /// The rating of the finest levels.
    pub fn first(&self) -> Result<Rating> {
        let missing = || Error::Internal("multilevel: no rating to cluster with".into());
        self.ratings.first().copied().ok_or_else(missing)
    }

    /// The best of several attempts, at most so many, crossed with each of the others.
    fn best(
        &self,
        graph: &Graph,
        caps: &[Weight],
        affordable: usize,
        units: u64,
        run: &Run,
    ) -> Result<Found> {
        let seed = |index: usize| splitmix64(self.seed ^ splitmix64(index as u64 + 1));
        let ratings = &self.ratings[..self.ratings.len().min(affordable)];
        let each = units / (2 * ratings.len() as u64 - 1);
        let attempt = |(index, &rating): (usize, &Rating)| {
            let found = self.cycle(graph, caps, rating, seed(index), run)?;
            run.advance(each).map(|()| found)
        };
        let mut attempts: Vec<Found> =
            run.install(|| ratings.par_iter().enumerate().map(attempt).collect::<Result<_>>())?;
        attempts.sort_by(|a, b| a.1.excess.total_cmp(&b.1.excess).then(a.1.cut.cmp(&b.1.cut)));
        let mut attempts = attempts.into_iter();
        let Some(mut best) = attempts.next() else {
            return Err(Error::Internal("multilevel: no attempt to partition".into()));
        };
        for ((index, other), &rating) in attempts.enumerate().zip(&self.ratings) {
            let child =
                self.cross(graph, caps, rating, [&best.0, &other.0], seed(self.ratings.len() + index), run)?;
            if better(child.1, best.1) {
                best = child;
            }
            run.advance(each)?;
        }
        run.advance(units % (2 * ratings.len() as u64 - 1))?;
        Ok(best)
    }

    /// The first of two partitions, searched for improvements among clusters that lie within one part of both.
    fn cross(
        &self,
        graph: &Graph,
        caps: &[Weight],
        rating: Rating,
        [one, other]: [&Buffer<u32>; 2],
        seed: u64,
        run: &Run,
    ) -> Result<Found> {
        let mut cells: Buffer<u32> = Buffer::zeroed(graph.len(), "cells")?;
        run.each(graph.len(), |v| {
            cells[v as usize] = one[v as usize] * caps.len() as u32 + other[v as usize]
        })?;
        let descent = Descent { rating, entries: 0, seed, units: 0, cells: Some(cells) };
        let levels = self.coarsen(graph, caps, descent, run)?;
        let mut part_of: Buffer<u32> = Buffer::zeroed(graph.len(), "parts")?;
        part_of.copy_from_slice(one);
        for (clustered, _) in &levels {
            part_of = clustered.labels(&part_of, run)?;
        }
        self.uncoarsen(graph, Ascent { levels, part_of, refined: false, units: 0 }, caps, run)
    }

    /// More parts than are made at once: blocks of parts, then the parts of each.
    fn blocks(&self, graph: &Graph, caps: &[Weight], run: &Run) -> Result<Found> {
        let count = caps.len().div_ceil(MOST_PARTS).min(MOST_PARTS);
        let bounds: Vec<usize> = (0..=count).map(|block| block * caps.len() / count).collect();
        let blocks: Vec<&[Weight]> = bounds.windows(2).map(|ends| &caps[ends[0]..ends[1]]).collect();
        let of_blocks = Scheme { units: self.units / 2, ..self.clone() };
        let (block_of, _) = of_blocks.partition(graph, &initial::shares(graph.total(), &blocks), run)?;
        let mut part_of: Buffer<u32> = Buffer::zeroed(graph.len(), "parts")?;
        for (block, (caps, &first)) in (0..).zip(blocks.iter().zip(&bounds)) {
            let (inner, ids) = graph.induced(&block_of, block, run)?;
            let seed = splitmix64(self.seed ^ (u64::from(block) + 1));
            let units = (self.units - self.units / 2) / count as u64;
            let (inner_of, _) = Scheme { seed, units, ..self.clone() }.partition(&inner, caps, run)?;
            run.each(ids.len(), |i| part_of[ids[i as usize] as usize] = first as u32 + inner_of[i as usize])?;
        }
        run.advance((self.units - self.units / 2) % count as u64)?;
        let quality = Quality::of(graph, &part_of, caps, run)?;
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
        let descent = Descent { rating, entries: 0, seed, units: 0, cells: None };
        let levels = self.coarsen(graph, caps, descent, run)?;
        let coarsest = levels.last().map_or(graph, |level| &level.1);
        let part_of = initial::partition(self, coarsest, caps, seed, run)?;
        self.uncoarsen(graph, Ascent { levels, part_of, refined: false, units: 0 }, caps, run)
    }

    /// Levels down to the last.
    fn coarsen(&self, graph: &Graph, caps: &[Weight], how: Descent, run: &Run) -> Result<Vec<Level>> {
        let total = graph.total();
        let per_part = match how.rating {
            _ if total[1] > 0 => CLUSTERS_OF_TWO,
            _ if caps.len() == 2 => CLUSTERS_PER_PART[0],
            Rating::Weight => CLUSTERS_PER_PART[1],
            _ => CLUSTERS_PER_PART[2],
        };
        let clusters = caps.len() as u64 * per_part;
        let cap = total.map(|total| total.div_ceil(clusters));
        let (mut levels, mut cells): (Vec<Level>, _) = (Vec::new(), how.cells);
        let mut left = how.units;
        loop {
            let finest = levels.last().map_or(graph, |level| &level.1);
            let ahead = share(how.units, finest, graph);
            run.advance(std::mem::replace(&mut left, ahead) - ahead)?;
            if finest.len() <= self.coarsest * caps.len() || finest.num_entries() <= how.entries {
                break;
            }
            let seed = splitmix64(how.seed ^ levels.len() as u64);
            let rounds = ROUNDS[usize::from(how.entries == 0 || total[1] > 0)];
            let coarsening = Coarsening { rating: how.rating, cap, rounds, seed };
            let clustered = coarsening.cluster(finest, cells.as_deref(), run)?;
            if clustered.count as f64 > STALLED * finest.len() as f64 {
                break;
            }
            let coarse = finest.contract(&clustered.cluster_of, clustered.count, run)?;
            cells = cells.map(|cells| clustered.labels(&cells, run)).transpose()?;
            levels.push((clustered, coarse));
        }
        run.advance(left)?;
        Ok(levels)
    }

    /// The way back to `graph`.
    fn uncoarsen(&self, graph: &Graph, ascent: Ascent, caps: &[Weight], run: &Run) -> Result<Found> {
        let Ascent { mut levels, mut part_of, mut refined, units } = ascent;
        let mut reached = 0;
        loop {
            let here = levels.last().map_or(graph, |level| &level.1);
            if !std::mem::take(&mut refined) {
                let caps = if levels.is_empty() { caps.to_vec() } else { loosened(here, caps) };
                let mut state = State::new(here, part_of, &caps, run)?;
                balance(&mut state, run)?;
                refine(&mut state, Patience::of(here), self.seed ^ levels.len() as u64, run)?;
                let quality = state.quality();
                part_of = state.part_of;
                let now = share(units, here, graph);
                run.advance(now - std::mem::replace(&mut reached, now))?;
                if levels.is_empty() {
                    return Ok((part_of, quality));
                }
            }
            let Some((Clustered { cluster_of, .. }, _)) = levels.pop() else { continue };
            let mut fine: Buffer<u32> = Buffer::zeroed(cluster_of.len(), "parts")?;
            run.each(cluster_of.len(), |v| fine[v as usize] = part_of[cluster_of[v as usize] as usize])?;
            part_of = fine;
        }
    }
}

/// What a level is worth of what `graph` is, by the entries.
fn share(units: u64, level: &Graph, graph: &Graph) -> u64 {
    match graph.num_entries() as u128 {
        0 => units,
        entries => (u128::from(units) * level.num_entries() as u128 / entries) as u64,
    }
}

/// Whether a few vertices have most of the edges. Weight then says more than density: clusters form around hubs, and
/// the more members one has the better it is.
fn skewed(graph: &Graph, run: &Run) -> Result<bool> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    run.each(graph.len(), |v| {
        let degree = graph.degree(v) as f64;
        count += f64::from(degree > 0.0);
        sum += degree;
        squares += degree * degree;
    })?;
    Ok(squares * count >= SKEWED * sum * sum && sum > 0.0)
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
