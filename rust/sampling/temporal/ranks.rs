//! Places of in-edges among those of their relation in a part, which is how files of a relation number them.
//!
//! The in-edges before each block are counted once. Those within it are counted when a place is looked up.

use crate::base::{Result, zeros};
use crate::sampling::topology::Types;

/// Least number of in-edges of a block.
const LEAST: usize = 256;

/// The number of in-edges of each relation before each block.
#[derive(Debug)]
pub(crate) struct Ranks {
    /// In-edges of a block: so many that counts take at most half a byte per in-edge.
    block: usize,
    relations: usize,
    before: Vec<u64>,
}

impl Ranks {
    /// Counts the `count` in-edges of a part.
    pub(crate) fn new(types: &Types, part: usize, count: usize) -> Result<Self> {
        let relations = types.num_relations();
        let block = LEAST.max(16 * relations);
        let mut before = zeros((count / block + 1) * relations, "in-edges of relations")?;
        let mut sums = vec![0_u64; relations];
        for (place, first) in (0..=count).step_by(block).enumerate() {
            before[place * relations..][..relations].copy_from_slice(&sums);
            for edge in first..(first + block).min(count) {
                // A number that is no relation is refused when the edge is sampled.
                let relation = types.relations[part].get(edge).map_or(relations, usize::from);
                if let Some(sum) = sums.get_mut(relation) {
                    *sum += 1;
                }
            }
        }
        Ok(Self { block, relations, before })
    }

    /// The number of in-edges of a relation before the one at `edge`.
    pub(crate) fn before(&self, types: &Types, part: usize, relation: u16, edge: usize) -> usize {
        let block = edge / self.block;
        let known = self.before[block * self.relations + usize::from(relation)] as usize;
        known + types.relations[part].count(block * self.block..edge, relation)
    }
}
