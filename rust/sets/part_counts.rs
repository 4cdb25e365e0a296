//! How many neighbours of a vertex are in each part: a slot for each of k parts, and a list of those that are not 0.

use crate::base::{Result, zeros};

/// How many neighbours of a vertex are in each part.
pub(crate) struct PartCounts {
    /// One count per part. Behind the last, the neighbours without a part.
    counts: Vec<u32>,
    /// The parts with neighbours, in the order in which they came.
    parts: Vec<u32>,
    touched: usize,
}

impl PartCounts {
    /// Zeros for `k` parts.
    pub(crate) fn new(k: u32) -> Result<Self> {
        let k = k as usize;
        let counts = zeros(k + 1, "neighbours by part")?;
        Ok(Self { counts, parts: zeros(k + 2, "parts with neighbours")?, touched: 0 })
    }

    /// Counts the neighbours by their parts, instead of those before.
    #[inline(always)]
    pub(crate) fn count(&mut self, neighbours: &[u32], part_of: &[u32]) {
        self.drain().for_each(drop);
        let nowhere = self.counts.len() as u32 - 1;
        let mut touched = 0;
        for &u in neighbours {
            let part = part_of[u as usize].min(nowhere);
            // Written in any case, and overwritten unless it is new: cheaper than a branch.
            self.parts[touched] = part;
            let count = &mut self.counts[part as usize];
            touched += usize::from(*count == 0);
            *count += 1;
        }
        self.touched = touched;
    }

    /// Neighbours in `part`.
    #[inline(always)]
    pub(crate) fn of(&self, part: u32) -> u32 {
        self.counts[part as usize]
    }

    /// The parts with neighbours.
    #[inline(always)]
    pub(crate) fn parts(&self) -> impl Iterator<Item = u32> {
        let nowhere = self.counts.len() as u32 - 1;
        self.parts[..self.touched].iter().copied().filter(move |&part| part != nowhere)
    }

    /// The parts with neighbours and how many, which are forgotten.
    #[inline(always)]
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, u32)> {
        let (nowhere, counts) = (self.counts.len() as u32 - 1, &mut self.counts);
        let parts = &self.parts[..std::mem::take(&mut self.touched)];
        parts
            .iter()
            .map(|&part| (part, std::mem::take(&mut counts[part as usize])))
            .filter(move |&(part, _)| part != nowhere)
    }
}
