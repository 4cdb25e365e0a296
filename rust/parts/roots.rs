//! One root among the copies of each vertex.
//!
//! **Rule.** Vertices in ascending order of their number of copies, then of their id, take among the parts that hold a copy
//! the one with the fewest roots so far (ties: the lowest part). Vertices without a record follow in the order of their
//! ids; each goes to the part with the fewest roots.
//!
//! **Algorithm.** The lists of vertices of the parts become lists of parts of the vertices, through a temporary file as
//! edges do: rows are the vertices in the order of the rule, "sources" the parts that hold them. Then one thread applies
//! the rule, since every choice depends on those before.

use std::path::Path;

use super::files::{Ids, part_folder};
use super::layout::Layout;
use super::rows::changed;
use crate::base::NONE;
use crate::base::buffer::{Buffer, reserved};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{LeastLoaded, place_last};
use crate::exec::scan::scan;
use crate::sets::spill::{Entry, Pieces, Spill, Spilled};

/// Vertices between two looks at the cancel flag.
const CHUNK: usize = 1 << 16;

/// Where the roots of all vertices are.
pub struct Roots {
    /// Part of the root of each vertex.
    pub of_vertex: Buffer<u32>,
    /// Leaves of the roots of each part.
    pub num_leaves: Vec<u64>,
    /// Vertices without a record, by part and then ascending.
    isolated: Buffer<u32>,
    /// Where those of each part end.
    ends: Vec<usize>,
}

impl Roots {
    /// The vertices without a record that were placed in the part, ascending.
    pub fn isolated_in(&self, part: usize) -> &[u32] {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        &self.isolated[start..self.ends[part]]
    }
}

/// Chooses the roots of vertices with so many `copies`, which the lists of the parts in `into` (of so many vertices) hold.
pub fn choose_roots(copies: &[u32], sizes: &[u64], into: &Path, workers: usize, run: &Run) -> Result<Roots> {
    let order = Order::new(copies, sizes.len(), run)?;
    let mut layout = Layout::default();
    layout.add_part((0..).zip(order.vertices.iter().map(|&v| u64::from(copies[v as usize]))));
    let spilled = transpose(&order.row, &layout, sizes, into, workers, run)?;
    let mut of_vertex: Buffer<u32> = Buffer::zeroed(copies.len(), "roots")?;
    of_vertex.fill(NONE);
    let (mut num_roots, mut num_leaves) = (zeros(sizes.len())?, zeros(sizes.len())?);
    let largest = layout.windows().iter().map(|window| window.edges).max().unwrap_or(0);
    let mut holders: Buffer<u32> = Buffer::zeroed(largest as usize, "copies of a window")?;
    let (mut ends, mut chunk, mut first) = (Vec::new(), Vec::new(), 0);
    run.begin("roots", layout.num_edges());
    for (bucket, window) in layout.windows().iter().enumerate() {
        let vertices = &order.vertices[first..first + window.rows as usize];
        ends.clear();
        ends.extend(
            vertices.iter().scan(0, |end, &v| Some(std::mem::replace(end, *end + copies[v as usize]))),
        );
        // Stable, so that the holders of a vertex ascend.
        spilled.read(bucket, &mut chunk, run, |entries| {
            for entry in entries {
                let end = ends.get_mut((entry.target as usize).wrapping_sub(first)).ok_or_else(changed)?;
                *holders.get_mut(*end as usize).ok_or_else(changed)? = entry.source;
                *end += 1;
            }
            Ok(())
        })?;
        let mut start = 0;
        for (&v, &end) in vertices.iter().zip(&ends) {
            let parts = holders.get(start..end as usize).ok_or_else(changed)?;
            let fewest = parts.iter().copied().min_by_key(|&part| num_roots[part as usize]);
            let owner = fewest.ok_or_else(changed)?;
            of_vertex[v as usize] = owner;
            num_roots[owner as usize] += 1;
            num_leaves[owner as usize] += parts.len() as u64 - 1;
            start = end as usize;
        }
        first += vertices.len();
        run.check()?;
    }
    drop(order);
    place_isolated(copies, num_roots, &mut of_vertex, run).map(|(isolated, ends)| Roots {
        of_vertex,
        num_leaves,
        isolated,
        ends,
    })
}

/// The vertices with a copy, in the order of the rule.
struct Order {
    vertices: Buffer<u32>,
    /// Place of each vertex in the order.
    row: Buffer<u32>,
}

impl Order {
    fn new(copies: &[u32], k: usize, run: &Run) -> Result<Self> {
        let mut ends = zeros(k + 1)?;
        for copies in copies.chunks(CHUNK) {
            copies.iter().for_each(|&count| ends[count as usize] += 1);
            run.check()?;
        }
        ends[0] = 0;
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut vertices = Buffer::zeroed(total as usize, "vertices by copies")?;
        let mut row = Buffer::zeroed(copies.len(), "order of the vertices")?;
        for (chunk, copies) in copies.chunks(CHUNK).enumerate() {
            for (&count, vertex) in copies.iter().zip(chunk * CHUNK..).filter(|&(&count, _)| count > 0) {
                let end = &mut ends[count as usize];
                vertices[*end as usize] = vertex as u32;
                row[vertex] = *end as u32;
                *end += 1;
            }
            run.check()?;
        }
        Ok(Self { vertices, row })
    }
}

/// Sends each (part, vertex) of the lists to the vertex's row.
fn transpose(
    row: &[u32],
    layout: &Layout,
    sizes: &[u64],
    into: &Path,
    workers: usize,
    run: &Run,
) -> Result<Spilled> {
    let spill = Spill::create(into, layout.buckets())?;
    run.begin("copies", sizes.iter().sum());
    let writers = scan(
        run,
        workers,
        0..sizes.len(),
        || spill.writer(),
        |writer, part| {
            writer.begin(part as u64)?;
            Ids::open(&part_folder(into, part), "vertices.npy", 0, sizes[part])?.for_each(run, |v| {
                let row = row[v as usize];
                writer.push(layout.bucket(layout.place(0), row), Entry::new(part as u32, row, 0, 0, false))
            })?;
            run.advance(sizes[part])
        },
    )?;
    let pieces = Pieces::of(writers)?;
    spill.seal(pieces)
}

/// Places the vertices without a copy; returns them by part, and where those of each part end.
fn place_isolated(
    copies: &[u32],
    num_roots: Vec<u64>,
    of_vertex: &mut [u32],
    run: &Run,
) -> Result<(Buffer<u32>, Vec<usize>)> {
    let mut parts = LeastLoaded::new(num_roots.iter().copied());
    place_last(of_vertex, run, || parts.place(1))?;
    let ends = parts.into_loads().into_iter().zip(num_roots).map(|(all, before)| (all - before) as usize);
    let mut ends: Vec<usize> = ends.collect();
    let isolated = |chunk: usize| {
        let start = chunk * CHUNK;
        let copies = &copies[start..copies.len().min(start + CHUNK)];
        copies.iter().zip(start..).filter(|&(&count, _)| count == 0).map(|(_, vertex)| vertex)
    };
    let mut total = 0;
    for end in &mut ends {
        total += std::mem::replace(end, total);
    }
    let mut by_part = Buffer::zeroed(total, "isolated vertices")?;
    for chunk in 0..copies.len().div_ceil(CHUNK) {
        for vertex in isolated(chunk) {
            let end = &mut ends[of_vertex[vertex] as usize];
            by_part[*end] = vertex as u32;
            *end += 1;
        }
        run.check()?;
    }
    Ok((by_part, ends))
}

/// `len` zeros, or an error instead of an abort.
fn zeros(len: usize) -> Result<Vec<u64>> {
    let mut items = reserved(len, "numbers per part")?;
    items.resize(len, 0);
    Ok(items)
}
