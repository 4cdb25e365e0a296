//! A multilevel partitioner for graphs that fit into memory.
//!
//! **Requirements.** The neighbours of every vertex; fewer than 2^31 edges.
//!
//! **Memory.** 8 bytes per entry of the adjacency and 32 per vertex, about twice for all levels together, and `4 k` bytes
//! per vertex for the ties of vertices to parts.
//!
//! **Algorithm.** [`coarsening`] clusters the vertices and contracts the clusters, again and again, until the graph is
//! small; [`initial`] partitions that by recursive bisection; on the way back to the given graph every level is
//! [`balancing`]ed and [`refinement`] improves it. That is done once for each rating of the coarsening, since none is the
//! best for all graphs; from the best result on, further cycles coarsen within the parts.
//!
//! **Parallelism.** The ratings, each by itself.
//!
//! **Source.** Karypis and Kumar, "Multilevel k-way Partitioning Scheme for Irregular Graphs", 1998; Meyerhenke, Sanders
//! and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA 2014.

pub mod balancing;
pub mod coarsening;
pub mod graph;
pub mod initial;
pub mod refinement;
pub mod state;

use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::error::Result;
use crate::random::splitmix64;
use crate::run::Run;
use balancing::balance;
use coarsening::{Clustered, Coarsening, Rating};
use graph::{Graph, Weight};
use refinement::{better, refine};
use state::{Quality, State};

/// How a graph is partitioned.
#[derive(Debug, Clone)]
pub struct Scheme {
    /// Ratings that are tried.
    pub ratings: Vec<Rating>,
    /// Further cycles from the best result on.
    pub cycles: u32,
    /// A cluster weighs at most the cap of a part divided by this.
    pub clusters_per_part: u64,
    /// Vertices per part of the coarsest graph.
    pub coarsest: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Scheme {
    fn default() -> Self {
        Self {
            ratings: vec![Rating::Density, Rating::Weight, Rating::Modularity],
            cycles: 1,
            clusters_per_part: 30,
            coarsest: 60,
            seed: 0,
        }
    }
}

/// Rounds of label propagation on each level.
const ROUNDS: u32 = 4;

impl Scheme {
    /// Parts of the vertices of `graph`, one for each of `caps`, which may be exceeded where nothing else was found.
    pub fn partition(&self, graph: &Graph, caps: &[Weight], run: &Run) -> Result<(Buffer<u32>, Quality)> {
        let attempts = run.install(|| {
            let tries = self.ratings.par_iter().enumerate();
            tries
                .map(|(index, &rating)| self.cycle(graph, caps, rating, None, index as u64, run))
                .collect::<Result<Vec<_>>>()
        })?;
        let mut best: Option<(Buffer<u32>, Quality, Rating)> = None;
        for ((part_of, quality), &rating) in attempts.into_iter().zip(&self.ratings) {
            if best.as_ref().is_none_or(|(_, best, _)| better(quality, *best)) {
                best = Some((part_of, quality, rating));
            }
        }
        let Some((mut part_of, mut quality, rating)) = best else {
            return Ok((Buffer::zeroed(graph.len(), "parts")?, Quality { excess: 0.0, cut: 0 }));
        };
        for cycle in 0..self.cycles {
            let again = self.cycle(graph, caps, rating, Some(&part_of), 100 + u64::from(cycle), run)?;
            if better(again.1, quality) {
                (part_of, quality) = again;
            }
        }
        Ok((part_of, quality))
    }

    /// Down to the coarsest graph and back, within the parts of `known` if there are any.
    fn cycle(
        &self,
        graph: &Graph,
        caps: &[Weight],
        rating: Rating,
        known: Option<&[u32]>,
        number: u64,
        run: &Run,
    ) -> Result<(Buffer<u32>, Quality)> {
        let seed = splitmix64(self.seed ^ splitmix64(number));
        let mut levels: Vec<(Graph, Clustered)> = Vec::new();
        let mut parts = known.map(|known| copied(known)).transpose()?;
        let mut finest = graph;
        loop {
            let coarsest = self.coarsest * caps.len();
            if finest.len() <= coarsest {
                break;
            }
            let clustered =
                self.coarsen(finest, caps, rating, parts.as_deref(), seed ^ levels.len() as u64, run)?;
            if clustered.count as f64 > 0.95 * finest.len() as f64 {
                break;
            }
            if let Some(fine) = parts.take() {
                let mut coarse: Buffer<u32> = Buffer::zeroed(clustered.count, "parts")?;
                fine.iter()
                    .zip(clustered.cluster_of.iter())
                    .for_each(|(&part, &c)| coarse[c as usize] = part);
                parts = Some(coarse);
            }
            let coarse = finest.contract(&clustered.cluster_of, clustered.count, run)?;
            levels.push((coarse, clustered));
            finest = &levels[levels.len() - 1].0;
        }
        let mut part_of = match parts {
            Some(parts) => parts,
            None => initial::partition(finest, caps, seed, run)?,
        };
        let mut quality = None;
        for level in (0..=levels.len()).rev() {
            let here = if level == 0 { graph } else { &levels[level - 1].0 };
            let mut state = State::new(here, part_of, caps)?;
            balance(&mut state, run)?;
            refine(&mut state, patience(here), seed ^ level as u64, run)?;
            quality = Some(state.quality());
            part_of = state.part_of;
            if level > 0 {
                let Clustered { cluster_of, .. } = &levels[level - 1].1;
                let mut fine: Buffer<u32> = Buffer::zeroed(cluster_of.len(), "parts")?;
                fine.iter_mut().zip(cluster_of.iter()).for_each(|(part, &c)| *part = part_of[c as usize]);
                part_of = fine;
                levels.truncate(level);
            }
        }
        Ok((part_of, quality.unwrap_or(Quality { excess: 0.0, cut: 0 })))
    }

    fn coarsen(
        &self,
        graph: &Graph,
        caps: &[Weight],
        rating: Rating,
        parts: Option<&[u32]>,
        seed: u64,
        run: &Run,
    ) -> Result<Clustered> {
        let total = graph.total();
        let share = |bound: usize| (total[bound] / (caps.len() as u64 * self.clusters_per_part)).max(1);
        let heaviest = |bound: usize| if total[bound] == 0 { 0 } else { share(bound) };
        let cap = [heaviest(0), if total[1] == 0 { 0 } else { heaviest(1) }];
        Coarsening { rating, cap, rounds: ROUNDS, seed }.cluster(graph, parts, run)
    }
}

/// Moves without an improvement that end a round of the local search.
fn patience(graph: &Graph) -> usize {
    (graph.len() / 50).clamp(100, 2000)
}

fn copied(parts: &[u32]) -> Result<Buffer<u32>> {
    let mut copy: Buffer<u32> = Buffer::zeroed(parts.len(), "parts")?;
    copy.copy_from_slice(parts);
    Ok(copy)
}
