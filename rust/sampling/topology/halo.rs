//! The rows of the vertices in the halo of a part.
//!
//! A sampler looks up many of its sources here, at random places. So the owner and the row in it, which are
//! two files, become one array in memory when the topology is opened. There each vertex is checked, once.
//! Without `halo_rows.npy`, which older schemas do not have, the rows are searched: the ids of a part ascend,
//! and so do those of its halo.

use std::path::Path;

use super::arrays::{Column, partition_point};
use super::part::{Part, damaged};
use crate::base::{Buffer, Result, Run};

/// Halo vertices between two polls of the cancel flag.
const STRIDE: usize = 1 << 14;

/// The halo of a part, as in its files.
#[derive(Debug)]
pub(crate) struct Halo {
    /// Owner of each vertex.
    owners: Column<i32>,
    /// Their rows in their owner.
    rows: Option<Column<i32>>,
}

impl Halo {
    /// Maps the halo of the part in `folder`.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let rows = folder.join("halo_rows.npy");
        let rows = rows.exists().then(|| Column::open(&rows)).transpose()?;
        Ok(Self { owners: Column::open(&folder.join("halo_parts.npy"))?, rows })
    }

    /// Number of vertices. None if the files contradict each other.
    pub(crate) fn len(&self) -> Option<usize> {
        let len = self.owners.len();
        self.rows.as_ref().is_none_or(|rows| rows.len() == len).then_some(len)
    }

    /// The rows of the vertices in the halo of `part`, one of `parts`. An item that nobody reads is before
    /// them.
    pub(crate) fn rows(&self, part: &Part, parts: &[Part], run: &Run) -> Result<Buffer<u32>> {
        let mut rows = Buffer::zeroed(self.owners.len() + 1, "rows of the halo")?;
        let mut search = Search { part, next: vec![0; parts.len()], last: i64::MIN };
        for (halo, row) in rows[1..].iter_mut().enumerate() {
            let index = self.owners.get(halo).unwrap_or(-1) as usize;
            let row_there = match (&self.rows, parts.get(index)) {
                (_, None) => None,
                (Some(rows), _) => rows.get(halo).map(|row| row as u32),
                (None, Some(owner)) => search.row_in(index, owner, halo as u32)?,
            };
            let Some((owner, row_there)) =
                parts.get(index).zip(row_there).filter(|(owner, row)| *row < owner.num_inner)
            else {
                let what = "a vertex of the halo that its owner does not hold";
                return Err(damaged(self.owners.path(), what));
            };
            *row = owner.start + row_there;
            if halo.is_multiple_of(STRIDE) {
                run.check()?;
            }
        }
        Ok(rows)
    }
}

/// Finds the vertices of a halo in their owners, one after the other.
struct Search<'a> {
    part: &'a Part,
    /// Where the next one may be, of each owner.
    next: Vec<usize>,
    /// The last id that was found.
    last: i64,
}

impl Search<'_> {
    /// The row in its owner, number `index`, if the owner has the vertex.
    fn row_in(&mut self, index: usize, owner: &Part, halo: u32) -> Result<Option<u32>> {
        let id = self.part.id(self.part.num_inner + halo)?;
        if id < self.last {
            // The second hop begins.
            self.next.fill(0);
        }
        self.last = id;
        let next = &mut self.next[index];
        *next = place_of(&owner.vertices, *next, owner.num_inner as usize, id);
        Ok((owner.vertices.get(*next) == Some(id)).then_some(*next as u32))
    }
}

/// The first place from `start` on, below `end`, whose id is not less than `id`. The ids ascend.
pub(crate) fn place_of(ids: &Column<i64>, start: usize, end: usize, id: i64) -> usize {
    partition_point(start..end, |place| ids.get(place).is_some_and(|at| at < id))
}
