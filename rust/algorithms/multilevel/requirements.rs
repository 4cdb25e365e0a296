//! What users ask of the parts beside bounds: sizes, fixed vertices, and connected parts.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::base::{Error, NONE, Result};
use crate::capacity::Shares;

/// Sizes of the parts, fixed vertices, and whether parts are to be connected.
#[derive(Debug, Clone, Default)]
pub struct Requirements {
    /// How large each part is to be, relative to the others. All are equal if it is `None`.
    pub sizes: Option<Vec<f64>>,
    /// The part that each vertex must be in, or [`NONE`]. All are free if it is `None`.
    pub fixed: Option<Arc<Vec<u32>>>,
    /// Whether fragments of parts move to the parts around them. See [`connected`](super::connected).
    pub connected: bool,
}

impl Requirements {
    /// The shares of `k` parts.
    pub(super) fn shares(&self, k: u32) -> Result<Shares> {
        Shares::new("sizes", self.sizes.as_deref(), k)
    }

    /// The labels of fixed vertices, if there are any.
    pub(super) fn labels(&self) -> Option<&[u32]> {
        self.fixed.as_ref().map(|fixed| &fixed[..]).filter(|fixed| fixed.iter().any(|&part| part != NONE))
    }

    /// Bytes for labels of a graph of `n` vertices, of its levels, and of one problem of groups of parts.
    pub(super) fn memory(&self, n: u64) -> u64 {
        if self.fixed.is_some() { n.saturating_mul(12) } else { 0 }
    }

    /// Lines that identify them.
    pub(super) fn identity(&self) -> [String; 3] {
        let labels = self.labels().map(|labels| {
            let mut hash = Xxh3::new();
            labels.iter().for_each(|part| hash.update(&part.to_le_bytes()));
            format!("{:032x}", hash.digest128())
        });
        [
            format!("sizes={:?}", self.sizes),
            format!("fixed={}", labels.as_deref().unwrap_or("none")),
            format!("connected={}", self.connected),
        ]
    }

    /// Refuses fixed vertices that cannot be on a graph of `n` vertices, where no part may have more vertices than
    /// its cap, and each part needs a least number. Returns these least numbers.
    pub(super) fn validate(
        &self,
        n: u64,
        balance: f64,
        min_balance: Option<f64>,
        k: u32,
    ) -> Result<Vec<u64>> {
        let shares = self.shares(k)?;
        let fixed = self.count_fixed(n, k)?;
        for (part, (&count, cap)) in fixed.iter().zip(shares.caps(balance, n)).enumerate() {
            if count > cap {
                let what = format!(
                    "fixed: {count} vertices are fixed to part {part}, but its cap is {cap}. Fix fewer vertices to it, or \
                     raise balance or its share of sizes"
                );
                return Err(Error::Capacity(what));
            }
        }
        let least = least(min_balance, n, &shares)?;
        let needed: u64 = least.iter().zip(&fixed).map(|(&least, &fixed)| least.max(fixed)).sum();
        if needed > n {
            let included = if fixed.iter().any(|&count| count > 0) { ", fixed ones included" } else { "" };
            let what = format!(
                "min_balance: the parts need {needed} vertices together{included}, but there are {n}. Lower min_balance, or \
                 leave it out"
            );
            return Err(Error::Capacity(what));
        }
        Ok(least)
    }

    /// How many vertices are fixed to each part.
    fn count_fixed(&self, n: u64, k: u32) -> Result<Vec<u64>> {
        let mut counts = vec![0; k as usize];
        let Some(fixed) = &self.fixed else { return Ok(counts) };
        if fixed.len() as u64 != n {
            let what = format!(
                "{} parts for {n} vertices. Give one per vertex, and -1 for those that are free",
                fixed.len()
            );
            return Err(Error::parameter("fixed", what));
        }
        for (v, &part) in fixed.iter().enumerate().filter(|&(_, &part)| part != NONE) {
            let Some(count) = counts.get_mut(part as usize) else {
                let what = format!("vertex {v} has part {part}, outside 0..{} (k={k}). -1 is free", k - 1);
                return Err(Error::parameter("fixed", what));
            };
            *count += 1;
        }
        Ok(counts)
    }
}

/// Vertices that each part gets at least.
fn least(min_balance: Option<f64>, n: u64, shares: &Shares) -> Result<Vec<u64>> {
    let k = shares.k();
    let Some(ratio) = min_balance.filter(|&ratio| ratio != 0.0) else { return Ok(vec![0; k as usize]) };
    if !(0.0..=1.0).contains(&ratio) {
        let what = format!("{ratio} is not a ratio from 0 to 1, as 0.9 for 10 % below the mean");
        return Err(Error::parameter("min_balance", what));
    }
    if n < u64::from(k) {
        let what = format!(
            "min_balance: {k} parts cannot have a vertex each, since there are {n}. Lower k, or leave min_balance out"
        );
        return Err(Error::Capacity(what));
    }
    Ok((0..k as usize).map(|part| (shares.of(ratio, n, part) as u64).max(1)).collect())
}
