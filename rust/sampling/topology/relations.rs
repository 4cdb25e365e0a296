//! The relation of each in-edge of a part.

use std::ops::Range;
use std::path::Path;

use super::arrays::{Column, partition_point};
use super::part::damaged;
use crate::base::{Error, Result, shown};

/// In-edges that are compared one by one before the end of a run is searched.
const NEAR: usize = 16;

/// One number per in-edge, which ascend among those of a vertex.
#[derive(Debug)]
pub(crate) enum Relations {
    /// Up to 256 of them.
    Narrow(Column<u8>),
    /// More.
    Wide(Column<u16>),
}

impl Relations {
    /// Maps the relations of the part in `folder`, whose edges have `types` types.
    pub(crate) fn open(folder: &Path, types: usize, num_edges: usize) -> Result<Self> {
        let file = folder.join("relations.npy");
        let this = match types {
            0..=256 => Self::Narrow(Column::open(&file)?),
            _ => Self::Wide(Column::open(&file)?),
        };
        if this.len() == num_edges {
            return Ok(this);
        }
        let what = format!("{} relations of {num_edges} in-edges. Save the partition again", this.len());
        Err(Error::format(shown(&file), what))
    }

    /// Number of in-edges.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(column) => column.len(),
            Self::Wide(column) => column.len(),
        }
    }

    /// The relation of an in-edge.
    #[inline(always)]
    pub(crate) fn get(&self, edge: usize) -> Option<u16> {
        match self {
            Self::Narrow(column) => column.get(edge).map(u16::from),
            Self::Wide(column) => column.get(edge),
        }
    }

    /// Brings the relation of an in-edge into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, edge: usize) {
        match self {
            Self::Narrow(column) => column.prefetch(edge),
            Self::Wide(column) => column.prefetch(edge),
        }
    }

    /// The number of in-edges of a relation within a range.
    pub(crate) fn count(&self, edges: Range<usize>, relation: u16) -> usize {
        edges.filter(|&edge| self.get(edge) == Some(relation)).count()
    }

    /// The end of the run that begins at `first`, among in-edges up to `end`.
    #[inline(always)]
    pub(crate) fn run_end(&self, first: usize, end: usize, relation: u16) -> usize {
        let same = |edge: usize| self.get(edge) == Some(relation);
        if same(end - 1) {
            return end; // the last run, and most often the only one
        }
        let near = (first + NEAR).min(end);
        match (first + 1..near).find(|&edge| !same(edge)) {
            Some(edge) => edge,
            None => partition_point(near..end, same),
        }
    }

    /// The error for relations that contradict the rest of the directory.
    #[cold]
    pub(crate) fn damaged(&self, what: &str) -> Error {
        let path = match self {
            Self::Narrow(column) => column.path(),
            Self::Wide(column) => column.path(),
        };
        damaged(path, what)
    }
}
