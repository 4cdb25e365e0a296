//! Contraction of a graph whose lists are read once, in order, into a graph whose lists lie in files.
//!
//! [`contract`](super::contraction::contract) gathers the members of a cluster from anywhere in the
//! graph. Here the vertices come in the order of their ids, and so do their lists. The edges of each vertex
//! are summed by cluster. The sums go to *buckets*, which are ranges of clusters, in a temporary file. Then
//! the buckets are summed one by one, and what they give is appended to two files, one of targets and one of
//! weights. In the end these are mapped. The operating system writes them out when memory is short, and they
//! do not count as memory of the process.
//!
//! The lists are the same as those of the contraction in memory, in the same order.
//!
//! **Replicas** of a divided run spill the sums of their own vertices, each to a file that all of them see.
//! Each sums a run of the buckets, which it reads from the files of all.
//!
//! **Memory.** [`memory`]: 4 bytes per vertex of the coarse graph and what that takes beside its lists; per
//! thread the buffers of all buckets, and one bucket.
//!
//! **Disk.** 12 bytes per sum of a vertex, at most one per entry, while it works. 8 per coarse entry
//! afterwards.
//!
//! **Parallelism.** The pass by ranges of vertices, the sums by buckets.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use bytemuck::{Pod, Zeroable};

use super::clustering::Clustering;
use super::contraction::{AHEAD, MOST_AHEAD, shift};
use super::sampling::{Histogram, Sample};
use crate::algorithms::multilevel::model::graph::sum_of;
use crate::algorithms::multilevel::model::{Graph, Size};
use crate::base::{Buffer, Result, Run, TempFile, locked, reserved, zeros};
use crate::capacity::Load;
use crate::exec::spill::{PIECE, Spill, SpillReader};
use crate::exec::{map, scan, spill};
use crate::sets::{RatingMap, SharedSums};

/// Entries of a bucket, unless there would be too many buckets or one cluster has more.
const BUCKET: u64 = 1 << 17;
/// Buckets from which on these grow instead.
const MOST_BUCKETS: u64 = 2048;
/// Number of units of vertices that the pass is divided into, and the least number of entries of a unit.
const UNITS: u64 = 1024;
const UNIT: u64 = 1 << 18;

/// The weight of the edges from a vertex of a cluster to another cluster.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct EdgeSum {
    from: u32,
    to: u32,
    weight: u32,
}

/// Entries that a bucket is to have.
fn bucket(entries: u64) -> u64 {
    BUCKET.max(entries / MOST_BUCKETS)
}

/// Entries that a unit is to have.
fn unit(entries: u64) -> u64 {
    UNIT.max(entries / UNITS)
}

/// Bytes of the contraction of a graph of this size beside its clusters, with one thread: the buckets, and
/// beside the lists of the coarser graph its offsets, weights and sums of a long list.
pub(crate) fn memory(size: &Size) -> u64 {
    let (directory, each) = memory_of(size.entries);
    memory_of_vertices(size.n, size.bounds).saturating_add(directory + each)
}

/// Bytes of what grows with the vertices.
pub(crate) fn memory_of_vertices(n: u64, bounds: u64) -> u64 {
    n.saturating_mul(16 + 8 * bounds)
}

/// Bytes of the directory, and of each worker.
fn memory_of(entries: u64) -> (u64, u64) {
    // A bucket ends early where the next cluster would be too much for it: so two make at least a whole one.
    let buckets = 2 * (entries / bucket(entries)) + 1;
    let (directory, buffers) = spill::memory_of::<EdgeSum>(entries, buckets, entries / unit(entries) + 1);
    // The entries of a bucket, which their sums replace, and how many each cluster has.
    let per_entry = (size_of::<[u32; 2]>() + 2 * size_of::<u32>()) as u64;
    let bucket = (PIECE * size_of::<EdgeSum>()) as u64 + per_entry * bucket(entries).min(entries);
    (directory, buffers.max(bucket) + RatingMap::memory_of_short())
}

/// The graph whose vertices are the clusters of `graph`, or a `sample` of its edges. Its lists lie in files
/// in the directory `into`. The caller uses `used` bytes meanwhile.
pub fn contract<const D: usize>(
    graph: &Graph<D>,
    clustering: &Clustering,
    sample: Sample,
    into: &Path,
    used: u64,
    run: &Run,
) -> Result<Graph<'static, D>> {
    let lists = summed(graph, clustering, sample, into, used, run)?;
    lists.finish(weights_of(graph, clustering, run)?, run)
}

/// Weight of each cluster.
pub(crate) fn weights_of<const D: usize>(
    graph: &Graph<D>,
    clustering: &Clustering,
    run: &Run,
) -> Result<Buffer<Load<D>>> {
    let mut weights: Buffer<Load<D>> = Buffer::zeroed(clustering.count, "graph: weights")?;
    graph.add_weights(&mut weights, |v| clustering.cluster_of[v as usize], run)?;
    Ok(weights)
}

/// The lists of all clusters, or of those that this replica sums.
pub(crate) fn summed<const D: usize>(
    graph: &Graph<D>,
    clustering: &Clustering,
    sample: Sample,
    into: &Path,
    used: u64,
    run: &Run,
) -> Result<ListFiles> {
    let (directory, each) = memory_of(graph.num_entries());
    let workers = run.workers(usize::MAX, used + directory, each, "contraction out of core")?;
    let buckets = Buckets::of(graph, clustering, run)?;
    let spilled = buckets.spill(graph, clustering, into, workers, run)?;
    let Buckets { starts, bucket_of } = buckets;
    drop(bucket_of);
    let shift = shift(graph);
    let count = starts.len() - 1;
    let own = graph.division().map_or(0..count, |division| {
        let first = |replica: usize| replica * count / division.count();
        first(division.number())..first(division.number() + 1)
    });
    // The bucket of one cluster may have any number of entries.
    let is_one = |bucket: usize| starts[bucket + 1] - starts[bucket] == 1;
    let mut lists = ListFiles::create(starts[own.start]..starts[own.end], into)?;
    let long = Mutex::new(SharedSums::new(clustering.count));
    let mut next = own.start;
    while next < own.end {
        if is_one(next) {
            lists.append_long(&spilled, next, &mut locked(&long), (workers, shift), run)?;
            next += 1;
            continue;
        }
        let wave = (next..own.end.min(next + workers)).take_while(|&bucket| !is_one(bucket)).count();
        let sum = |map: &mut RatingMap, index: usize| {
            let bucket = next + index;
            sums_of(
                &spilled,
                bucket,
                starts[bucket]..starts[bucket + 1],
                (map, &long, clustering.count, shift),
                run,
            )
        };
        for sums in map(run, workers, wave, || RatingMap::of_short(clustering.count), sum)? {
            lists.append(&sums)?;
            run.check()?;
        }
        next += wave;
    }
    drop(spilled);
    if let Some(division) = graph.division() {
        lists.histogram = lists.histogram.sum(division)?;
    }
    lists.sample(sample, clustering.count as u64, run)?;
    Ok(lists)
}

/// Ranges of clusters, each of about as many entries as any other.
struct Buckets {
    /// First cluster of each, and the number of all clusters.
    starts: Vec<u32>,
    bucket_of: Buffer<u32>,
}

impl Buckets {
    fn of<const D: usize>(graph: &Graph<D>, clustering: &Clustering, run: &Run) -> Result<Buckets> {
        let Clustering { cluster_of, count } = clustering;
        // The entries of each cluster first.
        let mut bucket_of: Buffer<u32> = Buffer::zeroed(*count, "entries of clusters")?;
        run.each(graph.len(), |v| {
            let entries = &mut bucket_of[cluster_of[v as usize] as usize];
            *entries = entries.saturating_add(graph.degree(v).try_into().unwrap_or(u32::MAX));
        })?;
        let (most, mut sum, mut starts) = (bucket(graph.num_entries()), 0, vec![0]);
        run.each(*count, |cluster| {
            let entries = &mut bucket_of[cluster as usize];
            if sum > 0 && sum + u64::from(*entries) > most {
                starts.push(cluster);
                sum = 0;
            }
            sum += u64::from(std::mem::replace(entries, starts.len() as u32 - 1));
        })?;
        starts.push(*count as u32);
        Ok(Buckets { starts, bucket_of })
    }

    /// Sends the edges between clusters, summed for each vertex, to the buckets of the clusters of their
    /// sources.
    fn spill<const D: usize>(
        &self,
        graph: &Graph<D>,
        clustering: &Clustering,
        into: &Path,
        workers: usize,
        run: &Run,
    ) -> Result<SpillReader<EdgeSum>> {
        let Clustering { cluster_of, count } = clustering;
        let (division, buckets) = (graph.division(), self.starts.len() - 1);
        let spill = match division {
            None => Spill::create(into, buckets)?,
            Some(division) => Spill::create_shared(division, buckets)?,
        };
        let units = units(graph).into_iter().zip(0..);
        let init = || Ok((spill.writer()?, RatingMap::of_short(*count)?));
        let long = Mutex::new(SharedSums::new(*count));
        let pass = scan(run, workers, units, init, |(writer, map), (vertices, unit)| {
            writer.begin(unit)?;
            for range in graph.ranges(vertices) {
                for v in range {
                    graph.prefetch_neighbours(v.saturating_add(AHEAD as u32), MOST_AHEAD, cluster_of);
                    let own = cluster_of[v as usize];
                    let bucket = self.bucket_of[own as usize] as usize;
                    if SharedSums::takes(graph.degree(v), *count) {
                        let sums = &mut locked(&long);
                        let mut push =
                            |[to, weight]: [u32; 2]| writer.push(bucket, EdgeSum { from: own, to, weight });
                        each_long_sum(graph, clustering, v, sums, &mut push)?;
                        continue;
                    }
                    map.begin(graph.degree(v), *count);
                    clustering.each_outside(graph, v, own, |other, w| _ = map.add(other, w));
                    for [to, weight] in map.sums() {
                        writer.push(bucket, EdgeSum { from: own, to, weight })?;
                    }
                }
                run.check()?;
            }
            Ok(())
        })?;
        let writers = pass.into_iter().map(|(writer, _)| writer).collect();
        match division {
            None => spill.seal(writers),
            Some(division) => spill.seal_all(writers, division),
        }
    }
}

/// Ranges of the vertices of `graph` whose lists are here, each large enough to fill the buffers of all
/// buckets.
fn units<const D: usize>(graph: &Graph<D>) -> Vec<Range<u32>> {
    let enough = unit(graph.num_entries());
    let here = graph.here();
    let (mut units, mut start, mut entries) = (Vec::new(), here.start, 0);
    for range in graph.split(here.clone()) {
        entries += graph.entries_of(range.clone());
        if entries >= enough || range.end == here.end {
            units.push(std::mem::replace(&mut start, range.end)..range.end);
            entries = 0;
        }
    }
    units
}

/// Hands out the sums of the edges from `v`, whose list is long, to the other clusters.
fn each_long_sum<const D: usize>(
    graph: &Graph<D>,
    clustering: &Clustering,
    v: u32,
    sums: &mut SharedSums,
    take: &mut impl FnMut([u32; 2]) -> Result<()>,
) -> Result<()> {
    let (sums, own) = (sums.share(1)?, clustering.cluster_of[v as usize]);
    let mut adder = sums.adder();
    clustering.each_outside(graph, v, own, |other, w| adder.add(other, w));
    drop(adder);
    let mut done = Ok(());
    clustering.each_outside(graph, v, own, |other, _| {
        let sum = sums.take(other);
        if sum > 0 && done.is_ok() {
            done = take([other, sum]);
        }
    });
    done
}

/// The lists of the clusters of a bucket.
struct BucketLists {
    /// Targets and weights. The first `len` are in use.
    entries: Buffer<[u32; 2]>,
    len: usize,
    /// Number of entries of each cluster.
    lens: Vec<u32>,
}

/// The lists of the clusters of a bucket, without the weights of the clusters.
fn sums_of(
    spilled: &SpillReader<EdgeSum>,
    bucket: usize,
    clusters: Range<u32>,
    (map, long, count, shift): (&mut RatingMap, &Mutex<SharedSums>, usize, u32),
    run: &Run,
) -> Result<BucketLists> {
    let place = |entry: &EdgeSum| (entry.from - clusters.start) as usize;
    let mut lens: Vec<u32> = zeros(clusters.len(), "clusters of a bucket")?;
    let mut buf = reserved(PIECE, "a piece of a bucket")?;
    for piece in spilled.pieces(bucket) {
        spilled.read_piece(piece, &mut buf)?;
        buf.iter().for_each(|entry| lens[place(entry)] += 1);
        run.check()?;
    }
    // Placing the entries of a cluster moves its start to its end.
    let (mut ends, mut sum): (Vec<u32>, u32) = (reserved(clusters.len(), "clusters of a bucket")?, 0);
    for len in &lens {
        ends.push(sum);
        sum += len;
    }
    let mut entries: Buffer<[u32; 2]> = Buffer::zeroed(sum as usize, "bucket")?;
    for piece in spilled.pieces(bucket) {
        spilled.read_piece(piece, &mut buf)?;
        for entry in &buf {
            let at = &mut ends[place(entry)];
            entries[*at as usize] = [entry.to, entry.weight];
            *at += 1;
        }
        run.check()?;
    }
    // The sums of a cluster take the place of its entries, or of those before.
    let (mut start, mut to) = (0, 0);
    for (&end, len) in ends.iter().zip(&mut lens) {
        let (list, first) = (start..end as usize, to);
        start = list.end;
        let mut put = |entries: &mut [[u32; 2]], [target, sum]: [u32; 2]| {
            entries[to] = [target, (sum >> shift).max(1)];
            to += 1;
        };
        if SharedSums::takes(list.len(), count) {
            let sums = &mut *locked(long);
            let sums = sums.share(1)?;
            let mut adder = sums.adder();
            entries[list.clone()].iter().for_each(|&[target, weight]| adder.add(target, weight));
            drop(adder);
            for index in list {
                let target = entries[index][0];
                match sums.take(target) {
                    0 => {}
                    sum => put(&mut entries, [target, sum]),
                }
            }
        } else {
            map.begin(list.len(), count);
            entries[list].iter().for_each(|&[target, weight]| _ = map.add(target, weight));
            map.sums().for_each(|sum| put(&mut entries, sum));
        }
        *len = (to - first) as u32;
    }
    run.check()?;
    Ok(BucketLists { entries, len: to, lens })
}

/// The lists of some vertices of a graph, in files.
pub(crate) struct ListFiles {
    /// The targets of all entries.
    pub targets: TempFile,
    /// Their weights.
    pub weights: TempFile,
    /// The first of the vertices.
    pub first: u32,
    offsets: Buffer<u64>,
    /// Vertices whose lists are there.
    vertices: usize,
    /// The weight of all entries.
    weight: u64,
    histogram: Histogram,
    /// Targets and weights on their way to the files.
    chunk: [Vec<u32>; 2],
}

/// Purpose of the memory, for errors.
const LISTS: &str = "lists on their way to files";
/// Entries that are read or written at a time.
const CHUNK: usize = 1 << 14;

impl ListFiles {
    fn create(clusters: Range<u32>, into: &Path) -> Result<Self> {
        Ok(Self {
            targets: TempFile::create(into)?,
            weights: TempFile::create(into)?,
            first: clusters.start,
            offsets: Buffer::zeroed(clusters.len() + 1, "graph: offsets")?,
            vertices: 0,
            weight: 0,
            histogram: Histogram::default(),
            chunk: [reserved(CHUNK, LISTS)?, reserved(CHUNK, LISTS)?],
        })
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.offsets[self.vertices]
    }

    /// The number of entries of each vertex.
    pub(crate) fn degrees(&self) -> Result<Vec<u32>> {
        let mut degrees = reserved(self.vertices, "degrees of clusters")?;
        degrees.extend(self.offsets.windows(2).map(|ends| (ends[1] - ends[0]) as u32));
        Ok(degrees)
    }

    /// Appends the lists of the next vertices.
    fn append(&mut self, lists: &BucketLists) -> Result<()> {
        let mut end = self.len();
        for (entries, first) in lists.entries[..lists.len].chunks(CHUNK).zip((end..).step_by(CHUNK)) {
            self.put(first, entries.iter().copied())?;
        }
        for &len in &lists.lens {
            end += u64::from(len);
            self.end(end);
        }
        Ok(())
    }

    /// Writes entries, at most [`CHUNK`].
    fn put(&mut self, first: u64, entries: impl Iterator<Item = [u32; 2]>) -> Result<usize> {
        let Self { chunk: [targets, weights], histogram, .. } = self;
        targets.clear();
        weights.clear();
        for [target, weight] in entries {
            targets.push(target);
            weights.push(weight);
            histogram.add(weight);
        }
        self.weight += sum_of(weights);
        self.targets.write(first, targets)?;
        self.weights.write(first, weights)?;
        Ok(targets.len())
    }

    /// Ends the list of the next vertex.
    fn end(&mut self, end: u64) {
        self.vertices += 1;
        self.offsets[self.vertices] = end;
    }

    /// Appends the list of the only cluster of a bucket, which is long. All workers sum it up.
    fn append_long(
        &mut self,
        spilled: &SpillReader<EdgeSum>,
        bucket: usize,
        sums: &mut SharedSums,
        (workers, shift): (usize, u32),
        run: &Run,
    ) -> Result<()> {
        let sums = sums.share(workers)?;
        scan(
            run,
            workers,
            spilled.pieces(bucket),
            || reserved(PIECE, "a piece of a bucket"),
            |buf, piece| {
                spilled.read_piece(piece, buf)?;
                let mut adder = sums.adder();
                buf.iter().for_each(|entry| adder.add(entry.to, entry.weight));
                Ok(())
            },
        )?;
        let mut buf = reserved(PIECE, "a piece of a bucket")?;
        let mut end = self.len();
        for piece in spilled.pieces(bucket) {
            spilled.read_piece(piece, &mut buf)?;
            let first = |entry: &EdgeSum| match sums.take(entry.to) {
                0 => None,
                sum => Some([entry.to, (sum >> shift).max(1)]),
            };
            end += self.put(end, buf.iter().filter_map(first))? as u64;
            run.check()?;
        }
        self.end(end);
        Ok(())
    }

    /// Keeps a sample of the entries, in place, in a graph of `n` vertices.
    fn sample(&mut self, sample: Sample, n: u64, run: &Run) -> Result<()> {
        let Some(kept) = sample.of(&self.histogram, n) else { return Ok(()) };
        if self.vertices == 0 {
            return Ok(());
        }
        let [mut targets, mut weights] = std::mem::take(&mut self.chunk);
        targets.resize(CHUNK, 0);
        weights.resize(CHUNK, 0);
        let (end, mut to, mut v) = (self.len(), 0, 0);
        let mut next = self.offsets[1];
        self.weight = 0;
        for first in (0..end).step_by(CHUNK) {
            let count = CHUNK.min((end - first) as usize);
            self.targets.read(first, &mut targets[..count])?;
            self.weights.read(first, &mut weights[..count])?;
            let mut left = 0;
            for index in 0..count {
                while next <= first + index as u64 {
                    v += 1;
                    self.offsets[v] = to + left as u64;
                    next = self.offsets[v + 1];
                }
                let (target, weight) = (targets[index], weights[index]);
                if let Some(weight) = kept.weight(self.first + v as u32, target, weight) {
                    (targets[left], weights[left]) = (target, weight);
                    self.weight += u64::from(weight);
                    left += 1;
                }
            }
            self.targets.write(to, &targets[..left])?;
            self.weights.write(to, &weights[..left])?;
            to += left as u64;
            run.check()?;
        }
        self.offsets[v + 1..].fill(to);
        Ok(())
    }

    /// The graph of all lists.
    fn finish<const D: usize>(self, weights: Buffer<Load<D>>, run: &Run) -> Result<Graph<'static, D>> {
        let entries = self.len();
        let [targets, edge_weights] =
            [self.targets, self.weights].map(|file| Buffer::of_file(file, entries as usize));
        Graph::of(self.offsets, targets?, (edge_weights?, self.weight), weights, run)
    }
}
