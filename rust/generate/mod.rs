//! Graphs to try partitioners on, streamed to disk.
//!
//! Record `r` is a function of (seed, r) alone, so that any number of threads writes the same bytes.

mod rmat;

use std::ops::Range;

use rayon::prelude::*;

use crate::edges::{BLOCK, Record};
use crate::error::Result;
use crate::run::Run;
pub use rmat::Rmat;

/// A random graph whose records can be made in any order.
pub trait Generator: Sync {
    /// Number of vertices.
    fn num_vertices(&self) -> u64;

    /// Number of records.
    fn num_edges(&self) -> u64;

    /// Record number `index`.
    fn record(&self, index: u64) -> Record;
}

/// The records `range`, made by all threads of `run`.
pub fn records(generator: &dyn Generator, range: Range<u64>, run: &Run) -> Result<Vec<Record>> {
    let mut records = crate::buffer::reserved((range.end - range.start) as usize, "generated records")?;
    records.resize((range.end - range.start) as usize, [0; 2]);
    run.install(|| {
        records.par_chunks_mut(BLOCK as usize / 8).enumerate().try_for_each(|(chunk, records)| {
            let first = range.start + chunk as u64 * (BLOCK / 8);
            for (record, index) in records.iter_mut().zip(first..) {
                *record = generator.record(index);
            }
            run.advance(records.len() as u64)
        })
    })?;
    Ok(records)
}
