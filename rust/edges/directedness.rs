//! The directed edges that a record stands for.

use super::Record;
use crate::base::{Result, named};

/// The directed edges that a record stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Directedness {
    /// Record r = (u, v) is the edge r from u to v and the edge m + r from v to u. A loop is the edge r
    /// alone.
    #[default]
    Undirected,
    /// Record r is the edge r, and another record is its reverse.
    Symmetric,
    /// Record r is the edge r.
    Directed,
}

impl Directedness {
    /// The one of that name.
    pub fn named(name: &str) -> Result<Self> {
        use Directedness::{Directed, Symmetric, Undirected};
        let known = [("undirected", Undirected), ("symmetric", Symmetric), ("directed", Directed)];
        named("directedness", "value", name, &known)
    }

    /// Most directed edges that `m` records make.
    pub(crate) fn most_edges(self, m: u64) -> u64 {
        if self == Directedness::Undirected { m.saturating_mul(2) } else { m }
    }

    /// Whether the record is also an edge from its second vertex to its first.
    #[inline(always)]
    pub(crate) fn reverses(self, [u, v]: Record) -> bool {
        self == Directedness::Undirected && u != v
    }
}
