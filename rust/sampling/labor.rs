//! LABOR-0: samples of fewer distinct vertices, by one random number per source.
//!
//! An in-edge from t is taken if the number of t is below `fanout / degree`. So each list has `fanout` picks on average,
//! every in-edge is picked with the probability that uniform samples have, and lists that share a source tend to take it
//! together. All lists are read from front to back.
//!
//! Source: Balin and Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion in GNNs", NeurIPS 2023.

use super::picks::Picks;
use super::random::HopKey;
use super::targets::Target;
use super::topology::Part;
use crate::base::Result;

/// Picks about `fanout` of the in-edges of `target`, which has more.
#[inline]
pub fn labor(target: &Target, part: &Part, fanout: usize, key: HopKey, picks: &mut Picks) -> Result<()> {
    let threshold = ((fanout as u64) << 32) / target.degree as u64;
    for edge in target.first..target.first + target.degree {
        let source = part.id(part.source(edge)?)?;
        if u64::from(key.bits(source)) < threshold {
            picks.push(part, edge);
        }
    }
    Ok(())
}
