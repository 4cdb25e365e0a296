//! Fixed vertices, which must be in a given part.
//!
//! Each has the number of that part as its *label*. All others, which are free, have [`NONE`]. A vertex of a
//! coarser graph has the label of any fixed vertex in it, since a cluster holds fixed vertices of at most one
//! part. Code that moves vertices asks [`Graph::may_move`]. Where groups of parts are partitioned first, as
//! in recursive bisection, labels name the groups ([`Graph::for_groups`]).
//!
//! **Memory.** 4 bytes per vertex, if any is fixed.

use super::entries::Items;
use super::graph::Graph;
use crate::base::{Buffer, NONE, Result, Run};

impl<'a, const D: usize> Graph<'a, D> {
    /// The graph with these labels of fixed vertices.
    pub fn with_fixed(mut self, labels: Option<&'a [u32]>) -> Self {
        self.fixed = labels.map(Items::Borrowed);
        self
    }

    /// The graph of clusters of `finer`, with labels if that has some.
    pub(crate) fn with_fixed_of(mut self, finer: &Graph<D>, cluster_of: &[u32], run: &Run) -> Result<Self> {
        let Some(fixed) = &finer.fixed else { return Ok(self) };
        let mut labels: Buffer<u32> = Buffer::zeroed(self.len(), "fixed clusters")?;
        labels.fill(NONE);
        run.each(finer.len(), |v| {
            if fixed[v as usize] != NONE {
                labels[cluster_of[v as usize] as usize] = fixed[v as usize];
            }
        })?;
        self.fixed = Some(Items::Owned(labels));
        Ok(self)
    }

    /// The part that `v` must be in, or [`NONE`] if it is free.
    #[inline(always)]
    pub fn fixed(&self, v: u32) -> u32 {
        self.fixed.as_ref().map_or(NONE, |labels| labels[v as usize])
    }

    /// Whether `v` may leave its part. A fixed vertex is where it must be.
    #[inline(always)]
    pub fn may_move(&self, v: u32) -> bool {
        self.fixed(v) == NONE
    }

    /// Moves all fixed vertices to where they must be.
    pub(crate) fn place_fixed(&self, part_of: &mut [u32], run: &Run) -> Result<()> {
        let Some(fixed) = &self.fixed else { return Ok(()) };
        run.each(self.len(), |v| {
            if fixed[v as usize] != NONE {
                part_of[v as usize] = fixed[v as usize];
            }
        })
    }

    /// Whether any vertex may be fixed.
    pub fn has_fixed(&self) -> bool {
        self.fixed.is_some()
    }
}
