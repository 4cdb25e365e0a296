//! Where the parts hold the vertices of each type, and which types the relations connect.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::Topology;
use super::arrays::partition_point;
use super::part::Part;
use super::relations::Relations;
use super::row_numbers::RowSpace;
use crate::base::{Error, Result};

/// Types of vertices and of edges.
#[derive(Debug)]
pub struct Types {
    /// Types of the sources and of the targets of each type of edges.
    pub(crate) ends: Vec<[u16; 2]>,
    /// Relations of the in-edges of each part.
    pub(crate) relations: Vec<Relations>,
    /// The rows of each type in each part, part by part.
    segments: Arc<RowSpace>,
    /// For each segment its type, and the number to add to a row to get the row within its type.
    of_segment: Vec<(u16, u32)>,
    /// First row of each part among those of a type, and their number.
    starts: Vec<Vec<u32>>,
}

impl Types {
    /// Types whose vertices begin at `firsts`, and edges between them, in the parts of `topology` in
    /// `folders`.
    pub fn open(
        topology: &Topology,
        folders: &[PathBuf],
        firsts: &[i64],
        ends: Vec<[u16; 2]>,
    ) -> Result<Self> {
        let types = firsts.len();
        if folders.len() != topology.parts().len() || !firsts.is_sorted() || types > usize::from(u16::MAX) {
            return Err(Error::parameter("types", "expected a folder for each part, and ids that ascend"));
        }
        if let Some(wrong) = ends.iter().flatten().find(|&&end| usize::from(end) >= types) {
            return Err(Error::parameter("relations", format!("{wrong} is not one of {types} types")));
        }
        let open = |(folder, part): (&PathBuf, &Part)| Relations::open(folder, ends.len(), part.num_edges());
        let relations = folders.iter().zip(topology.parts()).map(open).collect::<Result<_>>()?;
        let (mut sizes, mut of_segment) = (Vec::new(), Vec::new());
        let mut starts = vec![vec![0_u32]; types];
        for part in topology.parts() {
            let mut bounds = vec![0];
            for &first in &firsts[1.min(types)..] {
                // A damaged part, whose ids do not ascend, also gets some bounds.
                let before = |vertex| part.vertices.get(vertex).is_some_and(|id| id < first);
                let bound = partition_point(0..part.num_inner as usize, before) as u32;
                bounds.push(bound.max(bounds[bounds.len() - 1]));
            }
            bounds.push(part.num_inner);
            for (number, (bound, of_type)) in bounds.windows(2).zip(&mut starts).enumerate() {
                let (first, there) = (part.start + bound[0], of_type[of_type.len() - 1]);
                sizes.push(u64::from(bound[1] - bound[0]));
                of_segment.push((number as u16, there.wrapping_sub(first)));
                of_type.push(there + (bound[1] - bound[0]));
            }
        }
        let segments = Arc::new(RowSpace::of(sizes.into_iter()));
        Ok(Self { ends, relations, segments, of_segment, starts })
    }

    /// The first run among the in-edges of a vertex from `first` up to `end`: its relation, which is larger
    /// than that of the run `before`, and its end.
    #[inline(always)]
    pub(crate) fn next_run(
        &self,
        part: usize,
        first: usize,
        end: usize,
        before: Option<u16>,
    ) -> Result<(u16, usize)> {
        let relations = &self.relations[part];
        let relation = relations.get(first).filter(|&relation| before < Some(relation));
        match relation.filter(|&relation| usize::from(relation) < self.ends.len()) {
            Some(relation) => Ok((relation, relations.run_end(first, end, relation))),
            None => Err(relations.damaged("relations that do not ascend among the in-edges of a vertex")),
        }
    }

    /// The rows of the vertices of each type in each part, part by part.
    pub(crate) fn segments(&self) -> &Arc<RowSpace> {
        &self.segments
    }

    /// Number of types of vertices.
    pub fn num_types(&self) -> usize {
        self.starts.len()
    }

    /// Number of types of edges.
    pub fn num_relations(&self) -> usize {
        self.ends.len()
    }

    /// First row of each part among those of a type, and their number.
    pub fn starts(&self, number: usize) -> &[u32] {
        &self.starts[number]
    }

    /// The rows of the topology that are vertices of a type in a part.
    pub(crate) fn rows_of(&self, part: usize, number: usize) -> Range<u32> {
        let place = part * self.num_types() + number;
        self.segments.starts()[place] as u32..self.segments.starts()[place + 1] as u32
    }

    /// Where each range of rows of one type ends, and the type.
    pub(crate) fn ranges(&self) -> Vec<(u32, u16)> {
        let ends = self.segments.starts()[1..].iter().map(|&end| end as u32);
        ends.zip(&self.of_segment).map(|(end, &(number, _))| (end, number)).collect()
    }

    /// The type of a row of the topology, and the row among those of the type.
    #[inline(always)]
    pub fn locate(&self, row: u32) -> (u16, u32) {
        let (number, shift) = self.of_segment[self.segments.part_of(u64::from(row))];
        (number, row.wrapping_add(shift))
    }
}
