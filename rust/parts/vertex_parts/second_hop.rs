//! The second hop of the halo: the in-edges of the 1-hop halo vertices of each part.
//!
//! **Algorithm.** In passes of up to 64 parts, and fewer where more than two times all edges would lie in the
//! temporary file (a pass costs much less than writing them): a mask per vertex has a bit for each of them
//! that has the vertex in its 1-hop halo. One pass over the edges sends each to all parts whose bit its
//! target has. Then the parts are continued where the first hop ended.
//!
//! **Memory.** 8 bytes per vertex beyond the first hop's, and a second set per worker.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{VertexFiles, VertexParts};
use crate::base::npy::{Ids, Start};
use crate::base::{Buffer, Result, ahead, prefetch_ends, shared};
use crate::exec::{Entry, SpillReader, Writer, spill_edges};
use crate::parts::layout::Layout;
use crate::parts::rows::{EdgeBuckets, PartEdges, RowBuffers, RowFiles, check_local, write_rows};
use crate::parts::{PartSizes, part_folder};
use crate::sets::LocalSet;

/// Parts per pass: the bits of a mask.
const PARTS: usize = 64;

/// Appends the rows of the 1-hop halos, which have `halo_degrees` edges, and the 2-hop halos to the files of
/// the parts.
pub(crate) fn append(
    graph: &VertexParts,
    sizes: &mut [PartSizes],
    halo_degrees: &[u64],
    workers: usize,
) -> Result<()> {
    let most = 2 * sizes.iter().map(|sizes| sizes.num_edges).sum::<u64>();
    let mut masks: Buffer<u64> = Buffer::zeroed(graph.degree.len(), "halo masks")?;
    let mut first = 0;
    while first < sizes.len() {
        let mut spilled = halo_degrees[first];
        let more = halo_degrees[first + 1..].iter().take(PARTS - 1).take_while(|&&edges| {
            spilled += edges;
            spilled <= most
        });
        let parts = first..first + 1 + more.count();
        first = parts.end;
        masks.iter_mut().for_each(|mask| *mask = 0);
        let pass = Pass { graph, parts, sizes, masks: shared(&mut masks) };
        let halos = pass.run(workers)?;
        let parts = pass.parts;
        sizes[parts].copy_from_slice(&halos);
    }
    Ok(())
}

/// One pass over the edges, for up to 64 parts.
struct Pass<'a> {
    graph: &'a VertexParts<'a>,
    /// Counted from the first part that is written.
    parts: Range<usize>,
    sizes: &'a [PartSizes],
    masks: &'a [AtomicU64],
}

struct Worker {
    first: LocalSet,
    second: LocalSet,
    rows: RowBuffers,
}

impl Pass<'_> {
    /// Continues the parts, and returns their sizes.
    fn run(&self, workers: usize) -> Result<Vec<PartSizes>> {
        let (run, n) = (self.graph.run, self.graph.degree.len() as u64);
        let layout = self.layout()?;
        let spilled = self.spill(&layout, workers)?;
        run.begin("second hop", 2 * layout.num_edges());
        let parted = EdgeBuckets { layout, spilled };
        let init = || {
            let (first, second) = (LocalSet::new(n)?, LocalSet::new(n)?);
            Ok(Worker { first, second, rows: RowBuffers::new(parted.layout.windows())? })
        };
        parted.map(workers, run, init, |worker, index, edges| {
            self.continue_part(self.parts.start + index, edges, worker)
        })
    }

    /// The number of a part among all.
    fn number(&self, part: usize) -> usize {
        self.graph.portion.parts.start as usize + part
    }

    /// Hands the 1-hop halo of a part to `each`.
    fn for_each_halo(&self, part: usize, mut each: impl FnMut(u64)) -> Result<()> {
        let PartSizes { num_inner, num_halo, .. } = self.sizes[part];
        let folder = part_folder(self.graph.portion.into, self.number(part));
        let halo = Ids::open(&folder, "vertices.npy", num_inner, num_inner + num_halo[0])?;
        halo.for_each(self.graph.run, |v| {
            each(v);
            Ok(())
        })
    }

    /// Sets the masks, and cuts the rows into windows, whose keys are the vertices.
    fn layout(&self) -> Result<Layout> {
        let mut layout = Layout::default();
        for part in self.parts.clone() {
            let bit = 1 << (part - self.parts.start);
            layout.begin_part();
            self.for_each_halo(part, |v| {
                self.masks[v as usize].fetch_or(bit, Relaxed);
                layout.add_row(v as u32, u64::from(self.graph.degree[v as usize]));
            })?;
            layout.end_part();
        }
        Ok(layout)
    }

    /// Sends every edge to the parts that have its target in their 1-hop halo. Both ends keep their global
    /// ids.
    fn spill(&self, layout: &Layout, workers: usize) -> Result<SpillReader> {
        let VertexParts { edges, directions, portion, run, .. } = *self.graph;
        let m = edges.num_edges();
        let send = |writer: &mut Writer, u: u32, v: u32, id: u64| -> Result<()> {
            let mut mask = self.masks[v as usize].load(Relaxed);
            while mask != 0 {
                let place = layout.place(mask.trailing_zeros() as usize);
                mask &= mask - 1;
                writer.push(layout.bucket(place, v), Entry::new(u, v, id, place.tag, false))?;
            }
            Ok(())
        };
        run.begin("second hop buckets", m);
        spill_edges(edges, run, workers, portion.temporary, layout.buckets(), |writer, first, records| {
            for (index, (&[u, v], id)) in records.iter().zip(first..).enumerate() {
                prefetch_ends(self.masks, records, index + ahead::RECORDS);
                send(writer, u, v, id)?;
                if directions.reverses(id, [u, v]) {
                    send(writer, v, u, m + id)?;
                }
            }
            Ok(())
        })
    }

    fn continue_part(
        &self,
        part: usize,
        edges: PartEdges,
        Worker { first, second, rows }: &mut Worker,
    ) -> Result<PartSizes> {
        let VertexParts { assignment, directions, run, portion, ref degree, ref members, .. } = *self.graph;
        let number = self.number(part);
        let inner = |v: u32| assignment[v as usize] as usize == number;
        self.for_each_halo(part, |v| first.insert(v))?;
        let num_first = first.number();
        edges.read(run, |entries| {
            for &Entry { source: v, .. } in entries {
                if !inner(v) && !first.contains(v) {
                    second.insert(v);
                }
            }
        })?;
        let mut sizes = self.sizes[part];
        sizes.num_halo[1] = second.number();
        let before = sizes.num_inner + num_first;
        check_local(number, before + sizes.num_halo[1])?;
        let folder = part_folder(portion.into, number);
        let mut files = VertexFiles::open(&folder, Start::AtEnd, run)?;
        for v in second.iter() {
            files.push_halo(self.graph, v)?;
        }
        files.finish()?;
        let local = |&Entry { source: v, .. }: &Entry| match () {
            () if inner(v) => members.rank[v as usize],
            () if first.contains(v) => sizes.num_inner as u32 + first.local(v),
            () => before as u32 + second.local(v),
        };
        let mut files = RowFiles::open(&folder, Start::AtEnd, directions.relations(), run)?;
        let degrees = first.iter().map(|v| u64::from(degree[v as usize]));
        let row = |entry: &Entry| first.local(entry.target);
        write_rows(&mut files, &edges.windows(num_first), degrees, row, local, rows, run)?;
        (sizes.num_rows, sizes.num_edges) = files.finish()?;
        first.clear();
        second.clear();
        Ok(sizes)
    }
}
