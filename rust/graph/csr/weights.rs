//! The weights of the entries of an adjacency, from those of the records.
//!
//! The sum of all is kept below 2^31, or little above, so that the weight of the entries of a vertex, or of
//! several vertices, fits into 32 bits. Weights are halved, and rounded up, until it is. An entry never
//! weighs 0, which would make its vertices look as if they had no neighbours. A record of weight 0 gets 1,
//! and if there is any, the others are doubled as often as the sum allows. If all records have the same
//! weight, each entry gets 1: equal weights give the result of no weights.

use std::ops::Range;

use crate::base::Result;
use crate::edges::Weights;
use crate::graph::Extent;

/// Bits of the sum of all weights.
const BITS: u32 = 31;

/// Weights of records, and by how many bits they are shifted.
pub(crate) struct Scaled<'a> {
    weights: &'a Weights,
    up: u32,
    down: u32,
    /// The largest weight of an entry.
    most: u32,
}

impl<'a> Scaled<'a> {
    /// The scale for weights of that range and sum.
    pub(crate) fn new(weights: &'a Weights, extent: &Extent) -> Self {
        let bits = u64::BITS - extent.total.leading_zeros();
        let up = if extent.least == 0 { (BITS - 1).saturating_sub(bits) } else { 0 };
        let most = if extent.least == extent.most { 1 } else { u32::MAX };
        Self { weights, up, down: bits.saturating_sub(BITS), most }
    }

    /// Reads those of the records `range` into `buf`, scaled. There is one for each.
    pub(crate) fn block(&self, range: Range<u64>, buf: &mut Vec<u32>) -> Result<()> {
        self.weights.block(range, buf)?;
        for weight in buf {
            let scaled = (u64::from(*weight) << self.up).div_ceil(1 << self.down);
            *weight = scaled.clamp(1, self.most.into()) as u32;
        }
        Ok(())
    }

    /// An error when the file changed since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.weights.check_unchanged()
    }
}
