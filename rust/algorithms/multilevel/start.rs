//! The start of a partition: nothing, given parts, or old parts that most vertices keep.

use super::keeping::{self, OldParts};
use super::objective::{self, Machines};
use super::problem::{Objective, Problem};
use super::refiner::Size;
use super::rounds::Rounds;
use super::scheme::{Effort, Scheme};
use super::semi_external::{Path, Placement, path};
use super::{rounds, topology};
use crate::base::{Buffer, Result, Run};

/// The cost of an edge between machines where given parts are improved.
const PRICE: u32 = 8;

/// The start of a partition.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Nothing: the graph is coarsened, with levels where the placement says.
    Anew(Effort, &'a Placement),
    /// Given parts, which are refined in rounds.
    From(&'a [u32], Effort),
    /// Parts that ignore a loose bound, which are brought within it and refined in rounds.
    Mended(&'a [u32], Rounds),
    /// Old parts, which most vertices keep.
    Keeping(OldParts<'a>),
}

impl Start<'_> {
    /// Whether lists are read in the order of the vertices only, since they lie in files or replicas share
    /// them.
    pub(super) fn is_in_order(self) -> bool {
        match self {
            Start::Anew(_, placement) => placement.plan.path != Path::Memory,
            Start::Mended(_, rounds) => rounds.in_order,
            Start::From(..) | Start::Keeping(_) => false,
        }
    }

    /// Bytes that are available for lists in files. Larger lists are packed. An update makes too few passes
    /// for that to pay.
    pub(super) fn available(self, size: &Size, objective: Objective, run: &Run) -> u64 {
        match self {
            Start::Anew(_, placement) => placement.available,
            Start::From(..) | Start::Mended(..) => {
                path::available(run.budget().saturating_sub(rounds::memory(objective, size)), run)
            }
            Start::Keeping(_) => u64::MAX,
        }
    }

    /// Parts of the vertices under `bounds` bounds, and the number of rounds. See [`Scheme::new`].
    pub(super) fn parts<const D: usize>(
        self,
        problem: &Problem<D>,
        bounds: usize,
        machines: Option<Machines<D>>,
    ) -> Result<(Buffer<u32>, u64)> {
        let graph = problem.graph;
        let prices = machines.map(|machines| topology::prices(graph, machines.parts, PRICE));
        let priced = Problem { prices: prices.as_ref(), ..*problem };
        match self {
            Start::Anew(effort, placement) => {
                let units = graph.len() as u64 + graph.num_entries();
                let scheme = Scheme { units, ..Scheme::new(bounds, effort) };
                objective::partition(problem, machines, &scheme, placement)
            }
            Start::From(parts, effort) => rounds::solve(&priced, parts, effort.into()),
            Start::Mended(parts, rounds) => rounds::solve(&priced, parts, rounds),
            Start::Keeping(old_parts) => keeping::solve(&priced, old_parts),
        }
    }
}
