//! LABOR-0: samples of fewer distinct vertices, by one random number per source.
//!
//! An in-edge from t is taken if the number of t is below `fanout / degree`. So each list has `fanout` picks
//! on average, every in-edge is picked with the probability that uniform samples have, and lists that share a
//! source tend to take it together.
//!
//! Short lists are read from front to back. The places of the sources of a long list are kept once it is
//! asked for (`topology::lists_by_place`). In the longest lists only the buckets of places that have small
//! numbers are read (`labor_numbers`). Which way is taken changes no pick.
//!
//! Source: Balin and Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion in GNNs",
//! NeurIPS 2023.

use std::sync::atomic::Ordering::Relaxed;

use super::labor_numbers::{Numbers, SMALL};
use super::{Hop, Sampling};
use crate::base::{Result, prefetch_at};
use crate::sampling::levels::expansion::{Picked, Picker};
use crate::sampling::levels::picked_edges::Picks;
use crate::sampling::levels::relation_runs::Asked;
use crate::sampling::levels::targets::Target;
use crate::sampling::topology::lists_by_place::{
    Buckets, LONG, LONGER, List, Order, Orders, Piece, place_of,
};
use crate::sampling::topology::part::Part;

/// In-edges that are looked up together. No list that is not in buckets is longer, if its places are kept.
const CHUNK: usize = LONGER;

/// In-edges of a list for each interval of places, from which on the intervals are looked up.
const FEW: usize = 8;

/// Places in a line of the cache.
const LINE: usize = 16;

/// Scratch space of a worker.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    numbers: Numbers,
    /// The pieces of an order that are read.
    pieces: Vec<Piece>,
    /// Positions in a list.
    found: Vec<u32>,
}

/// Picks about `fanout` in-edges.
#[derive(Debug)]
pub(crate) struct Labor;

impl Sampling for Labor {
    type Scratch = Scratch;
    type Picker<'a> = BySourceNumbers<'a>;

    /// The number of a source is the same for all relations, so that their lists share sources.
    fn begin<'a>(hop: Hop<'a>, scratch: &'a mut Scratch) -> Result<BySourceNumbers<'a>> {
        scratch.numbers.begin(hop.key);
        Ok(BySourceNumbers { orders: hop.topology.orders()?, scratch })
    }
}

/// Picks in-edges of a hop.
#[derive(Debug)]
pub(crate) struct BySourceNumbers<'a> {
    orders: &'a Orders,
    scratch: &'a mut Scratch,
}

/// Numbers below are taken.
#[inline(always)]
fn threshold(asked: Asked, target: &Target) -> u32 {
    (((asked.fanout as u64) << 32) / target.degree as u64) as u32
}

/// The in-edges of a target.
#[inline(always)]
fn list_of(&Target { part, first, degree, .. }: &Target) -> List {
    List { part, first, degree }
}

impl Picker for BySourceNumbers<'_> {
    #[inline(always)]
    fn announce(&self, target: &Target) {
        if target.degree >= LONG {
            self.orders.prefetch(list_of(target));
        }
    }

    fn prepare(&self, asked: Asked, target: &Target, part: &Part) {
        if asked.fanout >= target.degree {
            return;
        }
        let mut sources = [0; LONG];
        match sources.get_mut(..target.degree) {
            Some(sources) => {
                if part.copy_sources(target.first, sources).is_ok() {
                    sources.iter().for_each(|&local| part.prefetch_id(local as u32));
                }
            }
            None => self.prepare_long(asked, target),
        }
    }

    fn pick(&mut self, asked: Asked, target: &Target, part: &Part, picks: &mut Picks) -> Result<Picked> {
        if target.degree <= asked.fanout {
            return Ok(Picked::All);
        }
        let threshold = threshold(asked, target);
        let order =
            if target.degree < LONG { None } else { self.orders.get_or_make(list_of(target), part)? };
        match order {
            Some(Order::Places(known)) => {
                let mut places = [0; CHUNK];
                places.iter_mut().zip(known).for_each(|(place, known)| *place = known.load(Relaxed));
                self.pick_below(threshold, &places[..known.len()], target.first, part, picks);
            }
            Some(Order::Buckets(buckets)) if are_few(threshold, target.degree) => {
                for &position in self.scratch.find(buckets, threshold) {
                    picks.push(part, target.first + position as usize);
                }
            }
            _ => {
                let mut places = [0; CHUNK];
                let end = target.first + target.degree;
                for first in (target.first..end).step_by(CHUNK) {
                    let places = &mut places[..CHUNK.min(end - first)];
                    read_places(first, part, places)?;
                    self.pick_below(threshold, places, first, part, picks);
                }
            }
        }
        Ok(Picked::Some)
    }
}

/// Reads the places of the sources of the in-edges from `first` on, at most a chunk of them.
#[inline(always)]
fn read_places(first: usize, part: &Part, places: &mut [u32]) -> Result<()> {
    let mut sources = [0; CHUNK];
    let sources = &mut sources[..places.len()];
    part.copy_sources(first, sources)?;
    sources.iter().for_each(|&local| part.prefetch_id(local as u32));
    for (place, &local) in places.iter_mut().zip(&*sources) {
        *place = place_of(part.id(local as u32)?);
    }
    Ok(())
}

/// Whether the places of numbers below the threshold are few intervals for a list of that length.
#[inline(always)]
fn are_few(threshold: u32, degree: usize) -> bool {
    threshold <= SMALL && Numbers::count(threshold) * FEW <= degree
}

impl BySourceNumbers<'_> {
    /// Brings the order of a long list into the cache.
    fn prepare_long(&self, asked: Asked, target: &Target) {
        match self.orders.get(list_of(target)) {
            Some(Order::Places(places)) => places.iter().step_by(LINE).for_each(|place| prefetch_at(place)),
            Some(Order::Buckets(buckets)) => {
                let threshold = threshold(asked, target);
                if are_few(threshold, target.degree) {
                    self.scratch.numbers.intervals(threshold, |first, _| buckets.prefetch(first));
                }
            }
            None => {}
        }
    }

    /// Picks the in-edges from `first` on whose sources have numbers below the threshold.
    #[inline(always)]
    fn pick_below(&self, threshold: u32, places: &[u32], first: usize, part: &Part, picks: &mut Picks) {
        let mut picked = [0; CHUNK];
        let count = self.scratch.numbers.find(threshold, places, &mut picked);
        picked[..count].iter().for_each(|&index| picks.push(part, first + usize::from(index)));
    }
}

impl Scratch {
    /// The positions of the in-edges of a list whose numbers are below a small threshold.
    #[inline(always)]
    fn find(&mut self, buckets: Buckets<'_>, threshold: u32) -> &[u32] {
        let Self { numbers, pieces, found } = self;
        let mut most = 0;
        pieces.clear();
        numbers.intervals(threshold, |first, count| {
            buckets.pieces(first, count, |piece| {
                most += piece.len();
                pieces.push(piece);
            });
        });
        if found.len() < most {
            found.resize(most, 0);
        }
        let count = pieces.iter().fold(0, |count, &piece| buckets.find(piece, found, count));
        let found = &mut found[..count];
        found.sort_unstable();
        found
    }
}
