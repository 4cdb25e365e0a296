//! Planted classes: a degree-corrected stochastic block model, with labels, features and splits to train on.
//!
//! Source: Karrer, Newman, "Stochastic blockmodels and community structure in networks", Phys. Rev. E
//! 83, 2011.
//!
//! **Model.** Every vertex has a class, all classes have n / classes vertices (rounded up or down), and a
//! propensity θ that is its share of its class's endpoints. A record takes `u` from a uniform class by θ, and
//! `v` by θ from the class of `u` with probability 0.8, else from a uniform class. Should `v` be `u`, it is
//! drawn again (at most 16 times, the later 8 from any class), so that loops are all but absent. Parallel
//! records occur and stay.
//!
//! **No state.** A pseudo-random permutation gives each id a *position*. The positions of a class are one
//! range, and its first are the richest. Within a class of s vertices θ follows the density x^(-2/3) at x =
//! rank / s, whose degrees have the power law of exponent 2.5, and whose integral is a cube root: the rank of
//! an endpoint is s·U³ for a uniform U. (U starts above 0, so that no vertex exceeds √s times its class's
//! mean.) So a record costs five random numbers and two permutations of 32-bit ids, no table and no cache
//! miss. Memory is O(1) per thread, and every property of a vertex is a function of (seed, id). Only `*`, `+`
//! and `sqrt` are used, and the logarithm and the cosine of `libm`, so that all machines agree on every bit.
//!
//! **Features** are the class's centroid plus unit Gaussian noise, the centroids so near each other that
//! features alone tell only a part of the classes. The features of the neighbours add information.

use std::f64::consts::TAU;
use std::ops::Range;
use std::path::Path;

use super::feature_rows::{FeatureDtype, FeatureRows};
use super::{Generator, below_max_vertices};
use crate::base::{AtomicFile, Error, Random, Result, Run, splitmix64, zeros};
use crate::edges::Record;
use crate::exec::{for_each, scan_ranges};

/// Probability that a record is drawn within a class.
const INSIDE: f64 = 0.8;

/// Draws of `v` while it is `u`: `REDRAWS` by the model, then `REDRAWS` from all classes.
const REDRAWS: u32 = 8;

/// Distance of two centroids is on average this times √2, for any number of features.
const SEPARATION: f64 = 2.0;

/// More features than any data set has. A larger number is a mistake.
const MAX_FEATURES: u32 = 1 << 16;

/// Vertices whose labels, splits or features one task makes.
const VERTICES: usize = 1 << 12;

/// Streams of randomness: each property of a vertex or a class has its own.
mod stream {
    pub(crate) const CENTROID: u64 = 1;
    pub(crate) const NOISE: u64 = 2;
    pub(crate) const SPLIT: u64 = 3;
    pub(crate) const PERMUTATION: u64 = 4;
}

/// A graph with planted classes.
#[derive(Debug, Clone)]
pub struct Planted {
    n: u64,
    m: u64,
    classes: u64,
    features: u32,
    seed: u64,
    ids: Permutation,
}

impl Planted {
    /// `m` records over `n` vertices in `classes` classes, each vertex with `features` features.
    pub fn new(n: u64, m: u64, classes: u64, features: u32, seed: u64) -> Result<Self> {
        below_max_vertices(n, m)?;
        if n > 0 && !(1..=n).contains(&classes) {
            let what = format!("{classes} classes for {n} vertices. Use 1..={n}");
            return Err(Error::parameter("classes", what));
        }
        if features > MAX_FEATURES {
            let what = format!("{features} are too many. Use at most {MAX_FEATURES}");
            return Err(Error::parameter("features", what));
        }
        Ok(Self { n, m, classes, features, seed, ids: Permutation::new(n, seed) })
    }

    /// The class of `vertex`.
    pub fn class(&self, vertex: u32) -> u64 {
        let position = self.ids.position(u64::from(vertex));
        // The inverse of `positions`: the last class that starts at or before the position.
        ((position + 1) * self.classes - 1) / self.n
    }

    /// The class of every vertex.
    pub fn labels(&self, run: &Run) -> Result<Vec<i64>> {
        run.require(8 * self.n, "labels of the generated vertices")?;
        run.begin("labels", self.n);
        let mut labels = zeros(self.n as usize, "labels")?;
        for_each(&mut labels, run, |vertex, label| *label = self.class(vertex as u32) as i64)?;
        Ok(labels)
    }

    /// The vertices to train, validate and test on: about 60, 20 and 20 % of all, in ascending order.
    pub fn split(&self, run: &Run) -> Result<[Vec<i64>; 3]> {
        // Twice: growing vectors.
        run.require(16 * self.n, "splits of the generated vertices")?;
        run.begin("splits", self.n);
        let mut splits = [const { Vec::new() }; 3];
        for start in (0..self.n).step_by(VERTICES) {
            let end = self.n.min(start + VERTICES as u64);
            for vertex in start..end {
                let split = match self.random(stream::SPLIT, vertex).below(5) {
                    0..=2 => 0,
                    3 => 1,
                    _ => 2,
                };
                splits[split].push(vertex as i64);
            }
            run.advance(end - start)?;
        }
        Ok(splits)
    }

    /// Writes the features of all vertices as a `.npy` of n rows.
    pub fn write_features(&self, target: &Path, dtype: FeatureDtype, run: &Run) -> Result<()> {
        let file = AtomicFile::create(target)?;
        let rows = FeatureRows::new(dtype, self.features as usize);
        let header = rows.header(self.n);
        file.write_at(&header, 0)?;
        run.begin("features", self.n);
        // About 256 KiB per write, whatever the width of a row.
        let count = ((1 << 18) / rows.row_bytes().max(1)).clamp(1, VERTICES);
        let init = || Ok((Vec::new(), Vec::new()));
        scan_ranges(run, usize::MAX, self.n as usize, count, init, |(bytes, numbers), vertices| {
            let first = vertices.start;
            bytes.clear();
            for vertex in vertices {
                numbers.clear();
                self.features(vertex as u32, |feature| numbers.push(feature));
                rows.append(numbers, bytes);
                run.advance(1)?;
            }
            file.write_at(bytes, (header.len() + first * rows.row_bytes()) as u64)
        })?;
        file.commit()
    }

    /// Gives `put` the features of `vertex` in order.
    fn features(&self, vertex: u32, mut put: impl FnMut(f32)) {
        // Uniform coordinates of variance SEPARATION² / features.
        let width = SEPARATION * (12.0 / f64::from(self.features)).sqrt();
        let mut centroid = self.random(stream::CENTROID, self.class(vertex));
        let mut noise = self.random(stream::NOISE, u64::from(vertex));
        let mut second = None;
        for _ in 0..self.features {
            let gaussian = second.take().unwrap_or_else(|| {
                let (one, other) = gaussians(&mut noise);
                second = Some(other);
                one
            });
            put((width * (centroid.unit() - 0.5) + gaussian) as f32);
        }
    }

    /// Position and so vertex of a random endpoint in `class`, by propensity.
    fn draw(&self, class: u64, random: &mut Random) -> u32 {
        let Range { start, end } = self.positions(class);
        let size = (end - start) as f64;
        // The density at `least`³ is √size times the mean.
        let least = 1.0 / (3.0 * size.sqrt()).sqrt();
        let root = least + (1.0 - least) * random.unit();
        let (cube, origin) = (root * root * root, least * least * least);
        let rank = (size * (cube - origin) / (1.0 - origin)) as u64;
        // The quotient may round to 1.
        self.ids.id(start + rank.min(end - start - 1)) as u32
    }

    /// The positions of the vertices of `class`.
    fn positions(&self, class: u64) -> Range<u64> {
        class * self.n / self.classes..(class + 1) * self.n / self.classes
    }

    fn random(&self, stream: u64, index: u64) -> Random {
        Random::new(splitmix64(self.seed ^ splitmix64(stream)), index)
    }
}

impl Generator for Planted {
    fn size(&self) -> (u64, u64) {
        (self.n, self.m)
    }

    fn record(&self, index: u64) -> Record {
        let mut random = Random::new(self.seed, index);
        let class = random.below(self.classes);
        let u = self.draw(class, &mut random);
        let mut v = u;
        for redraw in 0..2 * REDRAWS {
            let inside = random.unit() < INSIDE && redraw < REDRAWS;
            let class = if inside { class } else { random.below(self.classes) };
            v = self.draw(class, &mut random);
            if v != u {
                break;
            }
        }
        [u, v]
    }
}

/// Two independent normal numbers (Box, Muller, "A Note on the Generation of Random Normal Deviates", 1958).
fn gaussians(random: &mut Random) -> (f64, f64) {
    let radius = (-2.0 * libm::log(1.0 - random.unit())).sqrt();
    let (sine, cosine) = libm::sincos(TAU * random.unit());
    (radius * cosine, radius * sine)
}

/// A pseudo-random permutation of `0..n`: rounds of `x·odd + c` modulo a power of two and of `x ^ x >> half`,
/// each of which can be undone. A number that leaves `0..n` goes on until it is back ("cycle walking").
#[derive(Debug, Clone)]
struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    rounds: [Round; 4],
}

#[derive(Debug, Clone, Copy)]
struct Round {
    factor: u64,
    inverse: u64,
    addend: u64,
}

impl Permutation {
    fn new(n: u64, seed: u64) -> Self {
        let bits = n.max(1).next_power_of_two().trailing_zeros();
        let mut random = Random::new(seed, splitmix64(stream::PERMUTATION));
        let rounds = [(); 4].map(|()| {
            let factor = random.next_u64() | 1;
            // Newton's iteration doubles the right bits: 3, 6, 12, 24, 48, 96.
            let inverse = (0..5).fold(factor, |inverse, _| {
                inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)))
            });
            Round { factor, inverse, addend: random.next_u64() }
        });
        // Half the bits, rounded up, so that the shift undoes itself.
        Self { n, mask: (1 << bits) - 1, shift: bits.div_ceil(2), rounds }
    }

    /// The id at `position`.
    fn id(&self, position: u64) -> u64 {
        let mut x = position;
        loop {
            for round in &self.rounds {
                x = x.wrapping_mul(round.factor).wrapping_add(round.addend) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }

    /// The position of `id`.
    fn position(&self, id: u64) -> u64 {
        let mut x = id;
        loop {
            for round in self.rounds.iter().rev() {
                x ^= x >> self.shift;
                x = x.wrapping_sub(round.addend).wrapping_mul(round.inverse) & self.mask;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_ids_are_inverse() {
        for n in [1, 2, 3, 4, 5, 64, 1000, 1025] {
            for seed in 0..20 {
                let ids = Permutation::new(n, seed);
                let mut seen: Vec<u64> = (0..n).map(|position| ids.id(position)).collect();
                assert!((0..n).all(|position| ids.position(seen[position as usize]) == position));
                seen.sort_unstable();
                assert_eq!(seen, (0..n).collect::<Vec<_>>());
            }
        }
        let ids = Permutation::new(u64::from(u32::MAX), 1);
        assert!((0..1000).all(|position| ids.position(ids.id(position)) == position));
    }

    #[test]
    fn classes_and_their_positions_agree() {
        for (n, classes) in [(1, 1), (10, 3), (10, 10), (1000, 7), (1025, 64)] {
            let planted = Planted::new(n, 0, classes, 0, 9).unwrap();
            for class in 0..classes {
                let range = planted.positions(class);
                assert!(
                    range.clone().all(|position| planted.class(planted.ids.id(position) as u32) == class)
                );
                assert!(range.end - range.start >= n / classes);
            }
        }
    }
}
