//! Ranges of vertices, and the collection of their entries in one pass over the records.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sort::Sorter;
use super::weights::Scaled;
use super::{CHUNK, changed, sort};
use crate::base::{Buffer, Result, Run, ahead, prefetch, reserved};
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::{pass, scan};

/// Entries that a worker collects for a bucket: 512 bytes.
const BUFFERED: usize = 64;

/// Most vertices of a bucket: a source is stored as its distance from the first.
const VERTICES: usize = 1 << 16;

/// Records between two polls of the cancel flag: few, since the first ones touch, and so have the operating
/// system clear, every page of the result.
const CHECK_EVERY: usize = 1 << 10;

/// Entries of a bucket, unless one vertex has more: the buffers of all buckets, `8 BUFFERED entries / T`
/// bytes, then take as much as a bucket while it is sorted, `16 T` bytes.
fn target(entries: u64) -> u64 {
    (entries * BUFFERED as u64 / 2).isqrt() + 1
}

/// The most buckets: two neighbouring ones have more than T entries, or more than `VERTICES` vertices.
fn most_buckets(n: u64, entries: u64) -> u64 {
    2 * (entries / target(entries) + n / VERTICES as u64) + 2
}

/// Bytes of the buckets, and of all workers that fill or sort them.
pub(crate) fn memory(n: u64, entries: u64, weighted: bool, workers: u64) -> u64 {
    let buckets = most_buckets(n, entries);
    let entry = (size_of::<Record>() + if weighted { size_of::<u32>() } else { 0 }) as u64;
    let fill = buckets * (BUFFERED as u64 * entry + 4) + BLOCK * entry;
    buckets * 24 + workers * fill.max(sort::memory(target(entries), VERTICES as u64))
}

/// The entries as columns.
pub(crate) struct Columns<'a> {
    pub targets: &'a mut [u32],
    /// The sources, as distances from the first of the bucket.
    pub sources: &'a mut [u16],
    /// Their weights, or nothing.
    pub weights: &'a mut [u32],
}

/// The vertices, cut into ranges.
pub(crate) struct Buckets<'a> {
    offsets: &'a [u64],
    /// First vertex of each bucket, and the number of vertices.
    first: Vec<u32>,
    /// Bucket of each vertex.
    of: Buffer<u32>,
}

impl<'a> Buckets<'a> {
    /// Buckets of vertices with those degrees, whose place is reused.
    pub(crate) fn new(degree: Buffer<u32>, offsets: &'a [u64], run: &Run) -> Result<Self> {
        let (n, entries) = (degree.len(), offsets[degree.len()]);
        let most = target(entries);
        let mut first = reserved(most_buckets(n as u64, entries) as usize + 1, "buckets of the adjacency")?;
        let (mut of, mut filled, mut begun) = (degree, 0, 0);
        for start in (0..n).step_by(CHUNK) {
            for v in start..n.min(start + CHUNK) {
                filled += u64::from(of[v]);
                if v == 0 || filled > most || v - begun == VERTICES {
                    filled = u64::from(of[v]);
                    begun = v;
                    first.push(v as u32);
                }
                of[v] = first.len() as u32 - 1;
            }
            run.check()?;
        }
        first.push(n as u32);
        Ok(Self { offsets, first, of })
    }

    /// Number of entries.
    pub(crate) fn num_entries(&self) -> u64 {
        self.offsets[self.of.len()]
    }

    fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// The first entry of bucket number `bucket`, or the end of the last bucket.
    fn start(&self, bucket: usize) -> u64 {
        self.offsets[self.first[bucket] as usize]
    }

    /// Brings the entries of each bucket to its place, in any order.
    pub(crate) fn fill(
        &self,
        edges: &dyn EdgeStream,
        scaled: Option<&Scaled>,
        symmetric: bool,
        columns: Columns,
        run: &Run,
    ) -> Result<()> {
        run.begin("adjacency", edges.num_edges());
        let mut next = reserved(self.len(), "buckets of the adjacency")?;
        next.extend((0..self.len()).map(|bucket| AtomicU64::new(self.start(bucket))));
        let Columns { targets, sources, weights } = columns;
        let (targets, sources) = (targets.as_mut_ptr(), sources.as_mut_ptr());
        let places = Places { buckets: self, next, targets, sources, weights: weights.as_mut_ptr() };
        match scaled {
            Some(scaled) => {
                scaled.check_unchanged()?;
                places.fill::<true>(edges, Some(scaled), symmetric, run)?;
                scaled.check_unchanged()?;
            }
            None => places.fill::<false>(edges, None, symmetric, run)?,
        }
        let full = |(bucket, next): (usize, &AtomicU64)| next.load(Relaxed) == self.start(bucket + 1);
        if places.next.iter().enumerate().all(full) { Ok(()) } else { Err(changed()) }
    }

    /// Sorts the entries of each bucket by source, target and weight, if they have any. Returns the weight of
    /// all entries.
    pub(crate) fn sort(
        &self,
        targets: &mut [u32],
        sources: &[u16],
        weights: &mut [u32],
        run: &Run,
    ) -> Result<u64> {
        run.begin("sort", self.num_entries());
        let weighted = !weights.is_empty();
        let (mut rest, mut rest_of_weights) = (targets, weights);
        let jobs = (0..self.len()).map(|bucket| {
            let (start, end) = (self.start(bucket) as usize, self.start(bucket + 1) as usize);
            let (targets, after) = std::mem::take(&mut rest).split_at_mut(end - start);
            rest = after;
            let count = if weighted { end - start } else { 0 };
            let (weights, after) = std::mem::take(&mut rest_of_weights).split_at_mut(count);
            rest_of_weights = after;
            let vertices = self.first[bucket] as usize..=self.first[bucket + 1] as usize;
            (targets, &sources[start..end], weights, &self.offsets[vertices])
        });
        let (n, capacity) = (self.of.len(), target(self.num_entries()) as usize);
        let init = || Ok((Sorter::new(n, capacity, VERTICES, weighted)?, 0));
        let sorted =
            scan(run, usize::MAX, jobs, init, |(sorter, sum), (targets, sources, weights, offsets)| {
                sorter.sort(targets, sources, weights, offsets, run)?;
                *sum += match weighted {
                    true => weights.iter().map(|&weight| u64::from(weight)).sum(),
                    false => targets.len() as u64,
                };
                run.advance(targets.len() as u64)
            })?;
        Ok(sorted.into_iter().map(|(_, sum)| sum).sum())
    }
}

/// Where the entries go.
struct Places<'a> {
    buckets: &'a Buckets<'a>,
    /// The next free place of each bucket.
    next: Vec<AtomicU64>,
    targets: *mut u32,
    sources: *mut u16,
    /// Not used if entries have no weights.
    weights: *mut u32,
}

// SAFETY: the pointers are only used in `put`, which writes to places that no other call writes to.
unsafe impl Sync for Places<'_> {}

impl Places<'_> {
    /// Fills all buckets, in one pass. With weights if `W` says so.
    fn fill<const W: bool>(
        &self,
        edges: &dyn EdgeStream,
        scaled: Option<&Scaled>,
        symmetric: bool,
        run: &Run,
    ) -> Result<()> {
        let init = || Ok((Filler::<W>::new(self)?, Vec::new()));
        let fillers = pass(edges, run, BLOCK, usize::MAX, init, |(filler, buf), first, records| {
            if let Some(scaled) = scaled {
                scaled.block(first..first + records.len() as u64, buf)?;
            }
            for (start, records) in (0..).step_by(CHECK_EVERY).zip(records.chunks(CHECK_EVERY)) {
                run.check()?;
                let weights: &[u32] = if W { &buf[start..start + records.len()] } else { &[] };
                if symmetric {
                    filler.add::<false>(records, weights)?;
                } else {
                    filler.add::<true>(records, weights)?;
                }
            }
            Ok(())
        })?;
        for (mut filler, _) in fillers {
            (0..self.buckets.len()).try_for_each(|bucket| filler.flush(bucket))?;
        }
        Ok(())
    }

    /// Appends `entries` to the bucket, with their weights if there are any.
    fn put(&self, bucket: usize, entries: &[Record], weights: &[u32]) -> Result<()> {
        let start = self.next[bucket].fetch_add(entries.len() as u64, Relaxed);
        if start + entries.len() as u64 > self.buckets.start(bucket + 1) {
            return Err(changed());
        }
        let first = self.buckets.first[bucket];
        // SAFETY: both arrays have `num_entries` items and are borrowed mutably by `fill` alone. The places
        // lie within the bucket, and the counter gave them to this call only.
        let (targets, sources) = unsafe {
            (
                std::slice::from_raw_parts_mut(self.targets.add(start as usize), entries.len()),
                std::slice::from_raw_parts_mut(self.sources.add(start as usize), entries.len()),
            )
        };
        for ((target, source), entry) in targets.iter_mut().zip(sources).zip(entries) {
            (*source, *target) = ((entry[0] - first) as u16, entry[1]);
        }
        if !weights.is_empty() {
            // SAFETY: as above. Weighted fillers also have an array of that length, and a weight for each
            // entry.
            unsafe {
                let place = self.weights.add(start as usize);
                std::ptr::copy_nonoverlapping(weights.as_ptr(), place, entries.len());
            }
        }
        Ok(())
    }
}

/// One worker's buffers. With weights if `W` says so.
struct Filler<'a, const W: bool> {
    places: &'a Places<'a>,
    entries: Buffer<[Record; BUFFERED]>,
    weights: Buffer<[u32; BUFFERED]>,
    filled: Buffer<u32>,
}

impl<'a, const W: bool> Filler<'a, W> {
    fn new(places: &'a Places<'a>) -> Result<Self> {
        let len = places.buckets.len();
        let (entries, filled) =
            (Buffer::zeroed(len, "bucket buffers")?, Buffer::zeroed(len, "bucket buffers")?);
        let weights = Buffer::zeroed(if W { len } else { 0 }, "bucket buffers")?;
        Ok(Self { places, entries, weights, filled })
    }

    /// Adds the entries of `records`: one each, or two. `weights` has one for each if they have any.
    fn add<const BOTH: bool>(&mut self, records: &[Record], weights: &[u32]) -> Result<()> {
        let of: &[u32] = &self.places.buckets.of;
        for (index, &[u, v]) in records.iter().enumerate() {
            if let Some(&[u, v]) = records.get(index + ahead::ENTRIES) {
                prefetch(of, u as usize);
                if BOTH {
                    prefetch(of, v as usize);
                }
            }
            if u != v {
                let weight = if W { weights[index] } else { 1 };
                self.push(of[u as usize], [u, v], weight)?;
                if BOTH {
                    self.push(of[v as usize], [v, u], weight)?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn push(&mut self, bucket: u32, entry: Record, weight: u32) -> Result<()> {
        let bucket = bucket as usize;
        let filled = &mut self.filled[bucket];
        self.entries[bucket][*filled as usize % BUFFERED] = entry;
        if W {
            self.weights[bucket][*filled as usize % BUFFERED] = weight;
        }
        *filled += 1;
        if *filled as usize == BUFFERED { self.flush(bucket) } else { Ok(()) }
    }

    #[inline(never)]
    fn flush(&mut self, bucket: usize) -> Result<()> {
        let filled = std::mem::take(&mut self.filled[bucket]) as usize;
        let weights = if W { &self.weights[bucket][..filled] } else { &[] };
        self.places.put(bucket, &self.entries[bucket][..filled], weights)
    }
}
