//! The lists that are sampled one by one: all in-edges of a vertex or, in a graph with types, its in-edges of
//! each relation.
//!
//! In-edges of a vertex are ordered by relation. All in-edges of one relation are a *run*. Without types a
//! vertex has one run. The loops over vertices have the runs as a type parameter, so that loops for a graph
//! without types are compiled without a loop over runs.

use super::targets::Target;
use crate::base::Result;
use crate::sampling::random::HopKey;
use crate::sampling::topology::Types;

/// The sample that a hop asks of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Number of in-edges.
    pub fanout: usize,
    /// Key of the draws.
    pub key: HopKey,
}

impl Asked {
    /// Asks for `fanout` in-edges. None: for all.
    pub(crate) fn new(fanout: Option<usize>, key: HopKey) -> Self {
        Self { fanout: fanout.unwrap_or(usize::MAX), key }
    }
}

/// How the in-edges of a vertex are divided.
pub(crate) trait Runs {
    /// The sample of the whole list, if it is not divided.
    fn whole(&self) -> Option<Asked>;

    /// Brings into the cache what [`Self::each`] reads.
    fn prefetch(&self, target: &Target);

    /// Calls `visit` for each run of a target that in-edges are wanted of: with its relation, the sample, and
    /// the run.
    fn each(&self, target: &Target, visit: impl FnMut(u16, Asked, &Target) -> Result<()>) -> Result<()>;

    /// Appends the relation of in-edges of the batch, if they have one.
    fn note(relations: &mut Vec<u16>, relation: u16, count: usize);
}

/// The lists of a graph without types.
#[derive(Debug)]
pub(crate) struct OneRun(pub Asked);

impl Runs for OneRun {
    #[inline(always)]
    fn whole(&self) -> Option<Asked> {
        Some(self.0)
    }

    #[inline(always)]
    fn prefetch(&self, _: &Target) {}

    #[inline(always)]
    fn each(&self, target: &Target, mut visit: impl FnMut(u16, Asked, &Target) -> Result<()>) -> Result<()> {
        visit(0, self.0, target)
    }

    #[inline(always)]
    fn note(_: &mut Vec<u16>, _: u16, _: usize) {}
}

/// The runs of a graph with types.
#[derive(Debug)]
pub(crate) struct RelationRuns<'a> {
    /// The relation of each in-edge.
    pub types: &'a Types,
    /// Number of in-edges of each relation. None: all.
    pub fanouts: &'a [Option<usize>],
    /// Key of the hop.
    pub key: HopKey,
}

impl Runs for RelationRuns<'_> {
    fn whole(&self) -> Option<Asked> {
        None
    }

    #[inline(always)]
    fn prefetch(&self, target: &Target) {
        let relations = &self.types.relations[target.part as usize];
        relations.prefetch(target.first);
        relations.prefetch(target.first + target.degree.saturating_sub(1));
    }

    #[inline(always)]
    fn each(&self, target: &Target, mut visit: impl FnMut(u16, Asked, &Target) -> Result<()>) -> Result<()> {
        let (mut first, end, mut before) = (target.first, target.first + target.degree, None);
        while first < end {
            let (relation, run_end) = self.types.next_run(target.part as usize, first, end, before)?;
            let run = Target { first, degree: run_end - first, ..*target };
            (first, before) = (run_end, Some(relation));
            let fanout = self.fanouts[usize::from(relation)];
            if fanout != Some(0) {
                visit(relation, Asked::new(fanout, self.key.of_relation(relation)), &run)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn note(relations: &mut Vec<u16>, relation: u16, count: usize) {
        relations.resize(relations.len() + count, relation);
    }
}
