//! When in-edges and vertices came to be, as the parts of a directory hold it.

use std::path::PathBuf;
use std::sync::Arc;

use super::ranks::Ranks;
use crate::base::{Error, Result, shown};
use crate::sampling::topology::arrays::Column;
use crate::sampling::topology::row_numbers::RowSpace;
use crate::sampling::topology::{Topology, Types};

/// Stands for no time. Vertices and edges without a time were always there, so this is before every other
/// time.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// Times of some rows, mapped. None: they have no times.
type Mapped = Option<Column<i64>>;

/// The times of a topology.
#[derive(Debug)]
pub struct Times {
    /// The rows of each part or, in a graph with types, of each type in each part.
    segments: Arc<RowSpace>,
    /// The times of the vertices of each segment.
    vertices: Vec<Mapped>,
    of_vertices: bool,
    /// The times of the in-edges of each part or, in a graph with types, of each relation in each part.
    edges: Vec<Mapped>,
    /// The ranks of the in-edges of each part, if there are types.
    ranks: Vec<Ranks>,
    types: Option<Arc<Types>>,
}

impl Times {
    /// Maps the times of vertices and of in-edges, a file for each part, or for each type or relation in each
    /// part.
    pub fn open(
        topology: &Topology,
        types: Option<Arc<Types>>,
        vertices: &[Option<PathBuf>],
        edges: &[Option<PathBuf>],
    ) -> Result<Self> {
        let segments = Arc::clone(types.as_ref().map_or(topology.rows(), |types| types.segments()));
        let sizes = segments.starts().windows(2).map(|bounds| (bounds[1] - bounds[0]) as usize);
        let vertices = open(vertices, sizes)?;
        let (mut ranks, mut counts) = (Vec::new(), Vec::new());
        for (number, part) in topology.parts().iter().enumerate() {
            let Some(types) = &types else {
                counts.push(part.num_edges());
                continue;
            };
            let end = part.num_edges();
            let of_part = Ranks::new(types, number, end)?;
            let relations = 0..types.num_relations() as u16;
            counts.extend(relations.map(|relation| of_part.before(types, number, relation, end)));
            ranks.push(of_part);
        }
        let edges = open(edges, counts.into_iter())?;
        let of_vertices = vertices.iter().any(Option::is_some);
        Ok(Self { segments, vertices, of_vertices, edges, ranks, types })
    }

    /// Whether any vertices have times.
    pub(crate) fn of_vertices(&self) -> bool {
        self.of_vertices
    }

    /// The times of in-edges of a part, from `first` on, which are of one relation if there are types.
    #[inline(always)]
    pub(crate) fn of_edges(&self, part: u32, relation: u16, first: usize) -> EdgeTimes<'_> {
        let Some(types) = &self.types else {
            return EdgeTimes { times: self.edges[part as usize].as_ref(), shift: 0 };
        };
        let there = part as usize * types.num_relations() + usize::from(relation);
        let times = self.edges[there].as_ref();
        let shift = times.map_or(0, |_| {
            let part = part as usize;
            self.ranks[part].before(types, part, relation, first).wrapping_sub(first)
        });
        EdgeTimes { times, shift }
    }

    /// The time of the vertex with this row.
    #[inline(always)]
    pub(crate) fn of_row(&self, row: u32) -> Result<i64> {
        let segment = self.segments.part_of(u64::from(row));
        match &self.vertices[segment] {
            Some(times) => times.get(self.place(segment, row)).ok_or_else(no_such_time),
            None => Ok(NO_TIME),
        }
    }

    /// Brings the time of the vertex with this row into the cache.
    #[inline(always)]
    pub(crate) fn prefetch_row(&self, row: u32) {
        let segment = self.segments.part_of(u64::from(row));
        if let Some(times) = &self.vertices[segment] {
            times.prefetch(self.place(segment, row));
        }
    }

    #[inline(always)]
    fn place(&self, segment: usize, row: u32) -> usize {
        (u64::from(row) - self.segments.starts()[segment]) as usize
    }

    /// The times of vertices, given by their rows.
    pub fn of_rows(&self, rows: &[u32]) -> Result<Vec<i64>> {
        self.segments.check("rows", rows)?;
        rows.iter().map(|&row| self.of_row(row)).collect()
    }
}

/// The times of in-edges that follow each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeTimes<'a> {
    times: Option<&'a Column<i64>>,
    /// The difference between the place of an in-edge in the file and in its part.
    shift: usize,
}

impl EdgeTimes<'_> {
    /// Whether they have times.
    #[inline(always)]
    pub(crate) fn exist(&self) -> bool {
        self.times.is_some()
    }

    /// The time of an in-edge.
    #[inline(always)]
    pub(crate) fn get(&self, edge: usize) -> Result<i64> {
        self.times
            .map_or(Ok(NO_TIME), |times| times.get(edge.wrapping_add(self.shift)).ok_or_else(no_such_time))
    }

    /// Fills in the times of in-edges from `first` on.
    #[inline(always)]
    pub(crate) fn copy(&self, first: usize, into: &mut [i64]) -> Result<()> {
        if let Some(times) = self.times {
            return times.copy(first.wrapping_add(self.shift), into).ok_or_else(no_such_time);
        }
        into.fill(NO_TIME);
        Ok(())
    }

    /// Brings the time of an in-edge into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, edge: usize) {
        if let Some(times) = self.times {
            times.prefetch(edge.wrapping_add(self.shift));
        }
    }
}

/// Maps files with as many times each as `counts` says.
fn open(files: &[Option<PathBuf>], counts: impl ExactSizeIterator<Item = usize>) -> Result<Vec<Mapped>> {
    if files.len() != counts.len() {
        let what = format!("{} files of times, expected {}", files.len(), counts.len());
        return Err(Error::parameter("times", what));
    }
    let open = |(file, count): (&Option<PathBuf>, usize)| {
        let Some(file) = file else { return Ok(None) };
        let times = Column::open(file)?;
        if times.len() == count {
            return Ok(Some(times));
        }
        let what = format!("{} times, expected {count}. Save the partition again", times.len());
        Err(Error::format(shown(file), what))
    };
    files.iter().zip(counts).map(open).collect()
}

#[cold]
fn no_such_time() -> Error {
    Error::Internal("the time of nothing".into())
}
