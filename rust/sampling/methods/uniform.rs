//! Uniform samples of in-edges, without replacement.
//!
//! Floyd's algorithm makes as many draws as there are in-edges to pick, whatever the degree.
//!
//! Source: Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM 1987.

use std::hint::select_unpredictable;

use rustc_hash::FxHashSet;

use super::{Hop, Sampling};
use crate::base::Result;
use crate::sampling::levels::expansion::{Picked, Picker};
use crate::sampling::levels::picked_edges::Picks;
use crate::sampling::levels::relation_runs::Asked;
use crate::sampling::levels::targets::Target;
use crate::sampling::topology::part::Part;

/// In-edges of a short list. It is brought into the cache as a whole, and a bit of a word says whether one is
/// picked.
const SHORT: usize = 64;

/// Samples up to this size are searched from front to back for what they already hold.
const SMALL: usize = 64;

/// Picks `fanout` in-edges, all subsets with the same probability.
#[derive(Debug)]
pub(crate) struct Uniform;

impl Sampling for Uniform {
    type Scratch = ();
    type Picker<'a> = Self;

    fn begin<'a>(_: Hop<'a>, (): &'a mut ()) -> Result<Self> {
        Ok(Self)
    }
}

impl Picker for Uniform {
    fn short(&self, asked: Asked) -> usize {
        asked.fanout.max(SHORT)
    }

    #[inline(always)]
    fn pick(&mut self, asked: Asked, target: &Target, part: &Part, picks: &mut Picks) -> Result<Picked> {
        let Asked { fanout, .. } = asked;
        if target.degree <= fanout {
            return Ok(Picked::All);
        }
        if fanout > SMALL {
            pick_many(asked, target, part, picks);
            return Ok(Picked::Some);
        }
        let edges = picks.reserve(fanout);
        if target.degree <= SHORT {
            pick_from_short(asked, target, edges);
        } else {
            pick_few(asked, target, part, edges);
        }
        Ok(Picked::Some)
    }
}

/// From a short list.
#[inline(always)]
fn pick_from_short(Asked { fanout, key }: Asked, target: &Target, edges: &mut [u64]) {
    let draws = key.draws(target.id);
    let mut picked = 0_u64;
    for (index, (last, place)) in (0..).zip((target.degree - fanout..).zip(edges)) {
        let edge = draws.below(index, last as u64 + 1);
        let edge = select_unpredictable(picked >> edge & 1 == 1, last as u64, edge);
        picked |= 1 << edge;
        *place = target.first as u64 + edge;
    }
}

/// A few from a longer list.
#[inline(always)]
fn pick_few(Asked { fanout, key }: Asked, target: &Target, part: &Part, edges: &mut [u64]) {
    let draws = key.draws(target.id);
    for (index, last) in (target.degree - fanout..target.degree).enumerate() {
        let edge = (target.first as u64) + draws.below(index as u64, last as u64 + 1);
        edges[index] = if edges[..index].contains(&edge) { (target.first + last) as u64 } else { edge };
        part.indices.prefetch(edges[index] as usize);
    }
}

/// Many from a longer list. A hash set says what is picked.
fn pick_many(Asked { fanout, key }: Asked, target: &Target, part: &Part, picks: &mut Picks) {
    let draws = key.draws(target.id);
    let mut picked = FxHashSet::with_capacity_and_hasher(fanout, Default::default());
    for (index, last) in (target.degree - fanout..target.degree).enumerate() {
        let edge = draws.below(index as u64, last as u64 + 1) as usize;
        let edge = if picked.insert(edge) { edge } else { last };
        picked.insert(edge);
        picks.push(part, target.first + edge);
    }
}
