//! The multilevel scheme: how levels and attempts make up a partition.
//!
//! The graph is coarsened once until a twelfth of its entries is left. From there, several attempts with
//! different ratings coarsen it further, partition the coarsest graph and uncoarsen it. The best attempt is
//! then *combined* with each of the others: the graph is coarsened again by clusters that lie within one part
//! of the best and within one part of the other, so both are partitions of every level. Uncoarsening begins
//! with the best, and can use the borders of the other. The result is projected to the given graph.
//!
//! A *V-cycle* follows: the graph is coarsened once more, by clusters that lie within one part and are rated
//! the other way, so that other groups of vertices can change places. Clusters that are rated by weight are
//! large from the first level on, so this takes a fifth of the time. Combinations and V-cycles begin with
//! parts that keep the caps, and keep them on all levels. Caps that are loosened would have to be paid for on
//! the way back.
//!
//! Every level is rebalanced, and refined by bounded Jet ([`Jet`]). Where the table of gains is small or the
//! boundaries of the parts are short, FM follows ([`Fm`]). The quick effort has FM on short boundaries only,
//! and the fast one none. Jet gains less than FM on meshes, grids and roads. Minimum cuts between pairs of
//! parts ([`Flows`]) come last where boundaries are short: in the V-cycle, and with the best effort on all
//! levels.
//!
//! **Figures.** On 26 real and generated graphs (k = 4, 8, 32, two seeds each), the V-cycle lowers the cut by
//! 1.3 %, the caps in combinations by 1.1 %, and FM on short boundaries by 2 % on meshes and the like with 32
//! parts, up to 13 %. Flows in the V-cycle lower it by 0.8 to 1.6 % on meshes and the like and by 0.1 % on
//! the others. With the best effort they lower it by 2 to 5 % on meshes, grids and circuits.
//!
//! **Source.** Combination: Sanders and Schulz, "Distributed Evolutionary Graph Partitioning", ALENEX 2012,
//! section 4.1.

pub(crate) mod effort;
pub(crate) mod initial;
pub(crate) mod tuning;

use super::uncoarsening::{Uncoarsening, share};
use crate::algorithms::multilevel::coarsening::{
    Clusterer, Level, Memory, Next, Policy, Rating, Step, coarsen,
};
use crate::algorithms::multilevel::model::{Graph, Problem, Size, Solution, copied};
use crate::algorithms::multilevel::refinement::{self, Flows, Fm, Jet, Rebalance, Refiners, refined};
use crate::base::{Buffer, Error, Result, Run, splitmix64};
use crate::capacity::Load;
use crate::exec::{fold, side_by_side};
pub use effort::Effort;

/// Least number of attempts on a graph that could not be coarsened that far, unless it is large.
const LEAST_ATTEMPTS: u64 = 2;
/// Entries of a graph that is large.
const LARGE: u64 = 1 << 22;
/// Bytes of the levels per entry of the given graph, if it has few parts: a level takes 8 per entry of its
/// own.
const ENTRY: u64 = 12;
/// Bytes of the levels per entry if there are more parts than `FEW_PARTS`.
const ENTRY_OF_MANY_PARTS: u64 = 24;
/// Parts up to which the coarsest graph is small beside the given one.
const FEW_PARTS: u64 = 64;
/// Bytes per vertex of the given graph while it is refined: its parts, and parts to return to.
pub(crate) const GIVEN: u64 = 12;
/// Rounds of label propagation on the finest levels.
const ROUNDS: u32 = 2;
/// Rounds of label propagation on the levels of attempts and V-cycles, and under several bounds.
const SHORT_ROUNDS: u32 = 1;
/// Minimum clusters per part, which caps the weight of a cluster.
const CLUSTERS_PER_PART: u64 = 24;
/// Minimum clusters per part if clusters are rated by weight.
const CLUSTERS_BY_WEIGHT: u64 = 8;
/// Minimum clusters per part in a bisection.
const CLUSTERS_IN_BISECTION: u64 = 6;
/// Minimum clusters per part under several bounds. Large clusters could not be moved until all bounds hold.
const CLUSTERS_UNDER_BOUNDS: u64 = 60;
/// Ratio of the mean square to the squared mean of the degrees from which on a graph is *skewed*.
const SKEWED: f64 = 25.0;
/// The largest such ratio of *even* degrees, as in meshes and grids. Boundaries of these are lines or
/// surfaces, which depend most on where the first bisections lie.
const EVEN: f64 = 1.15;
/// A level that keeps a larger share of the vertices is the last before the attempts.
const STALLED: f64 = 0.8;
/// A level of an attempt or a V-cycle that keeps a larger share of the vertices is the coarsest.
const STALLED_TO_THE_END: f64 = 0.95;
/// If a level keeps more of the entries than this, small clusters do not pay. They are rated by weight from
/// then on.
const DENSE: f64 = 0.7;
/// Maximum gains in the table of a small graph.
const TABLE: u64 = 1 << 20;
/// Entries of a large graph per gain in the table.
const ENTRIES_PER_GAIN: u64 = 8;
/// See [`Jet::slack`].
const SLACK: f64 = 0.1;
/// See [`Jet::patience`].
const PATIENCE: u32 = 0;
/// See [`Jet::lenience`], on coarse levels.
const LENIENCE: f64 = 0.75;
/// See [`Jet::lenience`], on the given graph.
const LENIENCE_ON_GIVEN: f64 = 0.25;

/// How a graph is partitioned.
#[derive(Debug, Clone)]
pub struct Scheme {
    /// Ratings of the attempts. The first one also rates the clusters of the finest levels.
    pub ratings: Vec<Rating>,
    /// Vertices per part of the coarsest graph.
    pub coarsest: usize,
    /// Units of progress that a partition is worth: a quarter each for coarsening, the attempts, uncoarsening
    /// and the V-cycle.
    pub units: u64,
    /// The amount of work.
    pub effort: Effort,
    /// Iterations of Jet on a level.
    pub iterations: u32,
    /// Gains that a table may have.
    pub table: u64,
    /// See [`Fm::boundaries`]. [`Flows`] need them too.
    pub boundaries: bool,
    /// Whether flows follow FM.
    pub flows: bool,
    /// Sides that are grown for each bisection of the coarsest graph, under one bound.
    pub bisections: u64,
    /// Entries of the given graph, if the one at hand is a level of it. Attempts are then made one after the
    /// other.
    pub entries: u64,
}

impl Scheme {
    /// The scheme for a graph with `bounds` bounds: 0 if there is one on volume alone, as for edge
    /// partitions, which gain little from a second attempt.
    pub fn new(bounds: usize, effort: Effort) -> Self {
        use Rating::{Density, Weight};
        let (ratings, coarsest) = match (bounds, effort) {
            (0 | 1, Effort::Fast) => (vec![Weight], 8),
            (0, Effort::Quick) => (vec![Density], 8),
            (1, Effort::Quick) => (vec![Density, Weight], 8),
            (0 | 1, _) => (vec![Density, Weight, Density, Weight], 8),
            (_, Effort::Fast | Effort::Quick) => (vec![Density, Weight], 20),
            // Several bounds need more attempts, and a coarsest graph that leaves more choice.
            _ => (vec![Density, Weight, Density, Density, Weight, Density, Density, Density], 20),
        };
        Self {
            ratings,
            coarsest,
            units: 0,
            effort,
            iterations: effort.tuning().jet_iterations,
            table: TABLE,
            boundaries: true,
            flows: effort.tuning().flows,
            bisections: effort.tuning().bisections,
            entries: 0,
        }
    }

    /// The scheme for levels in files. FM and flows read lists in any order.
    pub(crate) fn in_files(&self) -> Self {
        Self { boundaries: false, table: 0, ..self.clone() }
    }

    /// The refiners of a level. The given graph is level 0.
    pub(crate) fn refiners<const D: usize>(&self, level: usize) -> Refiners<D> {
        let tuning = self.effort.tuning();
        let (iterations, lenience) = match level {
            0 => (self.iterations.saturating_sub(tuning.fewer_on_given), LENIENCE_ON_GIVEN),
            _ => (self.iterations, LENIENCE),
        };
        let mut all: Refiners<D> = vec![Box::new(Rebalance)];
        if iterations > 0 {
            all.push(Box::new(Jet { iterations, slack: SLACK, lenience, patience: PATIENCE }));
        }
        if tuning.fm {
            let table = if tuning.gain_tables { self.table } else { 0 };
            all.push(Box::new(Fm { table, boundaries: self.boundaries }));
        }
        if self.flows && self.boundaries {
            all.push(Box::new(Flows { short: tuning.flow_boundary }));
        }
        all
    }

    /// Bytes of a partition of a graph of this size in memory, beside its lists and with one thread: the
    /// coarser levels with the work on them, or the refinement of the given graph, when these are freed.
    pub(crate) fn memory(&self, size: &Size) -> u64 {
        let &Size { n, entries, k, bounds, .. } = size;
        let per_entry = if k > FEW_PARTS { ENTRY_OF_MANY_PARTS } else { ENTRY };
        let levels = entries.saturating_mul(per_entry).saturating_add(n * (80 + 24 * bounds));
        let suited = Self { table: table(entries), ..self.clone() };
        let given = refinement::memory(&suited.refiners::<1>(0), size).saturating_add(GIVEN * n);
        levels.max(given).saturating_add(128 * k)
    }

    /// Parts of the vertices, and the number of rounds of improvement. Caps are exceeded only where no better
    /// partition was found.
    pub fn partition<const D: usize>(&self, problem: &Problem<D>) -> Result<(Solution, u64)> {
        let (mut solutions, rounds) = self.suited(problem.graph, problem.run)?.in_rounds(&[*problem])?;
        let missing = || Error::Internal("multilevel: no partition".into());
        Ok((solutions.pop().ok_or_else(missing)?, rounds))
    }

    /// The scheme, adapted to `graph`.
    pub fn suited<const D: usize>(&self, graph: &Graph<D>, run: &Run) -> Result<Self> {
        let mut scheme = Self { table: table(graph.num_entries()), ..self.clone() };
        if D == 1 {
            let spread = degree_spread(moments_of(graph, run)?);
            if spread >= SKEWED && self.ratings.first() == Some(&Rating::Density) {
                scheme.ratings = self.ratings.iter().map(|rating| rating.opposite()).collect();
            }
            if spread <= EVEN {
                scheme.bisections = self.effort.tuning().bisections_if_even;
            }
        }
        Ok(scheme)
    }

    fn multilevel<const D: usize>(&self, problem: &Problem<D>) -> Result<Solution> {
        let (graph, rating) = (problem.graph, self.first()?);
        let given = self.entries.max(graph.num_entries());
        let (quarter, last) = (self.units / 4, self.units - self.units / 4 * 3);
        let entries = given / self.effort.tuning().attempts_at;
        let levels =
            self.levels(problem, Coarsening { rating, entries, seed: problem.seed, units: quarter }, None)?;
        let middle = levels.last().map_or(graph, |level| &level.1);
        let best = self.best(&Problem { graph: middle, ..*problem }, given, quarter)?;
        if levels.is_empty() {
            problem.run.advance(quarter + last)?;
            return Ok(best);
        }
        let is_refined = Uncoarsening { refined: true, units: quarter, ..Uncoarsening::of(levels, best.0) };
        let found = self.uncoarsen(problem, is_refined)?;
        if !self.effort.tuning().v_cycle {
            problem.run.advance(last)?;
            return Ok(found);
        }
        self.again(problem, found, rating.opposite(), splitmix64(problem.seed), last)
    }

    /// The parts after a V-cycle, if that is better.
    fn again<const D: usize>(
        &self,
        problem: &Problem<D>,
        found: Solution,
        rating: Rating,
        seed: u64,
        units: u64,
    ) -> Result<Solution> {
        let scheme = Self { flows: true, units, ..self.clone() };
        let next = scheme.v_cycle(problem, rating, [&found.0, &found.0], seed)?;
        Ok(if next.1.beats(found.1) { next } else { found })
    }

    /// Whether little effort goes into a single attempt.
    fn is_hasty(&self) -> bool {
        self.effort.is_little() && self.ratings.len() == 1
    }

    /// The rating of the finest levels.
    pub fn first(&self) -> Result<Rating> {
        let missing = || Error::Internal("multilevel: no rating to cluster with".into());
        self.ratings.first().copied().ok_or_else(missing)
    }

    /// The best of several attempts, combined with each of the others. The graph that was coarsened for them
    /// had `given` entries.
    fn best<const D: usize>(&self, problem: &Problem<D>, given: u64, units: u64) -> Result<Solution> {
        let &Problem { graph, caps, run, .. } = problem;
        let seed = |index: usize| splitmix64(problem.seed ^ splitmix64(index as u64 + 1));
        // A graph that did not get small is not worth all attempts.
        let least = if given < LARGE { LEAST_ATTEMPTS } else { 1 };
        let affordable = (given / graph.num_entries().max(1)).max(least);
        let ratings = &self.ratings[..self.ratings.len().min(affordable as usize)];
        // Attempts side by side take no more memory than the given graph unless there are more of them than
        // that.
        let at_once = ratings.len().min(run.threads()) as u64;
        let (n, entries) = (graph.len() as u64, graph.num_entries());
        let each = self.memory(&Size { n, entries, k: caps.len() as u64, bounds: D as u64, threads: 1 });
        let fits = at_once * entries <= given
            || (at_once - 1).saturating_mul(each) <= run.budget().saturating_sub(run.reserved());
        let each = units / (2 * ratings.len() as u64 - 1);
        let attempt = |(index, &rating): (usize, &Rating)| {
            let solution = self.cycle(problem, rating, seed(index))?;
            run.advance(each).map(|()| solution)
        };
        let mut attempts: Vec<Solution> = if self.entries > entries || !fits {
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
            let pair = [&best.0[..], &other.0];
            let child = self.combine(problem, rating, pair, seed(self.ratings.len() + index))?;
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
        problem: &Problem<D>,
        rating: Rating,
        [one, other]: [&[u32]; 2],
        seed: u64,
    ) -> Result<Solution> {
        let mut communities: Buffer<u32> = Buffer::zeroed(problem.graph.len(), "communities")?;
        let mut number: rustc_hash::FxHashMap<(u32, u32), u32> = Default::default();
        problem.run.each(communities.len(), |v| {
            let next = number.len() as u32;
            communities[v as usize] = *number.entry((one[v as usize], other[v as usize])).or_insert(next);
        })?;
        Self { units: 0, ..self.clone() }.v_cycle(problem, rating, [&communities, one], seed)
    }

    /// A V-cycle: coarsens by clusters within communities, each of which lies within one part of a given
    /// partition, and uncoarsens. A quarter of the progress is coarsening.
    fn v_cycle<const D: usize>(
        &self,
        problem: &Problem<D>,
        rating: Rating,
        [communities, part_of]: [&[u32]; 2],
        seed: u64,
    ) -> Result<Solution> {
        let quarter = self.units / 4;
        let how = Coarsening { rating, entries: 0, seed, units: quarter };
        let levels = self.levels(problem, how, Some(communities))?;
        let mut parts = copied(part_of)?;
        for (clustering, _) in &levels {
            parts = clustering.labels(&parts, problem.run)?;
        }
        let units = self.units - quarter;
        self.uncoarsen(problem, Uncoarsening { tight: true, units, ..Uncoarsening::of(levels, parts) })
    }

    /// Coarsens the graph, partitions the coarsest one, and uncoarsens.
    pub fn cycle<const D: usize>(&self, problem: &Problem<D>, rating: Rating, seed: u64) -> Result<Solution> {
        let levels = self.levels(problem, Coarsening { rating, entries: 0, seed, units: 0 }, None)?;
        let graph = levels.last().map_or(problem.graph, |level| &level.1);
        let part_of = initial::partition(self, &Problem { graph, ..*problem }, seed)?;
        self.uncoarsen(problem, Uncoarsening::of(levels, part_of))
    }

    /// The levels below the graph of a problem. Each cluster lies `within` a community.
    fn levels<const D: usize>(
        &self,
        problem: &Problem<D>,
        how: Coarsening,
        within: Option<&[u32]>,
    ) -> Result<Vec<Level<D>>> {
        let mut policy = SchemePolicy::new(self, problem, how);
        let levels = coarsen(problem.graph, &mut policy, &Memory, within, problem.run)?.levels;
        problem.run.advance(policy.left)?;
        Ok(levels)
    }

    /// Projects parts of the last level to the graph of a problem, and refines them on every level.
    pub(crate) fn uncoarsen<const D: usize>(
        &self,
        problem: &Problem<D>,
        uncoarsening: Uncoarsening<D>,
    ) -> Result<Solution> {
        uncoarsening.solve(problem, |level| self.refiners(level))
    }

    /// Refines given parts.
    pub fn refine<const D: usize>(&self, problem: &Problem<D>, part_of: Buffer<u32>) -> Result<Solution> {
        refined(&self.refiners(0), problem, part_of, self.units)
    }
}

/// Maximum gains in the table of a graph with this number of entries.
fn table(entries: u64) -> u64 {
    (entries / ENTRIES_PER_GAIN).max(TABLE)
}

/// How to coarsen.
struct Coarsening {
    rating: Rating,
    /// A graph that has no more entries is the last.
    entries: u64,
    seed: u64,
    /// Units of progress.
    units: u64,
}

/// Coarsening in memory.
struct SchemePolicy<'a, const D: usize> {
    scheme: &'a Scheme,
    graph: &'a Graph<'a, D>,
    how: Coarsening,
    /// Vertices of a graph that is small enough.
    coarsest: usize,
    /// Cap on the weight of a cluster.
    cap: Load<D>,
    /// Units of progress that are left.
    left: u64,
}

impl<'a, const D: usize> SchemePolicy<'a, D> {
    fn new(scheme: &'a Scheme, problem: &Problem<'a, D>, how: Coarsening) -> Self {
        let &Problem { graph, caps, .. } = problem;
        let per_part = match how.rating {
            _ if D > 1 => CLUSTERS_UNDER_BOUNDS,
            _ if caps.len() == 2 => CLUSTERS_IN_BISECTION,
            Rating::Weight => CLUSTERS_BY_WEIGHT,
            Rating::Density => CLUSTERS_PER_PART,
        };
        let clusters = caps.len() as u64 * per_part;
        let cap = graph.total().map(|total| total.div_ceil(clusters));
        Self { scheme, graph, coarsest: scheme.coarsest * caps.len(), cap, left: how.units, how }
    }

    /// Whether this is the coarsening of an attempt, or of a V-cycle.
    fn is_to_the_end(&self) -> bool {
        self.how.entries == 0
    }
}

impl<const D: usize> Policy<D> for SchemePolicy<'_, D> {
    fn clusterer(&mut self, Step { levels, graph, run, .. }: Step<D>) -> Result<Option<Clusterer<D>>> {
        let ahead = share(self.how.units, graph, self.graph);
        run.advance(std::mem::replace(&mut self.left, ahead) - ahead)?;
        if graph.len() <= self.coarsest || graph.num_entries() <= self.how.entries {
            return Ok(None);
        }
        let seed = splitmix64(self.how.seed ^ levels as u64);
        let is_short = self.is_to_the_end() || D > 1 || self.scheme.is_hasty();
        let rounds = if is_short { SHORT_ROUNDS } else { ROUNDS };
        Ok(Some(Clusterer { rating: self.how.rating, cap: self.cap, rounds, seed }))
    }

    fn next(&mut self, step: Step<D>, clusters: usize) -> Result<Next> {
        let stalled = if self.is_to_the_end() { STALLED_TO_THE_END } else { STALLED };
        Ok(if clusters as f64 > stalled * step.graph.len() as f64 { Next::End } else { Next::Level })
    }

    /// A level that has nearly the edges of the one above it is worth neither its memory nor its time.
    fn leaves_out(&mut self, _step: usize, [above, entries, below]: [u64; 3]) -> bool {
        if below as f64 > DENSE * entries as f64 {
            self.how.rating = Rating::Weight;
        }
        entries as f64 > DENSE * above as f64
    }
}

/// Whether a few vertices have most of the edges. Weight then says more than density: clusters form around
/// hubs, and the more members one has the better it is.
pub(crate) fn skewed<const D: usize>(graph: &Graph<D>, run: &Run) -> Result<bool> {
    Ok(are_skewed(moments_of(graph, run)?))
}

/// The number of vertices with neighbours, the sum of their degrees, and the sum of the squares.
pub(crate) type Moments = [u128; 3];

/// The moments with the degree of one more vertex.
pub(crate) fn with_degree([count, sum, squares]: Moments, degree: u64) -> Moments {
    let square = u128::from(degree) * u128::from(degree);
    [count + u128::from(degree > 0), sum + u128::from(degree), squares + square]
}

fn moments_of<const D: usize>(graph: &Graph<D>, run: &Run) -> Result<Moments> {
    let add = |moments, v: usize| with_degree(moments, graph.degree(v as u32) as u64);
    let join = |one: Moments, other: Moments| std::array::from_fn(|i| one[i] + other[i]);
    fold(run, graph.len(), Moments::default(), add, join)
}

/// Whether a few vertices have most of the edges.
pub(crate) fn are_skewed(moments: Moments) -> bool {
    degree_spread(moments) >= SKEWED
}

/// The mean of the squared degrees as a multiple of the squared mean. 0 without any edge.
fn degree_spread(moments: Moments) -> f64 {
    let [count, sum, squares] = moments.map(|sum| sum as f64);
    if sum > 0.0 { squares * count / (sum * sum) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::multilevel::model::Builder;

    /// A cycle of `n` vertices, `hubs` of which have an edge to every other vertex besides.
    fn wheel(n: u32, hubs: u32) -> Graph<'static, 1> {
        let mut builder = Builder::new(n as usize, (n as usize) * (2 + 2 * hubs as usize)).unwrap();
        for v in 0..n {
            let (around, spokes) = ([(v + 1) % n, (v + n - 1) % n], if v < hubs { 0..n } else { 0..hubs });
            around.into_iter().chain(spokes).filter(|&u| u != v).for_each(|u| builder.entry(u, 1));
            builder.vertex([1]);
        }
        builder.finish()
    }

    #[test]
    fn a_scheme_is_adapted_to_the_spread_of_the_degrees() {
        let scheme = Scheme::new(1, Effort::Default);
        let tuning = scheme.effort.tuning();
        for threads in [1, 2, 8] {
            let run = Run::new(Some(threads), None).unwrap();
            for (n, hubs, is_skewed, bisections) in [
                (40_000, 0, false, tuning.bisections_if_even),
                (40, 1, false, tuning.bisections),
                (40_000, 1, true, tuning.bisections),
            ] {
                let graph = wheel(n, hubs);
                let suited = scheme.suited(&graph, &run).unwrap();
                assert_eq!(suited.ratings != scheme.ratings, is_skewed, "{n} {hubs}");
                assert_eq!(suited.bisections, bisections, "{n} {hubs}");
                // Adapted once more, it stays the same.
                let again = suited.suited(&graph, &run).unwrap();
                assert_eq!((again.ratings, again.bisections), (suited.ratings, suited.bisections));
            }
        }
    }
}
