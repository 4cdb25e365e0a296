//! Records of a typed graph, which lie relation by relation.

use std::ops::Range;
use std::sync::Arc;

use super::{EdgeStream, Record};
use crate::base::Result;

/// The records of a typed graph.
pub(crate) struct ByRelation(Arc<dyn EdgeStream + Send>);

impl ByRelation {
    /// Wraps a stream whose records are known to be grouped by relation.
    pub(crate) fn new(edges: Arc<dyn EdgeStream + Send>) -> Self {
        Self(edges)
    }
}

// SAFETY: every record is one of the stream within, which has the same number of vertices.
unsafe impl EdgeStream for ByRelation {
    fn num_vertices(&self) -> u64 {
        self.0.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.0.num_edges()
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        self.0.block(range, buf)
    }

    fn may_change(&self) -> bool {
        self.0.may_change()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.0.check_unchanged()
    }

    fn by_relation(&self) -> bool {
        true
    }
}
