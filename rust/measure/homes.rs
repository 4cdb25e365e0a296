//! Home parts: an edge partition becomes a vertex partition, each vertex in the part where it has most
//! records.
//!
//! If each part then gets its missing neighbours (its halo, as [`crate::parts`] writes it), that is the "full
//! neighbour" step of SDT-GNN. Mini-batch training needs it. It also lets edge partitions be compared with
//! vertex partitions by halo replication.
//!
//! **Requirements.** Any edge partition of the graph.
//!
//! **Memory.** 28 bytes per vertex, and at least 4 MB, for any k: the degree, a cursor, the result, and
//! [`SLOTS`] slots of 4 bytes.
//!
//! **Algorithm.** A vertex with `d` records (a loop is one) gets `min(d, k)` slots: k counters, or else a
//! place for the part of each record. Ascending ranges of vertices share the slots. Each range takes one pass
//! over the records. There is a single range while k or the mean degree is small. The most frequent part of a
//! vertex is its home (ties: the lowest). Vertices without a record come last, in id order, each into the
//! part with the fewest vertices (ties: the lowest).
//!
//! **Parallelism.** Workers share the slots. Counting commutes, and the parts of a vertex are sorted before
//! they are used, so the order in which they came does not matter.
//!
//! **Complexity.** O(n) and, for each pass, O(m). With slots for all, `sum of min(d, k) / 4n` passes.
//!
//! **Source.** SDT-GNN, section III-D.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::validate_records;
use crate::base::{Buffer, Error, NONE, Result, Run, ahead, prefetch_ends, shared};
use crate::capacity::{CHECK_EVERY, MAX_PARTS, place_last};
use crate::edges::EdgeStream;
use crate::exec::{each_block, scan};
use crate::graph::{Degrees, degrees};
use crate::partition::VertexPartition;

/// Slots per vertex.
const SLOTS: u64 = 4;
/// Minimum number of slots: one vertex may take `MAX_PARTS` of them.
const LEAST_SLOTS: u64 = MAX_PARTS;

/// Bytes that [`home_parts`] takes for `n` vertices.
pub(crate) fn memory(n: u64) -> u64 {
    12 * n + 4 * slots(n)
}

/// Slots for `n` vertices. A cursor of 32 bits reaches them all.
fn slots(n: u64) -> u64 {
    (SLOTS * n).max(LEAST_SLOTS).min(u64::from(u32::MAX))
}

/// The part of each vertex where it has most records, given the part of each record (`u8`, `i16` or `i32`).
pub fn home_parts<P: Copy + Into<i32> + Sync>(
    edges: &dyn EdgeStream,
    assignment: &[P],
    k: u32,
    run: &Run,
) -> Result<VertexPartition> {
    let (n, m) = (edges.num_vertices(), edges.num_edges());
    validate_records(edges, assignment, k)?;
    run.require(memory(n).max(degrees::memory(edges, run)), format!("home parts of {n} vertices"))?;
    let Degrees { mut degree, graph } = degrees::scan(edges, run)?;
    if graph.loops > 0 {
        add_loops(edges, &mut degree, run)?;
    }
    let mut homes: Buffer<u32> = Buffer::zeroed(n as usize, "home parts")?;
    let mut table = Table::new(&degree, k)?;
    run.begin("records of the vertices", m);
    let mut first = 0;
    while first < n as usize {
        let range = table.begin(first, run)?;
        table.fill(edges, assignment, &range, run)?;
        table.most_frequent(&range, &mut homes[range.clone()], run)?;
        first = range.end;
    }
    drop(table);
    run.begin("vertices without records", n);
    let mut loads = vec![0; k as usize];
    for homes in homes.chunks(CHECK_EVERY) {
        homes.iter().filter(|&&home| home != NONE).for_each(|&home| loads[home as usize] += 1);
        run.advance(homes.len() as u64)?;
    }
    let loads = place_last(&mut homes, loads, run)?;
    Ok(VertexPartition::new(homes.reinterpret(), k, loads, None, graph))
}

/// Adds 1 for each loop.
fn add_loops(edges: &dyn EdgeStream, degree: &mut [u32], run: &Run) -> Result<()> {
    run.begin("loops", edges.num_edges());
    let shared = shared(degree);
    each_block(edges, run, |_, records| {
        for &[v, _] in records.iter().filter(|[u, v]| u == v) {
            if shared[v as usize].fetch_add(1, Relaxed) == u32::MAX {
                let what = format!("vertex {v} has 2^32 records or more. Degrees are 32 bits");
                return Err(Error::Capacity(what));
            }
        }
        Ok(())
    })
}

/// The slots of a range of vertices.
struct Table<'a> {
    degree: &'a [u32],
    k: u32,
    slots: Buffer<u32>,
    /// The first counter of a vertex with counters, else the slot that its next part goes to.
    cursor: Buffer<u32>,
}

impl<'a> Table<'a> {
    fn new(degree: &'a [u32], k: u32) -> Result<Self> {
        let slots = Buffer::zeroed(slots(degree.len() as u64) as usize, "parts of the vertices' records")?;
        Ok(Self { degree, k, slots, cursor: Buffer::zeroed(degree.len(), "cursors")? })
    }

    /// Hands the slots to the vertices from `first` on, as far as they go.
    fn begin(&mut self, first: usize, run: &Run) -> Result<Range<usize>> {
        let (mut last, mut next) = (first, 0);
        for degrees in self.degree[first..].chunks(CHECK_EVERY) {
            for &degree in degrees {
                let end = next + degree.min(self.k) as usize;
                if end > self.slots.len() {
                    return Ok(first..last);
                }
                self.cursor[last] = next as u32;
                (next, last) = (end, last + 1);
            }
            run.check()?;
        }
        Ok(first..last)
    }

    /// Counts or keeps the parts of the records of the vertices in `range`.
    fn fill<P: Copy + Into<i32> + Sync>(
        &mut self,
        edges: &dyn EdgeStream,
        assignment: &[P],
        range: &Range<usize>,
        run: &Run,
    ) -> Result<()> {
        let (degree, k) = (self.degree, self.k);
        let (slots, cursor) = (shared(&mut self.slots), shared(&mut self.cursor));
        let add = |v: u32, part: u32| {
            let v = v as usize;
            if !range.contains(&v) {
                return;
            }
            // An array that another thread changes may have more records of a vertex than were counted.
            if degree[v] >= k {
                let slot = slots.get((cursor[v].load(Relaxed) + part) as usize);
                slot.map(|slot| slot.fetch_add(1, Relaxed));
            } else {
                let slot = slots.get(cursor[v].fetch_add(1, Relaxed) as usize);
                slot.inspect(|slot| slot.store(part, Relaxed));
            }
        };
        each_block(edges, run, |start, records| {
            for ((index, &[u, v]), &part) in records.iter().enumerate().zip(&assignment[start as usize..]) {
                prefetch_ends(degree, records, index + ahead::RECORDS);
                prefetch_ends(cursor, records, index + ahead::RECORDS);
                let part = part.into() as u32;
                if part >= k {
                    let what =
                        format!("record {} has part {}, outside 0..{k}", start + index as u64, part as i32);
                    return Err(Error::parameter("assignment", what));
                }
                add(u, part);
                if u != v {
                    add(v, part);
                }
            }
            Ok(())
        })
    }

    /// The most frequent part of each vertex in `range`. The slots are zero afterwards.
    fn most_frequent(&mut self, range: &Range<usize>, homes: &mut [u32], run: &Run) -> Result<()> {
        let (degree, k) = (self.degree, self.k);
        let (slots, cursor) = (shared(&mut self.slots), &self.cursor);
        let chunks = homes.chunks_mut(CHECK_EVERY).zip(range.clone().step_by(CHECK_EVERY));
        let take = |range: Range<usize>, parts: &mut Vec<u32>| {
            parts.clear();
            for slot in slots.get(range).unwrap_or_default() {
                parts.push(slot.load(Relaxed));
                slot.store(0, Relaxed);
            }
        };
        let work = |parts: &mut Vec<u32>, (homes, first): (&mut [u32], usize)| {
            for (home, v) in homes.iter_mut().zip(first..) {
                let end = cursor[v] as usize;
                if degree[v] >= k {
                    take(end..end + k as usize, parts);
                    *home = largest(parts);
                } else {
                    take(end.saturating_sub(degree[v] as usize)..end, parts);
                    parts.sort_unstable();
                    *home = longest_run(parts);
                }
            }
            Ok(())
        };
        scan(run, usize::MAX, chunks, || Ok(Vec::new()), work).map(drop)
    }
}

/// The index of the first largest count.
fn largest(counts: &[u32]) -> u32 {
    counts.iter().zip(0..).max_by_key(|&(&count, part)| (count, Reverse(part))).map_or(0, |(_, part)| part)
}

/// The first of the values that occur most often, in ascending values. Without any, [`NONE`].
fn longest_run(values: &[u32]) -> u32 {
    let runs = values.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0]));
    runs.max_by_key(|&(len, value)| (len, Reverse(value))).map_or(NONE, |(_, value)| value)
}
