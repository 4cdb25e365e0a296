//! The in-edges of all vertices, as the parts of a directory hold them.
//!
//! A vertex is a *row*: parts in order, and the inner vertices of each. Tables are indexed by rows, which are u32 and
//! without gaps. What the parts hold names a source by its place among the local vertices of the part. If it is inner,
//! that is its row. If it is in the halo, the row is looked up (`halo`).

use std::path::PathBuf;

use super::halo::{Halo, place_of};
use super::part::Part;
use crate::base::{Error, Result, Run};
use crate::edges::MAX_VERTICES;
use crate::exec;

/// The parts of a directory, mapped.
#[derive(Debug)]
pub struct Topology {
    parts: Vec<Part>,
    /// First row of each part, and the number of rows.
    starts: Vec<u32>,
    finder: Finder,
}

impl Topology {
    /// Maps the parts in `folders`.
    pub fn open(folders: &[PathBuf], run: &Run) -> Result<Self> {
        let halos = folders.iter().map(|folder| Halo::open(folder)).collect::<Result<Vec<_>>>()?;
        let parts = folders.iter().zip(&halos).map(|(folder, halo)| Part::open(folder, halo.len()));
        let mut topology = Self::of(parts.collect::<Result<_>>()?)?;
        let parts = &topology.parts;
        let rows = |(): &mut (), part: usize| halos[part].rows(&parts[part], parts, run);
        let rows = exec::map(run, usize::MAX, parts.len(), || Ok(()), rows)?;
        topology.parts.iter_mut().zip(rows).for_each(|(part, rows)| part.halo_rows = rows);
        Ok(topology)
    }

    /// The topology of parts without halos.
    pub fn of(mut parts: Vec<Part>) -> Result<Self> {
        let mut starts = vec![0];
        let mut start = 0;
        for part in &mut parts {
            part.start = start as u32;
            start += u64::from(part.num_inner);
            if start > MAX_VERTICES {
                let what = format!("the parts have more than {MAX_VERTICES} vertices");
                return Err(Error::Capacity(what));
            }
            starts.push(start as u32);
        }
        let finder = Finder::new(&starts);
        Ok(Self { parts, starts, finder })
    }

    /// Number of vertices, which is that of rows.
    pub fn num_vertices(&self) -> u32 {
        self.starts[self.parts.len()]
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// First row of each part, and the number of rows.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Refuses rows of no vertex. `name` is that of the parameter.
    pub fn check_rows(&self, name: &'static str, rows: &[u32]) -> Result<()> {
        let n = self.num_vertices();
        match rows.iter().find(|&&row| row >= n) {
            Some(row) => Err(Error::parameter(name, format!("the row {row} is none of 0..{n}"))),
            None => Ok(()),
        }
    }

    /// Lets the system read the in-edges of some vertices ahead, where these are most of those between them.
    pub fn read_ahead(&self, rows: &[u32]) {
        for of_part in rows.chunk_by(|&one, &next| one < next && self.part_of(one) == self.part_of(next)) {
            let (first, last) = (of_part[0], of_part[of_part.len() - 1]);
            if (last - first) as usize <= 2 * of_part.len() {
                let part = &self.parts[self.part_of(first)];
                part.read_ahead(first - part.start, last - part.start);
            }
        }
    }

    /// The part of a row below [`Self::num_vertices`].
    #[inline(always)]
    pub fn part_of(&self, row: u32) -> usize {
        self.finder.part_of(&self.starts, row)
    }

    /// The rows of the vertices with these original ids. `check` is asked now and then and ends the work by an error.
    pub fn rows_of(&self, ids: &[i64], check: &dyn Fn() -> Result<()>) -> Result<Vec<u32>> {
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_unstable_by_key(|&place| ids[place as usize]);
        let mut rows = vec![crate::base::NONE; ids.len()];
        for part in &self.parts {
            let mut next = 0;
            for &place in &order {
                let id = ids[place as usize];
                next = place_of(&part.vertices, next, part.num_inner as usize, id);
                if next < part.num_inner as usize && part.vertices.get(next) == Some(id) {
                    rows[place as usize] = part.start + next as u32;
                }
            }
            check()?;
        }
        match rows.iter().position(|&row| row == crate::base::NONE) {
            Some(place) => Err(Error::parameter("ids", format!("no part holds the vertex {}", ids[place]))),
            None => Ok(rows),
        }
    }
}

/// Finds the part of a row with one look at a small table, and a few steps.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Rows of an entry, as a power of two.
    shift: u32,
    /// Part of the first row of each such range.
    first: Vec<u32>,
}

impl Finder {
    /// A finder of the parts that begin at `starts`, behind which is the number of rows.
    pub(crate) fn new(starts: &[u32]) -> Self {
        let (n, parts) = (starts[starts.len() - 1], starts.len() - 1);
        // At least sixteen ranges for each part, so that most have rows of one part only.
        let shift = (n / (16 * parts.max(1) as u32).max(1024)).checked_ilog2().unwrap_or(0);
        let mut part = 0;
        let first = (0..=n >> shift).map(|range| {
            while part + 1 < parts && starts[part + 1] <= range << shift {
                part += 1;
            }
            part as u32
        });
        Self { shift, first: first.collect() }
    }

    /// The part of a row, given what the finder was made of.
    #[inline(always)]
    pub(crate) fn part_of(&self, starts: &[u32], row: u32) -> usize {
        let mut part = self.first[(row >> self.shift) as usize] as usize;
        while starts[part + 1] <= row {
            part += 1;
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_part() {
        for sizes in [&[5_u32][..], &[0, 3, 0, 0, 1, 0], &[1, 100_000, 2, 0, 70_001, 1], &[1; 3000], &[]] {
            let mut starts = vec![0];
            starts.extend(sizes.iter().scan(0, |sum, size| {
                *sum += size;
                Some(*sum)
            }));
            let finder = Finder::new(&starts);
            for (part, size) in sizes.iter().enumerate() {
                (starts[part]..starts[part] + size)
                    .for_each(|row| assert_eq!(finder.part_of(&starts, row), part));
            }
        }
    }
}
