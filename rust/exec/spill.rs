//! Entries written in one pass over the edges, in any order of the buckets, and read back bucket by bucket.
//!
//! All buckets share one temporary file, so that neither file handles nor disk blocks grow with their number.
//! Every worker keeps a small buffer per bucket. A full buffer is appended to the file as a *piece*, and a
//! directory records its place. The stream is cut into units, and all buffers are flushed at the end of a
//! unit. Sorted by (bucket, unit, place in the file), the pieces give the entries of each bucket in stream
//! order for any number of threads.
//!
//! **Memory.** At most 8 MB per worker (beyond 2,000 buckets 4 KiB for each), and 24 bytes per piece: 0.1 %
//! of what is written, up to 0.6 % for thousands of buckets.
//!
//! **Disk.** 16 bytes per entry that is an edge ([`Entry`]), and otherwise what the entry takes. The file
//! loses its name as soon as it is open, so that nothing is left of it, however the process ends.

use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::{Pod, Zeroable};

use super::division::Division;
use super::pass::pass;
use crate::base::{Buffer, Error, Result, Run, TempFile, reserved, zeros};
use crate::edges::{BLOCK, EdgeStream, Record};

/// Bytes of buffers that a worker holds, unless there are very many buckets.
const BUFFER: usize = 8 << 20;

/// Units that the stream is cut into: enough to keep all workers busy, and the directory small.
const UNITS: u64 = 1024;

/// Entries of the largest piece, and of the smallest full one.
pub(crate) const PIECE: usize = 4096;
const SMALLEST_PIECE: usize = 256;

/// Bits of an edge id. The rest of the word holds the tag and the flag of an entry.
pub(crate) const ID_BITS: u32 = 54;
const TAG_BITS: u32 = 63 - ID_BITS;

/// Tags are below this.
pub(crate) const TAGS: usize = 1 << TAG_BITS;

/// An edge on its way to a part: its ends, its id, a small number that the writer chooses, and a flag.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Entry {
    /// The source, in the numbering that the writer chose.
    pub source: u32,
    /// The target, likewise.
    pub target: u32,
    bits: u64,
}

impl Entry {
    /// An entry with an id below 2^[`ID_BITS`] and a tag below [`TAGS`].
    #[inline(always)]
    pub fn new(source: u32, target: u32, id: u64, tag: u32, flag: bool) -> Self {
        Self { source, target, bits: id | u64::from(tag) << ID_BITS | u64::from(flag) << 63 }
    }

    /// The edge id.
    #[inline(always)]
    pub fn id(&self) -> u64 {
        self.bits & ((1 << ID_BITS) - 1)
    }

    /// The small number.
    #[inline(always)]
    pub fn tag(&self) -> usize {
        (self.bits >> ID_BITS) as usize % TAGS
    }

    /// The flag.
    #[inline(always)]
    pub fn flag(&self) -> bool {
        self.bits >> 63 != 0
    }
}

/// Entries that a worker collects for a bucket, one of `buckets`.
fn capacity<T>(buckets: usize) -> usize {
    (BUFFER / size_of::<T>() / buckets.max(1)).clamp(SMALLEST_PIECE, PIECE)
}

/// Bytes of the directory of `entries` entries in `buckets` buckets, written in `units` units, and bytes of
/// the buffers of each worker.
pub(crate) fn memory_of<T>(entries: u64, buckets: u64, units: u64) -> (u64, u64) {
    let capacity = capacity::<T>(buckets as usize) as u64;
    let partial = entries.min(buckets * units);
    // Twice, as a directory doubles when it is full.
    (
        2 * size_of::<Piece>() as u64 * (entries / capacity + partial),
        buckets * capacity * size_of::<T>() as u64,
    )
}

/// Where some entries of a bucket lie.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Piece {
    bucket: u32,
    /// The units of the replicas of a divided run follow one another.
    file: u32,
    unit: u32,
    count: u32,
    first: u64,
}

/// A file that entries are being written to.
pub(crate) struct Spill<T = Entry> {
    place: Arc<Place>,
    buckets: usize,
    entries: PhantomData<T>,
}

/// The file, and the number of entries that have a place in it.
struct Place {
    file: TempFile,
    end: AtomicU64,
}

impl<T: Pod> Spill<T> {
    /// Creates the file in the directory `into`.
    pub(crate) fn create(into: &Path, buckets: usize) -> Result<Self> {
        let place = Place { file: TempFile::create(into)?, end: AtomicU64::new(0) };
        Ok(Spill { place: Arc::new(place), buckets, entries: PhantomData })
    }

    /// Creates the file of this replica, where all replicas find it.
    pub(crate) fn create_shared(division: &Division, buckets: usize) -> Result<Self> {
        let file = TempFile::named(&spill_of(division, division.number()))?;
        let place = Place { file, end: AtomicU64::new(0) };
        Ok(Spill { place: Arc::new(place), buckets, entries: PhantomData })
    }

    /// A writer for one worker.
    pub(crate) fn writer(&self) -> Result<Writer<T>> {
        let capacity = capacity::<T>(self.buckets);
        let fill = zeros(self.buckets, "spill buffers")?;
        let entries = Buffer::zeroed(self.buckets * capacity, "spill buffers")?;
        Ok(Writer { place: Arc::clone(&self.place), unit: 0, capacity, entries, fill, pieces: Vec::new() })
    }

    /// Ends the writing, of which these are all writers.
    pub(crate) fn seal(self, writers: Vec<Writer<T>>) -> Result<SpillReader<T>> {
        let pieces = pieces_of(writers)?;
        SpillReader::of(vec![self.place], pieces, self.buckets)
    }

    /// Ends the writing in all replicas, each of which has a file of its own that all can open.
    pub(crate) fn seal_all(self, writers: Vec<Writer<T>>, division: &Division) -> Result<SpillReader<T>> {
        let pieces = pieces_of(writers)?;
        self.place.file.sync()?;
        let all = division.all(&pieces)?;
        let open = |replica: usize| match replica == division.number() {
            true => Ok(Arc::clone(&self.place)),
            false => {
                let file = TempFile::open(&spill_of(division, replica))?;
                Ok(Arc::new(Place { file, end: AtomicU64::new(0) }))
            }
        };
        let places = (0..division.count()).map(open).collect::<Result<_>>()?;
        let numbered = |(replica, pieces): (usize, Vec<Piece>)| {
            pieces.into_iter().map(move |piece| Piece { file: replica as u32, ..piece })
        };
        // All have opened all files: these need their names no longer.
        division.agree(0)?;
        forget(&spill_of(division, division.number()))?;
        SpillReader::of(places, all.into_iter().enumerate().flat_map(numbered).collect(), self.buckets)
    }
}

/// The spilled entries of a replica, where all replicas find them.
fn spill_of(division: &Division, replica: usize) -> PathBuf {
    division.folder().join(format!("spill-{replica}.bin"))
}

/// Removes the name of a file.
fn forget(path: &Path) -> Result<()> {
    std::fs::remove_file(path).map_err(|error| Error::io(path, error))
}

/// The pieces of all writers.
fn pieces_of<T: Pod>(writers: Vec<Writer<T>>) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for mut writer in writers {
        writer.flush_all()?;
        reserve(&mut pieces, writer.pieces.len())?;
        pieces.append(&mut writer.pieces);
    }
    Ok(pieces)
}

fn reserve(pieces: &mut Vec<Piece>, more: usize) -> Result<()> {
    let refused = |_| Error::Capacity("the directory of a temporary file exceeds the memory".into());
    pieces.try_reserve(more).map_err(refused)
}

/// One worker's buffers.
pub(crate) struct Writer<T = Entry> {
    place: Arc<Place>,
    unit: u32,
    capacity: usize,
    entries: Buffer<T>,
    fill: Vec<u32>,
    pieces: Vec<Piece>,
}

impl<T: Pod> Writer<T> {
    /// Begins the unit, if another was at work. A worker takes each unit at most once and as a whole.
    pub(crate) fn begin(&mut self, unit: u64) -> Result<()> {
        if u64::from(self.unit) == unit {
            return Ok(());
        }
        self.flush_all()?;
        self.unit = unit as u32;
        Ok(())
    }

    /// Appends `entry` to the bucket.
    #[inline(always)]
    pub(crate) fn push(&mut self, bucket: usize, entry: T) -> Result<()> {
        let fill = &mut self.fill[bucket];
        self.entries[bucket * self.capacity + *fill as usize] = entry;
        *fill += 1;
        if *fill as usize == self.capacity { self.flush(bucket) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self, bucket: usize) -> Result<()> {
        let count = std::mem::take(&mut self.fill[bucket]);
        let start = bucket * self.capacity;
        let first = self.place.end.fetch_add(u64::from(count), Relaxed);
        self.place.file.write(first, &self.entries[start..start + count as usize])?;
        reserve(&mut self.pieces, 1)?;
        self.pieces.push(Piece { bucket: bucket as u32, file: 0, unit: self.unit, count, first });
        Ok(())
    }

    fn flush_all(&mut self) -> Result<()> {
        for bucket in 0..self.fill.len() {
            if self.fill[bucket] > 0 {
                self.flush(bucket)?;
            }
        }
        Ok(())
    }
}

/// Entries by bucket, to be read.
pub struct SpillReader<T = Entry> {
    places: Vec<Arc<Place>>,
    pieces: Vec<Piece>,
    first: Vec<usize>,
    entries: PhantomData<T>,
}

impl<T: Pod> SpillReader<T> {
    fn of(places: Vec<Arc<Place>>, mut pieces: Vec<Piece>, buckets: usize) -> Result<Self> {
        places.iter().for_each(|place| place.file.expect_random());
        pieces.sort_unstable_by_key(|piece| (piece.bucket, piece.file, piece.unit, piece.first));
        let mut first = reserved(buckets + 1, "spill directory")?;
        let mut at = 0;
        for bucket in 0..=buckets {
            at += pieces[at..].iter().take_while(|piece| (piece.bucket as usize) < bucket).count();
            first.push(at);
        }
        Ok(Self { places, pieces, first, entries: PhantomData })
    }

    /// Number of entries in the bucket.
    pub fn count(&self, bucket: usize) -> u64 {
        let pieces = &self.pieces[self.first[bucket]..self.first[bucket + 1]];
        pieces.iter().map(|piece| u64::from(piece.count)).sum()
    }

    /// Hands the entries of the bucket to `each`, in stream order.
    pub fn read(&self, bucket: usize, run: &Run, mut each: impl FnMut(&[T]) -> Result<()>) -> Result<()> {
        let mut buf = Vec::new();
        for piece in self.pieces(bucket) {
            self.read_piece(piece, &mut buf)?;
            each(&buf)?;
            run.advance(buf.len() as u64)?;
        }
        Ok(())
    }

    /// The pieces of the bucket, in stream order.
    pub fn pieces(&self, bucket: usize) -> Range<usize> {
        self.first[bucket]..self.first[bucket + 1]
    }

    /// Number of pieces of all buckets. They are numbered bucket by bucket, and in stream order within a
    /// bucket.
    pub fn num_pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Reads the entries of one piece, at most [`PIECE`], into `buf`, whose old content is lost.
    pub fn read_piece(&self, piece: usize, buf: &mut Vec<T>) -> Result<()> {
        let Piece { file, first, count, .. } = self.pieces[piece];
        buf.resize(count as usize, T::zeroed());
        self.places[file as usize].file.read(first, buf)
    }
}

/// Bytes of the directory of `entries` entries in `buckets` buckets, and bytes of the buffers of each worker.
pub(crate) fn memory(entries: u64, buckets: u64) -> (u64, u64) {
    memory_of::<Entry>(entries, buckets, UNITS.min(entries / BLOCK + 1))
}

/// Spills the entries that `emit` makes of each block of records (with the number of its first), in one pass.
pub(crate) fn spill_edges(
    edges: &dyn EdgeStream,
    run: &Run,
    workers: usize,
    into: &Path,
    buckets: usize,
    emit: impl Fn(&mut Writer, u64, &[Record]) -> Result<()> + Sync,
) -> Result<SpillReader> {
    let unit = (edges.num_edges() / UNITS).next_multiple_of(BLOCK).max(8 * BLOCK);
    let spill = Spill::create(into, buckets)?;
    let writers = pass(
        edges,
        run,
        unit,
        workers,
        || spill.writer(),
        |writer, first, records| {
            writer.begin(first / unit)?;
            emit(writer, first, records)
        },
    )?;
    spill.seal(writers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units dealt to any number of writers, each of which takes them in its own order: every bucket comes
    /// back in stream order.
    #[test]
    fn the_entries_of_a_bucket_are_in_stream_order_for_any_writers() {
        let (run, buckets, units) = (Run::new(Some(1), None).unwrap(), 3, 7_u64);
        let per_unit = 5 * PIECE as u64 / 2;
        for count in 1..=4 {
            let folder = tempfile::tempdir().unwrap();
            let spill = Spill::<u64>::create(folder.path(), buckets).unwrap();
            let mut writers: Vec<_> = (0..count).map(|_| spill.writer().unwrap()).collect();
            // The writers are at work at the same time: their pieces lie mixed in the file.
            let mut shares = vec![Vec::new(); count];
            (0..units).rev().for_each(|unit| shares[(unit * 5) as usize % count].push(unit));
            for turn in 0..units as usize {
                for place in 0..per_unit {
                    for (writer, units) in writers.iter_mut().zip(&shares) {
                        let Some(&unit) = units.get(turn) else { continue };
                        writer.begin(unit).unwrap();
                        let entry = unit * per_unit + place;
                        writer.push((entry * entry % 7 % 3) as usize, entry).unwrap();
                    }
                }
            }
            writers.reverse();
            let reader = spill.seal(writers).unwrap();
            for bucket in 0..buckets {
                let mut found = Vec::new();
                reader
                    .read(bucket, &run, |entries| {
                        found.extend_from_slice(entries);
                        Ok(())
                    })
                    .unwrap();
                let of_bucket = |entry: &u64| (entry * entry % 7 % 3) as usize == bucket;
                let expected: Vec<u64> = (0..units * per_unit).filter(of_bucket).collect();
                assert_eq!(reader.count(bucket), expected.len() as u64);
                assert!(found == expected, "bucket {bucket} of {count} writers");
            }
        }
    }
}
