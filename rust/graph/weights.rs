//! The sum of the weights of records, and their checksum.
//!
//! The checksum is that of [`super::checksum`], of little-endian u32 weights in blocks of 2^20.

use xxhash_rust::xxh3::Xxh3;

use super::checksum::{UNIT, of_digests};
use crate::base::{Result, Run};
use crate::edges::Weights;
use crate::exec::{blocks, scan};

/// The range, the sum and the checksum of weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The smallest. 0 if there is none.
    pub least: u32,
    /// The largest. 0 if there is none.
    pub most: u32,
    /// The sum of all, at most 2^64 - 1.
    pub total: u64,
    /// 32 hexadecimal digits.
    pub checksum: String,
}

/// The range, sum and digests found by a worker.
#[derive(Default)]
struct Found {
    /// The smallest and the largest.
    range: Option<(u32, u32)>,
    total: u64,
    digests: Vec<(u64, u128)>,
}

impl Found {
    fn add(&mut self, weights: &[u32]) {
        // Both at once, at the pace of the memory.
        let (least, most, sum) = weights.iter().fold((u32::MAX, 0, 0), |(least, most, sum), &weight| {
            (weight.min(least), weight.max(most), sum + u64::from(weight))
        });
        let (low, high) = self.range.unwrap_or((u32::MAX, 0));
        self.range = Some((least.min(low), most.max(high)));
        self.total = self.total.saturating_add(sum);
    }
}

/// Reads all weights once.
pub fn extent(weights: &Weights, run: &Run) -> Result<Extent> {
    let len = weights.len();
    run.begin("weights", len);
    weights.check_unchanged()?;
    let units = (0..len.div_ceil(UNIT) as usize).map(|unit| unit as u64);
    let init = || Ok((Found::default(), Vec::new()));
    let states = scan(run, usize::MAX, units, init, |(found, buf), unit| {
        let mut hasher = Xxh3::new();
        for range in blocks(unit * UNIT..len.min((unit + 1) * UNIT)) {
            let weights = weights.block(range, buf)?;
            found.add(weights);
            hasher.update(bytemuck::cast_slice(weights));
            run.advance(weights.len() as u64)?;
        }
        found.digests.push((unit, hasher.digest128()));
        Ok(())
    });
    weights.check_unchanged()?;
    let (mut total, mut range, mut digests) = (0_u64, None, Vec::new());
    for (found, _) in states? {
        total = total.saturating_add(found.total);
        range = match (range, found.range) {
            (Some((a, b)), Some((c, d))) => Some((u32::min(a, c), u32::max(b, d))),
            (one, other) => one.or(other),
        };
        digests.extend(found.digests);
    }
    let (least, most) = range.unwrap_or_default();
    Ok(Extent { least, most, total, checksum: of_digests(digests) })
}
