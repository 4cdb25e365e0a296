//! The connectivity of every vertex, and how moves of vertices change it.
//!
//! The *row* of a vertex has a slot for each part in which it has neighbours, in ascending order, with their
//! number. The *connectivity* of a vertex is the number of parts that hold a copy of it: its own part and
//! those of its row. The sum of all connectivities is the halo.
//!
//! **Requirements.** The lists of the graph ascend, so that parallel entries are next to each other. They
//! count once.
//!
//! **Parallelism.** Counting the rows.
//!
//! **Memory.** 12 bytes per vertex, and 8 per slot. A row has as many slots as the vertex has entries, or as
//! there are parts, whichever is less.

use bytemuck::{Pod, Zeroable};

use super::graph::Graph;
use crate::base::{Buffer, Result, Run};
use crate::exec::{propose, scratches};
use crate::sets::SparseSums;

/// Reading this number of slots takes as long as a search for one.
const SEARCH: usize = 4;

/// A part, and how many neighbours lie there.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
struct Slot {
    part: u32,
    count: u32,
}

/// The rows of all vertices.
pub struct Connectivity {
    /// Where rows begin.
    offsets: Buffer<u64>,
    /// Slots in use of each row.
    lens: Buffer<u32>,
    slots: Buffer<Slot>,
    halo: u64,
}

/// Scratch space for counting rows.
struct Counter {
    counts: SparseSums<u32>,
    halo: u64,
}

impl Counter {
    /// Writes the row of `v`. Returns its length.
    fn row<const D: usize>(&mut self, graph: &Graph<D>, part_of: &[u32], v: u32, row: &mut [Slot]) -> u32 {
        let Counter { counts, halo } = self;
        counts.clear();
        graph.distinct(v, |u| counts.add(part_of[u as usize], 1));
        counts.sort();
        let mut len = 0;
        for (slot, (part, count)) in row.iter_mut().zip(counts.iter()) {
            *slot = Slot { part, count };
            len += 1;
        }
        *halo += u64::from(len) + u64::from(counts.of(part_of[v as usize]) == 0);
        len
    }
}

impl Connectivity {
    /// Bytes for a graph of `n` vertices and `entries` entries, and `k` parts.
    pub fn memory(n: u64, entries: u64, k: u64) -> u64 {
        (12 * n).saturating_add(entries.min(n.saturating_mul(k)).saturating_mul(8))
    }

    /// The connectivity under given parts `0..k`.
    pub fn new<const D: usize>(graph: &Graph<D>, part_of: &[u32], k: usize, run: &Run) -> Result<Self> {
        let (n, what) = (graph.len(), "parts around vertices");
        let mut offsets: Buffer<u64> = Buffer::zeroed(n + 1, what)?;
        run.each(n, |v| offsets[v as usize + 1] = offsets[v as usize] + graph.degree(v).min(k) as u64)?;
        let slots = Buffer::zeroed(offsets[n] as usize, what)?;
        let mut connectivity = Self { lens: Buffer::zeroed(n, what)?, slots, offsets, halo: 0 };
        connectivity.count(graph, part_of, k, run)?;
        Ok(connectivity)
    }

    /// Counts all rows once more.
    pub fn count<const D: usize>(
        &mut self,
        graph: &Graph<D>,
        part_of: &[u32],
        k: usize,
        run: &Run,
    ) -> Result<()> {
        let (mut slots, mut lens) = (&mut self.slots[..], &mut self.lens[..]);
        let offsets = &self.offsets;
        let blocks = graph.ranges(0..graph.len() as u32).map(|range| {
            let first = offsets[range.start as usize];
            let (rows, later) =
                std::mem::take(&mut slots).split_at_mut((offsets[range.end as usize] - first) as usize);
            let (len, others) = std::mem::take(&mut lens).split_at_mut(range.len());
            (slots, lens) = (later, others);
            (range, first, rows, len)
        });
        let mut blocks: Vec<_> = blocks.collect();
        let scratch = || Ok(Counter { counts: SparseSums::new(k as u32)?, halo: 0 });
        let mut counters = scratches(run, graph.num_entries(), scratch)?;
        let each = (0..blocks.len() as u32).map(|block| block..block + 1);
        propose(&mut counters, each, &mut blocks, run, |counter, _, (range, first, rows, lens)| {
            for (v, len) in range.clone().zip(lens.iter_mut()) {
                *len = counter.row(graph, part_of, v, &mut rows[(offsets[v as usize] - *first) as usize..]);
            }
        })?;
        self.halo = counters.iter().map(|counter| counter.halo).sum();
        Ok(())
    }

    /// Sum of the connectivities of all vertices.
    pub fn halo(&self) -> u64 {
        self.halo
    }

    #[inline(always)]
    fn row(&self, v: u32) -> &[Slot] {
        &self.slots[self.offsets[v as usize] as usize..][..self.lens[v as usize] as usize]
    }

    /// The number of neighbours of `v` in `part`.
    #[inline(always)]
    pub fn neighbours_in(&self, v: u32, part: u32) -> u32 {
        let row = self.row(v);
        row.binary_search_by_key(&part, |slot| slot.part).map_or(0, |at| row[at].count)
    }

    /// Whether `v` has neighbours in parts other than its own.
    #[inline(always)]
    pub fn on_boundary(&self, v: u32, own: u32) -> bool {
        self.row(v).iter().any(|slot| slot.part != own)
    }

    /// By how much the halo falls when `v` leaves its part: for each of the other parts in which it has
    /// neighbours.
    pub fn gains<'a, const D: usize>(
        &self,
        graph: &Graph<D>,
        part_of: &[u32],
        v: u32,
        scratch: &'a mut SparseSums<u32>,
    ) -> impl Iterator<Item = (u32, i64)> + use<'a, D> {
        let (own, copies) = (part_of[v as usize], scratch);
        copies.clear();
        // In each of these parts: 1, and the neighbours that have a copy there.
        self.row(v).iter().filter(|slot| slot.part != own).for_each(|slot| copies.add(slot.part, 1));
        let found = copies.parts().count();
        // The gain in a part where no neighbour has a copy yet.
        let mut alone = i64::from(self.neighbours_in(v, own) == 0);
        let mut look_at = |u: u32| {
            let home = part_of[u as usize];
            alone += i64::from(home != own && self.neighbours_in(u, own) == 1) - 1;
            if self.row(u).len() <= SEARCH * found {
                let mut at_home = false;
                for slot in self.row(u) {
                    at_home |= slot.part == home;
                    copies.raise(slot.part, 1);
                }
                if !at_home {
                    copies.raise(home, 1);
                }
            } else {
                copies.raise_each(|part| u32::from(part == home || self.neighbours_in(u, part) > 0));
            }
        };
        if found > 0 {
            graph.distinct(v, &mut look_at);
        }
        copies.iter().map(move |(part, count)| (part, alone + i64::from(count) - 1))
    }

    /// By how much the halo falls when `v` goes to the part `to`.
    pub fn gain<const D: usize>(&self, graph: &Graph<D>, part_of: &[u32], v: u32, to: u32) -> i64 {
        let own = part_of[v as usize];
        let mut gain = i64::from(self.neighbours_in(v, own) == 0) - i64::from(self.neighbours_in(v, to) == 0);
        graph.distinct(v, |u| {
            let home = part_of[u as usize];
            gain += i64::from(home != own && self.neighbours_in(u, own) == 1);
            gain -= i64::from(home != to && self.neighbours_in(u, to) == 0);
        });
        gain
    }

    /// Updates the rows after the move of `v` between two parts, which lowers the halo by `gain`.
    pub fn shift<const D: usize>(&mut self, graph: &Graph<D>, v: u32, [from, to]: [u32; 2], gain: i64) {
        self.halo = self.halo.wrapping_add_signed(-gain);
        graph.distinct(v, |u| {
            let row = &mut self.slots[self.offsets[u as usize] as usize..];
            let len = &mut self.lens[u as usize];
            let place = |row: &[Slot], len: u32, part: u32| {
                row[..len as usize].binary_search_by_key(&part, |slot| slot.part)
            };
            if let Ok(at) = place(row, *len, from) {
                row[at].count -= 1;
                if row[at].count == 0 {
                    row.copy_within(at + 1..*len as usize, at);
                    *len -= 1;
                }
            }
            match place(row, *len, to) {
                Ok(at) => row[at].count += 1,
                Err(at) => {
                    row.copy_within(at..*len as usize, at + 1);
                    row[at] = Slot { part: to, count: 1 };
                    *len += 1;
                }
            }
        });
    }
}
