//! The objective of a partition, cut or communication volume, and the machines of its parts.

use super::assignment::Assignment;
use super::graph::Graph;
use super::semi_external::{self, Path, Placement};
use super::topology::Topology;
use super::{Multilevel, Scheme, halo};
use crate::base::{Buffer, Result, Run};
use crate::capacity::Load;
use crate::partition::parameters::words;

words! {
    /// What is minimized.
    pub enum Objective {
        /// Edges between parts.
        Cut = "cut",
        /// Copies of vertices in the parts of their neighbours: the communication volume. See [`halo`].
        Halo = "halo",
    }
}

impl Objective {
    /// Bytes that the objective needs for `k` parts after the levels of the scheme are freed.
    pub fn memory(self, n: u64, entries: u64, k: u64) -> u64 {
        if self == Objective::Halo { halo::memory(n, entries, k) } else { 0 }
    }
}

impl Multilevel {
    /// Parts of the vertices of `graph`, and the number of rounds. `cap` returns the cap of a part, given the
    /// number of parts.
    pub(super) fn solution<const D: usize>(
        &self,
        scheme: &Scheme,
        placement: &Placement,
        graph: &Graph<D>,
        cap: impl Fn(u32) -> Load<D>,
        run: &Run,
    ) -> Result<(Buffer<u32>, u64)> {
        let caps = &vec![cap(self.k); self.k as usize][..];
        let refine_halo = |graph: &Graph<D>, part_of: Buffer<u32>, caps: &[Load<D>]| {
            let mut assignment = Assignment::new(graph, part_of, caps.len(), run)?;
            halo::refine(graph, &mut assignment, caps, scheme.seed, run)?;
            Ok(assignment.part_of)
        };
        let Some(machines) = self.machines.as_ref().filter(|machines| machines.len() > 1) else {
            let ((part_of, _), rounds) = match placement.plan.path {
                Path::Memory => scheme.partition(graph, caps, run)?,
                _ => semi_external::partition(scheme, placement, graph, caps, run)?,
            };
            return Ok(match self.objective {
                Objective::Cut => (part_of, rounds),
                Objective::Halo => (refine_halo(graph, part_of, caps)?, rounds),
            });
        };
        let topology = Topology { graph, caps, machines, plain: cap(machines.len() as u32) };
        let (part_of, rounds) = topology.partition(scheme, run)?;
        if self.objective == Objective::Cut {
            return Ok((part_of, rounds));
        }
        // Copies on the same machine: vertices stay on theirs.
        let part_of =
            topology.each_machine(&topology.machine_of(&part_of, run)?, run, |first, group, ids, caps| {
                let mut parts: Buffer<u32> = Buffer::zeroed(ids.len(), "parts")?;
                run.each(ids.len(), |i| parts[i as usize] = part_of[ids[i as usize] as usize] - first)?;
                refine_halo(group, parts, caps)
            })?;
        Ok((part_of, rounds))
    }
}
