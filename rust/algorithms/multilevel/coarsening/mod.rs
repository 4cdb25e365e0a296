//! Coarsening: clusters are contracted, level after level, as a [`Policy`] says, into a [`Store`].
//!
//! A policy says how each graph is clustered, which clusterings are worth a level, and when the graph is
//! small enough. A store says where the levels lie: in memory, or in files. All callers share the loop.

pub(crate) mod clustering;
pub(crate) mod contraction;
pub mod in_files;
pub(crate) mod sampling;

use super::model::{Builder, Graph, Problem, Solution};
use super::refinement::{Refiner, refined};
use crate::base::{Buffer, Result, Run};
pub use clustering::{Clusterer, Clustering, Rating};
pub use contraction::contract;
pub use sampling::{LEAST_DEGREE, Sample};

/// Clusters of the level above, and the graph that they make.
pub(crate) type Level<const D: usize> = (Clustering, Graph<'static, D>);

/// The step that follows a clustering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It makes a level.
    Level,
    /// The next step clusters the same graph once more.
    Retry,
    /// The graph stays the coarsest.
    End,
}

/// A graph that is to be clustered and contracted.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a, const D: usize> {
    /// Number of steps before.
    pub number: usize,
    /// Number of levels above the graph.
    pub levels: usize,
    /// The coarsest graph so far.
    pub graph: &'a Graph<'a, D>,
    /// The run.
    pub run: &'a Run,
}

/// How a graph is coarsened.
pub(crate) trait Policy<const D: usize> {
    /// How the graph is clustered. `None` if it is small enough.
    fn clusterer(&mut self, step: Step<D>) -> Result<Option<Clusterer<D>>>;

    /// Decides on the step after a clustering into `clusters` clusters.
    fn next(&mut self, step: Step<D>, clusters: usize) -> Result<Next>;

    /// Whether the graph is left out of the levels, since the one below replaces it. These are the entries of
    /// the graph above it, of itself, and of the one below.
    fn leaves_out(&mut self, _step: usize, _entries: [u64; 3]) -> bool {
        false
    }

    /// Whether the graphs of the levels are needed afterwards.
    fn keeps_graphs(&self) -> bool {
        true
    }
}

/// The storage of levels and of the work on them.
pub(crate) trait Store<const D: usize>: Sync {
    /// Clusters of the graph, each `within` a community.
    fn cluster(&self, step: Step<D>, how: &Clusterer<D>, within: Option<&[u32]>) -> Result<Clustering> {
        how.cluster(step.graph, within, step.run)
    }

    /// The graph of the clusters.
    fn contract(&self, step: Step<D>, clustering: &Clustering) -> Result<Graph<'static, D>> {
        contract(step.graph, clustering, step.run)
    }

    /// The refined parts of a level. Refinement counts as `units` units of progress. The given graph is
    /// level 0.
    fn refined(
        &self,
        _level: usize,
        refiners: &[Box<dyn Refiner<D>>],
        problem: &Problem<D>,
        part_of: Buffer<u32>,
        units: u64,
    ) -> Result<Solution> {
        refined(refiners, problem, part_of, units)
    }
}

/// Levels in memory.
pub(crate) struct Memory;

impl<const D: usize> Store<D> for Memory {}

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
    for number in 0.. {
        let finest = levels.last().map_or(graph, |level| &level.1);
        let step = Step { number, levels: levels.len(), graph: finest, run };
        let Some(clusterer) = policy.clusterer(step)? else { break };
        let here = communities.as_deref().or(within);
        let clustering = store.cluster(step, &clusterer, here)?;
        match policy.next(step, clustering.count)? {
            Next::Level => {}
            Next::Retry => continue,
            Next::End => break,
        }
        let coarse = store.contract(step, &clustering)?;
        communities = here.map(|communities| clustering.labels(communities, run)).transpose()?;
        let above = levels.len().checked_sub(2).map_or(graph, |index| &levels[index].1).num_entries();
        let entries = [above, finest.num_entries(), coarse.num_entries()];
        let leaves_out = policy.leaves_out(number, entries);
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
