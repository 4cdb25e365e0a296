//! The in-edges of all vertices, to be read again and again.

use std::ops::Range;

use super::Topology;
use super::arrays::partition_point;
use super::part::Part;
use super::types::Types;
use crate::base::{Buffer, Error, Result, Run};
use crate::exec::scan;
use crate::traffic::{BLOCK, DirectedEdge, InEdges};

/// Vertices that a worker takes at a time.
const CHUNK: u32 = 1 << 12;

/// The in-edges of the parts, relation by relation. A graph without types has one relation.
pub struct TopologyEdges<'a> {
    /// The parts.
    pub topology: &'a Topology,
    /// Their relations, if the graph has types.
    pub types: Option<&'a Types>,
}

impl TopologyEdges<'_> {
    /// The inner vertices of each part that in-edges of a relation lead to.
    fn targets(&self, relation: usize) -> impl Iterator<Item = (usize, Range<u32>)> + Send {
        let types = self.types.map(|types| (types, usize::from(types.ends[relation][1])));
        let parts = self.topology.parts().iter().enumerate();
        parts.map(move |(place, part)| match types {
            None => (place, 0..part.num_inner),
            Some((types, of_type)) => {
                let rows = types.rows_of(place, of_type);
                (place, rows.start - part.start..rows.end - part.start)
            }
        })
    }

    /// The in-edges of a relation that lead to an inner vertex. They lie together.
    #[inline(always)]
    fn run(&self, relation: usize, part: &Part, place: usize, vertex: u32) -> Result<Range<usize>> {
        let (first, degree) = part.in_edges(vertex)?;
        let Some(types) = self.types else { return Ok(first..first + degree) };
        let (relations, number) = (&types.relations[place], relation as u16);
        let before = |edge| relations.get(edge).is_some_and(|relation| relation < number);
        let start = partition_point(first..first + degree, before);
        if start == first + degree || relations.get(start) != Some(number) {
            return Ok(start..start);
        }
        Ok(start..relations.run_end(start, first + degree, number))
    }

    /// Appends in-edges of an inner vertex to a block, which is handed out when it is full.
    fn hand_out(
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

impl InEdges for TopologyEdges<'_> {
    fn num_vertices(&self) -> u64 {
        u64::from(self.topology.num_vertices())
    }

    fn num_relations(&self) -> usize {
        self.types.map_or(1, Types::num_relations)
    }

    fn ranges(&self) -> Vec<(u32, u16)> {
        let all = || vec![(self.topology.num_vertices(), 0)];
        self.types.map_or_else(all, Types::ranges)
    }

    fn work(&self, relation: usize) -> u64 {
        self.targets(relation).map(|(_, vertices)| u64::from(vertices.end - vertices.start)).sum()
    }

    fn in_degrees(&self, relation: usize, run: &Run) -> Result<Buffer<u32>> {
        let mut degrees = Buffer::zeroed(self.topology.num_vertices() as usize, "in-degrees")?;
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
                self.hand_out(part, vertex, edges, run, block, step)?;
            }
            step(block);
            block.clear();
            run.advance(count)
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
}
