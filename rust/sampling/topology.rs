//! The in-edges of all vertices, as the parts of a directory hold them.
//!
//! A vertex is a *row*: parts in order, and the inner vertices of each. Tables are indexed by rows, which are u32 and
//! without gaps. What the parts hold names a source by its place among the local vertices of the part. If it is inner,
//! that is its row. If it is in the halo, its owner and its row there are looked up.

use std::path::PathBuf;

use super::array::Column;
use super::part::{HaloRows, Part, damaged};
use crate::base::{Buffer, Error, Result, Run};
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
        let parts = folders.iter().map(|folder| Part::open(folder)).collect::<Result<Vec<_>>>()?;
        let mut topology = Self::of(parts)?;
        topology.search_halo_rows(run)?;
        Ok(topology)
    }

    /// The topology of parts. Rows of halos are not searched.
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

    /// The part of a row below [`Self::num_vertices`].
    #[inline(always)]
    pub fn part_of(&self, row: u32) -> usize {
        self.finder.part_of(&self.starts, row)
    }

    /// The row of the halo vertex with that local id in `part`.
    #[inline(always)]
    pub fn row_of_halo(&self, part: &Part, local: u32) -> Result<u32> {
        let halo = local.wrapping_sub(part.num_inner) as usize;
        let (Some(owner), Some(row)) = (part.halo_parts.get(halo), part.halo_rows.get(halo)) else {
            return Err(part.no_vertex());
        };
        match self.parts.get(owner as usize) {
            Some(owner) if (row as u32) < owner.num_inner => Ok(owner.start + row as u32),
            _ => Err(damaged(part.halo_parts.path(), "a vertex of the halo that its owner does not hold")),
        }
    }

    /// The row of a vertex of `part`.
    #[inline(always)]
    pub fn row_of(&self, part: &Part, local: u32) -> Result<u32> {
        if local < part.num_inner { Ok(part.start + local) } else { self.row_of_halo(part, local) }
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

    /// Finds the rows of halo vertices where no file says them: the ids of a part ascend, and so do those of its halo.
    fn search_halo_rows(&mut self, run: &Run) -> Result<()> {
        let parts = &self.parts;
        let found = exec::map(
            run,
            usize::MAX,
            parts.len(),
            || Ok(()),
            |(), part| match &parts[part].halo_rows {
                HaloRows::Mapped(_) => Ok(None),
                HaloRows::Searched(_) => searched(parts, &parts[part], run).map(Some),
            },
        )?;
        for (part, rows) in self.parts.iter_mut().zip(found) {
            if let Some(rows) = rows {
                part.halo_rows = HaloRows::Searched(rows);
            }
        }
        Ok(())
    }
}

/// Halo vertices between two looks at the cancel flag.
const STRIDE: usize = 1 << 14;

fn searched(parts: &[Part], part: &Part, run: &Run) -> Result<Buffer<i32>> {
    let mut rows = Buffer::zeroed(part.halo_parts.len(), "rows of the halo")?;
    let mut next = vec![0; parts.len()];
    let mut last = i64::MIN;
    for halo in 0..rows.len() {
        let id = part.id(part.num_inner + halo as u32)?;
        if id < last {
            // The second hop begins.
            next.fill(0);
        }
        last = id;
        let owner = part.halo_parts.get(halo).unwrap_or(-1) as usize;
        let (Some(next), Some(holder)) = (next.get_mut(owner), parts.get(owner)) else {
            return Err(damaged(part.halo_parts.path(), "a part that is none"));
        };
        let num_inner = holder.num_inner as usize;
        *next = place_of(&holder.vertices, *next, num_inner, id);
        if *next >= num_inner || holder.vertices.get(*next) != Some(id) {
            return Err(damaged(part.halo_parts.path(), "a vertex of the halo that its owner does not hold"));
        }
        rows[halo] = *next as i32;
        if halo.is_multiple_of(STRIDE) {
            run.check()?;
        }
    }
    Ok(rows)
}

/// The first place from `start` on, below `end`, whose id is not less than `id`. The ids ascend. The search takes longer
/// and longer steps, so that a few of them suffice for what is near.
fn place_of(ids: &Column<i64>, start: usize, end: usize, id: i64) -> usize {
    let less = |place: usize| place < end && ids.get(place).is_some_and(|at| at < id);
    let (mut low, mut step) = (start, 1);
    while less(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = (low + step - 1).min(end);
    while low < high {
        let middle = low.midpoint(high);
        if less(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Finds the part of a row with one look at a small table, and a few steps.
#[derive(Debug)]
struct Finder {
    /// Rows that share an entry, as a power of two.
    shift: u32,
    /// Part of the first row of each such range.
    first: Vec<u32>,
}

impl Finder {
    fn new(starts: &[u32]) -> Self {
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

    #[inline(always)]
    fn part_of(&self, starts: &[u32], row: u32) -> usize {
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
