//! The vertices that wait for expansion, by ascending external degree. Among equal degrees the last one to
//! get its degree comes first.
//!
//! Each degree has a stack. A vertex whose degree falls is pushed again. Its old entry, which
//! [`Vertex::slot`] no longer names, is dropped when it is reached. All entries are in one arena in the order
//! of their pushes, so that a push touches no vertex but its own. When the arena is full, it is compacted:
//! dropped entries are removed.

use bytemuck::Zeroable;

use crate::base::{Buffer, NONE, Result, Run, prefetch};

/// Entries by which a vertex is prefetched ahead.
const AHEAD: usize = 16;
/// Entries between two polls of the cancel flag.
const CHECK_EVERY: usize = 1 << 16;

/// The state of a vertex, in a quarter of a cache line.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct Vertex {
    /// Entries left in its list.
    pub length: u32,
    /// Number of them that lead out of the part, while the vertex is in it.
    pub external: u32,
    /// Its entry in the queue, or [`NONE`].
    pub slot: u32,
    /// See [`super::expansion::LowParts::home`].
    pub home: u32,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Vertices, and the entry below each in its stack.
    arena: Buffer<[u32; 2]>,
    filled: usize,
    tops: Buffer<u32>,
    /// No stack below has entries.
    lowest: usize,
    waiting: usize,
}

impl Queue {
    /// Bytes for `n` vertices of at most `longest` entries.
    pub(crate) fn memory(n: u64, longest: u64) -> u64 {
        8 * capacity(n) + 4 * (longest + 1)
    }

    /// An empty queue of up to `n` vertices of at most `longest` entries.
    pub(crate) fn new(n: usize, longest: usize) -> Result<Self> {
        let mut tops = Buffer::zeroed(longest + 1, "queue")?;
        tops.fill(NONE);
        let arena = Buffer::zeroed(capacity(n as u64) as usize, "queue")?;
        Ok(Self { arena, filled: 0, tops, lowest: longest + 1, waiting: 0 })
    }

    /// Puts `v` where its external degree belongs.
    #[inline(always)]
    pub(crate) fn push(&mut self, v: u32, vertices: &mut [Vertex], run: &Run) -> Result<()> {
        let Vertex { external, slot, .. } = &mut vertices[v as usize];
        let key = *external as usize;
        self.waiting += usize::from(*slot == NONE);
        *slot = self.filled as u32;
        self.arena[self.filled] = [v, self.tops[key]];
        self.tops[key] = self.filled as u32;
        self.lowest = self.lowest.min(key);
        self.filled += 1;
        if self.filled < self.arena.len() { Ok(()) } else { self.squeeze(vertices, run) }
    }

    /// Takes the first.
    #[inline(always)]
    pub(crate) fn pop(&mut self, vertices: &mut [Vertex]) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        loop {
            let top = self.tops[self.lowest];
            if top == NONE {
                self.lowest += 1;
                continue;
            }
            let [v, below] = self.arena[top as usize];
            self.tops[self.lowest] = below;
            prefetch(&self.arena, below as usize);
            let slot = &mut vertices[v as usize].slot;
            if *slot == top {
                *slot = NONE;
                self.waiting -= 1;
                return Some(v);
            }
        }
    }

    /// Removes all entries. The caller empties the slots of the vertices in the queue.
    pub(crate) fn clear(&mut self) {
        self.tops.fill(NONE);
        (self.filled, self.lowest, self.waiting) = (0, self.tops.len(), 0);
    }

    /// Drops the entries that no vertex names.
    #[inline(never)]
    fn squeeze(&mut self, vertices: &mut [Vertex], run: &Run) -> Result<()> {
        self.tops.fill(NONE);
        let mut kept = 0;
        for index in 0..self.filled {
            if let Some(later) = self.arena.get(index + AHEAD) {
                prefetch(vertices, later[0] as usize);
            }
            let v = self.arena[index][0];
            let Vertex { external, slot, .. } = &mut vertices[v as usize];
            if *slot == index as u32 {
                let top = &mut self.tops[*external as usize];
                self.arena[kept] = [v, *top];
                (*slot, *top) = (kept as u32, kept as u32);
                kept += 1;
            }
            if index % CHECK_EVERY == 0 {
                run.check()?;
            }
        }
        self.filled = kept;
        Ok(())
    }
}

/// Entries of the arena: twice those that can wait, as far as 32 bits number them.
fn capacity(n: u64) -> u64 {
    (2 * n + 1).min(NONE.into())
}
