//! Where converted records go.

use std::path::Path;

use super::relabel::Relabel;
use super::text;
use crate::base::{AtomicFile, Result, Run, npy};
use crate::edges::decode::{WideRecord, largest};
use crate::edges::{BLOCK, Record};
use crate::graph::checksum;
use crate::graph::checksum::{Hasher, UNIT};

/// A consumer of records, in order.
pub(super) type Forward<'a> = dyn FnMut(&[Record]) -> Result<()> + Send + 'a;

/// Takes the records of the input in order: relabels them, finds n, drops loops, passes the others on.
pub(super) struct Intake<'a> {
    run: &'a Run,
    ids: Option<Ids<'a>>,
    weights: Option<WeightFile>,
    drop_loops: bool,
    forward: &'a mut Forward<'a>,
    narrow: Vec<Record>,
    /// Largest id + 1, dropped loops included.
    pub(super) n: u64,
    pub(super) dropped_loops: u64,
    pub(super) notes: Vec<String>,
}

/// The file of the weights: f64, one for each record that is kept.
struct WeightFile {
    file: AtomicFile,
    kept: Vec<f64>,
}

impl WeightFile {
    fn push(&mut self, weights: impl Iterator<Item = f64>) -> Result<()> {
        self.kept.clear();
        self.kept.extend(weights);
        self.file.append(bytemuck::cast_slice(&self.kept))
    }
}

/// The relabelling, and the file of the original ids.
struct Ids<'a> {
    relabel: Relabel<'a>,
    file: AtomicFile,
    originals: Vec<u64>,
}

impl<'a> Intake<'a> {
    /// With `ids`, the records are relabelled and the original ids written to the file of that name. With
    /// `weights`, those of the records are written to that file.
    pub(super) fn new(
        ids: Option<&Path>,
        weights: Option<&Path>,
        drop_loops: bool,
        run: &'a Run,
        forward: &'a mut Forward<'a>,
    ) -> Result<Self> {
        let relabelled = |path| {
            let relabel = Relabel::new(run, text::memory_for(run))?;
            Ok(Ids { relabel, file: AtomicFile::create(path)?, originals: vec![] })
        };
        let weighed = |path| Ok(WeightFile { file: AtomicFile::create(path)?, kept: vec![] });
        let (ids, weights) = (ids.map(relabelled).transpose()?, weights.map(weighed).transpose()?);
        let (narrow, notes) = (vec![], vec![]);
        Ok(Self { run, ids, weights, drop_loops, forward, narrow, n: 0, dropped_loops: 0, notes })
    }

    /// Whether weights of the records are wanted.
    pub(super) fn weighs(&self) -> bool {
        self.weights.is_some()
    }

    /// Adds the weights of records that come next, in order. If loops are dropped, their weights are too.
    pub(super) fn weigh<T: PartialEq>(&mut self, records: &[[T; 2]], weights: &[f64]) -> Result<()> {
        let drop_loops = self.drop_loops;
        let Some(file) = &mut self.weights else { return Ok(()) };
        let kept = records.iter().zip(weights).filter(|([u, v], _)| !drop_loops || u != v);
        file.push(kept.map(|(_, &weight)| weight))
    }

    /// Whether records of any width are taken.
    pub(super) fn relabels(&self) -> bool {
        self.ids.is_some()
    }

    /// Adds records whose ids are relabelled here, or fit.
    pub(super) fn push_wide(&mut self, wide: &[WideRecord]) -> Result<()> {
        let mut narrow = std::mem::take(&mut self.narrow);
        for wide in wide.chunks(BLOCK as usize / 8) {
            narrow.clear();
            match &mut self.ids {
                Some(ids) => ids.relabel(wide, &mut narrow)?,
                None => narrow.extend(wide.iter().map(|record| record.map(|id| id as u32))),
            }
            self.push(&narrow)?;
            self.run.check()?;
        }
        self.narrow = narrow;
        Ok(())
    }

    pub(super) fn push(&mut self, records: &[Record]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.n = self.n.max(u64::from(largest(records)) + 1);
        if !self.drop_loops {
            return (self.forward)(records);
        }
        let proper: Vec<Record> = records.iter().copied().filter(|[u, v]| u != v).collect();
        self.dropped_loops += (records.len() - proper.len()) as u64;
        (self.forward)(&proper)
    }

    /// Ends the intake: n, the map of the ids and the weights to be committed, and notes.
    pub(super) fn finish(mut self) -> Result<(u64, Vec<AtomicFile>, Vec<String>)> {
        if let Some(ids) = &self.ids {
            ids.file.write_at(&ids_header(ids.relabel.n()), 0)?;
            self.run.check()?;
        }
        if self.dropped_loops > 0 {
            self.notes.push(format!("{} loops are dropped", self.dropped_loops));
        }
        let files = self.ids.map(|ids| ids.file).into_iter().chain(self.weights.map(|weights| weights.file));
        Ok((self.n, files.collect(), self.notes))
    }
}

impl Ids<'_> {
    fn relabel(&mut self, wide: &[WideRecord], narrow: &mut Vec<Record>) -> Result<()> {
        let first = self.relabel.n();
        self.originals.clear();
        self.relabel.records(wide, narrow, &mut self.originals)?;
        let offset = ids_header(first).len() + first as usize * size_of::<u64>();
        self.file.write_at(bytemuck::cast_slice(&self.originals), offset as u64)
    }
}

/// The header for `n` ids. It has the same length for every `n`.
fn ids_header(n: u64) -> Vec<u8> {
    npy::header("<u8", &[n])
}

/// Ids that [`write_ids`] writes at a time.
const IDS: usize = 1 << 14;

/// Writes the map of ids that are known already, to be committed.
pub(super) fn write_ids(ids: &[u32], target: &Path, run: &Run) -> Result<AtomicFile> {
    let mut file = AtomicFile::create(target)?;
    file.append(&ids_header(ids.len() as u64))?;
    for chunk in ids.chunks(IDS) {
        let wide: Vec<u64> = chunk.iter().map(|&id| id.into()).collect();
        file.append(bytemuck::cast_slice(&wide))?;
        run.check()?;
    }
    Ok(file)
}

/// The output: writes, counts, hashes.
pub(super) struct RawWriter {
    file: AtomicFile,
    hasher: Hasher,
    pub(super) m: u64,
    pub(super) loops: u64,
}

impl RawWriter {
    pub(super) fn create(target: &Path) -> Result<Self> {
        Ok(Self { file: AtomicFile::create(target)?, hasher: Hasher::default(), m: 0, loops: 0 })
    }

    pub(super) fn push(&mut self, records: &[Record]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.file.write_at(bytemuck::cast_slice(records), self.m * size_of::<Record>() as u64)?;
        self.loops += records.iter().filter(|[u, v]| u == v).count() as u64;
        let left = (UNIT - self.m % UNIT) as usize;
        let (head, tail) = records.split_at(left.min(records.len()));
        for part in [head, tail].into_iter().filter(|part| !part.is_empty()) {
            // The number of records is not known yet: `finish` closes the last unit.
            self.hasher.update(self.m, part, u64::MAX);
            self.m += part.len() as u64;
        }
        Ok(())
    }

    /// Gives the file its name. Returns the checksum.
    pub(super) fn finish(mut self) -> Result<String> {
        if !self.m.is_multiple_of(UNIT) {
            self.hasher.update(self.m, &[], self.m);
        }
        self.file.commit()?;
        Ok(checksum::combine([self.hasher]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_lengths_are_equally_long() {
        let mut lengths = (0..=10).map(|digits| ids_header(10_u64.pow(digits)).len());
        assert!(lengths.all(|length| length == ids_header(0).len()));
    }
}
