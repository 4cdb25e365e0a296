//! The entries of a graph, plain or packed, in memory or in files.
//!
//! Lists in files are read ahead of each pass, in the order in which the pass takes them. Otherwise the
//! kernel would have to guess. Where a pass skips most vertices, as a group of clustering does, it would read
//! many times the bytes needed.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::base::{Buffer, read_ahead};
use crate::graph::csr::{List, Packed};

/// Bytes of lists in files that are read ahead of a pass, and bytes of one call, of which Linux reads at
/// least 128 KiB. The bytes behind the lists of a block are prefetched while its last vertices are at work.
const AHEAD: u64 = 1 << 22;
const AHEAD_AT_A_TIME: u64 = 1 << 17;
const AFTER_A_BLOCK: u64 = 1 << 12;

/// Items that a graph owns, or that it borrows from the adjacency.
pub(crate) enum Items<'a, T> {
    Owned(Buffer<T>),
    Borrowed(&'a [T]),
}

impl<T> Deref for Items<'_, T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Items::Owned(items) => items,
            Items::Borrowed(items) => items,
        }
    }
}

/// The neighbours of all vertices, and the weights of the edges.
pub(crate) enum Entries<'a> {
    /// One after the other.
    Plain {
        targets: Items<'a, u32>,
        /// Weight of each entry. All weigh 1 if it is `None`.
        weights: Option<Items<'a, u32>>,
    },
    Packed(Arc<Packed>),
}

impl Entries<'_> {
    /// Entries that the graph owns.
    pub(crate) fn owned(targets: Buffer<u32>, weights: Buffer<u32>) -> Self {
        Self::Plain { targets: Items::Owned(targets), weights: Some(Items::Owned(weights)) }
    }

    /// Lends the entries to another graph, without a copy.
    pub(crate) fn lent(&self) -> Entries<'_> {
        match self {
            Self::Plain { targets, weights } => Entries::Plain {
                targets: Items::Borrowed(targets),
                weights: weights.as_deref().map(Items::Borrowed),
            },
            Self::Packed(lists) => Entries::Packed(lists.clone()),
        }
    }

    /// The entries of a range, if they are plain.
    pub(crate) fn list(&self, range: Range<u64>) -> List<'_> {
        let range = range.start as usize..range.end as usize;
        match self {
            Self::Plain { targets, weights } => {
                (&targets[range.clone()], weights.as_ref().map(|weights| &weights[range]))
            }
            Self::Packed(_) => (&[], None),
        }
    }

    /// The bytes of the lists of `vertices`: of the neighbours, if they are plain.
    fn span(&self, vertices: Range<u32>, offsets: &[u64]) -> Range<u64> {
        match self {
            Self::Plain { .. } => 4 * offsets[vertices.start as usize]..4 * offsets[vertices.end as usize],
            Self::Packed(lists) => lists.span(vertices),
        }
    }

    /// Reads these bytes of a span ahead.
    fn read_ahead(&self, span: Range<u64>) {
        match self {
            Self::Plain { targets, weights } => {
                let range = (span.start / 4) as usize..((span.end / 4) as usize).min(targets.len());
                read_ahead(&targets[range.clone()]);
                if let Some(weights) = weights {
                    read_ahead(&weights[range]);
                }
            }
            Self::Packed(lists) => {
                let bytes = lists.bytes();
                read_ahead(&bytes[span.start as usize..(span.end as usize).min(bytes.len())]);
            }
        }
    }
}

/// Reads the lists of blocks of vertices ahead of a pass.
pub(crate) struct ReadAhead<'a, B> {
    entries: &'a Entries<'a>,
    /// Where the entries of each vertex begin.
    offsets: &'a [u64],
    blocks: B,
    /// Bytes of the current block that are not asked for yet.
    left: Range<u64>,
    /// Bytes that were asked for and that the pass has not reached.
    given: u64,
}

impl<'a, B: Iterator<Item = Range<u32>>> ReadAhead<'a, B> {
    pub(crate) fn new(entries: &'a Entries<'a>, offsets: &'a [u64], blocks: B) -> Self {
        Self { entries, offsets, blocks, left: 0..0, given: 0 }
    }

    /// The pass takes this range.
    pub(crate) fn take(&mut self, range: Range<u32>) {
        let span = self.entries.span(range, self.offsets);
        let taken = span.end - span.start;
        while self.given < taken + AHEAD {
            if self.left.is_empty() {
                let Some(block) = self.blocks.next() else { break };
                self.left = self.entries.span(block, self.offsets);
                continue;
            }
            let end = self.left.end.min(self.left.start + AHEAD_AT_A_TIME);
            let after = if end == self.left.end { AFTER_A_BLOCK } else { 0 };
            self.entries.read_ahead(self.left.start..end + after);
            self.given += end - self.left.start;
            self.left.start = end;
        }
        self.given = self.given.saturating_sub(taken);
    }
}
