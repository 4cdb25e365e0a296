//! The in-edges of all vertices, to be read again and again.

use std::ops::Range;

use super::part::Part;
use super::topology::Topology;
use crate::base::{Buffer, Result, Run};
use crate::exec::scan;
use crate::traffic::{BLOCK, DirectedEdge, InEdges};

/// Vertices that a worker takes at a time.
const CHUNK: u32 = 1 << 12;

impl InEdges for Topology {
    fn num_vertices(&self) -> u64 {
        u64::from(Topology::num_vertices(self))
    }

    fn work(&self, _: usize) -> u64 {
        InEdges::num_vertices(self)
    }

    fn in_degrees(&self, _: usize, run: &Run) -> Result<Buffer<u32>> {
        let mut degrees = Buffer::zeroed(Topology::num_vertices(self) as usize, "degrees")?;
        let mut rest = &mut degrees[..];
        for part in self.parts() {
            let (own, behind) = rest.split_at_mut(part.num_inner as usize);
            for (vertex, degree) in (0..).zip(own) {
                *degree = part.in_edges(vertex)?.1 as u32;
                if vertex % CHUNK == 0 {
                    run.check()?;
                }
            }
            rest = behind;
        }
        Ok(degrees)
    }

    fn visit(&self, _: usize, run: &Run, step: &(dyn Fn(&[DirectedEdge]) + Sync)) -> Result<()> {
        let chunks = self
            .parts()
            .iter()
            .flat_map(|part| (0..part.num_inner).step_by(CHUNK as usize).map(move |first| (part, first)));
        let init = || Ok(Vec::with_capacity(BLOCK));
        scan(run, usize::MAX, chunks, init, |block, (part, first)| {
            let end = part.num_inner.min(first + CHUNK);
            for vertex in first..end {
                let (edge, degree) = part.in_edges(vertex)?;
                self.hand_out(part, vertex, edge..edge + degree, run, block, step)?;
            }
            step(block);
            block.clear();
            run.advance(u64::from(end - first))
        })
        .map(drop)
    }
}

impl Topology {
    /// Appends in-edges of an inner vertex to a block, which is handed out when it is full.
    pub(super) fn hand_out(
        &self,
        part: &Part,
        vertex: u32,
        edges: Range<usize>,
        run: &Run,
        block: &mut Vec<DirectedEdge>,
        step: &(dyn Fn(&[DirectedEdge]) + Sync),
    ) -> Result<()> {
        let target = part.start + vertex;
        for edge in edges {
            let source = part.row_of(part.source(edge)?)?;
            block.push(DirectedEdge { source, target, id: part.edge_id(edge)? as u64 });
            if block.len() == BLOCK {
                step(block);
                block.clear();
                run.check()?;
            }
        }
        Ok(())
    }
}
