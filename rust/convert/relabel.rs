//! Dense ids for ids of any size.
//!
//! Ids 0, 1, ... are given in order of first appearance. Small ids use a table, the others a hash map cut
//! into shards. So growing takes milliseconds (a run can be cancelled) and needs little memory beside the
//! map.
//!
//! **Memory.** At most 256 MB of table. 20 to 39 bytes for each id beyond it.

use rustc_hash::FxHashMap;

use crate::base::random::GOLDEN;
use crate::base::{Buffer, Error, Result, Run};
use crate::edges::{MAX_VERTICES, Record, WideRecord};

/// Ids below this find theirs in a table, if a sixteenth of the budget holds it.
const SMALL: u64 = 1 << 26;

/// Number of shards, a power of two.
const SHARDS: u32 = 256;

/// Original to dense ids.
pub(super) struct Relabel<'a> {
    run: &'a Run,
    /// 1 + dense id of each small id. 0 for none yet.
    small: Buffer<u32>,
    shards: Vec<FxHashMap<u64, u32>>,
    n: u64,
    bytes: u64,
}

impl<'a> Relabel<'a> {
    /// An empty table. `reserved` bytes of the budget are left for other data.
    pub(super) fn new(run: &'a Run, reserved: u64) -> Result<Self> {
        let small = SMALL.min(run.budget() / 16 / size_of::<u32>() as u64);
        Ok(Self {
            run,
            small: Buffer::zeroed(small as usize, "convert: table of small ids")?,
            shards: (0..SHARDS).map(|_| FxHashMap::default()).collect(),
            n: 0,
            bytes: reserved + small * size_of::<u32>() as u64,
        })
    }

    /// Number of dense ids given.
    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// Appends the records with dense ids to `records`, and the originals of the new ones to `originals`.
    pub(super) fn records(
        &mut self,
        wide: &[WideRecord],
        records: &mut Vec<Record>,
        originals: &mut Vec<u64>,
    ) -> Result<()> {
        for &[u, v] in wide {
            records.push([self.id(u, originals)?, self.id(v, originals)?]);
        }
        Ok(())
    }

    #[inline]
    fn id(&mut self, original: u64, originals: &mut Vec<u64>) -> Result<u32> {
        if let Some(dense) = usize::try_from(original).ok().and_then(|small| self.small.get_mut(small)) {
            if *dense == 0 {
                *dense = next(&mut self.n)? + 1;
                originals.push(original);
            }
            return Ok(*dense - 1);
        }
        let shard = shard_of(original);
        if let Some(&dense) = self.shards[shard].get(&original) {
            return Ok(dense);
        }
        self.grow(shard)?;
        let dense = next(&mut self.n)?;
        self.shards[shard].insert(original, dense);
        originals.push(original);
        Ok(dense)
    }

    /// Doubles a full shard, if the budget allows the old and the new one.
    fn grow(&mut self, shard: usize) -> Result<()> {
        let shard = &mut self.shards[shard];
        if shard.len() < shard.capacity() {
            return Ok(());
        }
        let old = table_bytes(shard.capacity());
        let needed = self.bytes + table_bytes(2 * shard.capacity().max(4));
        let what = || format!("convert: relabelling more than {} ids", self.n);
        self.run.require(needed, what())?;
        let refused = |_| Error::MemoryBudget { what: what(), needed, budget: self.run.budget() };
        shard.try_reserve(1).map_err(refused)?;
        self.bytes = self.bytes - old + table_bytes(shard.capacity());
        Ok(())
    }
}

/// The next dense id.
fn next(n: &mut u64) -> Result<u32> {
    if *n >= MAX_VERTICES {
        return Err(Error::Capacity(format!(
            "more than {MAX_VERTICES} different ids. Vertices are numbered in 32 bits"
        )));
    }
    *n += 1;
    Ok((*n - 1) as u32)
}

/// Bits of a product that the maps' own hash does not use in the same way.
fn shard_of(id: u64) -> usize {
    (id.wrapping_mul(GOLDEN) >> (u64::BITS - SHARDS.trailing_zeros())) as usize
}

/// Bytes of a hash map for `capacity` ids: buckets of 16 bytes, seven of eight used, and a byte of control
/// each.
fn table_bytes(capacity: usize) -> u64 {
    if capacity == 0 { 0 } else { (capacity as u64 * 8 / 7).next_power_of_two() * 17 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relabel(budget: u64, wide: &[WideRecord]) -> Result<(Vec<Record>, Vec<u64>)> {
        let run = Run::new(Some(1), Some(budget))?;
        let mut relabel = Relabel::new(&run, 0)?;
        let (mut records, mut originals) = (Vec::new(), Vec::new());
        relabel.records(wide, &mut records, &mut originals)?;
        assert_eq!(relabel.n(), originals.len() as u64);
        Ok((records, originals))
    }

    #[test]
    fn first_appearance_counts_whatever_the_table() {
        let wide = [[u64::MAX, 7], [7, 1 << 40], [9, 0], [0, u64::MAX]];
        for budget in [16 * 4 * 8 + 10_000, 1 << 30] {
            let (records, originals) = relabel(budget, &wide).unwrap();
            assert_eq!(records, [[0, 1], [1, 2], [3, 4], [4, 0]]);
            assert_eq!(originals, [u64::MAX, 7, 1 << 40, 9, 0]);
        }
    }

    #[test]
    fn growing_is_checked_against_the_budget() {
        let wide: Vec<WideRecord> = (0..100_000).map(|id| [id << 32, u64::MAX - id]).collect();
        assert!(matches!(relabel(1 << 20, &wide), Err(Error::MemoryBudget { .. })));
        let (_, originals) = relabel(1 << 24, &wide).unwrap();
        assert_eq!(originals.len(), 200_000);
    }

    #[test]
    fn the_last_id_is_the_last() {
        let mut n = MAX_VERTICES - 1;
        assert_eq!(next(&mut n).unwrap(), u32::MAX - 1);
        assert!(matches!(next(&mut n), Err(Error::Capacity(_))));
    }
}
