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

pub mod array;
pub mod balancing;
pub mod coarsening;
pub mod graph;
pub mod initial;
pub mod refinement;
pub mod state;

use array::Array;
use crate::error::Result;
use crate::random::splitmix64;
use crate::run::Run;
use balancing::balance;
use coarsening::{Clustered, Coarsening, Rating};
use graph::{Graph, Weight};
use refinement::{Patience, better, refine};
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

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap())
}

impl Default for Scheme {
    fn default() -> Self {
        let ratings = std::env::var("RATINGS").unwrap_or("dwm".into());
        let ratings = ratings.chars().map(|c| match c { 'd' => Rating::Density, 'w' => Rating::Weight, _ => Rating::Modularity }).collect();
        Self {
            ratings,
            cycles: env("CYCLES", 0) as u32,
            clusters_per_part: env("CPP", 30),
            coarsest: env("COARSEST", 60) as usize,
            seed: 0,
        }
    }
}

/// A graph and its clusters, finer levels first.
type Level = (Clustered, Graph);

impl Scheme {
    /// Parts of the vertices of `graph`, one for each of `caps`, which may be exceeded where nothing else was found.
    pub fn partition(&self, graph: &Graph, caps: &[Weight], run: &Run) -> Result<(Array<u32>, Quality)> {
        // Down to a graph that is small beside the given one, once; there, several attempts are cheap.
        let few = graph.num_entries() / env("TRUNK", 4) as usize;
        let (levels, _) = self.coarsen(graph, caps, self.ratings[0], None, few, self.seed, run)?;
        let middle = levels.last().map_or(graph, |level| &level.1);
        let mut best: Option<(Array<u32>, Quality)> = None;
        for attempt in 0..env("TRIES", 1) {
            let rating = self.ratings[attempt as usize % self.ratings.len()];
            let seed = splitmix64(self.seed ^ splitmix64(attempt + 1));
            let found = self.cycle(middle, caps, rating, None, seed, run)?;
            if best.as_ref().is_none_or(|(_, best)| better(found.1, *best)) {
                best = Some(found);
            }
        }
        let Some((part_of, quality)) = best else {
            return Ok((Array::zeroed(graph.len(), "parts")?, Quality { excess: 0.0, cut: 0 }));
        };
        if levels.is_empty() {
            return Ok((part_of, quality));
        }
        self.uncoarsen(graph, levels, part_of, caps, true, self.seed, run)
    }

    /// Down to the coarsest graph and back, within the parts of `known` if there are any.
    pub fn cycle(
        &self,
        graph: &Graph,
        caps: &[Weight],
        rating: Rating,
        known: Option<&[u32]>,
        seed: u64,
        run: &Run,
    ) -> Result<(Array<u32>, Quality)> {
        let (levels, parts) = self.coarsen(graph, caps, rating, known, 0, seed, run)?;
        let coarsest = levels.last().map_or(graph, |level| &level.1);
        let part_of = match parts {
            Some(parts) => parts,
            None => initial::partition(self, coarsest, caps, seed, run)?,
        };
        self.uncoarsen(graph, levels, part_of, caps, false, seed, run)
    }

    /// Levels until a graph has at most `entries` entries or is the coarsest, and the parts of that, if they are known.
    fn coarsen(
        &self,
        graph: &Graph,
        caps: &[Weight],
        rating: Rating,
        known: Option<&[u32]>,
        entries: usize,
        seed: u64,
        run: &Run,
    ) -> Result<(Vec<Level>, Option<Array<u32>>)> {
        let total = graph.total();
        let share = |bound: usize| (total[bound] / (caps.len() as u64 * self.clusters_per_part)).max(1);
        let cap = [share(0), if total[1] == 0 { 0 } else { share(1) }];
        let mut levels: Vec<Level> = Vec::new();
        let mut parts = known.map(|known| copied(known)).transpose()?;
        loop {
            let finest = levels.last().map_or(graph, |level| &level.1);
            if finest.len() <= self.coarsest * caps.len() || finest.num_entries() <= entries {
                return Ok((levels, parts));
            }
            let seed = splitmix64(seed ^ levels.len() as u64);
            let rounds = env("ROUNDS", 3) as u32;
            let clustered = Coarsening { rating, cap, rounds, seed }.cluster(finest, parts.as_deref(), run)?;
            if clustered.count as f64 > 0.95 * finest.len() as f64 {
                return Ok((levels, parts));
            }
            if let Some(fine) = parts.take() {
                let mut coarse: Array<u32> = Array::zeroed(clustered.count, "parts")?;
                fine.iter()
                    .zip(clustered.cluster_of.iter())
                    .for_each(|(&part, &c)| coarse[c as usize] = part);
                parts = Some(coarse);
            }
            let coarse = finest.contract(&clustered.cluster_of, clustered.count, run)?;
            levels.push((clustered, coarse));
        }
    }

    /// The way back to `graph` from the parts of the last level, which `refined` says are refined already.
    fn uncoarsen(
        &self,
        graph: &Graph,
        mut levels: Vec<Level>,
        mut part_of: Array<u32>,
        caps: &[Weight],
        mut refined: bool,
        seed: u64,
        run: &Run,
    ) -> Result<(Array<u32>, Quality)> {
        loop {
            let here = levels.last().map_or(graph, |level| &level.1);
            let mut quality = None;
            if !std::mem::take(&mut refined) {
                let caps = relaxed(here, caps, levels.is_empty());
                let mut state = State::new(here, part_of, &caps)?;
                balance(&mut state, run)?;
                refine(&mut state, patience(here), seed ^ levels.len() as u64, run)?;
                quality = Some(state.quality());
                part_of = state.part_of;
            }
            let Some((Clustered { cluster_of, .. }, _)) = levels.pop() else {
                return Ok((part_of, quality.unwrap_or(Quality { excess: 0.0, cut: 0 })));
            };
            let mut fine: Array<u32> = Array::zeroed(cluster_of.len(), "parts")?;
            fine.iter_mut().zip(cluster_of.iter()).for_each(|(part, &c)| *part = part_of[c as usize]);
            part_of = fine;
        }
    }
}

/// The caps for a coarse graph: its heavy vertices need some play, which finer levels take back.
fn relaxed(graph: &Graph, caps: &[Weight], finest: bool) -> Vec<Weight> {
    if finest || env("RELAX", 1) == 0 {
        return caps.to_vec();
    }
    let total = graph.total();
    let heaviest = graph.heaviest();
    let sum = |bound: usize| caps.iter().map(|cap| cap[bound] as f64).sum::<f64>();
    let sums = [sum(0), sum(1)];
    let each = |cap: &Weight| {
        [0, 1].map(|bound| {
            let mean = total[bound] as f64 * (cap[bound] as f64 / sums[bound].max(1.0));
            cap[bound].max(mean as u64 + heaviest[bound])
        })
    };
    caps.iter().map(each).collect()
}

/// How long to look for improvements.
fn patience(graph: &Graph) -> Patience {
    let moves = (graph.len() / env("PDIV", 50) as usize).clamp(env("PMIN", 100) as usize, env("PMAX", 1000) as usize);
    Patience { moves, rounds: env("FMROUNDS", 8) }
}

fn copied(parts: &[u32]) -> Result<Array<u32>> {
    let mut copy: Array<u32> = Array::zeroed(parts.len(), "parts")?;
    copy.copy_from_slice(parts);
    Ok(copy)
}
