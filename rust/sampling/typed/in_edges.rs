//! The in-edges of each relation, to be read again and again.

use std::ops::Range;

use super::relations::Relations;
use super::types::Types;
use crate::base::{Buffer, Result, Run};
use crate::exec::scan;
use crate::sampling::part::Part;
use crate::sampling::topology::Topology;
use crate::traffic::{BLOCK, DirectedEdge, InEdges};

/// Vertices that a worker takes at a time.
const CHUNK: u32 = 1 << 12;

/// The in-edges of the parts of a typed graph.
pub struct TypedInEdges<'a> {
    /// The parts.
    pub topology: &'a Topology,
    /// The types of its vertices and edges.
    pub types: &'a Types,
}

impl TypedInEdges<'_> {
    /// The inner vertices of each part that in-edges of a relation lead to.
    fn targets(&self, relation: usize) -> impl Iterator<Item = (usize, Range<u32>)> + Send {
        let of_type = usize::from(self.types.ends[relation][1]);
        let parts = self.topology.parts().iter().enumerate();
        parts.map(move |(place, part)| {
            let rows = self.types.rows_of(place, of_type);
            (place, rows.start - part.start..rows.end - part.start)
        })
    }

    /// The in-edges of a relation that lead to an inner vertex. They lie together.
    fn run(&self, relation: usize, part: &Part, place: usize, vertex: u32) -> Result<Range<usize>> {
        let (first, degree) = part.in_edges(vertex)?;
        let (relations, number) = (&self.types.relations[place], relation as u16);
        let start = first_from(relations, first..first + degree, number);
        if start == first + degree || relations.get(start) != Some(number) {
            return Ok(start..start);
        }
        Ok(start..relations.run_end(start, first + degree, number))
    }
}

/// The first of the in-edges, which are ordered by relation, that is of no smaller relation.
fn first_from(relations: &Relations, edges: Range<usize>, number: u16) -> usize {
    let (mut low, mut high) = (edges.start, edges.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if relations.get(middle).is_some_and(|relation| relation < number) {
            low = middle + 1
        } else {
            high = middle
        }
    }
    low
}

impl InEdges for TypedInEdges<'_> {
    fn num_vertices(&self) -> u64 {
        u64::from(self.topology.num_vertices())
    }

    fn num_relations(&self) -> usize {
        self.types.num_relations()
    }

    fn ranges(&self) -> Vec<(u32, u16)> {
        self.types.ranges()
    }

    fn work(&self, relation: usize) -> u64 {
        self.targets(relation).map(|(_, vertices)| u64::from(vertices.end - vertices.start)).sum()
    }

    fn in_degrees(&self, relation: usize, run: &Run) -> Result<Buffer<u32>> {
        let mut degrees = Buffer::zeroed(self.topology.num_vertices() as usize, "in-degrees of a relation")?;
        for (place, vertices) in self.targets(relation) {
            let part = &self.topology.parts()[place];
            for vertex in vertices {
                degrees[(part.start + vertex) as usize] =
                    self.run(relation, part, place, vertex)?.len() as u32;
                if vertex % CHUNK == 0 {
                    run.check()?;
                }
            }
        }
        Ok(degrees)
    }

    fn visit(&self, relation: usize, run: &Run, step: &(dyn Fn(&[DirectedEdge]) + Sync)) -> Result<()> {
        let chunks = self.targets(relation).flat_map(|(place, vertices)| {
            let end = vertices.end;
            vertices.step_by(CHUNK as usize).map(move |first| (place, first..end.min(first + CHUNK)))
        });
        let init = || Ok(Vec::with_capacity(BLOCK));
        scan(run, usize::MAX, chunks, init, |block, (place, vertices)| {
            let part = &self.topology.parts()[place];
            let count = u64::from(vertices.end - vertices.start);
            for vertex in vertices {
                let edges = self.run(relation, part, place, vertex)?;
                self.topology.hand_out(part, vertex, edges, run, block, step)?;
            }
            step(block);
            block.clear();
            run.advance(count)
        })
        .map(drop)
    }
}
