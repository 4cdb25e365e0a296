//! The in-edges of all vertices, to be read again and again.

use std::ops::Range;

use super::part::Part;
use super::topology::Topology;
use crate::base::{Buffer, Error, Result, Run};
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
    /// The rows of in-edges, given the row of the target of each and its id, in a graph of `num_records`
    /// records.
    ///
    /// The in-edges of a vertex are in the order of records, so each is searched among those of its target.
    pub fn edge_rows_of(&self, targets: &[u32], ids: &[i64], num_records: i64) -> Result<Vec<i64>> {
        self.check_rows("targets", targets)?;
        if targets.len() != ids.len() {
            let what = format!("{} for {} targets", ids.len(), targets.len());
            return Err(Error::parameter("ids", what));
        }
        let record = |id: i64| if id < num_records { id } else { id - num_records };
        let row_of = |(&target, &id): (&u32, &i64)| {
            let index = self.part_of(target);
            let part = &self.parts()[index];
            let (first, degree) = part.in_edges(target - part.start)?;
            let (mut low, mut high) = (first, first + degree);
            while low < high {
                let middle = low.midpoint(high);
                if record(part.edge_id(middle)?) < record(id) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            while low < first + degree && record(part.edge_id(low)?) == record(id) {
                if part.edge_id(low)? == id {
                    return Ok((self.edge_rows().starts()[index] + low as u64) as i64);
                }
                low += 1;
            }
            let vertex = part.id(target - part.start)?;
            let what = format!("the edge {id} is no in-edge of the vertex {vertex}");
            Err(Error::parameter("ids", what))
        };
        targets.iter().zip(ids).map(row_of).collect()
    }

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
