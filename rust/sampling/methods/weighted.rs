//! Weighted samples of in-edges, without replacement.
//!
//! In-edge e gets the number `-ln(u) / w(e)`, with u uniform in (0, 1]. The `fanout` smallest numbers win, so
//! that the in-edges are drawn one after the other, each with a probability in proportion to its weight among
//! those that are left. An in-edge of weight 0 is never picked.
//!
//! Source: Efraimidis and Spirakis, "Weighted random sampling with a reservoir", Information Processing
//! Letters 2006.

use super::{Hop, Sampling};
use crate::base::{Error, Result, prefetch_at};
use crate::sampling::levels::expansion::{Picked, Picker};
use crate::sampling::levels::picked_edges::Picks;
use crate::sampling::levels::relation_runs::Asked;
use crate::sampling::levels::targets::Target;
use crate::sampling::topology::part::Part;

/// Weights of records, in memory that belongs to the caller.
#[derive(Debug)]
pub struct RecordWeights {
    start: *const u8,
    len: usize,
    /// float64 instead of float32.
    wide: bool,
}

// SAFETY: `new` demands that the memory may be read as long as the value is used, from any thread.
unsafe impl Send for RecordWeights {}
// SAFETY: as above.
unsafe impl Sync for RecordWeights {}

impl RecordWeights {
    /// `len` numbers at `start`, float64 if they are `wide`, else float32. Refuses those that are negative or
    /// not finite.
    ///
    /// # Safety
    /// They must stay readable while the value is used.
    pub unsafe fn new(start: *const u8, len: usize, wide: bool) -> Result<Self> {
        let weights = Self { start, len, wide };
        let bad = (0..len).find(|&record| !weights.at(record).is_some_and(|w| w >= 0.0 && w.is_finite()));
        match bad {
            Some(record) => {
                let what = format!(
                    "record {record} has the weight {}. Weights are finite and not negative",
                    weights.at(record).unwrap_or(f64::NAN)
                );
                Err(Error::parameter("weights", what))
            }
            None => Ok(weights),
        }
    }

    #[inline(always)]
    fn at(&self, record: usize) -> Option<f64> {
        // SAFETY: there are `len` numbers, as `new` demands, and any bytes are one.
        (record < self.len).then(|| unsafe {
            if self.wide {
                self.start.cast::<f64>().add(record).read_unaligned()
            } else {
                f64::from(self.start.cast::<f32>().add(record).read_unaligned())
            }
        })
    }

    /// The record of a directed edge.
    #[inline(always)]
    fn record(&self, edge: i64) -> usize {
        let record = edge as usize;
        if record < self.len { record } else { record.wrapping_sub(self.len) }
    }

    /// Brings the weight of a directed edge into the cache.
    #[inline(always)]
    fn prefetch(&self, edge: i64) {
        prefetch_at(self.start.wrapping_add(self.record(edge).wrapping_mul(if self.wide { 8 } else { 4 })));
    }

    /// The weight of a directed edge: that of its record.
    #[inline(always)]
    fn of(&self, edge: i64) -> Result<f64> {
        self.at(self.record(edge)).ok_or_else(|| {
            let what = format!("{} for the records of a graph that has the edge {edge}", self.len);
            Error::parameter("weights", what)
        })
    }
}

/// In-edges of a list that may be picked: their numbers, and their places.
pub(crate) type Candidates = Vec<(f64, usize)>;

/// In-edges that are looked up together.
const CHUNK: usize = 64;

/// Picks at most `fanout` in-edges.
#[derive(Debug)]
pub(crate) struct Weighted;

impl Sampling for Weighted {
    type Scratch = Candidates;
    type Picker<'a> = ByWeights<'a>;
    const TAKES_WEIGHTS: bool = true;

    fn begin<'a>(hop: Hop<'a>, candidates: &'a mut Candidates) -> Result<ByWeights<'a>> {
        let weights = hop.weights.ok_or_else(|| Error::Internal("no weights".into()))?;
        Ok(ByWeights { weights, candidates })
    }
}

/// Picks in-edges of a hop.
#[derive(Debug)]
pub(crate) struct ByWeights<'a> {
    weights: &'a RecordWeights,
    candidates: &'a mut Candidates,
}

impl Picker for ByWeights<'_> {
    fn pick(&mut self, asked: Asked, target: &Target, part: &Part, picks: &mut Picks) -> Result<Picked> {
        let Asked { fanout, key } = asked;
        let (draws, candidates) = (key.draws(target.id), &mut *self.candidates);
        candidates.clear();
        let mut edges = [0; CHUNK];
        for first in (0..target.degree).step_by(CHUNK) {
            let edges = &mut edges[..CHUNK.min(target.degree - first)];
            part.copy_edge_ids(target.first + first, edges)?;
            edges.iter().for_each(|&edge| self.weights.prefetch(edge));
            for (index, &edge) in (first..).zip(&*edges) {
                let weight = self.weights.of(edge)?;
                if weight > 0.0 {
                    candidates.push((-libm::log(draws.unit(index as u64)) / weight, target.first + index));
                }
            }
        }
        if fanout < candidates.len() {
            if fanout > 0 {
                let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
                candidates.select_nth_unstable_by(fanout - 1, order);
            }
            candidates.truncate(fanout);
            candidates.sort_unstable_by_key(|&(_, edge)| edge);
        }
        for &(_, edge) in &*candidates {
            picks.push(part, edge);
        }
        Ok(Picked::Some)
    }
}
