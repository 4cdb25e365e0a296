//! Uniform samples of in-edges, without replacement.
//!
//! Floyd's algorithm makes as many draws as there are in-edges to pick, whatever the degree.
//!
//! Source: Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM 1987.

use std::hint::select_unpredictable;

use rustc_hash::FxHashSet;

use super::part::Part;
use super::picker::{Picked, Picker};
use super::picks::Picks;
use super::random::HopKey;
use super::targets::Target;
use crate::base::Result;

/// In-edges of a short list. It is brought into the cache as a whole, and a bit of a word says whether one is
/// picked.
const SHORT: usize = 64;

/// Samples up to this size are searched from front to back for what they already hold.
const SMALL: usize = 64;

/// Picks `fanout` in-edges, all subsets with the same probability.
#[derive(Debug)]
pub(crate) struct Uniform {
    /// Number of in-edges.
    pub fanout: usize,
    /// The key of the hop.
    pub key: HopKey,
}

impl Picker for Uniform {
    fn short(&self) -> usize {
        self.fanout.max(SHORT)
    }

    #[inline(always)]
    fn pick(&mut self, target: &Target, part: &Part, picks: &mut Picks) -> Result<Picked> {
        if target.degree <= self.fanout {
            return Ok(Picked::All);
        }
        if self.fanout > SMALL {
            self.pick_many(target, part, picks);
            return Ok(Picked::Some);
        }
        let edges = picks.reserve(self.fanout);
        if target.degree <= SHORT {
            self.pick_from_short(target, edges);
        } else {
            self.pick_few(target, part, edges);
        }
        Ok(Picked::Some)
    }
}

impl Uniform {
    /// From a short list.
    #[inline(always)]
    fn pick_from_short(&self, target: &Target, edges: &mut [u64]) {
        let draws = self.key.draws(target.id);
        let mut picked = 0_u64;
        for (index, (last, place)) in (0..).zip((target.degree - self.fanout..).zip(edges)) {
            let edge = draws.below(index, last as u64 + 1);
            let edge = select_unpredictable(picked >> edge & 1 == 1, last as u64, edge);
            picked |= 1 << edge;
            *place = target.first as u64 + edge;
        }
    }

    /// A few from a longer list.
    #[inline(always)]
    fn pick_few(&self, target: &Target, part: &Part, edges: &mut [u64]) {
        let draws = self.key.draws(target.id);
        for (index, last) in (target.degree - self.fanout..target.degree).enumerate() {
            let edge = (target.first as u64) + draws.below(index as u64, last as u64 + 1);
            edges[index] = if edges[..index].contains(&edge) { (target.first + last) as u64 } else { edge };
            part.indices.prefetch(edges[index] as usize);
        }
    }

    /// Many from a longer list. A hash set says what is picked.
    fn pick_many(&self, target: &Target, part: &Part, picks: &mut Picks) {
        let draws = self.key.draws(target.id);
        let mut picked = FxHashSet::with_capacity_and_hasher(self.fanout, Default::default());
        for (index, last) in (target.degree - self.fanout..target.degree).enumerate() {
            let edge = draws.below(index as u64, last as u64 + 1) as usize;
            let edge = if picked.insert(edge) { edge } else { last };
            picked.insert(edge);
            picks.push(part, target.first + edge);
        }
    }
}
