//! The start of a partition: nothing, given parts, or old parts that most vertices keep.

use super::process_mapping::Topology;
use super::repartitioning::OldParts;
use super::rounds::Rounds;
use super::scheme::{Effort, Scheme};
use super::semi_external::{Path, Placement, path};
use super::{process_mapping, repartitioning, rounds, semi_external};
use crate::algorithms::multilevel::model::{Objective, Problem, Size};
use crate::algorithms::multilevel::refinement::refined;
use crate::base::{Buffer, Result, Run};
use crate::capacity::Load;

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
    pub(crate) fn is_in_order(self) -> bool {
        match self {
            Start::Anew(_, placement) => placement.plan.path != Path::Memory,
            Start::Mended(_, rounds) => rounds.in_order,
            Start::From(..) | Start::Keeping(_) => false,
        }
    }

    /// Bytes that are available for lists in files. Larger lists are packed. An update makes too few passes
    /// for that to pay.
    pub(crate) fn available(self, size: &Size, objective: Objective, run: &Run) -> u64 {
        match self {
            Start::Anew(_, placement) => placement.available,
            Start::From(..) | Start::Mended(..) => {
                let used = rounds::memory(objective, size).saturating_add(size.of_threads());
                path::available(run.budget().saturating_sub(used), run)
            }
            Start::Keeping(_) => u64::MAX,
        }
    }

    /// Parts of the vertices under `bounds` bounds, and the number of rounds. See [`Scheme::new`].
    pub(crate) fn parts<const D: usize>(
        self,
        problem: &Problem<D>,
        bounds: usize,
        machines: Option<Machines<D>>,
    ) -> Result<(Buffer<u32>, u64)> {
        let graph = problem.graph;
        let prices = machines.map(|machines| process_mapping::prices(graph, machines.parts, PRICE));
        let priced = Problem { prices: prices.as_ref(), ..*problem };
        match self {
            Start::Anew(effort, placement) => {
                let units = graph.len() as u64 + graph.num_entries();
                let scheme = Scheme { units, ..Scheme::new(bounds, effort) };
                from_scratch(problem, machines, &scheme, placement)
            }
            Start::From(parts, effort) => rounds::solve(&priced, parts, effort.into()),
            Start::Mended(parts, rounds) => rounds::solve(&priced, parts, rounds),
            Start::Keeping(old_parts) => repartitioning::solve(&priced, old_parts),
        }
    }
}

/// The machines of the parts.
#[derive(Clone, Copy)]
pub(crate) struct Machines<'a, const D: usize> {
    /// Number of parts on each.
    pub parts: &'a [u32],
    /// Caps of a partition into as many parts as there are machines. `None` if machines have different
    /// numbers of parts, which are all alike.
    pub plain: Option<&'a [Load<D>]>,
}

/// Parts of the vertices, from scratch, and the number of rounds.
fn from_scratch<const D: usize>(
    problem: &Problem<D>,
    machines: Option<Machines<D>>,
    scheme: &Scheme,
    placement: &Placement,
) -> Result<(Buffer<u32>, u64)> {
    let finish = |problem: &Problem<D>, part_of: Buffer<u32>| match &problem.objective.refiners()[..] {
        [] => Ok(part_of),
        refiners => refined(refiners, problem, part_of, 0).map(|(part_of, _)| part_of),
    };
    let Some(Machines { parts: machines, plain }) = machines else {
        let ((part_of, _), rounds) = match placement.plan.path {
            Path::Memory => scheme.partition(problem)?,
            _ => semi_external::partition(scheme, placement, problem)?,
        };
        return Ok((finish(problem, part_of)?, rounds));
    };
    let topology = Topology { problem: *problem, machines, plain };
    let (part_of, rounds) = topology.partition(scheme)?;
    if problem.objective == Objective::Cut {
        return Ok((part_of, rounds));
    }
    // Copies on the same machine: vertices stay on theirs.
    let part_of = topology.each_machine(&topology.machine_of(&part_of)?, |first, problem, ids| {
        let mut parts: Buffer<u32> = Buffer::zeroed(ids.len(), "parts")?;
        problem.run.each(ids.len(), |i| parts[i as usize] = part_of[ids[i as usize] as usize] - first)?;
        finish(problem, parts)
    })?;
    Ok((part_of, rounds))
}
