//! The objective of a partition, cut or communication volume, and the machines of its parts.

use super::Scheme;
use super::halo::Halo;
use super::problem::{Objective, Problem};
use super::refiner::{Refiners, refined};
use super::semi_external::{self, Path, Placement};
use super::topology::Topology;
use crate::base::{Buffer, Result};
use crate::capacity::Load;

impl Objective {
    /// The refiners of a partition that has few cut edges, after the levels of the scheme are freed.
    pub(crate) fn refiners<const D: usize>(self) -> Refiners<D> {
        match self {
            Objective::Cut => vec![],
            Objective::Halo => vec![Box::new(Halo)],
        }
    }
}

/// The machines of the parts.
#[derive(Clone, Copy)]
pub(super) struct Machines<'a, const D: usize> {
    /// Number of parts on each.
    pub parts: &'a [u32],
    /// Caps of a partition with one part per machine. `None` if all parts are alike but machines have
    /// different numbers of parts.
    pub plain: Option<&'a [Load<D>]>,
}

/// Parts of the vertices, from scratch, and the number of rounds.
pub(super) fn partition<const D: usize>(
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
