//! The numbers of the vertices of a type: the rank of each id among all.
//!
//! One merge of the sorted runs gives every id its number, and writes at once the keys by bucket, the vertex
//! of each row of the tables, and the ids themselves, batch by batch.
//!
//! **Disk.** 12 bytes per integer and 16 per text for the keys, and 4 per row of the tables.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::appended::Appended;
use super::arrow::IdBatch;
use super::key::{Key, Kind};
use super::runs::{Entry, Merge, NO_ROW};
use crate::base::{Buffer, Error, Result};

/// Buffers of the files of keys, in bytes for all of them.
const BUFFERS: usize = 8 << 20;

/// Most vertices of all types together.
const MOST: u32 = u32::MAX - 1;

/// How ids become numbers.
pub struct Numbering {
    kind: Kind,
    merge: Merge,
    keys: Vec<Appended>,
    rows: Option<Rows>,
    /// Whether a repeated id of a table is left out. Else it is an error.
    first: bool,
    next: u32,
    last_row: u32,
    duplicate: Option<Duplicate>,
    blanks: u64,
    previous: Vec<u8>,
}

/// An id that two rows declare.
#[derive(Debug, Clone)]
pub struct Duplicate {
    /// The id, as text.
    pub id: String,
    /// The rows.
    pub rows: [u32; 2],
}

/// The vertex of each row of the tables, in a file that is mapped.
struct Rows {
    path: PathBuf,
    file: File,
    vertices: Buffer<u32>,
}

/// The ids of a batch, as they arrive.
#[derive(Default)]
struct Batch {
    integers: Vec<u64>,
    ends: Vec<u64>,
    bytes: Vec<u8>,
}

impl Numbering {
    /// The numbering of the ids of `runs`, whose keys go to the files `keys`, one for each bucket. `rows` is
    /// the file of the vertex of each row and their number.
    pub fn create(
        kind: Kind,
        runs: Vec<PathBuf>,
        keys: &[PathBuf],
        rows: Option<(&Path, u64)>,
        first: bool,
        limit: usize,
    ) -> Result<Self> {
        let buffer = (BUFFERS / keys.len().max(1)).min(1 << 18);
        let keys = keys.iter().map(|path| Appended::open(path, 0, buffer)).collect::<Result<_>>()?;
        let rows = match rows {
            Some((path, count)) if count > 0 => Some(Rows::create(path, count)?),
            Some((path, _)) => File::create(path).map(|_| None).map_err(|error| Error::io(path, error))?,
            None => None,
        };
        Ok(Numbering {
            kind,
            merge: Merge::open(runs, kind, limit)?,
            keys,
            rows,
            first,
            next: 0,
            last_row: NO_ROW,
            duplicate: None,
            blanks: 0,
            previous: Vec::new(),
        })
    }

    /// The next ids, at most `count`. None at the end, and at an id that two rows declare.
    pub fn take(&mut self, count: usize) -> Result<Option<IdBatch>> {
        let mut batch = Batch { ends: vec![0], ..Batch::default() };
        let before = self.next;
        while ((self.next - before) as usize) < count && self.duplicate.is_none() {
            let Numbering { kind, merge, keys, rows, first, next, last_row, duplicate, blanks, previous } =
                self;
            let more = merge.step(|entry| {
                if entry.repeated {
                    if entry.row == NO_ROW {
                        return Ok(());
                    }
                    if !*first {
                        *duplicate =
                            Some(Duplicate { id: text(*kind, &entry), rows: [*last_row, entry.row] });
                        return Ok(());
                    }
                    if let Some(rows) = rows {
                        rows.vertices[entry.row as usize] = NO_ROW;
                    }
                    return Ok(());
                }
                if *next == MOST {
                    return Err(Error::Capacity(format!("there are more than {MOST} vertices")));
                }
                *last_row = entry.row;
                let key = if kind.is_integer() {
                    batch.integers.push(super::key::ordered(entry.prefix, *kind));
                    Key::of_integer(entry.prefix)
                } else {
                    *blanks += u64::from(*next > 0 && entry.bytes.trim_ascii() == previous.trim_ascii());
                    previous.clear();
                    previous.extend_from_slice(entry.bytes);
                    batch.bytes.extend_from_slice(entry.bytes);
                    batch.ends.push(batch.bytes.len() as u64);
                    Key::of_bytes(entry.bytes)
                };
                let bucket = key.bucket(keys.len());
                write(&mut keys[bucket], key, *kind, *next)?;
                if let Some(rows) = rows
                    && entry.row != NO_ROW
                {
                    rows.vertices[entry.row as usize] = *next;
                }
                *next += 1;
                Ok(())
            })?;
            if more.is_none() {
                break;
            }
        }
        if self.next == before || self.duplicate.is_some() {
            return Ok(None);
        }
        Ok(Some(match self.kind {
            Kind::Signed | Kind::Unsigned => IdBatch::of_integers(batch.integers, self.kind == Kind::Signed),
            Kind::Text | Kind::Binary => IdBatch::of_bytes(batch.ends, batch.bytes, self.kind == Kind::Text),
        }))
    }

    /// The id that two rows declare, if [`Numbering::take`] met one.
    pub fn duplicate(&self) -> Option<&Duplicate> {
        self.duplicate.as_ref()
    }

    /// Number of ids that differ from the id before only by blanks at their ends.
    pub fn blanks(&self) -> u64 {
        self.blanks
    }

    /// Forces all to the disk, and returns the number of vertices.
    pub fn finish(self) -> Result<u32> {
        for mut keys in self.keys {
            keys.sync()?;
        }
        if let Some(rows) = self.rows {
            rows.file.sync_data().map_err(|error| Error::io(&rows.path, error))?;
        }
        Ok(self.next)
    }
}

/// Writes a key and its vertex.
#[inline(always)]
fn write(file: &mut Appended, key: Key, kind: Kind, vertex: u32) -> Result<()> {
    let mut entry = [0; 16];
    entry[..12].copy_from_slice(&key.to_bytes());
    entry[12..].copy_from_slice(&vertex.to_le_bytes());
    if kind.is_integer() {
        let mut short = [0; 12];
        short[..8].copy_from_slice(&entry[..8]);
        short[8..].copy_from_slice(&entry[12..]);
        return file.push(&short);
    }
    file.push(&entry)
}

impl Rows {
    fn create(path: &Path, count: u64) -> Result<Self> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(|error| Error::io(path, error))?;
        // SAFETY: a new file in a folder of this run alone.
        let vertices = unsafe { Buffer::mapped(&file, path, 0, count as usize) }?;
        Ok(Rows { path: path.into(), file, vertices })
    }
}

/// An id as messages show it.
fn text(kind: Kind, entry: &Entry<'_>) -> String {
    match kind {
        Kind::Signed => (super::key::ordered(entry.prefix, kind) as i64).to_string(),
        Kind::Unsigned => entry.prefix.to_string(),
        Kind::Text => String::from_utf8_lossy(entry.bytes).into_owned(),
        Kind::Binary => entry.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
