//! Graphs whose lists are divided among replicas ([`Division`]).
//!
//! Offsets, and so degrees, weights of vertices and fixed vertices are the same in all replicas. Lists are
//! read in proposals only, which the replicas share. Without replicas all of this costs nothing.

use std::ops::Range;

use bytemuck::Pod;

use super::entries::Items;
use super::graph::Graph;
use crate::base::{Error, Growing, Result, Run};
use crate::exec::{Division, propose, scratches};

impl<const D: usize> Graph<'_, D> {
    /// The vertices whose lists are here: all, unless the run is divided.
    pub(crate) fn here(&self) -> Range<u32> {
        self.division.as_ref().map_or(0..self.len() as u32, Division::here)
    }

    /// The ranges of the replicas, if the run is divided among any.
    pub(crate) fn division(&self) -> Option<&Division> {
        self.division.as_ref()
    }

    /// This graph without a division, because all lists are here.
    pub(crate) fn undivided(&self) -> Graph<'_, D> {
        Graph {
            offsets: Items::Borrowed(&self.offsets),
            entries: self.entries.lent(),
            weights: self.weights.lent(),
            fixed: self.fixed.as_deref().map(Items::Borrowed),
            division: None,
            ..*self
        }
    }

    /// Refuses work that needs all lists in one place.
    pub(crate) fn require_undivided(&self) -> Result<()> {
        match &self.division {
            None => Ok(()),
            Some(_) => Err(Error::Capacity(
                "multilevel: the bounds on the parts cannot be kept by moves on a cluster. Raise balance or the ratio of \
                 the further bound, or partition on one machine"
                    .into(),
            )),
        }
    }

    /// The graph with its lists divided among replicas.
    pub(crate) fn divided(self, division: Option<Division>) -> Self {
        Self { division, ..self }
    }

    /// Has `propose` set the proposal of each vertex of `blocks`, which ascend. Replicas share them.
    pub(crate) fn propose<S: Send, T: Pod + Send>(
        &self,
        scratches: &mut Vec<S>,
        blocks: impl Iterator<Item = Range<u32>> + Clone + Send,
        proposals: &mut [T],
        run: &Run,
        make: impl Fn(&mut S, u32, &mut T) + Sync,
    ) -> Result<()> {
        self.propose_and(scratches, blocks, proposals, run, make, |_| Ok(()))
    }

    /// Like [`Self::propose`], but `rest` makes the proposals that `make` leaves out.
    pub(crate) fn propose_and<S: Send, T: Pod + Send>(
        &self,
        scratches: &mut Vec<S>,
        blocks: impl Iterator<Item = Range<u32>> + Clone + Send,
        proposals: &mut [T],
        run: &Run,
        make: impl Fn(&mut S, u32, &mut T) + Sync,
        rest: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<()> {
        let ranges = self.ranges_of(blocks.clone());
        let all = |proposals: &mut [T]| {
            propose(scratches, ranges, proposals, run, make)?;
            rest(proposals)
        };
        match &self.division {
            None => all(proposals),
            Some(division) => division.share(blocks, proposals, all),
        }
    }

    /// The vertices of all replicas for which `is_one` says so, in any order.
    pub(crate) fn those<S: Send>(
        &self,
        run: &Run,
        mut scratch: impl FnMut() -> Result<S>,
        is_one: impl Fn(&mut S, u32) -> bool + Sync,
    ) -> Result<Vec<u32>> {
        let mut found = scratches(run, self.num_entries(), || Ok((scratch()?, Growing::default())))?;
        let ranges = self.ranges(0..self.len() as u32);
        propose(&mut found, ranges, &mut vec![(); self.len()], run, |(scratch, found), v, ()| {
            if is_one(scratch, v) {
                found.push(v);
            }
        })?;
        self.all(Growing::concat(found.into_iter().map(|(_, found)| found), "vertices that were found")?)
    }

    /// The sum of `here` over all replicas.
    pub(crate) fn sum(&self, here: u64) -> Result<u64> {
        self.division.as_ref().map_or(Ok(here), |division| division.sum(here))
    }

    /// The sums of `here` over all replicas, item by item.
    pub(crate) fn totals(&self, here: Vec<i64>) -> Result<Vec<i64>> {
        let Some(division) = &self.division else { return Ok(here) };
        let mut sums = vec![0; here.len()];
        for its in division.all(&here)? {
            sums.iter_mut().zip(its).for_each(|(sum, its)| *sum += its);
        }
        Ok(sums)
    }

    /// The items of all replicas, one replica after the other.
    pub(crate) fn all<T: Pod>(&self, here: Vec<T>) -> Result<Vec<T>> {
        match &self.division {
            None => Ok(here),
            Some(division) => division.concatenated(&here),
        }
    }
}
