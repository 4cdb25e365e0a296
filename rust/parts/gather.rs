//! Rows of a source, as features or labels, sent to the parts that hold them.
//!
//! **Requirements.** The source comes as chunks of consecutive rows, each row once. The parts say by ids
//! which rows they want, in which order.
//!
//! **Algorithm.** A part whose ids ascend, as those of inner vertices do, takes its rows of every chunk in
//! passing. Any other part (edges lie by target, not by record) first lists the rows it wants in ascending
//! order and takes these in passing, into a file of its own. In the end they are put in the order wanted,
//! part after part. So the source is read once, from front to back, and random accesses stay within the rows
//! of one part.
//!
//! **Memory.** At most 2 MiB per worker, and 0.19 bytes per row of the source for each worker that lists or
//! orders rows.
//!
//! **Disk.** Beside the output a copy of the rows that are put in order, and 8 bytes for each, until the end.
//!
//! **Parallelism.** Over the parts.

use std::path::{Path, PathBuf};

use super::part_folder;
use crate::base::npy::{self, Appender, ArrayWriter, Ids, Start};
use crate::base::{Error, Result, Run, shown};
use crate::edges::MappedFile;
use crate::exec::{map, scan};
use crate::sets::LocalSet;

/// Bytes of rows collected before the operating system is called.
const BUFFER: usize = 1 << 20;

/// The ascending ids of a part that wants its rows in another order, and their rows.
const SORTED_IDS: &str = ".wanted.npy";
const SORTED_ROWS: &str = ".rows";

/// The rows to gather.
#[derive(Debug, Clone)]
pub struct Gather {
    /// Directory of the parts.
    pub into: PathBuf,
    /// Name of the file to write in each part.
    pub name: String,
    /// Name of the int64 array with the ids, in each part.
    pub ids: String,
    /// The range of the ids that is read, for every part.
    pub ranges: Vec<(u64, u64)>,
    /// Id of the first row of the source.
    pub first: u64,
    /// Rows of the source. Larger ids mean the row `id - num_rows`: the second direction of a record.
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
        let workers = workers(&gather, run)?;
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
            target.next = moved;
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
        let workers = workers(&gather, run)?;
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

/// The number of workers that the budget allows.
fn workers(gather: &Gather, run: &Run) -> Result<usize> {
    let each = LocalSet::memory(gather.num_rows) + 2 * (BUFFER.max(gather.row_bytes) as u64);
    run.workers(usize::MAX, 256 * gather.ranges.len() as u64, each, "gathering rows")
}

impl Gather {
    /// The end of a file of rows.
    fn sink<'a>(&self, path: PathBuf, buffer: Vec<u8>, run: &'a Run) -> Result<Appender<'a>> {
        let most = (BUFFER / self.row_bytes.max(1)).max(1) * self.row_bytes;
        Appender::open(path, Start::AtEnd, most, buffer, run)
    }

    fn row_of(&self, id: u64) -> Result<u64> {
        let id = id.wrapping_sub(self.first);
        let row = if id >= self.num_rows { id.wrapping_sub(self.num_rows) } else { id };
        if row < self.num_rows {
            return Ok(row);
        }
        Err(Error::format(
            &self.ids,
            format!(
                "id {} of no row. The source has {} rows",
                id.wrapping_add(self.first) as i64,
                self.num_rows
            ),
        ))
    }

    /// Checks whether the ids of a part ascend, and creates its file. If they do not, lists them.
    fn prepare(&self, part: usize, set: &mut Option<LocalSet>, run: &Run) -> Result<Target> {
        let folder = part_folder(&self.into, part);
        let (start, end) = self.ranges[part];
        let mut shape = vec![end.saturating_sub(start)];
        shape.extend(&self.row_shape);
        create(&folder.join(&self.name), &npy::header(&self.descr, &shape))?;
        let (mut ascending, mut last) = (true, 0);
        self.for_each_row(&folder, start, end, run, |row| {
            ascending &= last <= row;
            last = row;
        })?;
        if ascending {
            return Ok(Target { folder, unordered: false, next: start, end });
        }
        let set = match set {
            Some(set) => set,
            None => set.insert(LocalSet::new(self.num_rows)?),
        };
        self.for_each_row(&folder, start, end, run, |row| set.insert(row))?;
        let mut ids = ArrayWriter::<i64>::create(&folder, SORTED_IDS, run)?;
        for row in set.iter() {
            ids.push((row + self.first) as i64)?;
        }
        let end = ids.finish()?;
        set.clear();
        create(&folder.join(SORTED_ROWS), &[])?;
        Ok(Target { folder, unordered: true, next: 0, end })
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

    /// Appends what the target wants of `rows`, the first of which is `first`. Returns its next id.
    fn take(&self, target: &Target, first: u64, rows: Rows, buffer: &mut Vec<u8>, run: &Run) -> Result<u64> {
        let (ids_name, name) = target.names(self);
        let mut ids = Ids::open(&target.folder, ids_name, target.next, target.end)?;
        let mut sink = self.sink(target.folder.join(name), std::mem::take(buffer), run)?;
        let mut taken = target.next;
        'rows: loop {
            let block = ids.read()?;
            for &id in block {
                let row = self.row_of(id as u64)?.wrapping_sub(first);
                if row >= rows.count {
                    break 'rows;
                }
                // SAFETY: the row is one of `rows.count`, which `Rows::new` promises to be readable.
                unsafe { sink.push(rows.start.add(row as usize * self.row_bytes), self.row_bytes) }?;
                taken += 1;
            }
            if block.is_empty() {
                break;
            }
            run.check()?;
        }
        *buffer = sink.finish()?;
        Ok(taken)
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
        let mut sink = self.sink(folder.join(&self.name), Vec::new(), run)?;
        let rows = MappedFile::open(&sorted_rows)?;
        let (first, bytes) = rows.bytes();
        let changed = || Error::format(shown(&sorted_rows), "it was changed meanwhile");
        if bytes as u64 != num_rows * self.row_bytes as u64 {
            return Err(changed());
        }
        Ids::open(&folder, &self.ids, start, end)?.for_each(run, |id| {
            let row = Some(set.local(self.row_of(id)?)).filter(|&row| u64::from(row) < num_rows);
            let row = row.ok_or_else(changed)? as usize;
            // SAFETY: one of the rows in the map.
            unsafe { sink.push(first.add(row * self.row_bytes), self.row_bytes) }
        })?;
        sink.finish()?;
        set.clear();
        for path in [&sorted_ids, &sorted_rows] {
            std::fs::remove_file(path).map_err(|error| Error::io(path, error))?;
        }
        Ok(())
    }
}

/// Replaces the file by `content`.
fn create(path: &Path, content: &[u8]) -> Result<()> {
    std::fs::write(path, content).map_err(|error| Error::io(path, error))
}
