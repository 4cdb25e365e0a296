//! An order of the vertices in which clusters stay together: the vertices of a cluster side by side, clusters
//! of a cluster of clusters side by side, and so on.
//!
//! **Requirements.** The neighbours of every vertex, in memory or mapped. Weights of the edges are not read.
//!
//! **Algorithm.** [`clustering`](super::coarsening::clustering) clusters the vertices under a small cap, the
//! clusters are contracted, and their graph is clustered under the next cap, until hardly any two clusters
//! have an edge. Given parts come first: no cluster reaches over the end of a part. The largest clusters keep
//! the order of their lowest vertices, or of their parts. Then every level sorts its vertices by the place of
//! their cluster, and by id within it. So what is left of a good order of the ids stays as it is.
//!
//! **Memory.** Beside the adjacency 40 bytes per vertex, however many edges there are, and buffers.
//! Contracted graphs lie in memory if they fit, and in temporary files otherwise. The order is the same.
//!
//! **Disk.** In this case at most 20 bytes per entry of the adjacency.
//!
//! **Parallelism.** Clustering and contraction run in parallel. The result does not depend on the threads.
//!
//! **Complexity.** O(n + m) per level. A level has about half the entries of the one before.
//!
//! **Source.** Boldi, Rosa, Santini and Vigna, "Layered Label Propagation", WWW 2011, which combines
//! clusterings of several resolutions; here they are nested.

use super::coarsening::{
    Clusterer, Clustering, Levels, Next, Policy, Rating, Sample, Step, Store, coarsen, contraction, in_files,
};
use super::model::{Graph, Size};
use crate::base::{Buffer, Result, Run, splitmix64};
use crate::graph::Csr;
use crate::partition::validate_start;
use crate::sets::Groups;

/// Most vertices of a cluster of the first level, and the factor by which clusters of each further level may
/// be larger.
const SMALLEST: u64 = 16;
const GROWTH: u64 = 8;
/// Rounds of label propagation.
const ROUNDS: u32 = 3;
/// A level that keeps more of the vertices is the last.
const STALLED: f64 = 0.95;

/// Bytes per vertex of the clusters of all levels, and of the orders made of them.
const CLUSTERS: u64 = 16;
/// Bytes per entry of a contraction in files.
const ENTRY_IN_FILES: u64 = 20;

/// The ids of the vertices in their new order. With parts, the vertices of part 0 come first, then part 1,
/// and so on.
pub fn order(csr: &Csr, parts: Option<(&[u32], u32)>, seed: u64, run: &Run) -> Result<Buffer<u32>> {
    let (n, entries) = (csr.graph().n, csr.num_entries());
    parts.map_or(Ok(()), |(part_of, k)| validate_start(part_of, k, n))?;
    require(n, entries, run)?;
    run.begin("order", n);
    let weight = |_| [1];
    let graph = Graph::finest(csr, &weight, run)?.unweighted();
    let within = parts.map(|(part_of, _)| part_of);
    let how = Nested { n, seed };
    let Levels { levels, communities } = coarsen(&graph, &mut { how }, &how, within, run)?;
    let clusterings: Vec<Clustering> = levels.into_iter().map(|(clustering, _)| clustering).collect();
    nested(&clusterings, parts, communities.as_deref(), n as usize, run)
}

/// Coarsening until hardly any two clusters have an edge. Levels lie in memory where they fit, else in files.
#[derive(Clone, Copy)]
struct Nested {
    /// Vertices of the given graph.
    n: u64,
    seed: u64,
}

impl Policy<1> for Nested {
    fn clusterer(&mut self, step: Step<1>) -> Result<Option<Clusterer<1>>> {
        let level = step.number as u32;
        let cap = SMALLEST.saturating_mul(GROWTH.saturating_pow(level)).min(self.n.max(1));
        let seed = splitmix64(self.seed ^ splitmix64(level.into()));
        Ok(Some(Clusterer { rating: Rating::Density, cap: [cap], rounds: ROUNDS, seed }))
    }

    fn next(&mut self, Step { graph, run, .. }: Step<1>, clusters: usize) -> Result<Next> {
        run.advance((graph.len() - clusters) as u64)?;
        Ok(if clusters as f64 >= STALLED * graph.len() as f64 { Next::End } else { Next::Level })
    }

    fn keeps_graphs(&self) -> bool {
        false
    }
}

impl Store<1> for Nested {
    fn contract(
        &self,
        Step { graph, run, .. }: Step<1>,
        clustering: &Clustering,
    ) -> Result<Graph<'static, 1>> {
        if fits(self.n, graph.num_entries(), run) {
            return contraction::contract(graph, clustering, run);
        }
        let all = Sample { entries: u64::MAX, seed: 0 };
        let in_use = CLUSTERS.saturating_mul(self.n).saturating_add(in_files::memory_of_vertices(self.n, 1));
        in_files::contract(graph, clustering, all, run.tmp_dir(), in_use, run)
    }
}

/// The size of a graph whose clusters are ordered, by one thread.
fn size(n: u64, entries: u64) -> Size {
    Size { n, entries, k: 1, bounds: 1, threads: 1 }
}

/// Whether the contraction of a graph with this number of entries fits into memory.
fn fits(n: u64, entries: u64, run: &Run) -> bool {
    CLUSTERS.saturating_mul(n).saturating_add(contraction::memory(&size(n, entries))) <= run.budget()
}

/// Refuses a graph for which there is no memory.
fn require(n: u64, entries: u64, run: &Run) -> Result<()> {
    if fits(n, entries, run) {
        return Ok(());
    }
    let files = ENTRY_IN_FILES.saturating_mul(entries);
    let (files, what) = run.temporary(run.tmp_dir(), files, format!("the order of {n} vertices"));
    let memory = CLUSTERS.saturating_mul(n).saturating_add(in_files::memory(&size(n, entries)));
    run.require(memory.saturating_add(files), what)
}

/// The vertices, sorted from the largest clusters down to the smallest.
fn nested(
    levels: &[Clustering],
    parts: Option<(&[u32], u32)>,
    communities: Option<&[u32]>,
    n: usize,
    run: &Run,
) -> Result<Buffer<u32>> {
    let top = levels.last().map_or(n, |level| level.count);
    let of_top = communities.or(parts.map(|(part_of, _)| part_of));
    let k = parts.map_or(1, |(_, k)| k) as usize;
    let mut sorted = sort(top, k, |v| of_top.map_or(0, |communities| communities[v as usize]), run)?;
    for level in levels.iter().rev() {
        let place = places(&sorted, run)?;
        drop(sorted);
        let of = |v: u32| place[level.cluster_of[v as usize] as usize];
        sorted = sort(level.cluster_of.len(), level.count, of, run)?;
    }
    Ok(sorted)
}

/// The numbers below `n` by group, ascending in each.
fn sort(n: usize, groups: usize, group_of: impl Fn(u32) -> u32, run: &Run) -> Result<Buffer<u32>> {
    Ok(Groups::counted(n, groups, |v| Some(group_of(v)), |_| run.check())?.into_items())
}

/// Where each id stands in `ids`, which are all below their number.
pub fn places(ids: &[u32], run: &Run) -> Result<Buffer<u32>> {
    let mut places: Buffer<u32> = Buffer::zeroed(ids.len(), "places of vertices")?;
    run.each(ids.len(), |place| places[ids[place as usize] as usize] = place)?;
    Ok(places)
}
