//! The questions that samples ask of a graph with types.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::base::Result;
use crate::sampling::row_space::RowSpace;

/// A graph whose in-edges are of several relations. The in-edges of a vertex lie one relation after the
/// other, in runs.
pub trait RelationRuns: Debug + Send + Sync {
    /// Number of relations.
    fn num_relations(&self) -> usize;

    /// The rows of the vertices of each type in each part, part by part.
    fn segments(&self) -> &Arc<RowSpace>;

    /// The relation of an in-edge of a part.
    fn relation(&self, part: usize, edge: usize) -> Option<u16>;

    /// The number of in-edges of a relation within a range of a part.
    fn count(&self, part: usize, edges: Range<usize>, relation: u16) -> usize;

    /// Brings the relation of an in-edge into the cache.
    fn prefetch(&self, part: usize, edge: usize);

    /// The first run among the in-edges of a vertex from `first` up to `end`: its relation, which is larger
    /// than that of the run `before`, and its end.
    fn run(&self, part: usize, first: usize, end: usize, before: Option<u16>) -> Result<(u16, usize)>;
}
