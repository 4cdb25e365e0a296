//! The multilevel scheme: how levels and attempts make up a partition.
//!
//! The graph is coarsened once until a twelfth of its entries is left. From there, several attempts with
//! different ratings coarsen it further, partition the coarsest graph and uncoarsen it. The best attempt is
//! then *combined* with each of the others: the graph is coarsened again by clusters that lie within one part
//! of the best and within one part of the other, so both are partitions of every level. Uncoarsening begins
//! with the best, and can use the borders of the other. The result is projected to the given graph. So the
//! finest levels, which take most of the time, are clustered and refined once.
//!
//! Every level is refined by bounded Jet ([`jet`]). Where the table of gains is small, FM follows ([`fm`]).
//!
//! The caps of coarse levels are loosened by their heaviest vertex. Clusters are large compared with the
//! slack of the caps. Caps that leave no choice cost more than bringing the loads back among smaller
//! vertices.
//!
//! **Source.** Combination: Sanders and Schulz, "Distributed Evolutionary Graph Partitioning", ALENEX 2012,
//! section 4.1.

pub(crate) mod effort;
pub(crate) mod initial;

use std::sync::Arc;

use super::assignment::{Assignment, Quality};
use super::clustering::{Clusterer, Clustering, Rating};
use super::contraction::contract;
use super::fm;
use super::gain_table::GainTable;
use super::graph::Graph;
use super::jet::{self, Jet};
use super::prices::Prices;
use super::rebalancing::rebalance;
use crate::base::{Buffer, Error, Result, Run, splitmix64};
use crate::capacity::Load;
use crate::exec::side_by_side;
pub use effort::Effort;

/// Several attempts are made on a level with at most this part of the entries: one in `FEW`.
const FEW: u64 = 12;
/// Least number of attempts on a graph that could not be coarsened that far, unless it is large.
const LEAST_ATTEMPTS: u64 = 2;
/// Entries of a graph that is large.
const LARGE: u64 = 1 << 22;
/// Rounds of label propagation on the finest levels, and on those of the attempts and under several bounds.
const ROUNDS: [u32; 2] = [2, 1];
/// Clusters per part, at least: in a bisection, when rated by weight, and otherwise. This caps the weight of
/// a cluster.
const CLUSTERS_PER_PART: [u64; 3] = [6, 8, 24];
/// Clusters per part under several bounds, at least. Large clusters could not be moved until all bounds hold.
const CLUSTERS_OF_MANY: u64 = 60;
/// Ratio of the mean square to the squared mean of the degrees from which on a graph is *skewed*.
const SKEWED: f64 = 25.0;
/// A level that keeps more of the vertices than this is the coarsest: before the attempts, and within an
/// attempt.
const STALLED: [f64; 2] = [0.8, 0.95];
/// If a level keeps more of the entries than this, small clusters do not pay. They are rated by weight from
/// then on.
const DENSE: f64 = 0.7;
/// Gains in the table of a small graph, at most. On a large graph: entries of the graph per gain in the
/// table.
const TABLE: [u64; 2] = [1 << 20, 8];
/// Iterations of Jet on a level, by default and with little effort.
const ITERATIONS: [u32; 2] = [12, 1];
/// See [`Jet::slack`].
const SLACK: f64 = 0.1;
/// See [`Jet::patience`].
const PATIENCE: u32 = 1;
/// See [`Jet::lenience`]: on the given graph, and on coarser ones.
const LENIENCE: [f64; 2] = [0.25, 0.75];

/// How a graph is partitioned.
#[derive(Debug, Clone)]
pub struct Scheme {
    /// Ratings of the attempts. The first one also rates the clusters of the finest levels.
    pub ratings: Vec<Rating>,
    /// Vertices per part of the coarsest graph.
    pub coarsest: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Units of progress that a partition is worth: a third each for coarsening, the attempts and
    /// uncoarsening.
    pub units: u64,
    /// How much work to do.
    pub effort: Effort,
    /// Iterations of Jet on a level.
    pub iterations: u32,
    /// Gains that a table may have.
    pub table: u64,
    /// Entries of the given graph, if the one at hand is a level of it. Attempts are then made one after the
    /// other.
    pub entries: u64,
    /// What cut edges cost where parts are improved. They cost 1 if it is `None`.
    pub prices: Option<Arc<Prices>>,
}

/// Clusters of the level above, and the graph that they make.
pub(super) type Level<const D: usize> = (Clustering, Graph<'static, D>);

/// Parts of all vertices, and how good they are.
pub(crate) type Solution = (Buffer<u32>, Quality);

/// How to coarsen.
struct Coarsening {
    rating: Rating,
    /// A graph that has no more entries is the last.
    entries: u64,
    seed: u64,
    /// Units of progress.
    units: u64,
    /// Each cluster lies within one of these communities.
    communities: Option<Buffer<u32>>,
}

/// Stores the refined parts of levels, so that a run that goes on need not make them again.
pub(crate) trait CheckpointStore {
    /// Parts `0..k` of the `n` vertices of a level, counted from the finest: the stored parts, or else those
    /// that `make` returns.
    fn refined(
        &self,
        level: usize,
        n_and_k: (usize, usize),
        run: &Run,
        make: MakeSolution<'_>,
    ) -> Result<Solution>;
}

/// Computes a solution.
pub(crate) type MakeSolution<'a> = Box<dyn FnOnce() -> Result<Solution> + 'a>;

/// How to uncoarsen.
pub(super) struct Uncoarsening<'a, const D: usize> {
    /// Levels below the graph.
    pub levels: Vec<Level<D>>,
    /// Parts of the vertices of the last level.
    pub part_of: Buffer<u32>,
    /// Whether these are refined already.
    pub refined: bool,
    /// Units of progress.
    pub units: u64,
    /// Where the parts of each level are stored.
    pub store: Option<&'a dyn CheckpointStore>,
}

impl Scheme {
    /// The scheme for a graph with so many bounds.
    pub fn new(bounds: usize, effort: Effort, seed: u64) -> Self {
        use Rating::{Density, Weight};
        let (ratings, coarsest) = match (bounds, effort) {
            (1, Effort::Quick) => (vec![Weight], 8),
            (1, _) => (vec![Density, Weight, Density, Weight], 8),
            (_, Effort::Quick) => (vec![Density, Weight], 20),
            // Several bounds need more attempts, and a coarsest graph that leaves more choice.
            _ => (vec![Density, Weight, Density, Density, Weight, Density, Density, Density], 20),
        };
        let iterations = ITERATIONS[usize::from(effort == Effort::Quick)];
        Self {
            ratings,
            coarsest,
            seed,
            units: 0,
            effort,
            iterations,
            table: TABLE[0],
            entries: 0,
            prices: None,
        }
    }

    /// Parts of the vertices of `graph`, one for each of `caps`, and the number of rounds of improvement.
    /// Caps are exceeded only where no better partition was found.
    pub fn partition<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        run: &Run,
    ) -> Result<(Solution, u64)> {
        let (mut solutions, rounds) = self.suited(graph, run)?.in_rounds(graph, &[caps], run)?;
        let missing = || Error::Internal("multilevel: no partition".into());
        Ok((solutions.pop().ok_or_else(missing)?, rounds))
    }

    /// The scheme, adapted to `graph`.
    pub fn suited<const D: usize>(&self, graph: &Graph<D>, run: &Run) -> Result<Self> {
        let table = (graph.num_entries() / TABLE[1]).max(TABLE[0]);
        let mut scheme = Self { table, ..self.clone() };
        if D == 1 && self.ratings.first() == Some(&Rating::Density) && skewed(graph, run)? {
            scheme.ratings = self.ratings.iter().map(|rating| rating.opposite()).collect();
        }
        Ok(scheme)
    }

    fn multilevel<const D: usize>(&self, graph: &Graph<D>, caps: &[Load<D>], run: &Run) -> Result<Solution> {
        let rating = self.first()?;
        let given = self.entries.max(graph.num_entries());
        let entries = given / FEW;
        let (third, last) = (self.units / 3, self.units - self.units / 3 * 2);
        let coarsening = Coarsening { rating, entries, seed: self.seed, units: third, communities: None };
        let levels = self.coarsen(graph, caps, coarsening, run)?;
        let middle = levels.last().map_or(graph, |level| &level.1);
        // A graph that did not get small is not worth as many attempts.
        let least = if given < LARGE { LEAST_ATTEMPTS } else { 1 };
        let affordable = (given / middle.num_entries().max(1)).max(least);
        let best = self.best(middle, caps, affordable as usize, third, run)?;
        if !levels.is_empty() {
            let uncoarsening =
                Uncoarsening { levels, part_of: best.0, refined: true, units: last, store: None };
            return self.uncoarsen(graph, uncoarsening, caps, run);
        }
        run.advance(last)?;
        Ok(best)
    }

    /// The rating of the finest levels.
    pub fn first(&self) -> Result<Rating> {
        let missing = || Error::Internal("multilevel: no rating to cluster with".into());
        self.ratings.first().copied().ok_or_else(missing)
    }

    /// The best of several attempts, at most `affordable`, combined with each of the others.
    fn best<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        affordable: usize,
        units: u64,
        run: &Run,
    ) -> Result<Solution> {
        let seed = |index: usize| splitmix64(self.seed ^ splitmix64(index as u64 + 1));
        let ratings = &self.ratings[..self.ratings.len().min(affordable)];
        let each = units / (2 * ratings.len() as u64 - 1);
        let attempt = |(index, &rating): (usize, &Rating)| {
            let solution = self.cycle(graph, caps, rating, seed(index), run)?;
            run.advance(each).map(|()| solution)
        };
        let mut attempts: Vec<Solution> = if self.entries > graph.num_entries() {
            ratings.iter().enumerate().map(attempt).collect::<Result<_>>()?
        } else {
            side_by_side(run, ratings.iter().enumerate(), attempt).into_iter().collect::<Result<_>>()?
        };
        attempts.sort_by(|a, b| a.1.excess.total_cmp(&b.1.excess).then(a.1.cut.cmp(&b.1.cut)));
        let mut attempts = attempts.into_iter();
        let Some(mut best) = attempts.next() else {
            return Err(Error::Internal("multilevel: no attempt to partition".into()));
        };
        for ((index, other), &rating) in attempts.enumerate().zip(&self.ratings) {
            let child = self.combine(
                graph,
                caps,
                rating,
                [&best.0, &other.0],
                seed(self.ratings.len() + index),
                run,
            )?;
            if child.1.beats(best.1) {
                best = child;
            }
            run.advance(each)?;
        }
        run.advance(units % (2 * ratings.len() as u64 - 1))?;
        Ok(best)
    }

    /// Combines two partitions: improves the first one by a multilevel scheme in which each cluster lies
    /// within one part of both.
    pub fn combine<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        rating: Rating,
        [one, other]: [&[u32]; 2],
        seed: u64,
        run: &Run,
    ) -> Result<Solution> {
        let mut communities: Buffer<u32> = Buffer::zeroed(graph.len(), "communities")?;
        let mut number: rustc_hash::FxHashMap<(u32, u32), u32> = Default::default();
        run.each(graph.len(), |v| {
            let next = number.len() as u32;
            communities[v as usize] = *number.entry((one[v as usize], other[v as usize])).or_insert(next);
        })?;
        self.v_cycle(
            graph,
            caps,
            Coarsening { rating, entries: 0, seed, units: 0, communities: Some(communities) },
            one,
            run,
        )
    }

    /// A V-cycle: coarsens by clusters that lie within one part of a given partition, and uncoarsens.
    fn v_cycle<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        coarsening: Coarsening,
        part_of: &[u32],
        run: &Run,
    ) -> Result<Solution> {
        let levels = self.coarsen(graph, caps, coarsening, run)?;
        let mut parts: Buffer<u32> = Buffer::zeroed(graph.len(), "parts")?;
        parts.copy_from_slice(part_of);
        for (clustering, _) in &levels {
            parts = clustering.labels(&parts, run)?;
        }
        self.uncoarsen(
            graph,
            Uncoarsening { levels, part_of: parts, refined: false, units: 0, store: None },
            caps,
            run,
        )
    }

    /// Coarsens the graph, partitions the coarsest one, and uncoarsens.
    pub fn cycle<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        rating: Rating,
        seed: u64,
        run: &Run,
    ) -> Result<Solution> {
        let coarsening = Coarsening { rating, entries: 0, seed, units: 0, communities: None };
        let levels = self.coarsen(graph, caps, coarsening, run)?;
        let coarsest = levels.last().map_or(graph, |level| &level.1);
        let part_of = initial::partition(self, coarsest, caps, seed, run)?;
        self.uncoarsen(
            graph,
            Uncoarsening { levels, part_of, refined: false, units: 0, store: None },
            caps,
            run,
        )
    }

    /// Coarsens `graph`. Returns all levels.
    fn coarsen<const D: usize>(
        &self,
        graph: &Graph<D>,
        caps: &[Load<D>],
        how: Coarsening,
        run: &Run,
    ) -> Result<Vec<Level<D>>> {
        let per_part = match how.rating {
            _ if D > 1 => CLUSTERS_OF_MANY,
            _ if caps.len() == 2 => CLUSTERS_PER_PART[0],
            Rating::Weight => CLUSTERS_PER_PART[1],
            _ => CLUSTERS_PER_PART[2],
        };
        let clusters = caps.len() as u64 * per_part;
        let cap = graph.total().map(|total| total.div_ceil(clusters));
        let (mut levels, mut communities): (Vec<Level<D>>, _) = (Vec::new(), how.communities);
        let (mut left, mut rating) = (how.units, how.rating);
        loop {
            let finest = levels.last().map_or(graph, |level| &level.1);
            let ahead = share(how.units, finest, graph);
            run.advance(std::mem::replace(&mut left, ahead) - ahead)?;
            if finest.len() <= self.coarsest * caps.len() || finest.num_entries() <= how.entries {
                break;
            }
            let seed = splitmix64(how.seed ^ levels.len() as u64);
            let rounds = ROUNDS[usize::from(how.entries == 0 || D > 1 || self.effort == Effort::Quick)];
            let clusterer = Clusterer { rating, cap, rounds, seed };
            let clustering = clusterer.cluster(finest, communities.as_deref(), run)?;
            let stalled = STALLED[usize::from(how.entries == 0)];
            if clustering.count as f64 > stalled * finest.len() as f64 {
                break;
            }
            let coarse = contract(finest, &clustering, run)?;
            if coarse.num_entries() as f64 > DENSE * finest.num_entries() as f64 {
                rating = Rating::Weight;
            }
            communities = communities.map(|communities| clustering.labels(&communities, run)).transpose()?;
            // A level that has nearly the edges of the one above it is worth neither its memory nor its time.
            let above = levels.len().checked_sub(2).map_or(graph, |index| &levels[index].1).num_entries();
            match levels.pop_if(|level| level.1.num_entries() as f64 > DENSE * above as f64) {
                Some((finer, _)) => levels.push((finer.coarsened(&clustering, run)?, coarse)),
                None => levels.push((clustering, coarse)),
            }
        }
        run.advance(left)?;
        Ok(levels)
    }

    /// Projects parts of the last level to `graph`, and refines them on every level.
    pub(super) fn uncoarsen<const D: usize>(
        &self,
        graph: &Graph<D>,
        uncoarsening: Uncoarsening<D>,
        caps: &[Load<D>],
        run: &Run,
    ) -> Result<Solution> {
        let Uncoarsening { mut levels, mut part_of, mut refined, units, store } = uncoarsening;
        let mut reached = 0;
        loop {
            let here = levels.last().map_or(graph, |level| &level.1);
            if !std::mem::take(&mut refined) {
                let is_last = levels.is_empty();
                // Under prices the caps are not loosened, so that parts never get worse.
                let is_tight = is_last || self.prices.is_some();
                let caps = if is_tight { caps.to_vec() } else { loosened(here, caps) };
                let level = levels.len();
                let refine = || self.refine(here, part_of, &caps, level, run);
                let quality;
                (part_of, quality) = match store {
                    None => refine()?,
                    Some(store) => store.refined(level, (here.len(), caps.len()), run, Box::new(refine))?,
                };
                let now = share(units, here, graph);
                run.advance(now - std::mem::replace(&mut reached, now))?;
                if is_last {
                    return Ok((part_of, quality));
                }
            }
            let Some((Clustering { cluster_of, .. }, _)) = levels.pop() else { continue };
            let mut fine: Buffer<u32> = Buffer::zeroed(cluster_of.len(), "parts")?;
            run.each(cluster_of.len(), |v| fine[v as usize] = part_of[cluster_of[v as usize] as usize])?;
            part_of = fine;
        }
    }

    /// Refines parts of the given graph under other caps than theirs.
    pub fn refine_finest<const D: usize>(
        &self,
        graph: &Graph<D>,
        part_of: Buffer<u32>,
        caps: &[Load<D>],
        run: &Run,
    ) -> Result<Solution> {
        self.refine(graph, part_of, caps, 0, run)
    }

    /// Refines the parts of a level, counted from the finest.
    fn refine<const D: usize>(
        &self,
        graph: &Graph<D>,
        part_of: Buffer<u32>,
        caps: &[Load<D>],
        level: usize,
        run: &Run,
    ) -> Result<Solution> {
        let lenience = LENIENCE[usize::from(level > 0)];
        let (iterations, seed) = (self.iterations, self.seed ^ level as u64);
        let jet = &Jet { iterations, slack: SLACK, lenience, patience: PATIENCE, seed };
        let mut assignment = Assignment::new(graph, part_of, caps.len(), run)?;
        assignment.prices = self.prices.clone();
        rebalance(graph, &mut assignment, caps, jet.seed, run)?;
        let mut quality = jet::refine(graph, &mut assignment, caps, jet, run)?;
        if graph.len() as u64 * caps.len() as u64 <= self.table {
            let mut table = GainTable::new(graph, &mut assignment, caps, run)?;
            fm::refine(&mut table, fm::Limits::of(graph), jet.seed, run)?;
            quality = table.quality();
        }
        Ok((assignment.part_of, quality))
    }
}

/// The units of progress of a level, as a share of those of `graph` by its entries.
fn share<const D: usize>(units: u64, level: &Graph<D>, graph: &Graph<D>) -> u64 {
    match graph.num_entries() as u128 {
        0 => units,
        entries => (u128::from(units) * u128::from(level.num_entries()) / entries) as u64,
    }
}

/// Whether a few vertices have most of the edges. Weight then says more than density: clusters form around
/// hubs, and the more members one has the better it is.
pub(super) fn skewed<const D: usize>(graph: &Graph<D>, run: &Run) -> Result<bool> {
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
pub(crate) fn loosened<const D: usize>(graph: &Graph<D>, caps: &[Load<D>]) -> Vec<Load<D>> {
    let (total, heaviest) = (graph.total(), graph.heaviest());
    let all: [f64; D] =
        std::array::from_fn(|bound| caps.iter().map(|cap| cap[bound] as f64).sum::<f64>().max(1.0));
    let loosen = |cap: &Load<D>| {
        std::array::from_fn(|bound| {
            let share = total[bound] as f64 * (cap[bound] as f64 / all[bound]);
            cap[bound].max(share as u64 + heaviest[bound])
        })
    };
    caps.iter().map(loosen).collect()
}
