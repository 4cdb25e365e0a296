//! The batches and fanouts of an epoch of training.

use crate::base::{Error, Result};

/// An epoch: its seeds in random order, `batch_size` of them in each step, and the in-edges sampled from
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    num_seeds: u64,
    batch_size: u64,
    /// In-edges per vertex, by hop and by relation. `None` takes all.
    fanouts: Vec<Vec<Option<u32>>>,
}

impl Epoch {
    /// An epoch of `num_seeds` seeds of all parts. `fanouts` has the in-edges per vertex of each hop, from
    /// the seeds on. -1 takes all.
    pub fn new(num_seeds: u64, batch_size: u64, fanouts: &[i64]) -> Result<Self> {
        let fanouts: Vec<_> = fanouts.iter().map(|&fanout| vec![fanout]).collect();
        Self::by_relation(num_seeds, batch_size, &fanouts)
    }

    /// An epoch over a graph with relations: `fanouts` has the number of in-edges per vertex by hop and by
    /// relation.
    pub fn by_relation(num_seeds: u64, batch_size: u64, fanouts: &[Vec<i64>]) -> Result<Self> {
        if batch_size == 0 {
            return Err(Error::parameter("batch_size", "0 is too few. Use 1 or more"));
        }
        let fanout = |&fanout: &i64| match fanout {
            -1 => Ok(None),
            _ => u32::try_from(fanout).map(Some).map_err(|_| {
                Error::parameter("fanouts", format!("{fanout} is neither -1 nor in 0..{}", u32::MAX))
            }),
        };
        let fanouts = fanouts.iter().map(|hop| hop.iter().map(fanout).collect()).collect::<Result<_>>()?;
        // A batch of more than all seeds is one of all.
        Ok(Self { num_seeds, batch_size: batch_size.min(num_seeds.max(1)), fanouts })
    }

    /// Refuses fanouts of another number of relations.
    pub(super) fn check_relations(&self, count: usize) -> Result<()> {
        match self.fanouts.iter().find(|hop| hop.len() != count) {
            None => Ok(()),
            Some(hop) => Err(Error::parameter(
                "fanouts",
                format!("{} numbers for a hop of {count} relations", hop.len()),
            )),
        }
    }

    /// Number of hops.
    pub(super) fn num_hops(&self) -> usize {
        self.fanouts.len()
    }

    /// The relations of which a hop samples in-edges, and how many per vertex. `None` takes all.
    pub(super) fn sampled(&self, hop: usize) -> Vec<(usize, Option<u32>)> {
        let relations = self.fanouts[hop].iter().copied().enumerate();
        relations.filter(|&(_, fanout)| fanout != Some(0)).collect()
    }

    /// Number of seeds of all parts.
    pub fn num_seeds(&self) -> u64 {
        self.num_seeds
    }

    /// Number of steps.
    pub fn num_steps(&self) -> u64 {
        self.num_seeds.div_ceil(self.batch_size)
    }

    /// The seeds in units of full batches.
    pub fn num_full_batches(&self) -> f64 {
        self.num_seeds as f64 / self.batch_size as f64
    }

    /// The step of the seed at that place of the order.
    pub fn step_of(&self, place: u64) -> u64 {
        place / self.batch_size
    }

    /// Probability that a seed is in a full batch.
    pub fn seed_probability(&self) -> f64 {
        self.batch_size as f64 / self.num_seeds.max(1) as f64
    }

    /// Expected number of steps that a vertex is in which a full batch misses with probability `missed`. The
    /// last step may have fewer seeds.
    pub fn steps_with(&self, missed: f64) -> f64 {
        let (full, rest) = (self.num_seeds / self.batch_size, self.num_seeds % self.batch_size);
        let rest = rest as f64 / self.batch_size as f64;
        full as f64 * (1.0 - missed) + (1.0 - libm::pow(missed, rest))
    }
}

/// Refuses seeds that are not below `n`.
pub(super) fn check_seeds(seeds: &[u32], n: u64) -> Result<()> {
    match seeds.iter().find(|&&seed| u64::from(seed) >= n) {
        None => Ok(()),
        Some(seed) => Err(Error::parameter("seeds", format!("{seed} is not one of {n} vertices"))),
    }
}
