//! One part of a topology: its columns, and what the inner vertices look up in them.

use std::any::Any;
use std::hint::select_unpredictable;
use std::path::Path;

use super::array::Column;
use crate::base::{Buffer, Error, Result, prefetch_at, shown};

/// One part.
#[derive(Debug)]
pub struct Part {
    /// Its first row.
    pub start: u32,
    /// Number of inner vertices.
    pub num_inner: u32,
    /// Original ids of the local vertices.
    pub vertices: Column<i64>,
    /// Where the in-edges of each local vertex begin.
    indptr: Column<i64>,
    /// Local ids of the sources.
    pub indices: Column<i32>,
    edge_ids: EdgeIds,
    /// Row of each vertex of the halo, behind an item that stands for all others. Filled by the topology.
    pub halo_rows: Buffer<u32>,
    /// Keeps the arrays of a graph in memory.
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

/// Id of each in-edge.
#[derive(Debug)]
enum EdgeIds {
    Mapped(Column<i64>),
    /// Graphs in memory: its position.
    Positions,
}

impl EdgeIds {
    /// How many there are. None: as many as in-edges.
    fn len(&self) -> Option<usize> {
        match self {
            EdgeIds::Mapped(ids) => Some(ids.len()),
            EdgeIds::Positions => None,
        }
    }
}

impl Part {
    /// Maps the part in `folder`, with so many vertices in its halo. None if its files contradict each other.
    pub fn open(folder: &Path, halo: Option<usize>) -> Result<Self> {
        let vertices = Column::open(&folder.join("vertices.npy"))?;
        let indptr = Column::<i64>::open(&folder.join("indptr.npy"))?;
        let indices = Column::open(&folder.join("indices.npy"))?;
        let edge_ids = Column::open(&folder.join("edge_ids.npy"))?;
        let edge_ids = EdgeIds::Mapped(edge_ids);
        let part = Self {
            start: 0,
            num_inner: 0,
            vertices,
            indptr,
            indices,
            edge_ids,
            halo_rows: no_halo()?,
            _keeper: None,
        };
        part.sized(folder, halo)
    }

    /// A graph in memory: ids, offsets and sources of its vertices. It has no halo.
    ///
    /// # Safety
    ///
    /// The arrays live as long as `keeper`.
    pub unsafe fn in_memory(
        vertices: &[i64],
        indptr: &[i64],
        indices: &[i32],
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        let name = Path::new("the graph");
        // SAFETY: the part keeps what keeps the arrays.
        let (vertices, indptr, indices) = unsafe {
            (
                Column::in_memory(name, vertices),
                Column::in_memory(name, indptr),
                Column::in_memory(name, indices),
            )
        };
        let part = Self {
            start: 0,
            num_inner: 0,
            vertices,
            indptr,
            indices,
            edge_ids: EdgeIds::Positions,
            halo_rows: no_halo()?,
            _keeper: Some(keeper),
        };
        part.sized(name, Some(0))
    }

    /// Checks the sizes against each other.
    fn sized(self, folder: &Path, halo: Option<usize>) -> Result<Self> {
        let local = self.vertices.len();
        let num_inner = halo.and_then(|halo| local.checked_sub(halo)).filter(|&inner| {
            inner < self.indptr.len()
                && local <= i32::MAX as usize
                && self.edge_ids.len().is_none_or(|ids| ids == self.indices.len())
        });
        let Some(num_inner) = num_inner else {
            let what = "the lengths of its arrays contradict each other. Save the partition again";
            return Err(Error::format(shown(folder), what));
        };
        Ok(Self { num_inner: num_inner as u32, ..self })
    }

    /// Lets the system read single pages of its files, for a memory that does not keep them.
    pub fn read_few(&self) {
        self.vertices.read_few();
        self.indptr.read_few();
        self.indices.read_few();
        if let EdgeIds::Mapped(ids) = &self.edge_ids {
            ids.read_few();
        }
    }

    /// Brings into the cache where the in-edges of an inner vertex begin, and its id.
    #[inline(always)]
    pub fn prefetch(&self, vertex: u32) {
        self.indptr.prefetch(vertex as usize);
        self.vertices.prefetch(vertex as usize);
    }

    /// The in-edges of an inner vertex: the first, and their number.
    #[inline(always)]
    pub fn in_edges(&self, vertex: u32) -> Result<(usize, usize)> {
        let (first, end) = (self.indptr.get(vertex as usize), self.indptr.get(vertex as usize + 1));
        if let (Some(first), Some(end)) = (first, end)
            && 0 <= first
            && first <= end
            && end as usize <= self.indices.len()
        {
            return Ok((first as usize, (end - first) as usize));
        }
        Err(damaged(self.indptr.path(), "offsets that do not ascend within the in-edges"))
    }

    /// The original id of a local vertex.
    #[inline(always)]
    pub fn id(&self, local: u32) -> Result<i64> {
        self.vertices.get(local as usize).ok_or_else(|| self.no_vertex())
    }

    /// The error for a local id that is none.
    #[cold]
    pub fn no_vertex(&self) -> Error {
        damaged(self.indices.path(), "a local id of no vertex")
    }

    /// Brings the original id of a local vertex into the cache.
    #[inline(always)]
    pub fn prefetch_id(&self, local: u32) {
        self.vertices.prefetch(local as usize);
    }

    /// Number of local vertices.
    pub fn num_local(&self) -> usize {
        self.vertices.len()
    }

    /// Copies the original ids from local vertex `first` on.
    pub fn copy_ids(&self, first: usize, into: &mut [i64]) -> Result<()> {
        self.vertices.copy(first, into).ok_or_else(|| self.no_vertex())
    }

    /// Copies the local ids of the sources from in-edge `first` on.
    #[inline(always)]
    pub fn copy_sources(&self, first: usize, into: &mut [i32]) -> Result<()> {
        self.indices.copy(first, into).ok_or_else(|| damaged(self.indptr.path(), "an offset of no in-edge"))
    }

    /// Copies the ids of in-edges from in-edge `first` on.
    pub fn copy_edge_ids(&self, first: usize, into: &mut [i64]) -> Result<()> {
        match &self.edge_ids {
            EdgeIds::Mapped(ids) => {
                ids.copy(first, into).ok_or_else(|| damaged(self.indptr.path(), "an offset of no in-edge"))
            }
            EdgeIds::Positions => {
                into.iter_mut().zip(first as i64..).for_each(|(id, position)| *id = position);
                Ok(())
            }
        }
    }

    /// The row of a local vertex. Whether it is in the halo cannot be predicted, so there is no branch.
    #[inline(always)]
    pub fn row_of(&self, local: u32) -> Result<u32> {
        let (inner, place) = self.place_in_halo(local);
        match self.halo_rows.get(place) {
            Some(&row) => Ok(select_unpredictable(inner, self.start.wrapping_add(local), row)),
            None => Err(self.no_vertex()),
        }
    }

    /// Brings into the cache what [`Self::row_of`] reads of a local vertex in the halo, or else what lies at `of_inner` of
    /// its row.
    #[inline(always)]
    pub fn prefetch_row(&self, local: u32, of_inner: impl Fn(u32) -> *const u32) {
        let (inner, place) = self.place_in_halo(local);
        let of_inner = of_inner(self.start.wrapping_add(local));
        prefetch_at(select_unpredictable(inner, of_inner, self.halo_rows.as_ptr().wrapping_add(place)));
    }

    /// Whether a local vertex is inner, and the place of its row in `halo_rows`.
    #[inline(always)]
    fn place_in_halo(&self, local: u32) -> (bool, usize) {
        let inner = local < self.num_inner;
        (inner, select_unpredictable(inner, 0, local.wrapping_sub(self.num_inner) as usize + 1))
    }

    /// The local id of the source of an in-edge.
    #[inline(always)]
    pub fn source(&self, edge: usize) -> Result<u32> {
        let local =
            self.indices.get(edge).ok_or_else(|| damaged(self.indptr.path(), "an offset of no in-edge"));
        Ok(local? as u32)
    }

    /// Brings the id of an in-edge into the cache.
    #[inline(always)]
    pub fn prefetch_edge_id(&self, edge: usize) {
        if let EdgeIds::Mapped(ids) = &self.edge_ids {
            ids.prefetch(edge);
        }
    }

    /// The id of an in-edge.
    #[inline(always)]
    pub fn edge_id(&self, edge: usize) -> Result<i64> {
        match &self.edge_ids {
            EdgeIds::Mapped(ids) => {
                ids.get(edge).ok_or_else(|| damaged(self.indptr.path(), "an offset of no in-edge"))
            }
            EdgeIds::Positions => Ok(edge as i64),
        }
    }
}

/// The rows of a halo that is not filled, or has no vertices.
fn no_halo() -> Result<Buffer<u32>> {
    Buffer::zeroed(1, "rows of the halo")
}

/// The error for a file whose content contradicts the others.
#[cold]
pub(crate) fn damaged(file: &Path, what: &str) -> Error {
    Error::format(
        shown(file),
        format!("{what}. The file is damaged or was changed. Save the partition again"),
    )
}
