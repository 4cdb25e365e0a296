//! The in-edges of a part's rows: from entries in stream order to `indptr`, `indices`, `edge_ids`, and
//! `relations` if the graph has them. A row is ordered by relation and record.
//!
//! **Memory.** Per worker 16 bytes for each edge or row of the largest window, and 32 bytes for each entry of
//! the largest bucket that several parts share. Rows too long for a window are streamed.

use std::ops::Range;
use std::path::Path;

use super::layout::{Group, Layout, WINDOW, Window};
use super::relation_file::RelationFile;
use crate::base::npy::{ArrayWriter, Start};
use crate::base::{Buffer, Error, Result, Run, ahead, prefetch};
use crate::edges::{BLOCK, Relations};
use crate::exec::{Entry, SpillReader, map};
use crate::sets::to_starts;

/// Entries between two polls of the cancel flag.
const CHUNK: usize = BLOCK as usize / 16;

/// The largest number of local vertices, whose ids are int32.
pub(crate) const MAX_LOCAL: u64 = 1 << 31;

/// Entries in stream order.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// In memory.
    Loaded(&'a [Entry]),
    /// A bucket of a file.
    Spilled(&'a SpillReader, usize),
}

impl Source<'_> {
    /// Hands all entries to `each`.
    pub(crate) fn read(self, run: &Run, mut each: impl FnMut(&[Entry]) -> Result<()>) -> Result<()> {
        match self {
            Source::Spilled(spilled, bucket) => spilled.read(bucket, run, each),
            Source::Loaded(entries) => entries.chunks(CHUNK).try_for_each(|entries| {
                each(entries)?;
                run.advance(entries.len() as u64)
            }),
        }
    }
}

/// The entries of a group that shares a bucket.
struct GroupEntries {
    entries: Buffer<Entry>,
    sorted: Buffer<Entry>,
    /// Where the entries of each part end.
    ends: Vec<usize>,
}

impl GroupEntries {
    /// Room for any group of the layout.
    fn new(layout: &Layout) -> Result<Self> {
        let largest = |parts: usize| {
            let groups = layout.groups.iter().filter(|group| group.whole && group.parts.len() >= parts);
            groups.map(|group| layout.window(group.buckets.start).edges as usize).max().unwrap_or(0)
        };
        let entries = Buffer::zeroed(largest(1), "entries of a bucket")?;
        let sorted = Buffer::zeroed(largest(2), "sorted entries of a bucket")?;
        Ok(Self { entries, sorted, ends: Vec::new() })
    }

    /// Loads a bucket and sorts its entries by tag, of which there are `tags`.
    fn load(&mut self, bucket: Source, tags: usize, run: &Run) -> Result<()> {
        self.ends.clear();
        self.ends.resize(tags, 0);
        let mut filled = 0;
        bucket.read(run, |entries| {
            let Some(place) = self.entries.get_mut(filled..filled + entries.len()) else {
                return Err(changed());
            };
            place.copy_from_slice(entries);
            filled += entries.len();
            for entry in entries {
                self.ends[entry.tag()] += 1;
            }
            Ok(())
        })?;
        to_starts(&mut self.ends);
        if tags == 1 {
            self.ends[0] = filled;
            return Ok(());
        }
        for entries in self.entries[..filled].chunks(CHUNK) {
            for entry in entries {
                let end = &mut self.ends[entry.tag()];
                self.sorted[*end] = *entry;
                *end += 1;
            }
            run.check()?;
        }
        Ok(())
    }

    /// The entries with that tag.
    fn part(&self, tag: usize) -> &[Entry] {
        let start = if tag == 0 { 0 } else { self.ends[tag - 1] };
        let entries = if self.ends.len() == 1 { &self.entries } else { &self.sorted };
        &entries[start..self.ends[tag]]
    }
}

/// The edges of one part.
#[derive(Clone, Copy)]
pub(crate) struct PartEdges<'a> {
    windows: &'a [Window],
    sources: &'a [Source<'a>],
}

impl<'a> PartEdges<'a> {
    /// Hands all entries to `each`.
    pub(crate) fn read(self, run: &Run, mut each: impl FnMut(&[Entry])) -> Result<()> {
        self.try_read(run, |entries| {
            each(entries);
            Ok(())
        })
    }

    /// Hands all entries to `each`, which may fail.
    pub(crate) fn try_read(self, run: &Run, mut each: impl FnMut(&[Entry]) -> Result<()>) -> Result<()> {
        self.sources.iter().try_for_each(|source| source.read(run, &mut each))
    }

    /// The windows of the part, which has `rows` rows.
    pub(crate) fn windows(self, rows: u64) -> Vec<(Window, Source<'a>)> {
        let window = |(&window, &source)| match source {
            Source::Loaded(entries) => (Window::whole(rows, entries.len() as u64), source),
            Source::Spilled(..) => (window, source),
        };
        self.windows.iter().zip(self.sources).map(window).collect()
    }
}

/// Edges by the parts of a layout.
pub(crate) struct EdgeBuckets {
    /// The buckets of the parts.
    pub layout: Layout,
    /// Their entries.
    pub spilled: SpillReader,
}

impl EdgeBuckets {
    /// The results of `each` for every part and its edges, in the order of the parts. `each` also gets a
    /// worker's state.
    pub(crate) fn map<S: Send, T: Send>(
        &self,
        workers: usize,
        run: &Run,
        init: impl Fn() -> Result<S> + Sync,
        each: impl Fn(&mut S, usize, PartEdges) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let groups = &self.layout.groups;
        let init = || Ok((init()?, GroupEntries::new(&self.layout)?));
        let results = map(run, workers, groups.len(), init, |(state, entries), index| {
            self.group(&groups[index], entries, run, |part, edges| each(state, part, edges))
        })?;
        Ok(results.into_iter().flatten().collect())
    }

    /// The results of `each` for every part of a group and its edges.
    fn group<T>(
        &self,
        group: &Group,
        entries: &mut GroupEntries,
        run: &Run,
        mut each: impl FnMut(usize, PartEdges) -> Result<T>,
    ) -> Result<Vec<T>> {
        let windows = &self.layout.windows()[group.buckets.clone()];
        let source = |bucket| Source::Spilled(&self.spilled, bucket);
        if !group.whole {
            let sources: Vec<_> = group.buckets.clone().map(source).collect();
            return Ok(vec![each(group.parts.start, PartEdges { windows, sources: &sources })?]);
        }
        entries.load(source(group.buckets.start), group.parts.len(), run)?;
        let each = |(tag, part)| {
            let result = each(part, PartEdges { windows, sources: &[Source::Loaded(entries.part(tag))] })?;
            run.check().map(|()| result)
        };
        group.parts.clone().enumerate().map(each).collect()
    }
}

/// The buffers of [`write_rows`].
pub(crate) struct RowBuffers {
    ends: Buffer<u32>,
    sources: Buffer<i32>,
    ids: Buffer<i64>,
    behind: Vec<(i32, i64)>,
}

impl RowBuffers {
    /// Space for `windows`.
    pub(crate) fn new(windows: &[Window]) -> Result<Self> {
        let (mut rows, mut edges) = (0, CHUNK);
        for window in windows {
            rows = rows.max(window.rows as usize);
            edges = edges.max(window.edges.min(WINDOW) as usize);
        }
        Ok(Self {
            ends: Buffer::zeroed(rows, "rows of a window")?,
            sources: Buffer::zeroed(edges, "sources of a window")?,
            ids: Buffer::zeroed(edges, "edge ids of a window")?,
            behind: Vec::new(),
        })
    }

    /// Bytes of the buffers of this module for windows of at most `rows` rows and edges.
    pub(crate) fn memory(rows: u64) -> u64 {
        48 * rows.min(WINDOW) + (1 << 20)
    }

    /// Bytes that [`Self::order_rows`] takes for rows of at most `edges` edges.
    pub(crate) fn ordering_memory(edges: u64) -> u64 {
        2 * size_of::<(i32, i64)>() as u64 * edges.min(WINDOW)
    }

    /// Puts the edges of each row that belong behind the others there, without changing their order
    /// otherwise. `ends` has the end of each row.
    fn order_rows(&mut self, rows: usize, relations: &Relations) {
        let mut start = 0;
        for &end in &self.ends[..rows] {
            let end = end as usize;
            let mut place = start;
            for index in start..end {
                let (source, id) = (self.sources[index], self.ids[index]);
                if relations.is_behind(id as u64) {
                    self.behind.push((source, id));
                } else {
                    (self.sources[place], self.ids[place]) = (source, id);
                    place += 1;
                }
            }
            for (index, (source, id)) in (place..).zip(self.behind.drain(..)) {
                (self.sources[index], self.ids[index]) = (source, id);
            }
            start = end;
        }
    }
}

/// The files that hold the in-edges of a part.
pub(crate) struct RowFiles<'a> {
    indptr: ArrayWriter<'a, i64>,
    indices: ArrayWriter<'a, i32>,
    edge_ids: ArrayWriter<'a, i64>,
    relations: Option<RelationFile<'a>>,
}

impl<'a> RowFiles<'a> {
    /// Opens the files in the folder of a part.
    pub(crate) fn open(
        folder: &Path,
        begin: Start,
        relations: Option<&'a Relations>,
        run: &'a Run,
    ) -> Result<Self> {
        let mut indptr = ArrayWriter::open(folder, "indptr.npy", begin, run)?;
        if begin == Start::Anew {
            indptr.push(0)?;
        }
        let indices = ArrayWriter::open(folder, "indices.npy", begin, run)?;
        let edge_ids = ArrayWriter::open(folder, "edge_ids.npy", begin, run)?;
        let relations = relations.map(|relations| RelationFile::open(folder, begin, relations, run));
        Ok(Self { indptr, indices, edge_ids, relations: relations.transpose()? })
    }

    /// Appends edges.
    fn extend(&mut self, sources: &[i32], ids: &[i64]) -> Result<()> {
        self.indices.extend(sources)?;
        self.edge_ids.extend(ids)?;
        self.relations.as_mut().map_or(Ok(()), |file| file.extend(ids))
    }

    /// The relations, if the order of a row differs from that of the stream: reverse edges of relations of
    /// their own are the last.
    fn reordered(&self) -> Option<&'a Relations> {
        self.relations.as_ref().map(|file| file.relations).filter(|relations| relations.some_behind())
    }

    /// Finishes the files. Returns the numbers of rows and of edges.
    pub(crate) fn finish(self) -> Result<(u64, u64)> {
        self.indices.finish()?;
        self.relations.map_or(Ok(()), RelationFile::finish)?;
        Ok((self.indptr.finish()? - 1, self.edge_ids.finish()?))
    }
}

/// Appends the rows of consecutive windows. `degrees` has the number of entries of each row, `row` the number
/// of an entry's row (the first row of the first window is 0), `local` the local id of its source.
pub(crate) fn write_rows(
    files: &mut RowFiles,
    windows: &[(Window, Source)],
    mut degrees: impl Iterator<Item = u64>,
    row: impl Fn(&Entry) -> u32,
    local: impl Fn(&Entry) -> u32,
    buffers: &mut RowBuffers,
    run: &Run,
) -> Result<()> {
    let mut first = 0_u64;
    for &(window, source) in windows {
        let rows = first..first + window.rows;
        first = rows.end;
        if window.edges > WINDOW {
            stream_row(files, window.edges, source, &local, buffers, run)?;
            degrees.nth(window.rows.saturating_sub(1) as usize);
            continue;
        }
        let mut end = 0;
        let base = files.edge_ids.count();
        for place in &mut buffers.ends[..window.rows as usize] {
            *place = end as u32;
            end += degrees.next().unwrap_or(0);
            files.indptr.push((base + end) as i64)?;
        }
        if end != window.edges || scatter(rows, source, &row, &local, buffers, run)? != end {
            return Err(changed());
        }
        if let Some(relations) = files.reordered() {
            buffers.order_rows(window.rows as usize, relations);
        }
        files.extend(&buffers.sources[..end as usize], &buffers.ids[..end as usize])?;
    }
    Ok(())
}

/// Puts each entry at the end of its row, which begins where `ends` says. Returns how many there were.
fn scatter(
    rows: Range<u64>,
    source: Source,
    row: impl Fn(&Entry) -> u32,
    local: impl Fn(&Entry) -> u32,
    buffers: &mut RowBuffers,
    run: &Run,
) -> Result<u64> {
    let RowBuffers { ends, sources, ids, .. } = buffers;
    let ends = &mut ends[..(rows.end - rows.start) as usize];
    let mut count = 0;
    source.read(run, |entries| {
        for (index, entry) in entries.iter().enumerate() {
            if let Some(ahead) = entries.get(index + ahead::ENTRIES) {
                prefetch(ends, (u64::from(row(ahead)).wrapping_sub(rows.start)) as usize);
            }
            let index = u64::from(row(entry)).wrapping_sub(rows.start);
            let Some(end) = ends.get_mut(index as usize) else { return Err(changed()) };
            let place = *end as usize;
            *end += 1;
            let (Some(source), Some(id)) = (sources.get_mut(place), ids.get_mut(place)) else {
                return Err(changed());
            };
            *source = local(entry) as i32;
            *id = entry.id() as i64;
        }
        count += entries.len() as u64;
        Ok(())
    })?;
    Ok(count)
}

/// A window of one row, which needs no sorting: the stream is in its order. If some edges belong behind the
/// others, it is read twice.
fn stream_row(
    files: &mut RowFiles,
    edges: u64,
    source: Source,
    local: impl Fn(&Entry) -> u32,
    buffers: &mut RowBuffers,
    run: &Run,
) -> Result<()> {
    let RowBuffers { sources, ids, .. } = buffers;
    let end = files.edge_ids.count() + edges;
    let reordered = files.reordered();
    let passes: &[bool] = if reordered.is_some() { &[false, true] } else { &[false] };
    for &behind in passes {
        source.read(run, |entries| {
            let of_pass =
                |entry: &&Entry| reordered.is_none_or(|relations| relations.is_behind(entry.id()) == behind);
            let mut count = 0;
            for (entry, (source, id)) in
                entries.iter().filter(of_pass).zip(sources.iter_mut().zip(ids.iter_mut()))
            {
                *source = local(entry) as i32;
                *id = entry.id() as i64;
                count += 1;
            }
            files.extend(&sources[..count], &ids[..count])
        })?;
    }
    if files.edge_ids.count() != end {
        return Err(changed());
    }
    files.indptr.push(end as i64)
}

/// The error when a second pass found other records than the first. (For files, the pass itself reports
/// this.)
pub(crate) fn changed() -> Error {
    Error::format(
        "edges",
        "they changed while they were being read. Nothing was written. Run again when they are complete",
    )
}

/// Refuses more local vertices than int32 can number.
pub(crate) fn check_local(part: usize, local: u64) -> Result<()> {
    if local < MAX_LOCAL {
        return Ok(());
    }
    Err(Error::Capacity(format!(
        "part {part} has {local} local vertices, but local ids are int32. Use more parts or fewer halo hops"
    )))
}
