//! A second bound on vertex partitions: the parts also share a weight of the vertices evenly.
//!
//! In training, an epoch takes as long as the part with the most training vertices. With the mask of the
//! training vertices as weights, every part gets its share of them. Any vertex partitioner can use a
//! [`BalanceOn`]. A partitioner that only needs both caps kept places vertices through
//! [`Placing`](super::Placing), which finds the parts and repairs what fits nowhere. A partitioner that
//! scores parts itself asks [`PartLoads`] what fits. Both can fall back on [`BalanceOn::deal`].
//!
//! **Cap.** With k parts, total weight W and largest weight w, no part gets more than
//! `max(ceil(ratio * W / k), ceil(W / k) + w)`. If all weights are 0 or 1, no part gets more than
//! `ceil(ratio * W / k)`.
//!
//! **Why both caps can always be kept.** Sort the vertices by descending weight, `w_0 >= w_1 >= ...`, and
//! deal them to the parts in turn. Every part gets at most `ceil(n / k)` vertices, and no cap on vertices is
//! lower. Part j gets `w_j + w_{j+k} + w_{j+2k} + ...`. From the second on, each of these is at most the mean
//! of the k weights that end with it, `w_{j+(q-1)k+1}, ..., w_{j+qk}`. These groups are disjoint. So the
//! weight of the part is at most `w_j + W/k`. It is an integer, hence at most `w + ceil(W / k)`. If the
//! weights are 0 or 1, the W ones come first, and every part gets at most `ceil(W / k)` of them.
//! `ceil(ratio * W / k)` is not lower.
//!
//! **Memory.** 4 bytes per vertex for the weights. Dealing takes 8 more, result included.

use std::cmp::Reverse;
use std::sync::Arc;

use super::bounds::plus;
use super::{CHECK_EVERY, Load, PartLoads, Shares, cap, share, validate_balance};
use crate::base::{Buffer, Error, Result, Run, reserved};
use crate::exec::sort_by_key;

/// A weight for each vertex. Copies share the memory.
#[derive(Debug, Clone)]
pub struct Weights {
    each: Arc<Vec<u32>>,
    total: u64,
    largest: u32,
}

impl Weights {
    /// One weight per vertex.
    pub fn new(each: Vec<u32>) -> Self {
        let total = each.iter().map(|&weight| u64::from(weight)).sum();
        let largest = each.iter().copied().max().unwrap_or(0);
        Self { each: Arc::new(each), total, largest }
    }

    /// Refuses weights, called `name`, whose sum is too large.
    pub fn check(&self, name: &'static str) -> Result<()> {
        if i64::try_from(self.total).is_ok() {
            return Ok(());
        }
        let what = format!("the weights sum to {}. Scale them down to a sum below 2^63", self.total);
        Err(Error::parameter(name, what))
    }
}

impl From<Vec<u32>> for Weights {
    fn from(each: Vec<u32>) -> Self {
        Self::new(each)
    }
}

/// Weights of the vertices, and how evenly the parts share them.
#[derive(Debug, Clone)]
pub struct BalanceOn {
    weights: Weights,
    ratio: f64,
}

/// Parts of all vertices under both caps.
pub struct BalancedAssignment {
    /// Part of each vertex.
    pub assignment: Buffer<i32>,
    /// Loads of each part.
    pub loads: Vec<Load>,
    /// Whether it took the last resort, [`BalanceOn::deal`].
    pub dealt: bool,
}

impl BalanceOn {
    /// One weight per vertex. The largest part may have `ratio` times the mean.
    pub fn new(weights: Vec<u32>, ratio: f64) -> Result<Self> {
        let weights = Weights::new(weights);
        validate_balance("balance_on_ratio", ratio)?;
        weights.check("balance_on")?;
        Ok(Self { weights, ratio })
    }

    /// The bound that parameters make, whose ranges were checked.
    pub fn of(weights: Option<&Weights>, ratio: f64) -> Option<Self> {
        weights.map(|weights| Self { weights: weights.clone(), ratio })
    }

    /// Refuses weights of another number of vertices.
    pub fn validate(&self, n: u64) -> Result<()> {
        let given = self.weights.each.len() as u64;
        if given == n {
            return Ok(());
        }
        let what = format!(
            "{given} weights for {n} vertices. Give one per vertex (trailing isolated vertices count: open the graph \
             with num_vertices)"
        );
        Err(Error::parameter("balance_on", what))
    }

    /// Weight of each vertex.
    pub fn weights(&self) -> &[u32] {
        &self.weights.each
    }

    /// Weight of one vertex.
    pub fn weight(&self, vertex: u32) -> u64 {
        self.weights.each[vertex as usize].into()
    }

    /// All vertices, in order of their ids.
    pub(super) fn vertices(&self) -> Result<Vec<u32>> {
        let n = self.weights.each.len();
        let mut vertices = reserved(n, "balance_on: order of the vertices")?;
        vertices.extend((0_u32..).take(n));
        Ok(vertices)
    }

    /// The sum of the weights.
    pub fn total(&self) -> u64 {
        self.weights.total
    }

    /// The largest weight that is merged beforehand: `ratio * W / k`, rounded down.
    pub fn limit(&self, k: u32) -> u64 {
        share(self.ratio, self.weights.total, k) as u64
    }

    /// The largest weight of a part.
    pub fn cap(&self, k: u32) -> u64 {
        let shared = cap(self.ratio, self.weights.total, k);
        if self.weights.largest <= 1 {
            return shared;
        }
        shared.max(self.weights.total.div_ceil(u64::from(k)) + u64::from(self.weights.largest))
    }

    /// The largest weight of each part, by its share.
    pub(crate) fn caps(&self, shares: &Shares) -> Vec<u64> {
        if shares.are_equal() {
            return vec![self.cap(shares.k()); shares.k() as usize];
        }
        let caps = shares.caps(self.ratio, self.weights.total).zip(shares.least_caps(self.weights.total));
        let of_part = |(cap, least): (u64, u64)| match self.weights.largest {
            0 | 1 => cap,
            largest => cap.max(least + u64::from(largest)),
        };
        caps.map(of_part).collect()
    }

    /// `k` empty parts for all vertices, of at most `cap` vertices each.
    pub fn parts(&self, k: u32, cap: u64) -> Result<PartLoads> {
        PartLoads::empty(k, [self.weights.each.len() as u64, self.weights.total], [cap, self.cap(k)])
    }

    /// The last resort, which keeps every cap: vertices by descending weight (then id) to the parts,
    /// round-robin.
    pub fn deal(&self, k: u32, run: &Run) -> Result<BalancedAssignment> {
        let n = self.weights.each.len();
        run.begin("dealing", n as u64);
        let mut order = self.vertices()?;
        sort_by_key(&mut order, run, |&vertex| (Reverse(self.weight(vertex)), vertex));
        let mut assignment: Buffer<i32> = Buffer::zeroed(n, "balance_on: part of each vertex")?;
        let mut loads = vec![[0; 2]; k as usize];
        let mut round_robin = (0..k).cycle();
        for vertices in order.chunks(CHECK_EVERY) {
            for (&vertex, part) in vertices.iter().zip(&mut round_robin) {
                assignment[vertex as usize] = part as i32;
                loads[part as usize] = plus(loads[part as usize], [1, self.weight(vertex)]);
            }
            run.advance(vertices.len() as u64)?;
        }
        Ok(BalancedAssignment { assignment, loads, dealt: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn on(weights: &[u32], ratio: f64) -> BalanceOn {
        BalanceOn::new(weights.to_vec(), ratio).unwrap()
    }

    #[test]
    fn caps() {
        // 0/1: ceil(ratio * W / k), also where W = 0.
        assert_eq!(on(&[1, 0, 1, 1], 1.0).cap(2), 2);
        assert_eq!(on(&[1; 100], 1.05).cap(5), 21);
        assert_eq!(on(&[0; 100], 1.05).cap(5), 0);
        assert_eq!(on(&[], 1.05).cap(5), 0);
        // Larger ones: never below the mean and the largest.
        assert_eq!(on(&[1, 9, 1, 1], 1.0).cap(2), 6 + 9);
        assert_eq!(on(&[2; 100], 2.0).cap(5), 80);
        assert_eq!(on(&[2; 100], 1e308).cap(5), 200);
        assert_eq!((on(&[1; 100], 1.05).limit(8), on(&[1; 100], 1.05).cap(8)), (13, 14));
    }

    #[test]
    fn refusals() {
        for ratio in [0.99, f64::NAN, f64::INFINITY] {
            let error = BalanceOn::new(vec![1], ratio).unwrap_err();
            assert!(matches!(error, Error::Parameter { name: "balance_on_ratio", .. }));
        }
        assert!(on(&[1, 2], 1.0).validate(2).is_ok());
        assert!(matches!(on(&[1, 2], 1.0).validate(3), Err(Error::Parameter { name: "balance_on", .. })));
    }

    #[test]
    fn dealing_meets_every_cap() {
        let run = Run::new(Some(2), None).unwrap();
        for seed in 0..2000 {
            let mut random = Random::new(seed, 1);
            let n = random.below(60);
            let largest = [0, 1, 2, 9, u64::from(u32::MAX)][random.below(5) as usize];
            // Few of them large: the case in which the bound is nearly reached.
            let mut weight = || if random.below(3) == 0 { random.below(largest + 1) as u32 } else { 0 };
            let weights: Vec<u32> = (0..n).map(|_| weight()).collect();
            let on = on(&weights, 1.0);
            for k in [1, 2, 3, 7, 64] {
                let dealt = on.deal(k, &run).unwrap();
                let mut loads = vec![[0; 2]; k as usize];
                for (&part, &weight) in dealt.assignment.iter().zip(&weights) {
                    loads[part as usize] = plus(loads[part as usize], [1, u64::from(weight)]);
                }
                assert_eq!(dealt.loads, loads);
                let cap = [n.div_ceil(u64::from(k)), on.cap(k)];
                assert!(
                    loads.iter().all(|load| load[0] <= cap[0] && load[1] <= cap[1]),
                    "{loads:?}, {cap:?}"
                );
            }
        }
    }

    #[test]
    fn the_bound_of_dealing_is_nearly_reached() {
        let run = Run::new(Some(1), None).unwrap();
        let on = on(&[10, 0, 0, 0], 1.0);
        assert_eq!((on.deal(2, &run).unwrap().loads, on.cap(2)), (vec![[2, 10], [2, 0]], 15));
    }
}
