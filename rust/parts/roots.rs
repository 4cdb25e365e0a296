//! One root among the copies of each vertex.
//!
//! **Rule.** Vertices in ascending order of their number of copies, then of their id, take among the parts
//! that hold a copy the one with the fewest roots so far (ties: the lowest part). Vertices without a record
//! follow in the order of their ids. Each goes to the part with the fewest roots.
//!
//! **Algorithm.** The lists of vertices of the parts become lists of parts of the vertices, through a
//! temporary file as edges do: rows are the vertices in the order of the rule, "sources" the parts that hold
//! them. Then one thread applies the rule, since every choice depends on those before.

use std::path::Path;

use super::layout::Layout;
use super::part_folder;
use super::rows::changed;
use crate::base::npy::Ids;
use crate::base::{Buffer, NONE, Result, Run, zeros};
use crate::capacity::place_last;
use crate::exec::{Entry, Spill, SpillReader, scan};
use crate::sets::{Groups, to_starts};

/// Where the roots of all vertices are.
pub(crate) struct Roots {
    /// Part of the root of each vertex.
    pub of_vertex: Buffer<u32>,
    /// Leaves of the roots of each part.
    pub num_leaves: Vec<u64>,
    /// Vertices without a record, by part.
    isolated: Groups,
}

impl Roots {
    /// The vertices without a record that were placed in the part, ascending.
    pub(crate) fn isolated_in(&self, part: usize) -> &[u32] {
        self.isolated.group(part as u32)
    }
}

/// Chooses the roots of all vertices. `copies` counts the copies of each vertex, and `sizes` the vertices of
/// each part, whose lists are in `into`.
pub(crate) fn choose_roots(
    copies: &[u32],
    sizes: &[u64],
    into: &Path,
    workers: usize,
    run: &Run,
) -> Result<Roots> {
    let order = Order::new(copies, sizes.len(), run)?;
    let mut layout = Layout::default();
    layout.add_part((0..).zip(order.vertices.items().iter().map(|&v| u64::from(copies[v as usize]))));
    run.begin("copies", sizes.iter().sum());
    let spilled = spill_lists(sizes, &layout, into, workers, run, |part, v| {
        let row = order.row[v as usize];
        Some((layout.bucket(layout.place(0), row), Entry::new(part, row, 0, 0, false)))
    })?;
    let mut of_vertex: Buffer<u32> = Buffer::zeroed(copies.len(), "roots")?;
    of_vertex.fill(NONE);
    let mut num_roots: Vec<u64> = zeros(sizes.len(), "numbers per part")?;
    let mut num_leaves = zeros(sizes.len(), "numbers per part")?;
    let largest = layout.windows().iter().map(|window| window.edges).max().unwrap_or(0);
    let mut holders: Buffer<u32> = Buffer::zeroed(largest as usize, "copies of a window")?;
    let (mut ends, mut first) = (Vec::new(), 0);
    run.begin("roots", layout.num_edges());
    for (bucket, window) in layout.windows().iter().enumerate() {
        let vertices = &order.vertices.items()[first..first + window.rows as usize];
        ends.clear();
        ends.extend(vertices.iter().map(|&v| copies[v as usize]));
        to_starts(&mut ends);
        // Stable, so that the holders of a vertex ascend.
        spilled.read(bucket, run, |entries| {
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
    let isolated = place_isolated(copies, num_roots, &mut of_vertex, run)?;
    Ok(Roots { of_vertex, num_leaves, isolated })
}

/// The vertices with a copy, in the order of the rule.
struct Order {
    vertices: Groups,
    /// Place of each vertex in the order.
    row: Buffer<u32>,
}

impl Order {
    fn new(copies: &[u32], k: usize, run: &Run) -> Result<Self> {
        let mut sizes: Buffer<u32> = Buffer::zeroed(k + 1, "vertices by copies")?;
        run.each(copies.len(), |v| sizes[copies[v as usize] as usize] += 1)?;
        sizes[0] = 0;
        let number = |v: u32| Some(copies[v as usize]).filter(|&count| count > 0);
        let vertices = Groups::of(copies.len(), sizes, number, |_| run.check())?;
        let mut row = Buffer::zeroed(copies.len(), "order of the vertices")?;
        run.each(vertices.items().len(), |place| row[vertices.items()[place as usize] as usize] = place)?;
        Ok(Self { vertices, row })
    }
}

/// Sends the `entry` of each part and each of its listed vertices to buckets. `sizes` counts the vertices of
/// each part.
pub(crate) fn spill_lists(
    sizes: &[u64],
    layout: &Layout,
    into: &Path,
    workers: usize,
    run: &Run,
    entry: impl Fn(u32, u64) -> Option<(usize, Entry)> + Sync,
) -> Result<SpillReader> {
    let spill = Spill::create(into, layout.buckets())?;
    let init = || spill.writer();
    let writers = scan(run, workers, 0..sizes.len(), init, |writer, part| {
        writer.begin(part as u64)?;
        let listed = Ids::open(&part_folder(into, part), "vertices.npy", 0, sizes[part])?;
        listed.for_each(run, |v| {
            entry(part as u32, v).map_or(Ok(()), |(bucket, entry)| writer.push(bucket, entry))
        })?;
        run.advance(sizes[part])
    })?;
    spill.seal(writers)
}

/// Places the vertices without a copy. Returns them by part.
fn place_isolated(copies: &[u32], num_roots: Vec<u64>, of_vertex: &mut [u32], run: &Run) -> Result<Groups> {
    let loads = place_last(of_vertex, num_roots.clone(), run)?;
    let mut sizes: Buffer<u32> = Buffer::zeroed(num_roots.len(), "isolated vertices")?;
    for (size, (all, before)) in sizes.iter_mut().zip(loads.into_iter().zip(num_roots)) {
        *size = (all - before) as u32;
    }
    let part = |v: u32| (copies[v as usize] == 0).then(|| of_vertex[v as usize]);
    Groups::of(copies.len(), sizes, part, |_| run.check())
}
