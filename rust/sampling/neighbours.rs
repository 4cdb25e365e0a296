//! Uniform samples of in-edges, without replacement.
//!
//! Floyd's algorithm makes as many draws as there are in-edges to pick, whatever the degree.
//!
//! Source: Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM 1987.

use rustc_hash::FxHashSet;

use super::part::Part;
use super::picker::{Picked, Picker};
use super::picks::Picks;
use super::random::HopKey;
use super::targets::Target;
use crate::base::Result;

/// Samples up to this size are searched from front to back for what they already hold.
const SMALL: usize = 64;

/// Picks `fanout` in-edges, all subsets with the same probability.
#[derive(Debug)]
pub struct Uniform {
    /// Number of in-edges.
    pub fanout: usize,
    /// Of the hop.
    pub key: HopKey,
}

impl Picker for Uniform {
    fn short(&self) -> usize {
        self.fanout
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
        let (draws, begin) = (self.key.draws(target.id), picks.len());
        for (index, last) in (target.degree - self.fanout..target.degree).enumerate() {
            let edge = target.first + draws.below(index as u64, last as u64 + 1) as usize;
            let edge = if picks.contains(begin, edge) { target.first + last } else { edge };
            picks.push(part, edge);
        }
        Ok(Picked::Some)
    }
}

impl Uniform {
    /// The same with a hash set.
    fn pick_many(&self, target: &Target, part: &Part, picks: &mut Picks) {
        let draws = self.key.draws(target.id);
        let mut held = FxHashSet::with_capacity_and_hasher(self.fanout, Default::default());
        for (index, last) in (target.degree - self.fanout..target.degree).enumerate() {
            let edge = draws.below(index as u64, last as u64 + 1) as usize;
            let edge = if held.insert(edge) { edge } else { last };
            held.insert(edge);
            picks.push(part, target.first + edge);
        }
    }
}
