//! A sub-problem: some of the vertices, with new numbers, the records among them, and the parts they are to
//! get.

use std::ops::Range;

use super::entries::Entries;
use crate::base::{Result, Run};
use crate::edges::temporary::{TempRecords, check_ids};
use crate::edges::{EdgeStream, Record};
use crate::exec::in_order;

/// A set of vertices to be bisected.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    /// The first of its parts. All its vertices bear this number for the time being.
    pub first: u32,
    /// Number of its parts.
    pub parts: u32,
    /// Number of its vertices.
    pub n: u64,
    /// Where its records lie.
    pub records: Range<u64>,
}

impl Problem {
    /// Number of its records.
    pub(crate) fn len(&self) -> u64 {
        self.records.end - self.records.start
    }

    /// Number of parts of each side.
    pub(crate) fn shares(&self) -> [u32; 2] {
        [self.parts.div_ceil(2), self.parts / 2]
    }

    /// Its chunks of `size` records.
    pub(crate) fn chunks(&self, size: u64) -> impl Iterator<Item = Range<u64>> {
        let end = self.records.end;
        self.records
            .clone()
            .step_by(size as usize)
            .map(move |start| start..end.min(start.saturating_add(size)))
    }

    /// Hands the records `range` to `each`, block by block.
    pub(crate) fn read(
        &self,
        edges: &dyn EdgeStream,
        range: Range<u64>,
        run: &Run,
        mut each: impl FnMut(&[Record]) -> Result<()>,
    ) -> Result<()> {
        in_order(edges, range, run, |_, records| {
            // The stream knows the ids of all vertices only, a sub-problem has fewer.
            if self.n < edges.num_vertices() {
                check_ids(records, self.n, run.tmp_dir())?;
            }
            each(records)
        })
    }

    /// The entries of the records `range`, by vertex.
    pub(crate) fn entries(&self, edges: &dyn EdgeStream, range: Range<u64>, run: &Run) -> Result<Entries> {
        let mut entries = Entries::with_capacity(range.end - range.start)?;
        self.read(edges, range, run, |records| {
            entries.extend(records);
            Ok(())
        })?;
        entries.group(run)?;
        Ok(entries)
    }

    /// The two sub-problems of the sides, whose records go to `target`. `new_id` is scratch space for a
    /// number per vertex.
    pub(crate) fn split(
        &self,
        side_of: impl Fn(u32) -> usize,
        new_id: &mut [u32],
        edges: &dyn EdgeStream,
        target: &TempRecords,
        run: &Run,
    ) -> Result<[Problem; 2]> {
        let mut sizes = [0; 2];
        run.each(self.n as usize, |v| {
            let size = &mut sizes[side_of(v)];
            new_id[v as usize] = *size;
            *size += 1;
        })?;
        let shares = self.shares();
        let side = |&[u, v]: &Record| {
            let side = side_of(u);
            (u != v && side == side_of(v) && shares[side] > 1).then_some(side)
        };
        let mut inside = [0; 2];
        if shares[0] > 1 {
            self.read(edges, self.records.clone(), run, |records| {
                records.iter().filter_map(side).for_each(|side| inside[side] += 1);
                Ok(())
            })?;
            let mut ends = [self.records.start, self.records.start + inside[0]];
            let mut sides = [Vec::new(), Vec::new()];
            self.read(edges, self.records.clone(), run, |records| {
                for record in records {
                    if let Some(side) = side(record) {
                        sides[side].push(record.map(|v| new_id[v as usize]));
                    }
                }
                for (records, end) in sides.iter_mut().zip(&mut ends) {
                    target.write(*end, records)?;
                    *end += records.len() as u64;
                    records.clear();
                }
                Ok(())
            })?;
        }
        let middle = self.records.start + inside[0];
        Ok([0, 1].map(|side| Problem {
            first: self.first + side as u32 * shares[0],
            parts: shares[side],
            n: u64::from(sizes[side]),
            records: [self.records.start..middle, middle..middle + inside[1]][side].clone(),
        }))
    }
}
