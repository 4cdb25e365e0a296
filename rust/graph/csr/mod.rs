//! The adjacency: the neighbours of every vertex, from a stream of edges.
//!
//! **Requirements.** Ids below `n`. In a *symmetric* stream, which lists both directions of every edge, a
//! record `(u, v)` is the one entry `u → v`. The symmetry is not checked. If the stream is not symmetric, `v`
//! does not list `u`, and an algorithm sees an edge that only `u` has. Its result is valid for another graph.
//!
//! **Memory.** The result takes 8 bytes per vertex, and 4 per entry: 8 per undirected record. If records have
//! weights, it takes 4 more per entry. Building it takes 4 bytes per vertex and 2 per entry more, and per
//! worker about `400 sqrt(entries)` bytes (7 MB for 10^9 records). If that is at most half of the budget, and
//! the result leaves free what the run reserves, all of it is in memory. The other half is left for what is
//! computed from it. Otherwise whatever grows with the records goes to mapped, unnamed temporary files: 6
//! bytes per entry while it is built, and 4 afterwards, and 4 more with weights. Their blocks are allocated
//! before anything is written to them. (A file system that copies on write, such as btrfs, may need new
//! blocks later, and ends the process if it has none.) Files on a file system in memory count as memory.
//!
//! **Algorithm.** Degrees give the offsets. Ranges of vertices with about `T = sqrt(32 entries)` entries are
//! *buckets*. A vertex with more is a bucket of its own. One pass over the records collects the entries of
//! each bucket in small buffers. It copies full buffers to the place of the bucket in the result, in any
//! order: the targets themselves, and beside them, in 16 bits, the sources ([`buckets`]). Then each bucket,
//! which the second-level cache holds, is sorted by source, target and weight ([`sort`]). Weights are scaled
//! before ([`weights`]). So the order in which it was filled, and with it the threads, does not matter. All
//! accesses to large arrays are sequential, except one lookup per entry of the bucket of a vertex.
//!
//! **Parallelism.** The passes by records, the sorting by buckets.
//!
//! **Complexity.** O(n + m): two passes over the records, then `1 + ceil(log2(n) / 11)` over the entries in
//! the cache. T balances the two things that a cache has to hold, the buffers of all buckets and one bucket.
//!
//! **Source.** Partitioning as in Polychroniou, Ross, "A comprehensive study of main-memory partitioning and
//! its application to large-scale comparison- and radix-sort", SIGMOD 2014, section 3.

mod buckets;
mod cache;
mod packed;
mod sort;
mod weights;

use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;

use super::degrees;
use super::degrees::Degrees;
use super::identity::Identity;
use super::pieces::{self, Dealt, Piece};
use super::weights::{Extent, extent};
use crate::base::{Buffer, Error, Result, Run};
use crate::edges::{EdgeStream, Weights};
use crate::exec::{Division, Peers};
use buckets::{Buckets, Columns};
pub use cache::AdjacencyCache;
pub(crate) use packed::{List, expected};
pub use packed::{Packed, packed_len};
use weights::Scaled;

/// Entries up to which the first replica of a divided run has all lists: a small graph may have no coarser
/// one.
const WHOLE: u64 = 1 << 22;
/// Vertices between two polls of the cancel flag.
const CHUNK: usize = 1 << 16;

/// Adjacency: the neighbours of each vertex, ascending. Loops are left out, parallel records are parallel
/// entries.
#[derive(Debug)]
pub struct Csr {
    offsets: Buffer<u64>,
    neighbours: Buffer<u32>,
    /// The weight of each entry, and the identity of the weights of the records.
    weights: Option<(Buffer<u32>, Extent)>,
    /// Sum of the weights of all entries.
    weight: u64,
    graph: Identity,
    symmetric: bool,
    in_memory: bool,
    /// The ranges whose lists the replicas have, if the run is divided among any.
    division: Option<Division>,
}

/// Where the arrays that grow with the records lie: in memory, or in files of a folder.
#[derive(Clone, Copy)]
struct Home<'a>(Option<&'a Path>);

impl Home<'_> {
    fn zeroed<T: Pod>(self, len: u64, what: &str) -> Result<Buffer<T>> {
        match self.0 {
            None => Buffer::zeroed(len as usize, what),
            Some(dir) => Buffer::in_file(len as usize, dir),
        }
    }
}

impl Csr {
    /// Builds the adjacency. Both ends of an undirected record get an entry. A `symmetric` stream lists both
    /// directions, so one entry per record gives the same graph.
    pub fn build(edges: &dyn EdgeStream, symmetric: bool, run: &Run) -> Result<Arc<Csr>> {
        Self::build_weighted(edges, None, symmetric, run)
    }

    /// Builds it as [`Csr::build`] does, with the weights of the records if there are any.
    pub fn build_weighted(
        edges: &dyn EdgeStream,
        weights: Option<&Weights>,
        symmetric: bool,
        run: &Run,
    ) -> Result<Arc<Csr>> {
        let (n, m) = (edges.num_vertices(), edges.num_edges());
        let weighted = weights.is_some();
        let in_memory = fits(edges, weighted, symmetric, run);
        let files = if in_memory { 0 } else { building(edges, weighted, symmetric) };
        let (files, what) = run.temporary(run.tmp_dir(), files, format!("the neighbours of {n} vertices"));
        run.require(Csr::memory(edges, weighted, symmetric, run), what)?;
        weights.map_or(Ok(()), |weights| weights.check_len(m))?;
        let scan = if symmetric { degrees::scan_sources } else { degrees::scan };
        let extent = weights.map(|weights| extent(weights, run)).transpose()?;
        let scaled = weights.zip(extent.as_ref()).map(|(weights, extent)| Scaled::new(weights, extent));
        let Degrees { degree, graph } = scan(edges, run)?;
        let home = Home((!in_memory).then(|| run.tmp_dir()));
        let Lists { offsets, neighbours, weights, weight } =
            lists(edges, scaled.as_ref(), symmetric, degree, home, run)?;
        let weights = extent.map(|extent| (weights, extent));
        Ok(Arc::new(Csr {
            offsets,
            neighbours,
            weights,
            weight,
            graph,
            symmetric,
            in_memory: in_memory || files > 0,
            division: None,
        }))
    }

    /// The adjacency of a replica: the lists of its pieces, and the degrees of all vertices. `pieces` are the
    /// pieces of all replicas, and `key` is the key of their input.
    pub fn divided(
        pieces: &[Piece],
        key: u128,
        graph: Identity,
        symmetric: bool,
        (peers, number, count): (Arc<dyn Peers>, usize, usize),
        run: &Run,
    ) -> Result<Arc<Csr>> {
        let n = u32::try_from(graph.n)
            .map_err(|_| Error::Capacity(format!("{} vertices are too many", graph.n)))?;
        let firsts = pieces::deal(pieces, count);
        let division = Division::new(peers, number, pieces::starts(pieces, &firsts, n))?;
        let entries: u64 = pieces.iter().map(|piece| piece.entries).sum();
        let dealt = Dealt { pieces, key, n, weighted: false, firsts: &firsts, whole: entries <= WHOLE };
        let pieces::Lists { offsets, targets, weight, .. } = dealt.copy(number, run)?.join(&division, run)?;
        Ok(Arc::new(Csr {
            offsets,
            neighbours: targets,
            weights: None,
            weight,
            graph,
            symmetric,
            in_memory: false,
            division: Some(division),
        }))
    }

    /// Most bytes that [`Csr::build`] takes at one time, without its files on a disk. Loops, which need none,
    /// are not known before.
    pub fn memory(edges: &dyn EdgeStream, weighted: bool, symmetric: bool, run: &Run) -> u64 {
        let entries = match building(edges, weighted, symmetric) {
            entries if fits(edges, weighted, symmetric, run) => entries,
            entries => run.temporary(run.tmp_dir(), entries, "").0,
        };
        entries.saturating_add(working_memory(edges, weighted, symmetric, run))
    }

    /// The least budgets with which it is built if nothing is reserved: with its lists in files, and with all
    /// in memory.
    pub fn least_budgets(edges: &dyn EdgeStream, weighted: bool, symmetric: bool, run: &Run) -> [u64; 2] {
        let lists = building(edges, weighted, symmetric);
        let rest = working_memory(edges, weighted, symmetric, run);
        let in_files = run.temporary(run.tmp_dir(), lists, "").0;
        [in_files.saturating_add(rest), lists.saturating_add(rest).saturating_mul(2)]
    }

    /// Bytes of memory that it takes, files on a disk not counted.
    pub fn bytes(&self) -> u64 {
        let each = if self.weights.is_some() { 8 } else { 4 };
        8 * self.offsets.len() as u64 + if self.in_memory { each * self.num_entries() } else { 0 }
    }

    /// The ranges whose lists the replicas have, if the run is divided among any.
    pub fn division(&self) -> Option<&Division> {
        self.division.as_ref()
    }

    /// The graph: `n`, `m` and `loops` count records.
    pub fn graph(&self) -> &Identity {
        &self.graph
    }

    /// Whether its lists lie in memory instead of in files.
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Whether it has one entry per record instead of two.
    pub fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    /// Number of vertices.
    pub fn num_vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of entries: the sum of all degrees, `2m'`.
    pub fn num_entries(&self) -> u64 {
        self.offsets[self.num_vertices()]
    }

    /// Entries that it would have without loops, as far as was known before it was built.
    pub fn most_entries(&self) -> u64 {
        self.graph.m.saturating_mul(if self.symmetric { 1 } else { 2 })
    }

    /// Where the list of each vertex begins in [`entries`](Self::entries), and the number of all.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The lists of all vertices, one after the other.
    pub fn entries(&self) -> &[u32] {
        &self.neighbours
    }

    /// The weight of each entry, above 0, if the records have weights. They are scaled: see [`weights`].
    pub fn weights(&self) -> Option<&[u32]> {
        self.weights.as_ref().map(|(weights, _)| &**weights)
    }

    /// Sum of the weights of all entries, which are 1 if the records have none.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Range, sum and checksum of the weights of the records.
    pub fn extent(&self) -> Option<&Extent> {
        self.weights.as_ref().map(|(_, extent)| extent)
    }

    /// Number of neighbours, parallel ones included.
    #[inline(always)]
    pub fn degree(&self, v: u32) -> u32 {
        (self.offsets[v as usize + 1] - self.offsets[v as usize]) as u32
    }

    /// The neighbours of `v`, ascending.
    #[inline(always)]
    pub fn neighbours(&self, v: u32) -> &[u32] {
        &self.neighbours[self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize]
    }
}

/// Where the list of each vertex begins, and all lists one after the other, in memory: those of
/// [`Csr::build`] for a stream that is not symmetric, with known degrees.
pub(crate) fn lists_in_memory(
    edges: &dyn EdgeStream,
    degree: Buffer<u32>,
    run: &Run,
) -> Result<(Buffer<u64>, Buffer<u32>)> {
    let Lists { offsets, neighbours, .. } = lists(edges, None, false, degree, Home(None), run)?;
    Ok((offsets, neighbours))
}

/// Bytes that [`lists_in_memory`] takes, the degrees included.
pub(crate) fn lists_memory(n: u64, entries: u64, threads: usize) -> u64 {
    6 * entries + building_memory(n, entries, false, threads)
}

/// The lists of all vertices.
struct Lists {
    offsets: Buffer<u64>,
    neighbours: Buffer<u32>,
    /// The weight of each entry, or nothing.
    weights: Buffer<u32>,
    /// Sum of the weights of all entries.
    weight: u64,
}

fn lists(
    edges: &dyn EdgeStream,
    scaled: Option<&Scaled>,
    symmetric: bool,
    degree: Buffer<u32>,
    home: Home,
    run: &Run,
) -> Result<Lists> {
    let offsets = offsets(&degree, run)?;
    let buckets = Buckets::new(degree, &offsets, run)?;
    let entries = buckets.num_entries();
    let mut neighbours = home.zeroed(entries, "adjacency")?;
    let mut weights = match scaled {
        Some(_) => home.zeroed(entries, "weights of the adjacency")?,
        None => Buffer::zeroed(0, "weights of the adjacency")?,
    };
    let mut sources = home.zeroed(entries, "sources of the adjacency")?;
    // In files, each bucket grows at its own place. If reading a page also read the pages around it, they
    // would drive out the pages of the other buckets.
    let expect = |random, lists: [&Buffer<u32>; 2], sources: &Buffer<u16>| {
        lists.into_iter().for_each(|lists| lists.expect_random(random));
        sources.expect_random(random);
    };
    expect(true, [&neighbours, &weights], &sources);
    let columns = Columns { targets: &mut neighbours, sources: &mut sources, weights: &mut weights };
    buckets.fill(edges, scaled, symmetric, columns, run)?;
    expect(false, [&neighbours, &weights], &sources);
    let weight = buckets.sort(&mut neighbours, &sources, &mut weights, run)?;
    Ok(Lists { offsets, neighbours, weights, weight })
}

fn most_entries(edges: &dyn EdgeStream, symmetric: bool) -> u64 {
    edges.num_edges().saturating_mul(if symmetric { 1 } else { 2 })
}

/// Bytes of whatever grows with the records while it is built.
fn building(edges: &dyn EdgeStream, weighted: bool, symmetric: bool) -> u64 {
    most_entries(edges, symmetric).saturating_mul(if weighted { 10 } else { 6 })
}

/// Whether the adjacency is built in memory.
fn fits(edges: &dyn EdgeStream, weighted: bool, symmetric: bool, run: &Run) -> bool {
    let building =
        building(edges, weighted, symmetric).saturating_add(working_memory(edges, weighted, symmetric, run));
    let each = if weighted { 8 } else { 4 };
    let built =
        most_entries(edges, symmetric).saturating_mul(each).saturating_add(8 * edges.num_vertices() + 8);
    building <= run.budget() / 2 && built.saturating_add(run.reserved()) <= run.budget()
}

/// Bytes that are needed wherever the entries lie.
fn working_memory(edges: &dyn EdgeStream, weighted: bool, symmetric: bool, run: &Run) -> u64 {
    let build =
        building_memory(edges.num_vertices(), most_entries(edges, symmetric), weighted, run.threads());
    build.max(degrees::memory(edges, run))
}

fn building_memory(n: u64, entries: u64, weighted: bool, threads: usize) -> u64 {
    12 * n + 8 + buckets::memory(n, entries, weighted, threads as u64)
}

/// Where the neighbours of each vertex begin, and the number of all.
fn offsets(degree: &[u32], run: &Run) -> Result<Buffer<u64>> {
    let mut offsets: Buffer<u64> = Buffer::zeroed(degree.len() + 1, "offsets of the adjacency")?;
    let mut sum = 0;
    for (offsets, degree) in offsets[1..].chunks_mut(CHUNK).zip(degree.chunks(CHUNK)) {
        for (offset, &degree) in offsets.iter_mut().zip(degree) {
            sum += u64::from(degree);
            *offset = sum;
        }
        run.check()?;
    }
    Ok(offsets)
}

/// The second pass met other records than the first. (For a file, the check after the pass reports this
/// first.)
fn changed() -> Error {
    Error::format("edges", "the records changed while they were being read. Run again when they are complete")
}
