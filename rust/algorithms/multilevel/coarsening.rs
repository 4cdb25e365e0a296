//! Coarsening: clusters are contracted, level after level, as a [`Policy`] says, into a [`Store`].
//!
//! A policy says how each graph is clustered, which clusterings are worth a level, and when the graph is
//! small enough. A store says where the levels lie: in memory, or in files. All callers share the loop.

use super::clustering::{Clusterer, Clustering};
use super::contraction::contract;
use super::graph::{Builder, Graph};
use super::problem::{Problem, Solution};
use super::refiner::{Refiner, refined};
use crate::base::{Buffer, Result, Run};

/// Clusters of the level above, and the graph that they make.
pub(crate) type Level<const D: usize> = (Clustering, Graph<'static, D>);

/// What becomes of a clustering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It makes a level.
    Level,
    /// The next step clusters the same graph once more.
    Retry,
    /// The graph stays the coarsest.
    End,
}

/// How a graph is coarsened.
pub(crate) trait Policy<const D: usize> {
    /// How `graph` is clustered. There are as many `levels` above it, and there were as many steps before.
    /// `None` if it is small enough.
    fn clusterer(&mut self, step: usize, levels: usize, graph: &Graph<D>) -> Result<Option<Clusterer<D>>>;

    /// What becomes of a clustering of `n` vertices into `clusters`.
    fn next(&mut self, step: usize, n: usize, clusters: usize) -> Result<Next>;

    /// Whether a level is left out, since a level below it replaces it: from the entries of the level above
    /// it, of itself, and of the level below.
    fn leaves_out(&mut self, step: usize, entries: [u64; 3]) -> bool;

    /// Whether the graphs of the levels are needed afterwards.
    fn keeps_graphs(&self) -> bool {
        true
    }
}

/// Where levels lie, and what is kept of the work on them.
pub(crate) trait Store<const D: usize>: Sync {
    /// Clusters `graph`, each cluster `within` a community.
    fn cluster(
        &self,
        _step: usize,
        graph: &Graph<D>,
        clusterer: &Clusterer<D>,
        within: Option<&[u32]>,
        run: &Run,
    ) -> Result<Clustering> {
        clusterer.cluster(graph, within, run)
    }

    /// The graph of the clusters.
    fn contract(
        &self,
        step: usize,
        graph: &Graph<D>,
        clustering: &Clustering,
        run: &Run,
    ) -> Result<Graph<'static, D>>;

    /// The parts of a level, refined. The given graph is level 0.
    fn refined(
        &self,
        _level: usize,
        problem: &Problem<D>,
        part_of: Buffer<u32>,
        refiners: &[Box<dyn Refiner<D>>],
    ) -> Result<Solution> {
        refined(refiners, problem, part_of)
    }
}

/// Levels in memory.
pub(crate) struct Memory;

impl<const D: usize> Store<D> for Memory {
    fn contract(
        &self,
        _step: usize,
        graph: &Graph<D>,
        clustering: &Clustering,
        run: &Run,
    ) -> Result<Graph<'static, D>> {
        contract(graph, clustering, run)
    }
}

/// The levels of a graph, and the communities of the coarsest graph.
pub(crate) struct Levels<const D: usize> {
    /// The levels below the given graph, the coarsest last.
    pub levels: Vec<Level<D>>,
    /// The community of each vertex of the coarsest graph, if there are communities and levels.
    pub communities: Option<Buffer<u32>>,
}

/// Coarsens `graph`. Each cluster lies `within` one community.
pub(crate) fn coarsen<const D: usize>(
    graph: &Graph<D>,
    policy: &mut dyn Policy<D>,
    store: &dyn Store<D>,
    within: Option<&[u32]>,
    run: &Run,
) -> Result<Levels<D>> {
    let (mut levels, mut communities): (Vec<Level<D>>, Option<Buffer<u32>>) = (Vec::new(), None);
    for step in 0.. {
        let finest = levels.last().map_or(graph, |level| &level.1);
        let Some(clusterer) = policy.clusterer(step, levels.len(), finest)? else { break };
        let here = communities.as_deref().or(within);
        let clustering = store.cluster(step, finest, &clusterer, here, run)?;
        match policy.next(step, finest.len(), clustering.count)? {
            Next::Level => {}
            Next::Retry => continue,
            Next::End => break,
        }
        let coarse = store.contract(step, finest, &clustering, run)?;
        communities = here.map(|communities| clustering.labels(communities, run)).transpose()?;
        let above = levels.len().checked_sub(2).map_or(graph, |index| &levels[index].1).num_entries();
        let entries = [above, finest.num_entries(), coarse.num_entries()];
        let leaves_out = policy.leaves_out(step, entries);
        if !policy.keeps_graphs()
            && let Some(level) = levels.last_mut()
        {
            level.1 = Builder::new(0, 0)?.finish();
        }
        match levels.pop_if(|_| leaves_out) {
            Some((finer, _)) => levels.push((finer.coarsened(&clustering, run)?, coarse)),
            None => levels.push((clustering, coarse)),
        }
    }
    Ok(Levels { levels, communities })
}
