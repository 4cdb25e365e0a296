//! The adjacency of a chunk: both directions of its records, sorted.

use crate::base::{Result, Run, reserved};
use crate::edges::Record;
use crate::exec::scan;

/// Ranges of vertices that entries are sorted into before they are sorted within each.
const RANGES: usize = 1024;
/// Entries of a range that is copied to be ordered. A larger one is sorted in place.
const MOST_COPIED: usize = 1 << 16;
/// Entries between two polls of the cancel flag.
const STEP: usize = 1 << 14;

/// For each record two entries, a vertex and its neighbour, by vertex. Loops are left out.
pub(crate) struct Entries(Vec<u64>);

impl Entries {
    /// Reserves memory for the entries of `records` records.
    pub(crate) fn with_capacity(records: u64) -> Result<Self> {
        Ok(Self(reserved(2 * records as usize, "grem: chunk")?))
    }

    /// Adds `records`.
    pub(crate) fn extend(&mut self, records: &[Record]) {
        for [u, v] in records.iter().map(|record| record.map(u64::from)).filter(|[u, v]| u != v) {
            self.0.extend([u << 32 | v, v << 32 | u]);
        }
    }

    /// Sorts them in place, by all threads.
    pub(crate) fn sort(&mut self, run: &Run) -> Result<()> {
        self.each_range(run, |_, range| range.sort_unstable())
    }

    /// Sorts them by vertex alone, which takes a fraction of the time.
    pub(crate) fn group(&mut self, run: &Run) -> Result<()> {
        self.each_range(run, |shift, range| {
            let vertices = 1 << shift.saturating_sub(32);
            if range.len() < vertices || range.len() > MOST_COPIED {
                return range.sort_unstable();
            }
            let place_of = |entry: u64| (entry >> 32) as usize & (vertices - 1);
            let mut next = vec![0_u32; vertices + 1];
            range.iter().for_each(|&entry| next[place_of(entry) + 1] += 1);
            (1..=vertices).for_each(|place| next[place] += next[place - 1]);
            let copy = range.to_vec();
            for entry in copy {
                let place = &mut next[place_of(entry)];
                range[*place as usize] = entry;
                *place += 1;
            }
        })
    }

    /// Brings every entry into the range of its vertex, and has each range, of `2^shift` values, put in
    /// order.
    fn each_range(&mut self, run: &Run, order: impl Fn(u32, &mut [u64]) + Sync) -> Result<()> {
        let mut most = 0;
        for block in self.0.chunks(STEP) {
            most = block.iter().fold(most, |most, &entry| entry.max(most));
            run.check()?;
        }
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(RANGES.trailing_zeros());
        let ranges = self.scatter(shift, run)?;
        let work = |(): &mut (), range| {
            order(shift, range);
            Ok(())
        };
        scan(run, usize::MAX, ranges.into_iter(), || Ok(()), work).map(drop)
    }

    /// Brings every entry into its range of `2^shift` values, by exchanges, and returns the ranges in order.
    fn scatter(&mut self, shift: u32, run: &Run) -> Result<Vec<&mut [u64]>> {
        let range_of = |entry: u64| (entry >> shift) as usize;
        let mut sizes = [0; RANGES];
        for block in self.0.chunks(STEP) {
            block.iter().for_each(|&entry| sizes[range_of(entry)] += 1);
            run.check()?;
        }
        let (mut next, mut ends, mut end) = ([0; RANGES], [0; RANGES], 0);
        for range in 0..RANGES {
            next[range] = end;
            end += sizes[range];
            ends[range] = end;
        }
        let mut exchanges = 0_usize;
        for range in 0..RANGES {
            while next[range] < ends[range] {
                let place = next[range];
                let home = range_of(self.0[place]);
                self.0.swap(place, next[home]);
                next[home] += 1;
                exchanges += 1;
                if exchanges.is_multiple_of(STEP) {
                    run.check()?;
                }
            }
        }
        let mut rest = &mut self.0[..];
        Ok(sizes.map(|size| rest.split_off_mut(..size).unwrap_or_default()).into())
    }

    /// The entries of the clusters that the vertices belong to, without those inside one.
    pub(crate) fn contracted(mut self, cluster_of: impl Fn(u32) -> u32, run: &Run) -> Result<Self> {
        let mut kept = 0;
        for start in (0..self.0.len()).step_by(STEP) {
            for place in start..self.0.len().min(start + STEP) {
                let entry = self.0[place];
                let (u, v) = (cluster_of((entry >> 32) as u32), cluster_of(entry as u32));
                self.0[kept] = u64::from(u) << 32 | u64::from(v);
                kept += usize::from(u != v);
            }
            run.check()?;
        }
        self.0.truncate(kept);
        self.sort(run)?;
        Ok(self)
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The vertices, ascending, each with its entries.
    pub(crate) fn vertices(&self) -> impl Iterator<Item = (u32, impl ExactSizeIterator<Item = u32> + Clone)> {
        self.0.chunk_by(|a, b| a >> 32 == b >> 32).map(|entries| {
            let vertex = (entries[0] >> 32) as u32;
            (vertex, entries.iter().map(|&entry| entry as u32))
        })
    }
}
