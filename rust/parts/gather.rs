//! Rows of a source, as features or labels, sent to the parts that hold them.
//!
//! **Requirements.** The source comes as chunks of consecutive rows, each row once. The parts say by ids which rows
//! they want, in which order.
//!
//! **Algorithm.** A part whose ids ascend, as those of inner vertices do, takes its rows of every chunk in passing. Any
//! other part (edges lie by target, not by record) first lists the rows it wants in ascending order and takes these in
//! passing, into a file of its own. In the end they are put in the order wanted, part after part. So the source is read
//! once, from front to back, and random accesses stay within the rows of one part.
//!
//! **Memory.** At most 2 MiB per worker, and 0.19 bytes per row of the source for each worker that lists or orders rows.
//!
//! **Disk.** Beside the output a copy of the rows that are put in order, and 8 bytes for each, until the end.
//!
//! **Parallelism.** Over the parts.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::files::{ArrayFile, Ids, part_folder};
use crate::base::{Error, Result, Run, shown};
use crate::edges::npy;
use crate::exec::{map, scan};
use crate::sets::LocalSet;

/// Bytes of rows collected before the system is called.
const BUFFER: usize = 1 << 20;

/// The ascending ids of a part that wants its rows in another order, and their rows.
const SORTED_IDS: &str = ".wanted.npy";
const SORTED_ROWS: &str = ".rows";

/// Which rows to gather.
#[derive(Debug, Clone)]
pub struct Gather {
    /// Directory of the parts.
    pub into: PathBuf,
    /// Name of the file to write in each part.
    pub name: String,
    /// Name of the int64 array with the ids, in each part.
    pub ids: String,
    /// Which of these ids, for every part.
    pub ranges: Vec<(u64, u64)>,
    /// Rows of the source. Larger ids mean the row that is less by as much: the second direction of a record.
    pub num_rows: u64,
    /// Type of the items, as in a `.npy` header.
    pub descr: String,
    /// Shape of a row.
    pub row_shape: Vec<u64>,
    /// Bytes of a row.
    pub row_bytes: usize,
}

/// Consecutive rows in borrowed memory.
#[derive(Clone, Copy)]
pub struct Rows {
    start: *const u8,
    count: u64,
    row_bytes: usize,
}

// SAFETY: `new` demands that the memory may be read as long as the value is used, from any thread.
unsafe impl Send for Rows {}
// SAFETY: as above.
unsafe impl Sync for Rows {}

impl Rows {
    /// `count` rows of `row_bytes` bytes each at `start`.
    ///
    /// # Safety
    /// Their bytes must stay readable while the value is used.
    pub unsafe fn new(start: *const u8, count: u64, row_bytes: usize) -> Self {
        Self { start, count, row_bytes }
    }
}

/// A part that rows are gathered for.
struct Target {
    folder: PathBuf,
    /// Whether the rows go to a file of their own first.
    unordered: bool,
    /// Next id to look at, and end of the ids.
    next: u64,
    end: u64,
    /// Where the next row goes.
    offset: u64,
}

impl Target {
    fn names<'a>(&self, gather: &'a Gather) -> (&'a str, &'a str) {
        if self.unordered { (SORTED_IDS, SORTED_ROWS) } else { (&gather.ids, &gather.name) }
    }
}

/// Gathers rows for all parts: `push` the source from its first row to its last, then `finish`.
pub struct RowGatherer {
    gather: Gather,
    targets: Vec<Target>,
    next: u64,
}

impl RowGatherer {
    /// Checks the ids and creates the files.
    pub fn new(gather: Gather, run: &Run) -> Result<Self> {
        let parts = gather.ranges.len();
        let workers = room(&gather, run)?;
        run.begin("ids", gather.ranges.iter().map(|(start, end)| end - start).sum());
        let targets = map(run, workers, parts, || Ok(None), |set, part| gather.prepare(part, set, run))?;
        Ok(Self { gather, targets, next: 0 })
    }

    /// Takes the next rows of the source.
    pub fn push(&mut self, rows: Rows, run: &Run) -> Result<()> {
        let row_bytes = self.gather.row_bytes;
        if rows.row_bytes != row_bytes {
            let what = format!("rows of {} bytes instead of the {row_bytes} announced", rows.row_bytes);
            return Err(Error::parameter("rows", what));
        }
        let left = self.gather.num_rows - self.next;
        if rows.count > left {
            let (more, announced) = (rows.count - left, self.gather.num_rows);
            let what = format!("{more} rows more than the {announced} that were announced");
            return Err(Error::parameter("rows", what));
        }
        run.begin("rows", self.gather.num_rows);
        run.advance(self.next)?;
        let moved = map(
            run,
            usize::MAX,
            self.targets.len(),
            || Ok(Vec::new()),
            |buffer, part| self.gather.take(&self.targets[part], self.next, rows, buffer, run),
        )?;
        for (target, moved) in self.targets.iter_mut().zip(moved) {
            (target.next, target.offset) = moved;
        }
        self.next += rows.count;
        run.advance(rows.count)
    }

    /// Puts rows in order where they are not, and ends the work.
    pub fn finish(self, run: &Run) -> Result<()> {
        let Self { gather, targets, next } = self;
        if next != gather.num_rows {
            let what = format!("{next} rows instead of the {} that were announced", gather.num_rows);
            return Err(Error::parameter("rows", what));
        }
        let unordered: Vec<usize> = (0..targets.len()).filter(|&part| targets[part].unordered).collect();
        run.begin("order", unordered.len() as u64);
        let workers = room(&gather, run)?;
        scan(
            run,
            workers,
            0..unordered.len(),
            || LocalSet::new(gather.num_rows),
            |set, index| {
                gather.put_in_order(unordered[index], set, run)?;
                run.advance(1)
            },
        )?;
        Ok(())
    }
}

/// The number of workers that the budget leaves room for.
fn room(gather: &Gather, run: &Run) -> Result<usize> {
    let each = LocalSet::memory(gather.num_rows) + 2 * (BUFFER.max(gather.row_bytes) as u64);
    run.workers(usize::MAX, 256 * gather.ranges.len() as u64, each, "gathering rows")
}

impl Gather {
    fn row_of(&self, id: u64) -> Result<u64> {
        let row = if id >= self.num_rows { id.wrapping_sub(self.num_rows) } else { id };
        if row < self.num_rows {
            return Ok(row);
        }
        Err(Error::format(
            &self.ids,
            format!("id {} of no row. The source has {} rows", id as i64, self.num_rows),
        ))
    }

    /// Checks whether the ids of a part ascend, and creates its file. If they do not, lists them.
    fn prepare(&self, part: usize, set: &mut Option<LocalSet>, run: &Run) -> Result<Target> {
        let folder = part_folder(&self.into, part);
        let (start, end) = self.ranges[part];
        let mut shape = vec![end.saturating_sub(start)];
        shape.extend(&self.row_shape);
        let head = npy::header(&self.descr, &shape);
        create(&folder.join(&self.name), &head)?;
        let (mut ascending, mut last) = (true, 0);
        self.for_each_row(&folder, start, end, run, |row| {
            ascending &= last <= row;
            last = row;
        })?;
        if ascending {
            return Ok(Target { folder, unordered: false, next: start, end, offset: head.len() as u64 });
        }
        let set = match set {
            Some(set) => set,
            None => set.insert(LocalSet::new(self.num_rows)?),
        };
        self.for_each_row(&folder, start, end, run, |row| set.insert(row))?;
        let mut ids = ArrayFile::<i64>::create(&folder, SORTED_IDS, run)?;
        for row in set.iter() {
            ids.push(row as i64)?;
        }
        let end = ids.count();
        ids.finish()?;
        set.clear();
        create(&folder.join(SORTED_ROWS), &[])?;
        Ok(Target { folder, unordered: true, next: 0, end, offset: 0 })
    }

    fn for_each_row(
        &self,
        folder: &Path,
        start: u64,
        end: u64,
        run: &Run,
        mut each: impl FnMut(u64),
    ) -> Result<()> {
        let mut ids = Ids::open(folder, &self.ids, start, end)?;
        loop {
            let ids = ids.read()?;
            if ids.is_empty() {
                return Ok(());
            }
            for &id in ids {
                each(self.row_of(id as u64)?);
            }
            run.advance(ids.len() as u64)?;
        }
    }

    /// Appends what the target wants of `rows`, the first of which is `first`. Returns its next id and offset.
    fn take(
        &self,
        target: &Target,
        first: u64,
        rows: Rows,
        buffer: &mut Vec<u8>,
        run: &Run,
    ) -> Result<(u64, u64)> {
        let (ids_name, name) = target.names(self);
        let mut ids = Ids::open(&target.folder, ids_name, target.next, target.end)?;
        let mut sink = Sink::open(target.folder.join(name), target.offset, self.row_bytes, buffer)?;
        let mut taken = target.next;
        loop {
            let block = ids.read()?;
            for &id in block {
                let row = self.row_of(id as u64)?.wrapping_sub(first);
                if row >= rows.count {
                    return sink.finish().map(|offset| (taken, offset));
                }
                // SAFETY: the row is one of `rows.count`, which `Rows::new` promises to be readable.
                unsafe { sink.push(rows.start.add(row as usize * self.row_bytes)) }?;
                taken += 1;
            }
            if block.is_empty() {
                return sink.finish().map(|offset| (taken, offset));
            }
            run.check()?;
        }
    }

    /// Writes the rows of a part in the order of its ids, from the file that has them in ascending order.
    fn put_in_order(&self, part: usize, set: &mut LocalSet, run: &Run) -> Result<()> {
        let folder = part_folder(&self.into, part);
        let (sorted_ids, sorted_rows) = (folder.join(SORTED_IDS), folder.join(SORTED_ROWS));
        let (start, end) = self.ranges[part];
        self.for_each_row(&folder, start, end, run, |row| set.insert(row))?;
        let num_rows = set.number();
        if num_rows > u64::from(u32::MAX) {
            return Err(Error::Capacity(format!("part {part} has {num_rows} records. Use more parts")));
        }
        let path = folder.join(&self.name);
        let file =
            File::options().write(true).open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (offset, _) = file.map_err(|error| Error::io(&path, error))?;
        let mut buffer = Vec::new();
        let mut sink = Sink::open(path, offset, self.row_bytes, &mut buffer)?;
        if self.row_bytes > 0 {
            let rows = mapped(&sorted_rows, num_rows * self.row_bytes as u64)?;
            Ids::open(&folder, &self.ids, start, end)?.for_each(run, |id| {
                let at = set.local(self.row_of(id)?) as usize * self.row_bytes;
                // SAFETY: a slice of the map.
                unsafe { sink.push(rows[at..at + self.row_bytes].as_ptr()) }
            })?;
        }
        sink.finish()?;
        set.clear();
        for path in [&sorted_ids, &sorted_rows] {
            std::fs::remove_file(path).map_err(|error| Error::io(path, error))?;
        }
        Ok(())
    }
}

/// Maps the rows that this module wrote.
fn mapped(path: &Path, bytes: u64) -> Result<Mmap> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    // SAFETY: the file was written here, below a directory that is not yet in its place, and nobody else has a reason to
    // touch it. What is read are bytes to copy, whatever they are.
    let map = unsafe { Mmap::map(&file) }.map_err(|error| Error::io(path, error))?;
    if map.len() as u64 == bytes {
        return Ok(map);
    }
    Err(Error::format(
        shown(path),
        format!("{} bytes instead of {bytes}. It was changed meanwhile", map.len()),
    ))
}

/// Replaces the file by `content`.
fn create(path: &Path, content: &[u8]) -> Result<()> {
    std::fs::write(path, content).map_err(|error| Error::io(path, error))
}

/// Rows on their way to a file.
struct Sink<'a> {
    path: PathBuf,
    file: File,
    offset: u64,
    row_bytes: usize,
    buffer: &'a mut Vec<u8>,
    filled: usize,
}

impl<'a> Sink<'a> {
    fn open(path: PathBuf, offset: u64, row_bytes: usize, buffer: &'a mut Vec<u8>) -> Result<Self> {
        let file = File::options().write(true).open(&path).map_err(|error| Error::io(&path, error))?;
        buffer.resize((BUFFER / row_bytes.max(1)).max(1) * row_bytes, 0);
        Ok(Self { path, file, offset, row_bytes, buffer, filled: 0 })
    }

    /// Appends the row at `row`.
    ///
    /// # Safety
    /// A row must be readable there.
    #[inline(always)]
    unsafe fn push(&mut self, row: *const u8) -> Result<()> {
        let place = &mut self.buffer[self.filled..self.filled + self.row_bytes];
        // SAFETY: the caller vouches for the row, the slice for the place, and they are different memory.
        unsafe { std::ptr::copy_nonoverlapping(row, place.as_mut_ptr(), self.row_bytes) };
        self.filled += self.row_bytes;
        if self.filled == self.buffer.len() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let bytes = &self.buffer[..self.filled];
        self.file.write_all_at(bytes, self.offset).map_err(|error| Error::io(&self.path, error))?;
        self.offset += bytes.len() as u64;
        self.filled = 0;
        Ok(())
    }

    /// Writes the rest. Returns where the next row goes.
    fn finish(mut self) -> Result<u64> {
        self.flush()?;
        Ok(self.offset)
    }
}
