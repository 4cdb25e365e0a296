//! The adjacency of a chunk: both directions of its records, sorted.

use rayon::prelude::*;

use crate::buffer::reserved;
use crate::edges::Record;
use crate::error::Result;
use crate::run::Run;

/// For each record two entries, a vertex and its neighbour, by vertex; loops are left out.
pub struct Entries(Vec<u64>);

impl Entries {
    /// Room for the entries of so many records.
    pub fn with_room(records: u64) -> Result<Self> {
        Ok(Self(reserved(2 * records as usize, "grem: chunk")?))
    }

    /// Adds `records`.
    pub fn extend(&mut self, records: &[Record]) {
        for [u, v] in records.iter().map(|record| record.map(u64::from)).filter(|[u, v]| u != v) {
            self.0.extend([u << 32 | v, v << 32 | u]);
        }
    }

    /// Sorts them, by all threads.
    pub fn sort(&mut self, run: &Run) -> Result<()> {
        run.install(|| self.0.par_sort_unstable());
        run.advance(0)
    }

    /// The entries of the clusters that the vertices belong to, without those inside one.
    pub fn contracted(mut self, cluster_of: impl Fn(u32) -> u32, run: &Run) -> Result<Self> {
        for entry in &mut self.0 {
            let (u, v) = (cluster_of((*entry >> 32) as u32), cluster_of(*entry as u32));
            *entry = u64::from(u) << 32 | u64::from(v);
        }
        self.0.retain(|&entry| entry >> 32 != entry & u64::from(u32::MAX));
        self.sort(run)?;
        Ok(self)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The vertices, ascending, each with its entries.
    pub fn vertices(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = u32> + Clone)> {
        self.0.chunk_by(|a, b| a >> 32 == b >> 32).map(|entries| {
            let vertex = (entries[0] >> 32) as u32;
            (vertex, entries.iter().map(|&entry| entry as u32))
        })
    }
}
