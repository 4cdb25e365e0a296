//! A sample of the edges of a coarse graph that is too large.
//!
//! An edge of weight w is kept with probability `min(1, w / t)`, and then weighs `max(w, t)`: so every cut
//! keeps its weight in expectation. Whether an edge is kept depends only on its ends and a seed. So both ends
//! agree, and threads do not matter. The threshold t is the least that leaves no more entries than are
//! wanted, in expectation.

use crate::base::{Result, splitmix64};
use crate::exec::Division;

/// Steps of a threshold between a power of two and the next, and their bits.
const STEPS: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = 4;
/// Minimum entries per vertex that are kept: without them sparse graphs would fall apart.
pub const LEAST_DEGREE: u64 = 10;

/// The size of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Most entries that are kept, unless they are few per vertex.
    pub entries: u64,
    /// Seed of the choice.
    pub seed: u64,
}

impl Sample {
    /// The sample of entries with these weights, in a graph of `vertices` vertices. `None` if all are kept.
    pub fn of(self, weights: &Histogram, vertices: u64) -> Option<EdgeSample> {
        let most = self.entries.max(LEAST_DEGREE * vertices);
        let threshold = weights.threshold(most);
        (threshold > 1).then_some(EdgeSample { threshold, seed: self.seed })
    }
}

/// Number and sum of the weights between two thresholds.
#[derive(Debug, Clone, Default)]
pub struct Histogram(Vec<(u64, u64)>);

impl Histogram {
    /// Counts a weight.
    #[inline(always)]
    pub fn add(&mut self, weight: u32) {
        let step = step(weight);
        if step >= self.0.len() {
            self.0.resize(step + 1, (0, 0));
        }
        let (count, sum) = &mut self.0[step];
        *count += 1;
        *sum += u64::from(weight);
    }

    /// The histogram of the weights that all replicas count.
    pub(crate) fn sum(self, division: &Division) -> Result<Self> {
        let mine: Vec<[u64; 2]> = self.0.iter().map(|&(count, sum)| [count, sum]).collect();
        let mut all = Self::default();
        for its in division.all(&mine)? {
            all.0.resize(all.0.len().max(its.len()), (0, 0));
            for (sum, [count, weight]) in all.0.iter_mut().zip(its) {
                *sum = (sum.0 + count, sum.1 + weight);
            }
        }
        Ok(all)
    }

    /// The least threshold under which at most `most` entries are kept, in expectation.
    fn threshold(&self, most: u64) -> u32 {
        let mut above: u64 = self.0.iter().map(|&(count, _)| count).sum();
        let mut below = 0;
        for (step, &(count, sum)) in self.0.iter().enumerate() {
            let threshold = bound(step);
            if above as f64 + below as f64 / f64::from(threshold.max(1)) <= most as f64 {
                return threshold;
            }
            above -= count;
            below += sum;
        }
        let least = (below as f64 / most.max(1) as f64).ceil();
        least.max(f64::from(bound(self.0.len()))) as u32
    }
}

/// The step between whose bounds the weight lies.
#[inline(always)]
fn step(weight: u32) -> usize {
    if weight < STEPS {
        return weight as usize;
    }
    let shift = weight.ilog2() - STEP_BITS;
    (shift * STEPS + (weight >> shift)) as usize
}

/// The least weight of a step.
fn bound(step: usize) -> u32 {
    let step = step as u32;
    if step < 2 * STEPS {
        return step;
    }
    let shift = step / STEPS - 1;
    (STEPS + step % STEPS).checked_shl(shift).filter(|bound| bound >> shift >= STEPS).unwrap_or(u32::MAX)
}

/// A sample: it says which edges are kept, and with what weight.
#[derive(Debug, Clone, Copy)]
pub struct EdgeSample {
    threshold: u32,
    seed: u64,
}

impl EdgeSample {
    /// The weight of the edge in the sample, if it is there.
    #[inline(always)]
    pub fn weight(&self, u: u32, v: u32, weight: u32) -> Option<u32> {
        if weight >= self.threshold {
            return Some(weight);
        }
        let ends = u64::from(u.min(v)) << 32 | u64::from(u.max(v));
        let sample = splitmix64(self.seed ^ splitmix64(ends)) >> 32;
        (sample * u64::from(self.threshold) < u64::from(weight) << 32).then_some(self.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_lie_within_their_steps() {
        for weight in (0..5000).chain((0..31).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let step = step(weight);
            assert!(bound(step) <= weight && weight < bound(step + 1), "{weight}: {step}");
        }
        assert!(bound(step(u32::MAX)) < u32::MAX && bound(step(u32::MAX) + 1) == u32::MAX);
    }

    #[test]
    fn samples_have_the_size_and_the_weight_that_are_asked_for() {
        let weight = |u: u32, v: u32| 1 + u32::from((u + v).is_multiple_of(7)) * ((u ^ v) % 900);
        let pairs = || (0..400).flat_map(|u| (0..u).map(move |v| (u, v)));
        let (mut histogram, mut all) = (Histogram::default(), 0);
        pairs().for_each(|(u, v)| histogram.add(weight(u, v)));
        pairs().for_each(|(u, v)| all += u64::from(weight(u, v)));
        let edges = pairs().count() as u64;
        assert!(Sample { entries: edges, seed: 1 }.of(&histogram, 10).is_none());
        for share in [2, 5, 20, 100] {
            let kept = Sample { entries: edges / share, seed: 1 }.of(&histogram, 10).unwrap();
            let sample: Vec<u32> = pairs().filter_map(|(u, v)| kept.weight(u, v, weight(u, v))).collect();
            let sum: u64 = sample.iter().map(|&weight| u64::from(weight)).sum();
            assert!(sample.len() as u64 * share <= edges * 11 / 10, "{} of {edges}", sample.len());
            assert!(sample.len() as u64 * share >= edges * 8 / 10, "{} of {edges}", sample.len());
            assert!(sum.abs_diff(all) * 8 < all, "{sum} instead of {all}");
            assert!(pairs().all(|(u, v)| kept.weight(u, v, 3) == kept.weight(v, u, 3)));
        }
        // Few entries per vertex are kept anyway.
        assert!(Sample { entries: 1, seed: 1 }.of(&histogram, edges / LEAST_DEGREE + 1).is_none());
    }
}
