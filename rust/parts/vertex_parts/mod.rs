//! The parts of a vertex partition, all of them or some.
//!
//! Some parts ([`Portion`]) have the bytes that they have among all. Every pass over the records then keeps
//! the edges with a target in these parts. So a portion needs the graph, the assignment and nothing else, and
//! machines that see the same files write portions apart from each other. Each of them reads all records, 8
//! bytes each, once for the degrees and once for the edges. The alternative is to deal the edges once,
//! through files that all machines see: 16 bytes per edge are then written and read. For a few machines
//! reading is less. Degrees, masks and ranks of all vertices are needed for any portion, so the memory is
//! that of all parts.

mod second_hop;

use std::ops::Range;
use std::path::Path;

use super::layout::Layout;
use super::rows::{EdgeBuckets, PartEdges, RowBuffers, RowFiles, check_local, write_rows};
use super::{PartSizes, check_records, in_degrees, part_folder};
use crate::base::npy::{ArrayWriter, Start};
use crate::base::{Buffer, Error, Result, Run, ahead, prefetch_ends};
use crate::edges::{Directions, EdgeStream, Record};
use crate::exec::{Entry, SpillReader, Writer, spill, spill_edges};
use crate::measure;
use crate::sets::{Groups, LocalSet};

/// The parts that are written, and where.
#[derive(Debug, Clone)]
pub struct Portion<'a> {
    /// The parts.
    pub parts: Range<u32>,
    /// `h` stores the in-edges of every vertex at distance < h from the part, against the direction of the
    /// edges, and 0 those inside the part.
    pub halo_hops: u32,
    /// Where the folders of the parts go.
    pub into: &'a Path,
    /// Where the temporary file lies.
    pub temporary: &'a Path,
}

impl<'a> Portion<'a> {
    /// All parts. The temporary file lies beside them.
    pub fn whole(k: u32, halo_hops: u32, into: &'a Path) -> Self {
        Self { parts: 0..k, halo_hops, into, temporary: into }
    }
}

/// Writes the folders of parts, and returns their sizes.
pub fn write_vertex_parts(
    edges: &dyn EdgeStream,
    assignment: &[i32],
    k: u32,
    directions: &Directions,
    portion: &Portion,
    run: &Run,
) -> Result<Vec<PartSizes>> {
    let Portion { ref parts, halo_hops, .. } = *portion;
    if parts.start > parts.end || parts.end > k {
        return Err(Error::parameter("parts", format!("{parts:?} is not within 0..{k}")));
    }
    if halo_hops > 2 {
        return Err(Error::parameter("halo_hops", format!("{halo_hops} is not between 0 and 2")));
    }
    check_records(edges)?;
    let n = edges.num_vertices();
    measure::validate(assignment, k, n, run)?;
    let workers = plan(edges, k, directions, halo_hops, run)?;
    let available = run.budget() - if halo_hops == 0 { 4 * n } else { 0 };
    let degree = in_degrees(edges, directions, available, run, |_| true)?;
    let inside = |[u, v]: Record| assignment[u as usize] == assignment[v as usize];
    let inner_degree =
        (halo_hops == 0).then(|| in_degrees(edges, directions, available, run, inside)).transpose()?;
    let members = Members::new(assignment, k as usize, run)?;
    let graph = VertexParts { edges, assignment, directions, portion, run, degree, members };
    let parts = graph.first_hop(inner_degree.as_deref().unwrap_or(&graph.degree), workers)?;
    let mut sizes: Vec<PartSizes> = parts.iter().map(|&(sizes, _)| sizes).collect();
    if halo_hops == 2 {
        let halo_degrees: Vec<u64> = parts.iter().map(|&(_, degrees)| degrees).collect();
        second_hop::append(&graph, &mut sizes, &halo_degrees, workers)?;
    }
    Ok(sizes)
}

/// Checks the budget, and returns the number of workers that it allows.
fn plan(edges: &dyn EdgeStream, k: u32, directions: &Directions, halo_hops: u32, run: &Run) -> Result<usize> {
    let n = edges.num_vertices();
    let most = directions.most_edges(edges.num_edges());
    let what = format!("writing the parts of {n} vertices (halo_hops={halo_hops})");
    // Degree, order and rank. Inner degrees. Masks. With a second hop, up to twice the entries are spilled.
    let per_vertex = [16, 12, 20][halo_hops as usize];
    let times = u64::from(halo_hops.max(1));
    let buckets = Layout::most_buckets(times * n, times * most, k.into());
    let (directory, buffers) = spill::memory(times * most, buckets);
    let fixed = per_vertex * n + 128 * u64::from(k) + directory;
    let ordering = directions.relations().map_or(0, |_| RowBuffers::ordering_memory(times * most));
    let each = u64::from(halo_hops) * LocalSet::memory(n)
        + RowBuffers::memory(times * (most + n))
        + ordering
        + buffers;
    run.workers(usize::MAX, fixed, each, &what)
}

/// The vertices of each part.
pub(crate) struct Members {
    /// All vertices, by part.
    vertices: Groups,
    /// Number of each vertex within its part: its row there.
    pub rank: Buffer<u32>,
}

impl Members {
    fn new(assignment: &[i32], k: usize, run: &Run) -> Result<Self> {
        let mut sizes: Buffer<u32> = Buffer::zeroed(k, "sizes of the parts")?;
        run.each(assignment.len(), |v| sizes[assignment[v as usize] as usize] += 1)?;
        let part = |v: u32| Some(assignment[v as usize] as u32);
        let vertices = Groups::of(assignment.len(), sizes, part, |_| run.check())?;
        let mut rank = Buffer::zeroed(assignment.len(), "local ids")?;
        for part in 0..k as u32 {
            vertices.group(part).iter().zip(0..).for_each(|(&v, place)| rank[v as usize] = place);
            run.check()?;
        }
        Ok(Self { vertices, rank })
    }

    /// The vertices of the part, ascending.
    pub(crate) fn of(&self, part: usize) -> &[u32] {
        self.vertices.group(part as u32)
    }
}

/// All that the parts are made of.
pub(crate) struct VertexParts<'a> {
    pub edges: &'a dyn EdgeStream,
    pub assignment: &'a [i32],
    pub directions: &'a Directions,
    pub portion: &'a Portion<'a>,
    pub run: &'a Run,
    pub degree: Buffer<u32>,
    pub members: Members,
}

/// Scratch space of a worker that writes parts.
struct Worker {
    halo: LocalSet,
    rows: RowBuffers,
}

impl VertexParts<'_> {
    /// Writes inner vertices, their 1-hop halo, and the rows of the inner vertices, of which `row_degree`
    /// tells how many edges they have. Returns the sizes of each part, and the sum of the in-degrees of its
    /// halo.
    fn first_hop(&self, row_degree: &[u32], workers: usize) -> Result<Vec<(PartSizes, u64)>> {
        let mut layout = Layout::default();
        for part in self.portion.parts.clone() {
            let rows = self.members.of(part as usize).iter().zip(0..);
            layout.add_part(rows.map(|(&v, row)| (row, u64::from(row_degree[v as usize]))));
            self.run.check()?;
        }
        let spilled = self.spill(&layout, workers)?;
        self.run.begin("parts", 2 * layout.num_edges());
        let parted = EdgeBuckets { layout, spilled };
        let init = || {
            let halo =
                LocalSet::new(if self.portion.halo_hops == 0 { 0 } else { self.edges.num_vertices() })?;
            Ok(Worker { halo, rows: RowBuffers::new(parted.layout.windows())? })
        };
        let first = self.portion.parts.start as usize;
        parted.map(workers, self.run, init, |worker, index, edges| {
            self.write_part(first + index, edges, row_degree, worker)
        })
    }

    /// Sends every edge to the part of its target. The source is a local id, flagged if it is also inner.
    fn spill(&self, layout: &Layout, workers: usize) -> Result<SpillReader> {
        let (m, parts, rank) = (self.edges.num_edges(), self.assignment, &*self.members.rank);
        let Portion { parts: ref written, halo_hops, temporary, .. } = *self.portion;
        let send = |writer: &mut Writer, u: u32, v: u32, id: u64| -> Result<()> {
            let (p, q) = (parts[u as usize], parts[v as usize]);
            let inner = p == q;
            if !written.contains(&(q as u32)) || (!inner && halo_hops == 0) {
                return Ok(());
            }
            let place = layout.place(q as usize - written.start as usize);
            let row = rank[v as usize];
            let source = if inner { rank[u as usize] } else { u };
            writer.push(layout.bucket(place, row), Entry::new(source, row, id, place.tag, inner))
        };
        self.run.begin("buckets", m);
        spill_edges(self.edges, self.run, workers, temporary, layout.buckets(), |writer, first, records| {
            for (index, (&[u, v], id)) in records.iter().zip(first..).enumerate() {
                prefetch_ends(parts, records, index + ahead::RECORDS);
                prefetch_ends(rank, records, index + ahead::RECORDS);
                send(writer, u, v, id)?;
                if self.directions.reverses(id, [u, v]) {
                    send(writer, v, u, m + id)?;
                }
            }
            Ok(())
        })
    }

    fn write_part(
        &self,
        part: usize,
        edges: PartEdges,
        row_degree: &[u32],
        Worker { halo, rows }: &mut Worker,
    ) -> Result<(PartSizes, u64)> {
        let members = self.members.of(part);
        let num_inner = members.len() as u64;
        if self.portion.halo_hops > 0 {
            edges.read(self.run, |entries| {
                entries.iter().filter(|entry| !entry.flag()).for_each(|entry| halo.insert(entry.source));
            })?;
        }
        let num_halo = [halo.number(), 0];
        check_local(part, num_inner + num_halo[0])?;
        let folder = part_folder(self.portion.into, part);
        std::fs::create_dir(&folder).map_err(|error| Error::io(&folder, error))?;
        let halo_degrees = self.write_vertices(&folder, members, halo)?;
        let mut files = RowFiles::open(&folder, Start::Anew, self.directions.relations(), self.run)?;
        let degrees = members.iter().map(|&v| u64::from(row_degree[v as usize]));
        let local = |entry: &Entry| {
            if entry.flag() { entry.source } else { num_inner as u32 + halo.local(entry.source) }
        };
        let windows = edges.windows(num_inner);
        write_rows(&mut files, &windows, degrees, |entry| entry.target, local, rows, self.run)?;
        halo.clear();
        let (num_rows, num_edges) = files.finish()?;
        Ok((PartSizes { num_inner, num_halo, num_rows, num_edges, ..Default::default() }, halo_degrees))
    }

    /// Writes the local vertices. Returns the sum of the in-degrees of the halo.
    fn write_vertices(&self, folder: &Path, members: &[u32], halo: &LocalSet) -> Result<u64> {
        let mut files = VertexFiles::open(folder, Start::Anew, self.run)?;
        for &v in members {
            files.push(u64::from(v), self.degree[v as usize])?;
        }
        let mut halo_degrees = 0;
        for v in halo.iter() {
            files.push_halo(self, v)?;
            halo_degrees += u64::from(self.degree[v as usize]);
        }
        files.finish()?;
        Ok(halo_degrees)
    }
}

/// The files that describe the local vertices of a part.
pub(crate) struct VertexFiles<'a> {
    vertices: ArrayWriter<'a, i64>,
    degree: ArrayWriter<'a, i64>,
    halo_parts: ArrayWriter<'a, i32>,
    halo_rows: ArrayWriter<'a, i32>,
}

impl<'a> VertexFiles<'a> {
    /// Opens them in the folder of the part.
    pub(crate) fn open(folder: &Path, begin: Start, run: &'a Run) -> Result<Self> {
        Ok(Self {
            vertices: ArrayWriter::open(folder, "vertices.npy", begin, run)?,
            degree: ArrayWriter::open(folder, "degree.npy", begin, run)?,
            halo_parts: ArrayWriter::open(folder, "halo_parts.npy", begin, run)?,
            halo_rows: ArrayWriter::open(folder, "halo_rows.npy", begin, run)?,
        })
    }

    fn push(&mut self, vertex: u64, degree: u32) -> Result<()> {
        self.vertices.push(vertex as i64)?;
        self.degree.push(i64::from(degree))
    }

    /// Appends a halo vertex, with the part that owns it and its row there.
    pub(crate) fn push_halo(&mut self, graph: &VertexParts, vertex: u64) -> Result<()> {
        let v = vertex as usize;
        self.push(vertex, graph.degree[v])?;
        self.halo_parts.push(graph.assignment[v])?;
        self.halo_rows.push(graph.members.rank[v] as i32) // below 2^31, or writing the owner fails
    }

    /// Finishes the files.
    pub(crate) fn finish(self) -> Result<()> {
        self.vertices.finish()?;
        self.degree.finish()?;
        self.halo_parts.finish()?;
        self.halo_rows.finish().map(drop)
    }
}
