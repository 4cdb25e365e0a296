//! Uncoarsening: the parts of the coarsest graph are projected from level to level, and refined on each.
//!
//! The caps of coarse levels are loosened by their heaviest vertex. Clusters are large compared with the
//! slack of the caps. Caps that leave no choice cost more than bringing the loads back among smaller
//! vertices.

use crate::algorithms::multilevel::coarsening::{Level, Memory, Store};
use crate::algorithms::multilevel::model::{Graph, Problem, Solution};
use crate::algorithms::multilevel::refinement::Refiners;
use crate::base::{Buffer, Result};
use crate::capacity::Load;

/// Levels, and parts of the coarsest of them.
pub(crate) struct Uncoarsening<'a, const D: usize> {
    /// The levels below the given graph, the coarsest last.
    pub levels: Vec<Level<D>>,
    /// Parts of the coarsest graph.
    pub part_of: Buffer<u32>,
    /// Whether these are refined already.
    pub refined: bool,
    /// Whether the caps are those of the given graph on every level. Parts that keep them never get worse
    /// then.
    pub tight: bool,
    /// Units of progress.
    pub units: u64,
    /// Where the levels lie.
    pub store: &'a dyn Store<D>,
}

impl<const D: usize> Uncoarsening<'_, D> {
    /// Levels in memory, with parts that are not refined yet.
    pub(crate) fn of(levels: Vec<Level<D>>, part_of: Buffer<u32>) -> Self {
        Self { levels, part_of, refined: false, tight: false, units: 0, store: &Memory }
    }

    /// Parts of the given graph. `refiners` lists those of a level. The given graph is level 0.
    pub(crate) fn solve(
        self,
        problem: &Problem<D>,
        refiners: impl Fn(usize) -> Refiners<D>,
    ) -> Result<Solution> {
        let Uncoarsening { mut levels, mut part_of, mut refined, tight, units, store } = self;
        let (graph, run, mut reached) = (problem.graph, problem.run, 0);
        loop {
            let (here, level) = (levels.last().map_or(graph, |level| &level.1), levels.len());
            if !std::mem::take(&mut refined) {
                let loose = (level > 0 && !tight).then(|| loosened(here, problem.caps));
                let caps = loose.as_deref().unwrap_or(problem.caps);
                let seed = problem.seed ^ level as u64;
                let problem = Problem { graph: here, caps, seed, ..*problem };
                let quality;
                let now = share(units, here, graph);
                let ahead = now - std::mem::replace(&mut reached, now);
                (part_of, quality) = store.refined(level, &refiners(level), &problem, part_of, ahead)?;
                if level == 0 {
                    return Ok((part_of, quality));
                }
            }
            let Some((clustering, coarse)) = levels.pop() else { continue };
            drop(coarse);
            part_of = clustering.projected(&part_of, run)?;
        }
    }
}

/// The units of progress of a level, as a share of those of `graph` by its entries.
pub(crate) fn share<const D: usize>(units: u64, level: &Graph<D>, graph: &Graph<D>) -> u64 {
    match graph.num_entries() as u128 {
        0 => units,
        entries => (u128::from(units) * u128::from(level.num_entries()) / entries) as u64,
    }
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
