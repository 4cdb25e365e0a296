//! LABOR-0: samples of fewer distinct vertices, by one random number per source.
//!
//! An in-edge from t is taken if the number of t is below `fanout / degree`. So each list has `fanout` picks on average,
//! every in-edge is picked with the probability that uniform samples have, and lists that share a source tend to take it
//! together.
//!
//! All lists are read from front to back. Numbers come from original ids, at random places of the memory. If the lists of
//! a hop are long compared with the vertices of a part, it is first computed of each vertex whether its number is small.
//! That takes a bit, so that long lists, whose in-edges are taken if the number is still smaller, need few ids. Which way
//! is taken changes no pick.
//!
//! Source: Balin and Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion in GNNs", NeurIPS 2023.

use super::part::Part;
use super::picker::{Picked, Picker};
use super::picks::Picks;
use super::random::HopKey;
use super::small_numbers::{Bits, CHUNK, ZEROS};
use super::targets::Target;
use crate::base::Result;

/// Vertices per in-edge read, from which on the bits of all of them are computed.
const PAYS: usize = 16;

/// Ids of lists up to this length are brought into the cache before.
const SHORT: usize = 64;

/// Which vertices of a part have small numbers.
#[derive(Debug, Default)]
pub struct SmallNumbers {
    /// The hop they are of.
    key: Option<HopKey>,
    /// In-edges read so far in this hop.
    read: usize,
    /// Whether `bits` are those of this hop.
    computed: bool,
    bits: Bits,
}

/// Picks about `fanout` in-edges.
#[derive(Debug)]
pub(crate) struct Labor<'a> {
    /// Number of in-edges.
    pub fanout: usize,
    /// Of the hop.
    pub key: HopKey,
    /// Of each part.
    pub small_numbers: &'a mut [SmallNumbers],
}

impl Picker for Labor<'_> {
    fn prepare(&self, target: &Target, part: &Part) {
        if self.fanout < target.degree && target.degree <= SHORT {
            let mut sources = [0; SHORT];
            let sources = &mut sources[..target.degree];
            if part.copy_sources(target.first, sources).is_ok() {
                sources.iter().for_each(|&local| part.prefetch_id(local as u32));
            }
        }
    }

    fn pick(&mut self, target: &Target, part: &Part, picks: &mut Picks) -> Result<Picked> {
        if target.degree <= self.fanout {
            return Ok(Picked::All);
        }
        let threshold = (((self.fanout as u64) << 32) / target.degree as u64) as u32;
        let cut = Cut { key: self.key, threshold, part };
        let small = &mut self.small_numbers[target.part as usize];
        let small =
            if threshold.leading_zeros() >= ZEROS { small.of_hop(self.key, target, part)? } else { None };
        let mut sources = [0; CHUNK];
        for first in (0..target.degree).step_by(CHUNK) {
            let sources = &mut sources[..CHUNK.min(target.degree - first)];
            part.copy_sources(target.first + first, sources)?;
            (CHUNK..target.degree.saturating_sub(first).min(2 * CHUNK)).step_by(16).for_each(|next| {
                part.indices.prefetch(target.first + first + next);
            });
            match small {
                Some(bits) => cut.pick_among_small(bits, sources, target.first + first, picks)?,
                None => cut.pick_among_all(sources, target.first + first, picks)?,
            }
        }
        Ok(Picked::Some)
    }
}

/// What picks in-edges of one target.
struct Cut<'a> {
    key: HopKey,
    threshold: u32,
    part: &'a Part,
}

impl Cut<'_> {
    /// Picks among the in-edges from `first` on.
    fn pick_among_all(&self, sources: &[i32], first: usize, picks: &mut Picks) -> Result<()> {
        sources.iter().for_each(|&local| self.part.prefetch_id(local as u32));
        let (mut picked, mut count) = ([0; CHUNK], 0);
        for (index, &local) in sources.iter().enumerate() {
            picked[count] = index as u16;
            count += usize::from(self.key.bits(self.part.id(local as u32)?) < self.threshold);
        }
        picked[..count].iter().for_each(|&index| picks.push(self.part, first + usize::from(index)));
        Ok(())
    }

    /// Picks among the in-edges from `first` on, if only sources with small numbers can be picked.
    fn pick_among_small(&self, small: &Bits, sources: &[i32], first: usize, picks: &mut Picks) -> Result<()> {
        let mut found = [0; CHUNK];
        let found = small.find(sources, &mut found).ok_or_else(|| self.part.no_vertex())?;
        found.iter().for_each(|&index| self.part.prefetch_id(sources[usize::from(index)] as u32));
        for &index in found {
            let id = self.part.id(sources[usize::from(index)] as u32)?;
            if self.key.bits(id) < self.threshold {
                picks.push(self.part, first + usize::from(index));
            }
        }
        Ok(())
    }
}

impl SmallNumbers {
    /// The bits of the part's vertices, if it pays to compute them for a hop that has another `target`.
    fn of_hop(&mut self, key: HopKey, target: &Target, part: &Part) -> Result<Option<&Bits>> {
        if self.key != Some(key) {
            (self.key, self.read, self.computed) = (Some(key), 0, false);
        }
        self.read = self.read.saturating_add(target.degree);
        if !self.computed && self.read > part.num_local() / PAYS {
            self.bits.compute(key, part)?;
            self.computed = true;
        }
        Ok(self.computed.then_some(&self.bits))
    }
}
