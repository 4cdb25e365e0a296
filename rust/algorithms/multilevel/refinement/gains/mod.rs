//! Gains of vertices, as the local search ([`fm`](super::fm)) asks for them.

pub(crate) mod boundary;
pub(crate) mod table;

use crate::algorithms::multilevel::model::{Assignment, Connections, Graph, Quality};

/// An assignment, and the gains of its vertices.
pub(crate) trait MoveGains<'a, const D: usize>: Sync {
    /// The graph.
    fn graph(&self) -> &'a Graph<'a, D>;

    /// The parts and their loads.
    fn assignment(&self) -> &Assignment<D>;

    /// The quality of the assignment.
    fn quality(&self) -> Quality;

    /// Whether a round may begin with `v`: it is on the boundary, or in a part above a cap.
    fn may_begin(&self, v: u32) -> bool;

    /// The other part with slack that is best for `v`, and the gain of moving there. Overwrites `scratch`.
    fn best_move(&self, scratch: &mut Connections, v: u32) -> Option<(u32, i64)>;

    /// Moves `v`.
    fn shift(&mut self, scratch: &mut Connections, v: u32, to: u32);

    /// An upper bound of the gain of `u` after a neighbour has moved between two parts along an edge of
    /// weight `w`. Before it was `old`, if `u` is in the queue.
    fn raised(
        &self,
        scratch: &mut Connections,
        u: u32,
        moved: [u32; 2],
        w: u32,
        old: Option<i64>,
    ) -> Option<i64>;
}
