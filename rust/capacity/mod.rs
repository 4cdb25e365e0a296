//! Capacities of parts: loads and caps, the least loaded part, and the repair of parts that are too full.
//!
//! - [`bounds`]: loads under one bound or several.
//! - [`Shares`]: how large parts are to be relative to each other.
//! - [`LeastLoaded`]: one load per part, and the least loaded part. [`UnitLoads`]: the same for units;
//!   [`place_last`] deals them the vertices without edges.
//! - [`PartLoads`]: loads under several bounds, and the least loaded part with slack under all of them.
//! - [`schedule`](mod@schedule): jobs to the least loaded of k machines.
//! - [`BalanceOn`]: a second bound on vertex partitions. [`Placing`] keeps it, and deals if nothing else
//!   helps.
//! - [`repair`](mod@repair): vertices leave parts above a cap on vertices or volume.

mod balance_on;
pub(crate) mod bounds;
mod least_loaded;
mod part_loads;
mod placing;
pub(crate) mod repair;
pub(crate) mod schedule;
mod shares;

use crate::base::{Error, Result};
pub use balance_on::BalanceOn;
pub(crate) use balance_on::{BalancedAssignment, Weights};
pub(crate) use bounds::{Load, excess, fits, minus, plus, relative};
pub(crate) use least_loaded::{LeastLoaded, UnitLoads, place_last};
pub(crate) use part_loads::PartLoads;
pub use placing::Placing;
pub(crate) use repair::{RepairOutcome, repair};
pub(crate) use schedule::schedule;
pub(crate) use shares::Shares;

/// Vertices placed between two polls of the cancel flag.
pub(crate) const CHECK_EVERY: usize = 1 << 12;

/// The largest number of parts.
pub const MAX_PARTS: u64 = 1 << 20;

/// Refuses a number of parts outside `1..=2^20`.
pub(crate) fn validate_parts(k: u32) -> Result<()> {
    if (1..=MAX_PARTS).contains(&u64::from(k)) {
        return Ok(());
    }
    Err(Error::parameter("k", format!("{k} is not between 1 and 2^20 = {MAX_PARTS}")))
}

/// Refuses a balance below 1, infinite or NaN.
pub(crate) fn validate_balance(name: &'static str, balance: f64) -> Result<()> {
    if balance.is_finite() && balance >= 1.0 {
        return Ok(());
    }
    Err(Error::parameter(
        name,
        format!("{balance} is not a ratio of at least 1, as 1.05 for 5 % above the mean"),
    ))
}

/// `balance * items / k`, from left to right in f64; a balance above k acts as k.
pub(crate) fn share(balance: f64, items: u64, k: u32) -> f64 {
    let k = f64::from(k);
    balance.min(k) * items as f64 / k
}

/// The cap of a part: `ceil(balance * items / k)`.
pub fn cap(balance: f64, items: u64, k: u32) -> u64 {
    share(balance, items, k).ceil() as u64
}

/// The share of a cap that may be used when the fraction `t` of what is to come has been placed, rising from
/// `start`. Parts that fill up early leave too little choice in the end.
#[inline(always)]
pub(crate) fn open_share(start: f64, t: f64) -> f64 {
    start + (1.0 - start) * t.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps() {
        assert_eq!(cap(1.0, 10, 3), 4);
        assert_eq!(cap(1.0, 9, 3), 3);
        assert_eq!(cap(1.05, 100, 5), 21);
        assert_eq!(cap(1e308, 10, 3), 10);
        assert_eq!(cap(1.0, 0, 3), 0);
        assert_eq!(cap(1.0, (1 << 32) - 1, 1 << 20), 4096);
    }

    #[test]
    fn refusals() {
        for balance in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.999] {
            assert!(validate_balance("balance", balance).is_err());
        }
        assert!(validate_balance("balance", 1e308).is_ok());
        assert!(validate_parts(0).is_err() && validate_parts(1).is_ok());
        assert!(validate_parts(1 << 20).is_ok() && validate_parts((1 << 20) + 1).is_err());
    }
}
