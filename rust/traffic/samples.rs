//! Sampled batches of a part, 64 at a time.
//!
//! A level is a mask per vertex, with a bit for each batch. An in-edge of a vertex passes each bit on with
//! the probability that the edge is sampled. Probabilities add up as if the vertices of a level were
//! independent. The masks know that the neighbours of a seed come together. Where these share neighbours, the
//! probabilities overestimate the rows, by up to a factor of 2.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::edges::{Degrees, DirectedEdge, InEdges};
use super::epoch::Epoch;
use crate::base::{Buffer, Permutation, Result, Run, ahead, prefetch, shared, splitmix64};
use crate::exec::for_each;

/// Batches at a time: the bits of a mask.
const BATCHES: u64 = 64;

/// Bytes per vertex and part.
pub(crate) const BYTES: u64 = 24;

/// The steps that are sampled, from several epochs if one has few.
#[derive(Debug, Clone)]
pub(crate) struct Samples {
    steps: u64,
    /// The order of the seeds in each sampled epoch.
    orders: Vec<Permutation>,
    /// Steps of an epoch for each sampled step.
    pub scale: f64,
}

impl Samples {
    /// Samples as many steps of `epoch` as a mask has bits for.
    pub(crate) fn new(epoch: &Epoch) -> Self {
        let (steps, epochs, scale) = match epoch.num_steps() {
            0 => (0, 0, 0.0),
            steps if steps > BATCHES => (BATCHES, 1, epoch.num_full_batches() / BATCHES as f64),
            steps => (steps, BATCHES / steps, 1.0 / (BATCHES / steps) as f64),
        };
        let orders = (0..epochs).map(|number| Permutation::new(number, epoch.num_seeds())).collect();
        Self { steps, orders, scale }
    }

    /// A mask of the first half of the batches, and one of the others.
    pub(crate) fn halves(&self) -> [u64; 2] {
        let sampled = self.steps * self.orders.len() as u64;
        let first = (1 << (sampled / 2)) - 1;
        [first, !first]
    }

    /// The batches that have the seed with that number.
    fn of(&self, number: u64, epoch: &Epoch) -> u64 {
        let bit = |(order, place): (&Permutation, u64)| {
            let step = epoch.step_of(order.of(number));
            if step < self.steps { 1 << (place * self.steps + step) } else { 0 }
        };
        self.orders.iter().zip(0..).map(bit).sum()
    }

    /// The batches that have each vertex, for each list of `seeds`, which ascend: the `seeds.len()` masks of
    /// a vertex follow each other. `before` are the seeds of other lists. `degrees` are those of `edges`.
    pub(crate) fn masks(
        &self,
        edges: &dyn InEdges,
        degrees: &mut Degrees<'_>,
        (before, seeds): (u64, &[&[u32]]),
        epoch: &Epoch,
        run: &Run,
    ) -> Result<Buffer<u64>> {
        let (n, count) = (edges.num_vertices(), seeds.len());
        let what = format!("sampled batches of {count} parts ({BYTES} bytes per vertex and part)");
        run.require(BYTES * n * count as u64, what)?;
        let zeros = |what| Buffer::<u64>::zeroed(n as usize * count, what);
        let (mut level, mut next, mut all) =
            (zeros("a level")?, zeros("the next level")?, zeros("all levels")?);
        let listed =
            seeds.iter().enumerate().flat_map(|(part, seeds)| seeds.iter().map(move |&seed| (part, seed)));
        for (number, (part, seed)) in (before..).zip(listed) {
            level[seed as usize * count + part] = self.of(number, epoch);
        }
        all.copy_from_slice(&level);
        for hop in 0..epoch.num_hops() {
            for (relation, fanout) in epoch.sampled(hop) {
                let degrees = degrees.of(relation, run)?;
                run.begin("samples", edges.work(relation) + 2 * all.len() as u64);
                let next = shared(&mut next);
                let hop = Hop { level: &level, next, degrees, fanout, hop: hop as u64, count };
                edges.visit(relation, run, &|block| hop.follow(block))?;
            }
            std::mem::swap(&mut level, &mut next);
            for_each(&mut all, run, |index, all| *all |= level[index])?;
            for_each(&mut next, run, |_, mask| *mask = 0)?;
        }
        Ok(all)
    }
}

/// From a level to the next.
struct Hop<'a> {
    level: &'a [u64],
    next: &'a [AtomicU64],
    degrees: &'a [u32],
    fanout: Option<u32>,
    hop: u64,
    count: usize,
}

impl Hop<'_> {
    /// Passes the bits of the targets on to the sources.
    fn follow(&self, block: &[DirectedEdge]) {
        for (index, edge) in block.iter().enumerate() {
            if let Some(ahead) = block.get(index + ahead::ENTRIES) {
                prefetch(self.level, ahead.target as usize * self.count);
                prefetch(self.degrees, ahead.target as usize);
                prefetch(self.next, ahead.source as usize * self.count);
            }
            let masks = &self.level[edge.target as usize * self.count..][..self.count];
            let bits = masks.iter().fold(0, |bits, mask| bits | mask);
            if bits == 0 {
                continue;
            }
            let threshold = threshold(self.fanout, self.degrees[edge.target as usize]);
            let bits = some_of(bits, threshold, splitmix64(edge.id ^ self.hop << 56));
            let next = &self.next[edge.source as usize * self.count..][..self.count];
            for (&mask, next) in masks.iter().zip(next).filter(|(mask, _)| **mask & bits != 0) {
                next.fetch_or(mask & bits, Relaxed);
            }
        }
    }
}

/// The probability that an in-edge of a vertex is sampled, in units of 2^-32.
#[inline(always)]
fn threshold(fanout: Option<u32>, degree: u32) -> u64 {
    match fanout {
        Some(fanout) if fanout < degree => (u64::from(fanout) << 32) / u64::from(degree),
        _ => 1 << 32,
    }
}

/// Some of the bits `bits`, each with the probability `threshold`. The digits of a random number for each bit
/// come from random words and are compared with those of the threshold, until all bits are decided.
#[inline(always)]
fn some_of(bits: u64, threshold: u64, key: u64) -> u64 {
    if threshold == 1 << 32 {
        return bits;
    }
    let (mut open, mut less, mut rest, mut state) = (bits, 0, threshold as u32, key);
    while open != 0 && rest != 0 {
        state = splitmix64(state);
        if rest >> 31 == 1 {
            less |= open & !state;
            open &= state;
        } else {
            open &= !state;
        }
        rest <<= 1;
    }
    less
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_pass_with_their_probability() {
        for (fanout, degree, share) in
            [(1, 3, 1.0 / 3.0), (2, 4, 0.5), (9, 10, 0.9), (0, 5, 0.0), (5, 5, 1.0)]
        {
            let threshold = threshold(Some(fanout), degree);
            let passed: u32 =
                (0..4000).map(|key| some_of(u64::MAX, threshold, splitmix64(key)).count_ones()).sum();
            assert!((f64::from(passed) / 256_000.0 - share).abs() < 0.004, "{fanout} of {degree}: {passed}");
        }
        assert_eq!(some_of(0b101, 1 << 31, 7) & !0b101, 0);
    }

    #[test]
    fn a_seed_is_in_one_batch_of_each_epoch() {
        let epoch = Epoch::new(25, 10, &[]).unwrap();
        let samples = Samples::new(&epoch);
        assert!((0..25).all(|seed| samples.of(seed, &epoch).count_ones() == 21));
        let sizes = |batch: u32| (0..25).filter(|&seed| samples.of(seed, &epoch) >> batch & 1 == 1).count();
        assert_eq!([0, 1, 2, 60, 61, 62, 63].map(sizes), [10, 10, 5, 10, 10, 5, 0]);
        let [first, second] = samples.halves();
        assert_eq!((first.count_ones(), first & second), (31, 0));
    }
}
