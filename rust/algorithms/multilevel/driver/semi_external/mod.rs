//! The multilevel partitioner for graphs whose lists do not fit into memory.
//!
//! The given graph is clustered and contracted where it lies. Once or twice, as the [`Path`] says, this gives
//! a level whose lists also lie in files ([`in_files`]). The last of these levels is the *top*, of whose
//! edges a sample is enough ([`Sample`]). The top is partitioned as any graph ([`Scheme`]). During
//! uncoarsening every level is refined by bounded Jet, the given graph included. The memory grows with the
//! vertices, and with the top.
//!
//! **Clusters** of the given graph are small and dense. They make up for the loss of choice in the clusters
//! of the next level, which are larger and rated by weight. The caps of clusters are a share of a part.
//!
//! **Lists in files are packed** ([`Graph::packed`]) where they do not fit into the memory that is left. With
//! weights and without, all entries stay in their order, so the result is the same. With k = 8, 2 threads,
//! n = 2^20 and m = 16 M in a control group of 180 MB, it read 1.2 GB instead of 7.7 of an R-MAT graph, and
//! 2.5 instead of 5.1 of planted communities. It took 18 and 20 s of the processors instead of 16 and 14, and
//! 2.4 and 4.9 s in the kernel instead of 9.6 and 6.2. Where a page cache holds all files anyway, packed
//! lists take 15 to 50 % more time of the processors.
//!
//! **Source.** Akhremtsev, Sanders and Schulz, "(Semi-)External Algorithms for Graph Partitioning and
//! Clustering", ALENEX 2015; sampling of edges: Sanders, Schulz, Seemaier et al., "TeraPart: Memory-Efficient
//! Multilevel Graph Partitioning", 2025.

pub(crate) mod checkpoints;
pub(crate) mod costs;
pub(crate) mod path;
mod replicas;

use super::scheme::{Scheme, skewed};
use super::uncoarsening::Uncoarsening;
use crate::algorithms::multilevel::coarsening::in_files::{self, contract, summed};
use crate::algorithms::multilevel::coarsening::{
    Clusterer, Clustering, Next, Policy, Rating, Sample, Step, Store, coarsen,
};
use crate::algorithms::multilevel::driver::Multilevel;
use crate::algorithms::multilevel::model::{Graph, Problem, Size, Solution};
use crate::algorithms::multilevel::refinement::{Refiner, refined};
use crate::base::system::trim_heaps;
use crate::base::{Buffer, Result, Run, splitmix64};
use crate::graph::Csr;
pub(crate) use checkpoints::Checkpoints;
pub use costs::{Costs, Hubs};
pub use path::{Path, Plan};

/// Minimum clusters per part on the first level: the cap of a cluster is the weight of a part divided by
/// this.
const CLUSTERS_OF_GIVEN: u64 = 200;
/// Minimum clusters per part on the levels after it.
const CLUSTERS_PER_PART: u64 = 24;
/// Most weight of a cluster of the first level, in vertices of mean weight.
const LARGEST: u64 = 1000;
/// Rounds of label propagation.
const ROUNDS: u32 = 3;
/// Iterations of Jet.
const ITERATIONS: u32 = 8;
/// A level that keeps more of the vertices is not worth it.
const STALLED: f64 = 0.95;

/// Where the levels of a partition lie, and where its checkpoints are kept.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Where the levels lie.
    pub plan: Plan,
    /// Bytes that the plan needs beside the adjacency, with the threads that work.
    pub used: u64,
    /// Bytes that are available for lists in files. Larger lists are packed.
    pub available: u64,
    /// Checkpoints of coarsening and uncoarsening.
    pub checkpoints: Option<Checkpoints>,
}

impl Multilevel {
    /// The placement for the graph of `csr`: the first plan that fits, or the plan of existing checkpoints.
    pub(crate) fn placement(&self, csr: &Csr, run: &Run) -> Result<Placement> {
        let (plan, checkpoints) = self.plan_with_checkpoints(csr, run)?;
        let (n, entries) = (csr.graph().n, csr.most_entries());
        let memory = |size: &Size| plan.memory(self, n, entries, size.threads as usize);
        self.goal.size(n, entries, 1).limit_threads(run, "multilevel", memory);
        let used = plan.memory(self, n, entries, run.threads());
        let available = path::available(run.budget().saturating_sub(used), run);
        Ok(Placement { plan, used, available, checkpoints })
    }
}

/// Parts of the vertices, and the number of rounds of improvement.
pub(crate) fn partition<const D: usize>(
    scheme: &Scheme,
    placement: &Placement,
    problem: &Problem<D>,
) -> Result<(Solution, u64)> {
    let &Problem { graph, caps, run, .. } = problem;
    let (third, last) = (scheme.units / 3, scheme.units - scheme.units / 3 * 2);
    let scheme = Scheme {
        units: third,
        iterations: scheme.iterations.min(ITERATIONS),
        entries: graph.num_entries(),
        ..scheme.clone()
    };
    let entries = graph.num_entries();
    let files = Files { placement, n: graph.len() as u64, entries, seed: problem.seed };
    let mut policy = FilesPolicy { path: placement.plan.path, problem };
    let levels = coarsen(graph, &mut policy, &files, None, run)?.levels;
    run.advance(third)?;
    let top = levels.last().map_or(graph, |level| &level.1);
    let by_one = || {
        let whole = top.undivided();
        replicas::of_first(graph.division(), || scheme.partition(&Problem { graph: &whole, ..*problem }))
    };
    if levels.is_empty() {
        run.advance(last)?;
        return by_one();
    }
    require(&scheme, graph, top, caps.len(), run)?;
    let (done, mut made) = ((placement.checkpoints.as_ref(), graph.division()), false);
    let ((part_of, _), rounds) =
        checkpoints::parts(done, levels.len(), (top.len(), caps.len()), run, || {
            made = true;
            by_one()
        })?;
    run.advance(if made { 0 } else { third })?;
    let uncoarsening =
        Uncoarsening { refined: true, units: last, store: &files, ..Uncoarsening::of(levels, part_of) };
    scheme.in_files().uncoarsen(problem, uncoarsening).map(|solution| (solution, rounds))
}

/// Refuses a top that takes more memory than there is, since clusters did not get large enough.
fn require<const D: usize>(
    scheme: &Scheme,
    graph: &Graph<D>,
    top: &Graph<D>,
    k: usize,
    run: &Run,
) -> Result<()> {
    let (n, entries, bounds) = (top.len() as u64, top.num_entries(), D as u64);
    let size = Size { n, entries, k: k as u64, bounds, threads: 1 };
    let below = path::levels(&Size { n: graph.len() as u64, ..size });
    let needed = |size: &Size| below + scheme.memory(size) + size.of_threads();
    run.require(needed(&size), format!("multilevel on a coarse graph of {n} vertices, {entries} entries"))?;
    size.limit_threads(run, "multilevel", needed);
    Ok(())
}

/// Levels whose lists lie in files, the last of them sampled, and checkpoints of the work on all.
struct Files<'a> {
    placement: &'a Placement,
    /// Vertices and entries of the given graph.
    n: u64,
    entries: u64,
    seed: u64,
}

impl<const D: usize> Store<D> for Files<'_> {
    fn cluster(&self, step: Step<D>, how: &Clusterer<D>, within: Option<&[u32]>) -> Result<Clustering> {
        let Step { number, graph, run, .. } = step;
        trim_heaps();
        let done = (self.placement.checkpoints.as_ref(), graph.division());
        checkpoints::clusters(done, number, graph.len(), run, || how.cluster(graph, within, run))
    }

    fn contract(&self, step: Step<D>, clustering: &Clustering) -> Result<Graph<'static, D>> {
        let Step { number, graph, run, .. } = step;
        trim_heaps();
        let Placement { plan, available, checkpoints: done, .. } = self.placement;
        let is_last = number + 1 >= plan.path.levels();
        let entries = if is_last { plan.entries(self.entries) } else { u64::MAX };
        let sample = Sample { entries, seed: splitmix64(seed_of(self.seed, number)) };
        let in_use = path::CLUSTERS * self.n + in_files::memory_of_vertices(self.n, D as u64);
        let coarse = match graph.division() {
            None => checkpoints::lists(done.as_ref(), number, clustering.count, run, || {
                contract(graph, clustering, sample, run.tmp_dir(), in_use, run)
            })?,
            Some(division) => replicas::lists(step, (division, done.as_ref()), clustering, is_last, || {
                summed(graph, clustering, sample, run.tmp_dir(), in_use, run)
            })?,
        };
        coarse.with_fixed_of(graph, &clustering.cluster_of, run)?.packed(*available, run)
    }

    fn refined(
        &self,
        level: usize,
        refiners: &[Box<dyn Refiner<D>>],
        problem: &Problem<D>,
        part_of: Buffer<u32>,
        units: u64,
    ) -> Result<Solution> {
        trim_heaps();
        let sizes = (problem.graph.len(), problem.caps.len());
        let done = (self.placement.checkpoints.as_ref(), problem.graph.division());
        let mut left = units;
        let make = || {
            let units = std::mem::take(&mut left);
            refined(refiners, problem, part_of, units).map(|solution| (solution, 0))
        };
        let (solution, _) = checkpoints::parts(done, level, sizes, problem.run, make)?;
        problem.run.advance(left).map(|()| solution)
    }
}

/// The seed of a step of coarsening.
fn seed_of(seed: u64, step: usize) -> u64 {
    splitmix64(seed ^ splitmix64(step as u64 + 1))
}

/// Coarsening until the top is small enough, by at least as many levels as the path has.
struct FilesPolicy<'a, const D: usize> {
    path: Path,
    problem: &'a Problem<'a, D>,
}

impl<const D: usize> Policy<D> for FilesPolicy<'_, D> {
    fn clusterer(&mut self, step: Step<D>) -> Result<Option<Clusterer<D>>> {
        let (Step { number, graph, .. }, &Problem { graph: given, caps, seed, run, .. }) =
            (step, self.problem);
        let (n, k) = (given.len() as u64, caps.len() as u64);
        if number >= self.path.levels() && graph.len() as u64 <= self.path.vertices(n, k) {
            return Ok(None);
        }
        let cap = given.total().map(|total| match number {
            0 => smallest_cap(total, k * CLUSTERS_OF_GIVEN, n),
            _ => total / (k * CLUSTERS_PER_PART),
        });
        let rating = match number {
            0 if !(D == 1 && skewed(graph, run)?) => Rating::Density,
            _ => Rating::Weight,
        };
        Ok(Some(Clusterer { rating, cap, rounds: ROUNDS, seed: seed_of(seed, number) }))
    }

    fn next(&mut self, step: Step<D>, clusters: usize) -> Result<Next> {
        Ok(match clusters as f64 > STALLED * step.graph.len() as f64 {
            false => Next::Level,
            // Caps may be too small for clusters of the first level.
            true if step.number < self.path.levels() => Next::Retry,
            true => Next::End,
        })
    }

    /// A level beyond those that were asked for replaces the last of them.
    fn leaves_out(&mut self, step: usize, _entries: [u64; 3]) -> bool {
        step >= self.path.levels()
    }
}

/// Cap on the weight of a cluster of the first level, given the `total` weight of `n` vertices.
fn smallest_cap(total: u64, clusters: u64, n: u64) -> u64 {
    let largest = u128::from(LARGEST) * u128::from(total) / u128::from(n.max(1));
    (total / clusters).min(u64::try_from(largest).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_of_clusters_grow_with_the_weights() {
        // 5 million vertices that weigh nearly 2^32 each: a thousand times the total is more than 2^64.
        let (n, weight) = (5_000_000, u64::from(u32::MAX));
        assert_eq!(smallest_cap(n * weight, 1600, n), LARGEST * weight);
        assert_eq!(smallest_cap(u64::MAX, 8, 1), u64::MAX / 8);
        assert_eq!(smallest_cap(n, 1600, n), LARGEST);
        assert_eq!(smallest_cap(0, 1600, 0), 0);
    }
}
