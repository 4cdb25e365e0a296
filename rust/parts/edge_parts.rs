//! The parts of an edge partition.
//!
//! **Algorithm.** Edges go to the part of their record. From each part's edges its vertices are found and
//! listed, and the copies of each vertex counted. Then the [roots](super::roots) are chosen. In the end every
//! part is written: its vertices with their degrees and roots, what it sends, its rows, and what it receives.
//! The latter follows from what the leaves tell their roots.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use super::layout::{Layout, Window};
use super::roots::{Roots, choose_roots, spill_lists};
use super::rows::{EdgeBuckets, PartEdges, RowBuffers, RowFiles, Source, changed, check_local, write_rows};
use super::{PartSizes, check_records, in_degrees, part_folder};
use crate::base::npy::{ArrayWriter, Ids, Start};
use crate::base::{Buffer, Error, Result, Run, shared, zeros};
use crate::edges::{BLOCK, Directedness, EdgeStream};
use crate::exec::{Entry, Spill, SpillReader, pass, spill, spill_edges};
use crate::measure::validate_records;
use crate::sets::LocalSet;

/// Writes the folders of all parts below `into`, and returns their sizes. `assignment` has the part of each
/// record.
pub fn write_edge_parts<P: Copy + Into<i32> + Sync>(
    edges: &dyn EdgeStream,
    assignment: &[P],
    k: u32,
    directedness: Directedness,
    into: &Path,
    run: &Run,
) -> Result<Vec<PartSizes>> {
    validate_records(edges, assignment, k)?;
    check_records(edges)?;
    let (n, m) = (edges.num_vertices(), edges.num_edges());
    let what = format!("writing the parts of {n} vertices");
    let counting = run.workers(usize::MAX, 4 * n + 16 * u64::from(k), 8 * u64::from(k), &what)?;
    let most = directedness.most_edges(m);
    let (directory, buffers) = spill::memory(most, Layout::most_buckets(n, most, k.into()));
    // In-degrees. Copies, roots and order (both ways) of the vertices. Layouts and numbers of roots.
    // Directories of the spilled.
    let fixed = 20 * n + 512 * u64::from(k) + 2 * directory;
    let each = 4 * n + LocalSet::memory(n) + 2 * (RowBuffers::memory(most + n) + buffers);
    let writing = run.workers(usize::MAX, fixed, each, &what)?;

    let layout = part_layout(edges, assignment, k, directedness, counting, run)?;
    let degree = in_degrees(edges, &directedness.into(), run.budget() - 16 * u64::from(k), run, |_| true)?;
    run.begin("buckets", m);
    let spilled = spill_edges(edges, run, writing, into, layout.buckets(), |writer, first, records| {
        for ((&[u, v], id), &part) in records.iter().zip(first..).zip(&assignment[first as usize..]) {
            let place = layout.place(part.into() as usize);
            let bucket = layout.bucket(place, 0);
            writer.push(bucket, Entry::new(u, v, id, place.tag, false))?;
            if directedness.reverses([u, v]) {
                writer.push(bucket, Entry::new(v, u, m + id, place.tag, false))?;
            }
        }
        Ok(())
    })?;
    let parts = Writer { n, k: k as usize, into, run, workers: writing };
    let edges = EdgeBuckets { layout, spilled };
    let (copies, touched) = parts.list_vertices(&edges)?;
    let roots = choose_roots(&copies, &touched, into, writing, run)?;
    drop(copies);
    let sizes = parts.write_all(&edges, &degree, &roots, &touched)?;
    drop((edges, degree));
    parts.write_receivers(&roots, &sizes)?;
    Ok(sizes)
}

/// Counts the edges of each part, and refuses parts outside `0..k`.
fn part_layout<P: Copy + Into<i32> + Sync>(
    edges: &dyn EdgeStream,
    assignment: &[P],
    k: u32,
    directedness: Directedness,
    workers: usize,
    run: &Run,
) -> Result<Layout> {
    run.begin("count", edges.num_edges());
    let init = || Buffer::<u64>::zeroed(k as usize, "edges of the parts");
    let states = pass(edges, run, BLOCK, workers, init, |counts: &mut Buffer<u64>, first, records| {
        for ((&record, id), &part) in records.iter().zip(first..).zip(&assignment[first as usize..]) {
            let part = part.into();
            let Some(count) = counts.get_mut(part as u32 as usize) else {
                let what = format!("record {id} has part {part}, outside 0..{k}");
                return Err(Error::parameter("assignment", what));
            };
            *count += 1 + u64::from(directedness.reverses(record));
        }
        Ok(())
    })?;
    let mut layout = Layout::default();
    for part in 0..k as usize {
        let edges = states.iter().map(|counts| counts[part]).sum();
        layout.add_part(std::iter::once((0, edges)));
    }
    Ok(layout)
}

/// The state that all steps of the writing share.
struct Writer<'a> {
    n: u64,
    k: usize,
    into: &'a Path,
    run: &'a Run,
    workers: usize,
}

impl Writer<'_> {
    /// Calls `each` with an empty set, every part and its edges. Returns what it makes of them.
    fn map<T: Send>(
        &self,
        parts: &EdgeBuckets,
        each: impl Fn(&mut LocalSet, usize, PartEdges) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let init = || LocalSet::new(self.n);
        parts.map(self.workers, self.run, init, |set, part, edges| {
            set.clear();
            each(set, part, edges)
        })
    }

    /// Adds the first `count` vertices that are listed for the part.
    fn add_listed(&self, part: usize, count: u64, set: &mut LocalSet) -> Result<()> {
        Ids::open(&part_folder(self.into, part), "vertices.npy", 0, count)?.for_each(self.run, |v| {
            set.insert(v);
            Ok(())
        })
    }

    /// Writes the vertices that the edges of each part touch. Returns in how many parts each vertex is, and
    /// how many vertices each part has.
    fn list_vertices(&self, parts: &EdgeBuckets) -> Result<(Buffer<u32>, Vec<u64>)> {
        let mut of_vertex: Buffer<u32> = Buffer::zeroed(self.n as usize, "copies")?;
        let copies = shared(&mut of_vertex);
        self.run.begin("vertices", parts.layout.num_edges());
        let sizes = self.map(parts, |set, part, edges| {
            edges.read(self.run, |entries| {
                for entry in entries {
                    set.insert(entry.source);
                    set.insert(entry.target);
                }
            })?;
            let folder = part_folder(self.into, part);
            std::fs::create_dir(&folder).map_err(|error| Error::io(&folder, error))?;
            let mut vertices = ArrayWriter::create(&folder, "vertices.npy", self.run)?;
            for v in set.iter() {
                copies[v as usize].fetch_add(1, Relaxed);
                vertices.push(v as i64)?;
            }
            vertices.finish()
        })?;
        Ok((of_vertex, sizes))
    }

    /// Writes all files except the lists of received vertices. `touched` has the number of vertices listed so
    /// far.
    fn write_all(
        &self,
        parts: &EdgeBuckets,
        degree: &[u32],
        roots: &Roots,
        touched: &[u64],
    ) -> Result<Vec<PartSizes>> {
        self.run.begin("parts", 3 * parts.layout.num_edges());
        self.map(parts, |set, part, edges| {
            self.add_listed(part, touched[part], set)?;
            roots.isolated_in(part).iter().for_each(|&v| set.insert(v));
            let mut sizes = self.write_vertices(part, set, degree, roots)?;
            (sizes.num_rows, sizes.num_edges) = self.write_edges(part, set, edges, sizes.num_inner)?;
            Ok(sizes)
        })
    }

    /// Writes `vertices`, `degree`, `root` and the lists of sent vertices, and numbers the set.
    fn write_vertices(
        &self,
        part: usize,
        set: &mut LocalSet,
        degree: &[u32],
        roots: &Roots,
    ) -> Result<PartSizes> {
        let folder = part_folder(self.into, part);
        let num_inner = set.number();
        check_local(part, num_inner)?;
        let mut vertices = ArrayWriter::create(&folder, "vertices.npy", self.run)?;
        let mut degrees = ArrayWriter::create(&folder, "degree.npy", self.run)?;
        let mut root = ArrayWriter::create(&folder, "root.npy", self.run)?;
        let mut leaves: Vec<u64> = zeros(self.k + 1, "lists of leaves")?;
        for v in set.iter() {
            let owner = roots.of_vertex[v as usize];
            vertices.push(v as i64)?;
            degrees.push(i64::from(degree[v as usize]))?;
            root.push(owner as i32)?;
            leaves[owner as usize + 1] += u64::from(owner as usize != part);
        }
        vertices.finish()?;
        degrees.finish()?;
        root.finish()?;
        let mut indptr = ArrayWriter::<i64>::create(&folder, "send_indptr.npy", self.run)?;
        for peer in 0..=self.k {
            leaves[peer] += if peer == 0 { 0 } else { leaves[peer - 1] };
            indptr.push(leaves[peer] as i64)?;
        }
        indptr.finish()?;
        let num_send = leaves[self.k];
        let mut send: Buffer<i32> = Buffer::zeroed(num_send as usize, "lists of leaves")?;
        for (v, local) in set.iter().zip(0..) {
            let owner = roots.of_vertex[v as usize] as usize;
            if owner != part {
                send[leaves[owner] as usize] = local;
                leaves[owner] += 1;
            }
        }
        let mut file = ArrayWriter::create(&folder, "send.npy", self.run)?;
        file.extend(&send)?;
        file.finish()?;
        Ok(PartSizes { num_inner, num_roots: num_inner - num_send, num_send, ..Default::default() })
    }

    /// Writes the rows of all local vertices. Edges beyond a window are spilled once more, by windows.
    fn write_edges(
        &self,
        part: usize,
        set: &LocalSet,
        edges: PartEdges,
        num_local: u64,
    ) -> Result<(u64, u64)> {
        let mut counts: Buffer<u32> = Buffer::zeroed(num_local as usize, "in-degrees of a part")?;
        edges.try_read(self.run, |entries| {
            for entry in entries {
                let count = counts.get_mut(set.local(entry.target) as usize).ok_or_else(changed)?;
                *count += 1;
            }
            Ok(())
        })?;
        let mut files = RowFiles::open(&part_folder(self.into, part), Start::Anew, None, self.run)?;
        let degrees = || counts.iter().map(|&count| u64::from(count));
        let mut layout = Layout::default();
        layout.add_part((0..).zip(degrees()));
        let mut buffers = RowBuffers::new(layout.windows())?;
        let spilled;
        let windows: Vec<(Window, Source)> = if layout.buckets() == 1 {
            edges.windows(num_local)
        } else {
            spilled = self.spill_rows(&layout, set, edges)?;
            (0..layout.buckets())
                .map(|bucket| (layout.window(bucket), Source::Spilled(&spilled, bucket)))
                .collect()
        };
        let row = |entry: &Entry| set.local(entry.target);
        let local = |entry: &Entry| set.local(entry.source);
        write_rows(&mut files, &windows, degrees(), row, local, &mut buffers, self.run)?;
        files.finish()
    }

    /// Sorts the edges of one part by windows of its rows.
    fn spill_rows(&self, layout: &Layout, set: &LocalSet, edges: PartEdges) -> Result<SpillReader> {
        let spill = Spill::create(self.into, layout.buckets())?;
        let mut writer = spill.writer()?;
        edges.try_read(self.run, |entries| {
            for entry in entries {
                let bucket = layout.bucket(layout.place(0), set.local(entry.target));
                writer.push(bucket, *entry)?;
            }
            Ok(())
        })?;
        spill.seal(vec![writer])
    }

    /// Writes the vertices that each part receives: its roots, by the parts that hold a leaf.
    fn write_receivers(&self, roots: &Roots, sizes: &[PartSizes]) -> Result<()> {
        let mut layout = Layout::default();
        roots.num_leaves.iter().for_each(|&leaves| layout.add_part(std::iter::once((0, leaves))));
        let listed: Vec<u64> = sizes.iter().map(|sizes| sizes.num_inner).collect();
        self.run.begin("leaves", listed.iter().sum());
        let spilled = spill_lists(&listed, &layout, self.into, self.workers, self.run, |part, v| {
            let owner = roots.of_vertex[v as usize] as usize;
            let place = layout.place(owner);
            let leaf = || (layout.bucket(place, 0), Entry::new(part, v as u32, 0, place.tag, false));
            (owner != part as usize).then(leaf)
        })?;
        let leaves = EdgeBuckets { layout, spilled };
        self.run.begin("receivers", leaves.layout.num_edges());
        self.map(&leaves, |set, part, edges| {
            self.add_listed(part, listed[part], set)?;
            set.number();
            self.write_receiver(part, set, edges)
        })
        .map(drop)
    }

    /// Writes the leaves of a part's roots, which come by the parts that hold them, and then ascending.
    fn write_receiver(&self, part: usize, set: &LocalSet, edges: PartEdges) -> Result<()> {
        let folder = part_folder(self.into, part);
        let mut indptr = ArrayWriter::<i64>::create(&folder, "recv_indptr.npy", self.run)?;
        let mut recv = ArrayWriter::<i32>::create(&folder, "recv.npy", self.run)?;
        edges.try_read(self.run, |entries| {
            for entry in entries {
                while indptr.count() <= u64::from(entry.source) {
                    indptr.push(recv.count() as i64)?;
                }
                recv.push(set.local(entry.target) as i32)?;
            }
            Ok(())
        })?;
        while indptr.count() <= self.k as u64 {
            indptr.push(recv.count() as i64)?;
        }
        indptr.finish()?;
        recv.finish().map(drop)
    }
}
