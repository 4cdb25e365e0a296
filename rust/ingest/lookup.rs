//! Records whose ends are looked up at once, where the tables of both types fit the cache or the memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::arrow::Chunk;
use super::joining::{Joined, Out};
use super::key::{Key, Kind, keys_of};
use super::spill::{ROWS, first_null};
use super::table::{MISSING, Table};
use crate::base::{Error, Result};

/// The table of one side of a relation.
#[derive(Clone)]
pub struct Declared {
    /// The kind of its ids.
    pub kind: Kind,
    /// Number of the first vertex of its type.
    pub first: u32,
    table: Arc<Table>,
}

impl Declared {
    /// The ids whose keys these files hold.
    pub fn load(keys: &[PathBuf], kind: Kind, first: u32) -> Result<Self> {
        Ok(Declared { kind, first, table: Arc::new(Table::load(keys, kind)?) })
    }
}

/// Records on their way into a region of the file.
pub struct Lookup {
    sides: [Declared; 2],
    out: Option<Out>,
    keys: Vec<Key>,
    vertices: [Vec<u32>; 2],
    records: Vec<[u32; 2]>,
    joined: Joined,
    at: u64,
}

impl Lookup {
    /// A lookup in these tables.
    pub fn new(sides: [Declared; 2]) -> Self {
        let vertices = [vec![0; ROWS], vec![0; ROWS]];
        Lookup {
            sides,
            out: None,
            keys: vec![Key::default(); ROWS],
            vertices,
            records: Vec::new(),
            joined: Joined::default(),
            at: 0,
        }
    }

    /// Begins a unit, whose records go to the file `out` from number `first` on.
    pub fn begin(&mut self, out: &Path, first: u64) -> Result<()> {
        self.out = Some(Out::open(out, first)?);
        (self.joined, self.at) = (Joined::default(), 0);
        Ok(())
    }

    /// Writes the records of a chunk: its first two columns. Counts records with an undeclared end, and
    /// returns the first row with a null end.
    pub fn push(&mut self, chunk: &Chunk<'_>) -> Result<Option<u64>> {
        let columns = [chunk.column(0)?, chunk.column(1)?];
        for (column, side) in columns.iter().zip(&self.sides) {
            side.kind.check(column)?;
        }
        if let Some(row) = first_null(&columns, chunk.rows()) {
            return Ok(Some(row));
        }
        let Some(out) = &mut self.out else { return Err(Error::Internal("no unit was begun".into())) };
        for start in (0..chunk.rows()).step_by(ROWS) {
            let rows = ROWS.min(chunk.rows() - start);
            for (side, column) in columns.iter().enumerate() {
                let declared = &self.sides[side];
                keys_of(column, declared.kind, start, &mut self.keys[..rows])?;
                declared.table.resolve(&self.keys[..rows], &mut self.vertices[side][..rows]);
            }
            let [sources, targets] = &self.vertices;
            self.records.clear();
            for (row, (&source, &target)) in sources.iter().zip(targets).take(rows).enumerate() {
                if source == MISSING || target == MISSING {
                    self.joined.lack(self.at + row as u64, source == MISSING);
                } else {
                    self.records.push([source + self.sides[0].first, target + self.sides[1].first]);
                }
            }
            self.at += rows as u64;
            self.joined.records += self.records.len() as u64;
            out.write(&self.records)?;
        }
        Ok(None)
    }

    /// Ends a unit: all of it is on the disk.
    pub fn end(&mut self) -> Result<Joined> {
        self.out.take().map_or(Ok(()), Out::finish)?;
        Ok(std::mem::take(&mut self.joined))
    }
}
