//! Shares of the parts: how large each one is to be, relative to the others.
//!
//! A part of share s gets at most `ceil(balance * items * s / S)`, where S is the sum of all shares. If all
//! shares are equal, this is `ceil(balance * items / k)` ([`cap`](super::cap)). The caps of all parts add up
//! to at least the number of items, so they can always be kept.

use std::sync::Arc;

use super::share;
use crate::base::{Error, Result};

/// Shares of parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shares {
    k: u32,
    /// The share of each part. All are equal if it is `None`.
    each: Option<Arc<[f64]>>,
    sum: f64,
}

impl Shares {
    /// Equal shares of `k` parts.
    pub(crate) fn equal(k: u32) -> Self {
        Self { k, each: None, sum: 0.0 }
    }

    /// These shares, called `name`, of `k` parts. None stands for equal ones.
    pub(crate) fn new(name: &'static str, sizes: Option<&[f64]>, k: u32) -> Result<Self> {
        let Some(sizes) = sizes else { return Ok(Self::equal(k)) };
        if sizes.len() as u64 != u64::from(k) {
            let what = format!("{} shares for {k} parts. Give one per part", sizes.len());
            return Err(Error::parameter(name, what));
        }
        let sum: f64 = sizes.iter().sum();
        let wrong = sizes.iter().position(|&size| !(size > 0.0 && size.is_finite()));
        if let Some(part) = wrong {
            let what = format!("part {part} has the share {}. Use finite numbers above 0", sizes[part]);
            return Err(Error::parameter(name, what));
        }
        if !sum.is_finite() {
            return Err(Error::parameter(name, "the sum of the shares is infinite. Scale them down"));
        }
        let alike = sizes.iter().all(|&size| size == sizes[0]);
        Ok(Self { k, each: (!alike).then(|| sizes.into()), sum })
    }

    /// Number of parts.
    pub(crate) fn k(&self) -> u32 {
        self.k
    }

    /// Whether all parts have the same share.
    pub(crate) fn are_equal(&self) -> bool {
        self.each.is_none()
    }

    /// `ratio` times the share that a part has of the items. No part has more than all.
    pub(crate) fn of(&self, ratio: f64, items: u64, part: usize) -> f64 {
        match &self.each {
            None => share(ratio, items, self.k),
            Some(each) => (ratio * items as f64 * each[part] / self.sum).min(items as f64),
        }
    }

    /// The caps of all parts.
    pub(crate) fn caps(&self, ratio: f64, items: u64) -> impl Iterator<Item = u64> {
        (0..self.k as usize).map(move |part| self.of(ratio, items, part).ceil() as u64)
    }

    /// The least caps that hold all items: the share of each part, rounded up.
    pub(crate) fn least_caps(&self, items: u64) -> impl Iterator<Item = u64> {
        (0..self.k as usize).map(move |part| match &self.each {
            None => items.div_ceil(self.k.into()),
            Some(_) => self.of(1.0, items, part).ceil() as u64,
        })
    }

    /// The shares of consecutive groups, where group g has `groups[g]` parts. `None` if all parts have the
    /// same share but the groups have different numbers of parts.
    pub(crate) fn of_groups(&self, groups: &[u32]) -> Option<Self> {
        let k = groups.len() as u32;
        let Some(each) = &self.each else {
            return groups.iter().all(|&parts| parts == groups[0]).then(|| Self::equal(k));
        };
        let mut first = 0;
        let sums = groups.iter().map(|&parts| {
            let group = &each[first..first + parts as usize];
            first += parts as usize;
            group.iter().sum::<f64>()
        });
        let sums: Vec<f64> = sums.collect();
        let alike = sums.iter().all(|&sum| sum == sums[0]);
        Some(Self { k, each: (!alike).then(|| sums.into()), sum: self.sum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;
    use crate::capacity::cap;

    fn shares(sizes: &[f64]) -> Shares {
        Shares::new("sizes", Some(sizes), sizes.len() as u32).unwrap()
    }

    #[test]
    fn caps_follow_the_shares() {
        let caps = |sizes: &[f64], ratio, items| shares(sizes).caps(ratio, items).collect::<Vec<u64>>();
        assert_eq!(caps(&[2.0, 1.0, 1.0], 1.0, 8), [4, 2, 2]);
        assert_eq!(caps(&[2.0, 1.0, 1.0], 1.0, 9), [5, 3, 3]);
        assert_eq!(caps(&[0.1, 0.2, 0.7], 1.0, 10), [1, 2, 7]);
        assert_eq!(caps(&[3.0, 1.0], 1.5, 100), [100, 38]);
        assert_eq!(caps(&[3.0, 1.0], 1e308, 100), [100, 100]);
        assert_eq!(caps(&[3.0, 3.0, 3.0], 1.05, 100), [cap(1.05, 100, 3); 3]);
        assert!(shares(&[0.1; 7]).are_equal() && !shares(&[1.0, 2.0]).are_equal());
    }

    #[test]
    fn caps_hold_all_items() {
        for seed in 0..500 {
            let mut random = Random::new(seed, 1);
            let k = 1 + random.below(40) as usize;
            let sizes: Vec<f64> = (0..k).map(|_| (1 + random.below(1000)) as f64 / 7.0).collect();
            let items = random.below(100_000);
            let caps: Vec<u64> = shares(&sizes).caps(1.0, items).collect();
            let sum: f64 = sizes.iter().sum();
            assert!(caps.iter().sum::<u64>() >= items);
            let within = |(&cap, size): (&u64, f64)| (cap as f64) < items as f64 * size / sum + 1.0 + 1e-6;
            assert!(caps.iter().zip(sizes.iter().copied()).all(within));
        }
    }

    #[test]
    fn groups_have_the_shares_of_their_parts() {
        let groups = shares(&[2.0, 1.0, 1.0, 4.0]).of_groups(&[3, 1]).unwrap();
        assert!(groups.are_equal() && groups.k() == 2);
        let groups = shares(&[2.0, 1.0, 1.0, 4.0]).of_groups(&[1, 2, 1]).unwrap();
        assert_eq!(groups.caps(1.0, 80).collect::<Vec<u64>>(), [20, 20, 40]);
        assert!(Shares::equal(4).of_groups(&[3, 1]).is_none());
        assert_eq!(Shares::equal(4).of_groups(&[2, 2]), Some(Shares::equal(2)));
    }

    #[test]
    fn refusals() {
        for (sizes, text) in [
            (&[1.0][..], "1 shares for 2 parts"),
            (&[1.0, 0.0], "part 1 has the share 0"),
            (&[-1.0, 2.0], "part 0 has the share -1"),
            (&[1.0, f64::NAN], "part 1 has the share NaN"),
            (&[f64::INFINITY, 1.0], "part 0 has the share inf"),
            (&[f64::MAX, f64::MAX], "the sum of the shares is infinite"),
        ] {
            let error = Shares::new("sizes", Some(sizes), 2).unwrap_err().to_string();
            assert!(error.starts_with(&format!("sizes: {text}")), "{error}");
        }
    }
}
