//! LABOR-0: samples of fewer distinct vertices, by one random number per source.
//!
//! An in-edge from t is taken if the number of t is below `fanout / degree`. So each list has `fanout` picks on average,
//! every in-edge is picked with the probability that uniform samples have, and lists that share a source tend to take it
//! together.
//!
//! Short lists are read from front to back. Of long ones, only what lies in the intervals that have small numbers
//! (`numbers`) is read, in an order that is made when the list is asked for first (`orders`). Which way is taken changes
//! no pick.
//!
//! Source: Balin and Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion in GNNs", NeurIPS 2023.

use super::numbers::{Numbers, SMALL, place_of};
use super::orders::{LONG, Order, Orders};
use super::part::Part;
use super::picker::{Picked, Picker};
use super::picks::Picks;
use super::random::HopKey;
use super::targets::Target;
use crate::base::Result;

/// Ids of lists up to this length are brought into the cache before.
const SHORT: usize = 64;

/// In-edges that are looked up together.
const CHUNK: usize = 256;

/// What a worker needs.
#[derive(Debug, Default)]
pub struct Scratch {
    numbers: Numbers,
    /// Positions in a list.
    found: Vec<u32>,
}

/// Picks about `fanout` in-edges.
#[derive(Debug)]
pub(crate) struct Labor<'a> {
    fanout: usize,
    key: HopKey,
    orders: &'a Orders,
    scratch: &'a mut Scratch,
}

impl<'a> Labor<'a> {
    /// Picks that many in the hop with the key. `orders` are those of the topology.
    #[inline(always)]
    pub(crate) fn new(fanout: usize, key: HopKey, orders: &'a Orders, scratch: &'a mut Scratch) -> Self {
        scratch.numbers.begin(key);
        Self { fanout, key, orders, scratch }
    }

    /// Numbers below are taken.
    #[inline(always)]
    fn threshold(&self, target: &Target) -> u32 {
        (((self.fanout as u64) << 32) / target.degree as u64) as u32
    }
}

impl Picker for Labor<'_> {
    fn prepare(&self, target: &Target, part: &Part) {
        if self.fanout >= target.degree {
            return;
        }
        if target.degree <= SHORT {
            let mut sources = [0; SHORT];
            let sources = &mut sources[..target.degree];
            if part.copy_sources(target.first, sources).is_ok() {
                sources.iter().for_each(|&local| part.prefetch_id(local as u32));
            }
        } else if target.degree >= LONG
            && let Some(order) = self.orders.get(target)
        {
            self.scratch.numbers.intervals(self.threshold(target).min(SMALL), |first, _| order.prefetch_bucket(first));
        }
    }

    fn pick(&mut self, target: &Target, part: &Part, picks: &mut Picks) -> Result<Picked> {
        if target.degree <= self.fanout {
            return Ok(Picked::All);
        }
        let threshold = self.threshold(target);
        let Scratch { numbers, found } = &mut *self.scratch;
        if target.degree >= LONG
            && threshold <= SMALL
            && let Some(order) = self.orders.get_or_make(target, part)?
        {
            find(order, numbers, threshold, found);
            found.iter().for_each(|&position| picks.push(part, target.first + position as usize));
            return Ok(Picked::Some);
        }
        let cut = Cut { numbers, key: self.key, threshold, part };
        let mut sources = [0; CHUNK];
        for first in (0..target.degree).step_by(CHUNK) {
            let sources = &mut sources[..CHUNK.min(target.degree - first)];
            part.copy_sources(target.first + first, sources)?;
            sources.iter().for_each(|&local| part.prefetch_id(local as u32));
            cut.pick(sources, target.first + first, picks)?;
        }
        Ok(Picked::Some)
    }
}

/// Finds the positions of the in-edges of a list whose numbers are below a small threshold.
fn find(order: Order<'_>, numbers: &Numbers, threshold: u32, found: &mut Vec<u32>) {
    numbers.intervals(threshold, |first, _| order.prefetch_entries(first));
    found.clear();
    numbers.intervals(threshold, |first, count| order.find(first, count, found));
    found.sort_unstable();
}

/// What picks from a list that is read.
struct Cut<'a> {
    numbers: &'a Numbers,
    key: HopKey,
    threshold: u32,
    part: &'a Part,
}

impl Cut<'_> {
    /// Picks among the in-edges from `first` on.
    #[inline(always)]
    fn pick(&self, sources: &[i32], first: usize, picks: &mut Picks) -> Result<()> {
        // Numbers that are not small are below the threshold with the probability that makes it that of all.
        let above = u64::from(self.threshold.saturating_sub(SMALL)) << 32;
        let above = (above / (u64::from(u32::MAX) + 1 - u64::from(SMALL))) as u32;
        let threshold = self.threshold.min(SMALL);
        let (mut picked, mut count) = ([0; CHUNK], 0);
        for (index, &local) in sources.iter().enumerate() {
            picked[count] = index as u16;
            let id = self.part.id(local as u32)?;
            let small = self.numbers.at(place_of(id)) < threshold;
            count += usize::from(small | (self.key.bits(id) < above));
        }
        picked[..count].iter().for_each(|&index| picks.push(self.part, first + usize::from(index)));
        Ok(())
    }
}
