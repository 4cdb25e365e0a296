//! Sorted runs of ids on disk, and their merge.
//!
//! A run holds ids in ascending order, each with the row of its table. Ids of equal value are in the order of
//! their rows. Integers take 12 bytes, and bytes take 8 beside their own.
//!
//! **Memory.** A third of the limit for the ids of a run: 16 bytes per integer, 24 and its length per text.
//! **Complexity.** O(n log n) comparisons, nearly all of the first eight bytes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::appended::Appended;
use super::arrow::{Column, Ids};
use super::key::{Key, Kind, ordered};
use super::table::Table;
use crate::base::regular_file::open_own;
use crate::base::{Error, Result};

/// The row of an id that no table declares.
pub(super) const NO_ROW: u32 = u32::MAX;

/// Most runs that are merged at a time: each keeps a file open.
const FAN_IN: usize = 256;

/// Bytes that are read or written at a time.
const BUFFER: usize = 1 << 18;

/// An id in memory, and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Integer {
    id: u64,
    row: u32,
}

/// Text in memory: its first eight bytes, which decide nearly all comparisons, and where it lies.
#[derive(Debug, Clone, Copy)]
struct Text {
    prefix: u64,
    start: u64,
    len: u32,
    row: u32,
}

fn prefix(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    first[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(first)
}

/// Ids on their way into runs.
pub struct Sorter {
    kind: Kind,
    folder: PathBuf,
    name: String,
    limit: usize,
    integers: Vec<Integer>,
    texts: Vec<Text>,
    arena: Vec<u8>,
    /// Keys that came before, where an id is wanted once.
    seen: Option<Seen>,
    runs: Vec<(PathBuf, u64)>,
}

/// As many keys as fit. Repetitions of later keys pass, and the merge removes them.
struct Seen {
    table: Table,
    left: usize,
}

impl Sorter {
    /// A sorter of ids that writes runs `NAME-00000` and so on into `folder` and takes at most `limit` bytes.
    /// With `distinct`, rows do not count, and most repetitions are left out.
    pub fn new(kind: Kind, folder: &Path, name: &str, limit: usize, distinct: bool) -> Result<Self> {
        let seen = if distinct {
            let left = limit / 4 / 22;
            Some(Seen { table: Table::with_capacity(left)?, left })
        } else {
            None
        };
        let limit = (limit - if distinct { limit / 4 } else { 0 }) / 3;
        Ok(Sorter {
            kind,
            folder: folder.into(),
            name: name.into(),
            limit,
            integers: Vec::new(),
            texts: Vec::new(),
            arena: Vec::new(),
            seen,
            runs: Vec::new(),
        })
    }

    /// Adds the ids of a column, whose first row is row number `first`. Null rows are left out.
    pub fn push(&mut self, column: &Column<'_>, rows: usize, first: u64) -> Result<()> {
        self.kind.check(column)?;
        if first + rows as u64 >= u64::from(NO_ROW) {
            return Err(Error::Capacity(format!(
                "a table of vertices has more than {} rows. Split the type",
                NO_ROW - 1
            )));
        }
        for index in 0..rows {
            if column.is_null(index) {
                continue;
            }
            let row = if self.seen.is_some() { NO_ROW } else { (first + index as u64) as u32 };
            match &column.ids {
                Ids::Integers(bits, _) => self.add_integer(ordered(bits[index], self.kind), row)?,
                Ids::Views { .. } => self.add_text(column.bytes(index)?, row)?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn add_integer(&mut self, id: u64, row: u32) -> Result<()> {
        if self.seen.as_mut().is_some_and(|seen| seen.before(Key::of_integer(id))) {
            return Ok(());
        }
        self.integers.push(Integer { id, row });
        if self.integers.len() * size_of::<Integer>() >= self.limit { self.spill() } else { Ok(()) }
    }

    #[inline(always)]
    fn add_text(&mut self, bytes: &[u8], row: u32) -> Result<()> {
        if self.seen.as_mut().is_some_and(|seen| seen.before(Key::of_bytes(bytes))) {
            return Ok(());
        }
        let text =
            Text { prefix: prefix(bytes), start: self.arena.len() as u64, len: bytes.len() as u32, row };
        self.texts.push(text);
        self.arena.extend_from_slice(bytes);
        let taken = self.arena.len() + self.texts.len() * size_of::<Text>();
        if taken >= self.limit { self.spill() } else { Ok(()) }
    }

    /// Writes the last run, and returns all with the number of their ids.
    pub fn finish(mut self) -> Result<Vec<(PathBuf, u64)>> {
        if !self.integers.is_empty() || !self.texts.is_empty() {
            self.spill()?;
        }
        Ok(self.runs)
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) -> Result<()> {
        let path = self.folder.join(format!("{}-{:05}", self.name, self.runs.len()));
        let mut run = RunWriter::create(&path, self.kind)?;
        let distinct = self.seen.is_some();
        if self.kind.is_integer() {
            self.integers.sort_unstable();
            if distinct {
                self.integers.dedup();
            }
            for integer in &self.integers {
                run.integer(integer.id, integer.row)?;
            }
            self.integers.clear();
        } else {
            let arena = &self.arena;
            let bytes = |text: &Text| &arena[text.start as usize..text.start as usize + text.len as usize];
            self.texts.sort_unstable_by(|a, b| {
                let order = a.prefix.cmp(&b.prefix).then_with(|| bytes(a).cmp(bytes(b)));
                order.then(a.row.cmp(&b.row))
            });
            if distinct {
                self.texts.dedup_by(|a, b| a.prefix == b.prefix && bytes(a) == bytes(b));
            }
            for text in &self.texts {
                run.bytes(bytes(text), text.row)?;
            }
            self.texts.clear();
            self.arena.clear();
        }
        self.runs.push((path, run.finish()?));
        Ok(())
    }
}

impl Seen {
    #[inline(always)]
    fn before(&mut self, key: Key) -> bool {
        if self.left == 0 {
            return self.table.get(key).is_some();
        }
        let fresh = self.table.insert(key, 0);
        self.left -= usize::from(fresh);
        !fresh
    }
}

/// A run that is being written.
struct RunWriter {
    kind: Kind,
    file: Appended,
    count: u64,
}

impl RunWriter {
    fn create(path: &Path, kind: Kind) -> Result<Self> {
        Ok(RunWriter { kind, file: Appended::open(path, 0, BUFFER)?, count: 0 })
    }

    #[inline(always)]
    fn integer(&mut self, id: u64, row: u32) -> Result<()> {
        let mut entry = [0; 12];
        entry[..8].copy_from_slice(&id.to_le_bytes());
        entry[8..].copy_from_slice(&row.to_le_bytes());
        self.count += 1;
        self.file.push(&entry)
    }

    #[inline(always)]
    fn bytes(&mut self, id: &[u8], row: u32) -> Result<()> {
        let mut head = [0; 8];
        head[..4].copy_from_slice(&(id.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&row.to_le_bytes());
        self.count += 1;
        self.file.push(&head)?;
        self.file.push_all(id)
    }

    /// Adds an id of a merge.
    fn id(&mut self, id: &Entry<'_>) -> Result<()> {
        if self.kind.is_integer() { self.integer(id.prefix, id.row) } else { self.bytes(id.bytes, id.row) }
    }

    /// Forces it to the disk, and returns the number of ids.
    fn finish(mut self) -> Result<u64> {
        self.file.sync()?;
        Ok(self.count)
    }
}

/// An id that a merge gives.
pub(super) struct Entry<'a> {
    /// An integer, or the first eight bytes.
    pub prefix: u64,
    /// The bytes, for kinds that have them.
    pub bytes: &'a [u8],
    /// Its row, or [`NO_ROW`].
    pub row: u32,
    /// Whether the one before has the same value.
    pub repeated: bool,
}

/// The place of a merge in one of its runs.
struct Cursor {
    kind: Kind,
    path: PathBuf,
    file: BufReader<File>,
    prefix: u64,
    bytes: Vec<u8>,
    row: u32,
}

impl Cursor {
    /// The first id of a run, if it has any.
    fn open(path: &Path, kind: Kind, buffer: usize) -> Result<Option<Self>> {
        let file = open_own(path, File::options().read(true))?;
        let file = BufReader::with_capacity(buffer, file);
        let mut cursor = Cursor { kind, path: path.into(), file, prefix: 0, bytes: Vec::new(), row: 0 };
        Ok(cursor.next()?.then_some(cursor))
    }

    /// Goes to the next id. False at the end.
    #[inline(always)]
    fn next(&mut self) -> Result<bool> {
        let more = if self.kind.is_integer() { self.next_integer() } else { self.next_bytes() };
        match more {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io(&self.path, error)),
        }
    }

    #[inline(always)]
    fn next_integer(&mut self) -> std::io::Result<()> {
        let mut entry = [0; 12];
        self.file.read_exact(&mut entry)?;
        let [a, b, row] = bytemuck::cast::<[u8; 12], [u32; 3]>(entry);
        (self.prefix, self.row) = (u64::from(a) | u64::from(b) << 32, row);
        Ok(())
    }

    #[inline(always)]
    fn next_bytes(&mut self) -> std::io::Result<()> {
        let mut head = [0; 8];
        self.file.read_exact(&mut head)?;
        let [len, row] = bytemuck::cast::<[u8; 8], [u32; 2]>(head);
        self.bytes.resize(len as usize, 0);
        self.file.read_exact(&mut self.bytes)?;
        (self.prefix, self.row) = (prefix(&self.bytes), row);
        Ok(())
    }
}

impl PartialEq for Cursor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Cursor {}

impl PartialOrd for Cursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cursor {
    /// The heap gives the greatest first, which is to be the least id, and of equal ones the first row.
    fn cmp(&self, other: &Self) -> Ordering {
        let order = other.prefix.cmp(&self.prefix).then_with(|| other.bytes.cmp(&self.bytes));
        order.then(other.row.cmp(&self.row))
    }
}

/// Runs in one order. The heap moves pointers: a cursor has a hundred bytes.
pub(super) struct Merge {
    heap: BinaryHeap<Box<Cursor>>,
    prefix: u64,
    bytes: Vec<u8>,
    row: u32,
    begun: bool,
}

impl Merge {
    /// The merge of the runs. More than [`FAN_IN`] are merged in several steps, beside the runs. `limit`
    /// bounds the bytes of its buffers.
    pub(super) fn open(mut runs: Vec<PathBuf>, kind: Kind, limit: usize) -> Result<Self> {
        let mut level = 0;
        while runs.len() > FAN_IN {
            runs = runs
                .chunks(FAN_IN)
                .map(|some| {
                    let path = some[0].with_extension(format!("merged-{level}"));
                    let mut writer = RunWriter::create(&path, kind)?;
                    let mut merge = Self::of(some, kind, limit)?;
                    while merge.step(|entry| writer.id(&entry))?.is_some() {}
                    writer.finish()?;
                    Ok(path)
                })
                .collect::<Result<_>>()?;
            level += 1;
        }
        Self::of(&runs, kind, limit)
    }

    fn of(runs: &[PathBuf], kind: Kind, limit: usize) -> Result<Self> {
        let buffer = (limit / 2 / runs.len().max(1)).clamp(1 << 14, BUFFER);
        let mut heap = BinaryHeap::new();
        for run in runs {
            heap.extend(Cursor::open(run, kind, buffer)?.map(Box::new));
        }
        Ok(Merge { heap, prefix: 0, bytes: Vec::new(), row: 0, begun: false })
    }

    /// Hands the next id to `take`. None at the end.
    #[inline(always)]
    pub(super) fn step<R>(&mut self, take: impl FnOnce(Entry<'_>) -> Result<R>) -> Result<Option<R>> {
        let Some(mut first) = self.heap.peek_mut() else { return Ok(None) };
        let repeated = self.begun && first.prefix == self.prefix && first.bytes == self.bytes;
        (self.prefix, self.row, self.begun) = (first.prefix, first.row, true);
        if !repeated {
            std::mem::swap(&mut self.bytes, &mut first.bytes);
        }
        if !first.next()? {
            PeekMut::pop(first);
        }
        take(Entry { prefix: self.prefix, bytes: &self.bytes, row: self.row, repeated }).map(Some)
    }
}
