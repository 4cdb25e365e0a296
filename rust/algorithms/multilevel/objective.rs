//! What a partition should have few of, and on which machines its parts are.

use super::assignment::Assignment;
use super::graph::Graph;
use super::semi_external::{self, Path};
use super::{Multilevel, Scheme, halo, topology};
use crate::base::{Buffer, Result, Run};
use crate::capacity::Load;
use crate::partition::Values;

/// What there should be few of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// Edges between parts.
    Cut,
    /// Copies of vertices in the parts of their neighbours. See [`halo`].
    Halo,
}

impl Objective {
    /// The one that the values name.
    pub fn of(values: &Values) -> Self {
        if values.is("objective", "halo") { Objective::Halo } else { Objective::Cut }
    }

    /// Bytes that it takes for `k` parts when the levels of the scheme are gone.
    pub fn memory(self, n: u64, entries: u64, k: u64) -> u64 {
        if self == Objective::Halo { halo::memory(n, entries, k) } else { 0 }
    }
}

impl Multilevel {
    /// Parts of the vertices of `graph`, and the number of rounds that they took.
    pub(super) fn solution<const D: usize>(
        &self,
        scheme: &Scheme,
        graph: &Graph<D>,
        cap: Load<D>,
        run: &Run,
    ) -> Result<(Buffer<u32>, u64)> {
        let caps = vec![cap; self.k as usize];
        let solve = |scheme: &Scheme, graph: &Graph<D>, caps: &[Load<D>]| self.flat(scheme, graph, caps, run);
        match &self.machines {
            Some(machines) if machines.len() > 1 => {
                topology::partition(scheme, graph, &caps, machines, run, solve)
            }
            _ => solve(scheme, graph, &caps),
        }
    }

    /// The same without machines.
    fn flat<const D: usize>(
        &self,
        scheme: &Scheme,
        graph: &Graph<D>,
        caps: &[Load<D>],
        run: &Run,
    ) -> Result<(Buffer<u32>, u64)> {
        let ((part_of, _), rounds) = match scheme.plan.path {
            Path::Memory => scheme.partition(graph, caps, run)?,
            _ => semi_external::partition(scheme, graph, caps, run)?,
        };
        if self.objective == Objective::Cut {
            return Ok((part_of, rounds));
        }
        let mut assignment = Assignment::new(graph, part_of, caps.len(), run)?;
        halo::refine(graph, &mut assignment, caps, scheme.seed, run)?;
        Ok((assignment.part_of, rounds))
    }
}
