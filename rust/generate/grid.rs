//! A two-dimensional grid: the graph on which the right answer is known.
//!
//! Vertex `row * columns + column` is joined to its neighbours to the right and below. Records come row by
//! row, those to the right before those below. No randomness, no state and no memory.

use super::{Generator, below_max_vertices};
use crate::base::{Error, Result};
use crate::edges::Record;

/// A grid.
#[derive(Debug, Clone)]
pub struct Grid {
    rows: u64,
    columns: u64,
}

impl Grid {
    /// A grid of `rows` rows and `columns` columns.
    pub fn new(rows: u64, columns: u64) -> Result<Self> {
        let Some(n) = rows.checked_mul(columns) else {
            return Err(Error::parameter("rows", format!("{rows} x {columns} vertices are too many")));
        };
        below_max_vertices(n, 0)?;
        Ok(Self { rows, columns })
    }
}

impl Generator for Grid {
    fn size(&self) -> (u64, u64) {
        let (rows, columns) = (self.rows, self.columns);
        (rows * columns, rows * columns.saturating_sub(1) + columns * rows.saturating_sub(1))
    }

    fn record(&self, index: u64) -> Record {
        // A row's records: columns - 1 to the right, columns down.
        let (row, within) = (index / (2 * self.columns - 1), index % (2 * self.columns - 1));
        let right = self.columns - 1;
        let start = row * self.columns;
        let (u, v) = if within < right {
            (start + within, start + within + 1)
        } else {
            (start + within - right, start + within - right + self.columns)
        };
        [u as u32, v as u32]
    }
}
