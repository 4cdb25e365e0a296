//! Graphs to try partitioners on, streamed to disk.
//!
//! Record `r` is a function of (seed, r) alone, so that any number of threads writes the same bytes. Memory
//! is 512 KiB per thread for any size of the graph. A generator has no state that grows with it.

mod barabasi_albert;
mod feature_rows;
mod grid;
mod planted;
mod rmat;

use std::ops::Range;
use std::path::Path;

use crate::base::{AtomicFile, Error, Result, Run, zeros};
use crate::edges::{BLOCK, MAX_VERTICES, Record};
use crate::exec::{blocks, map, scan};
use crate::graph::{Hasher, checksum};
pub use barabasi_albert::BarabasiAlbert;
pub use feature_rows::FeatureDtype;
pub use grid::Grid;
pub use planted::Planted;
pub use rmat::Rmat;

/// Records made between two polls of the cancel flag.
const STEP: usize = BLOCK as usize / 8;

/// A graph whose records can be made in any order.
pub trait Generator: Sync {
    /// Numbers of vertices and of records.
    fn size(&self) -> (u64, u64);

    /// Number of vertices.
    fn num_vertices(&self) -> u64 {
        self.size().0
    }

    /// Number of records.
    fn num_edges(&self) -> u64 {
        self.size().1
    }

    /// Record number `index`.
    fn record(&self, index: u64) -> Record;

    /// Makes the records from number `first` on. (One call for many records, so that the loop is compiled for
    /// the generator.)
    fn fill(&self, first: u64, records: &mut [Record]) {
        for (record, index) in records.iter_mut().zip(first..) {
            *record = self.record(index);
        }
    }
}

/// The records `range`, made by all threads of `run`.
pub fn records(generator: &dyn Generator, range: Range<u64>, run: &Run) -> Result<Vec<Record>> {
    let mut records = zeros((range.end - range.start) as usize, "generated records")?;
    let chunks = records.chunks_mut(STEP).zip((range.start..).step_by(STEP));
    let fill = |(): &mut (), (records, first): (&mut [Record], u64)| {
        generator.fill(first, records);
        run.advance(records.len() as u64)
    };
    scan(run, usize::MAX, chunks, || Ok(()), fill)?;
    Ok(records)
}

/// Writes all records to `target`, as little-endian u32 pairs. Returns their [`checksum`].
pub fn write(generator: &dyn Generator, target: &Path, run: &Run) -> Result<String> {
    let m = generator.num_edges();
    if m.checked_mul(size_of::<Record>() as u64).is_none_or(|bytes| bytes > i64::MAX as u64) {
        return Err(Error::parameter("m", format!("{m} records exceed the size of a file")));
    }
    let file = AtomicFile::create(target)?;
    run.begin("generate", m);
    let units = m.div_ceil(checksum::UNIT) as usize;
    let hashers = map(
        run,
        usize::MAX,
        units,
        || Ok(Vec::new()),
        |buf, unit| {
            let start = unit as u64 * checksum::UNIT;
            write_unit(generator, start..m.min(start + checksum::UNIT), buf, &file, run)
        },
    )?;
    let checksum = checksum::combine(hashers);
    file.commit()?;
    Ok(checksum)
}

/// Makes, hashes and writes the records of one checksum unit.
fn write_unit(
    generator: &dyn Generator,
    unit: Range<u64>,
    buf: &mut Vec<Record>,
    file: &AtomicFile,
    run: &Run,
) -> Result<Hasher> {
    let mut hasher = Hasher::default();
    for Range { start, end } in blocks(unit) {
        buf.resize((end - start) as usize, [0; 2]);
        for (records, first) in buf.chunks_mut(STEP).zip((start..).step_by(STEP)) {
            generator.fill(first, records);
            run.advance(records.len() as u64)?;
        }
        hasher.update(start, buf, generator.num_edges());
        file.write_at(bytemuck::cast_slice(buf), start * size_of::<Record>() as u64)?;
    }
    Ok(hasher)
}

/// Refuses a number of vertices that ids cannot count, or that the records cannot name.
fn below_max_vertices(n: u64, m: u64) -> Result<()> {
    if n == 0 && m > 0 {
        return Err(Error::parameter("n", "edges need at least one vertex"));
    }
    if n > MAX_VERTICES {
        return Err(Error::parameter("n", format!("{n} vertices. Use at most {MAX_VERTICES}")));
    }
    Ok(())
}
