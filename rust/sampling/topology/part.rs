//! One part of a topology: its columns, and the data of inner vertices that is looked up in them.

use std::any::Any;
use std::hint::select_unpredictable;
use std::path::Path;

use super::arrays::Column;
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
    /// Id of each in-edge. None: its position.
    edge_ids: Option<Column<i64>>,
    /// Row of each vertex of the halo, behind an item that stands for all others. Filled by the topology.
    pub halo_rows: Buffer<u32>,
    /// Keeps the arrays of a graph in memory.
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl Part {
    /// Maps the part in `folder`, with `halo` vertices in its halo, or none if its files contradict each
    /// other.
    pub fn open(folder: &Path, halo: Option<usize>) -> Result<Self> {
        let vertices = Column::open(&folder.join("vertices.npy"))?;
        let indptr = Column::<i64>::open(&folder.join("indptr.npy"))?;
        let indices = Column::open(&folder.join("indices.npy"))?;
        let edge_ids = Some(Column::open(&folder.join("edge_ids.npy"))?);
        Self::of(folder, halo, [vertices, indptr], indices, edge_ids, None)
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
        let (vertices, indptr) =
            unsafe { (Column::in_memory(name, vertices), Column::in_memory(name, indptr)) };
        // SAFETY: as above.
        let indices = unsafe { Column::in_memory(name, indices) };
        Self::of(name, Some(0), [vertices, indptr], indices, None, Some(keeper))
    }

    /// Checks the sizes of the columns against each other.
    fn of(
        folder: &Path,
        halo: Option<usize>,
        [vertices, indptr]: [Column<i64>; 2],
        indices: Column<i32>,
        edge_ids: Option<Column<i64>>,
        _keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<Self> {
        let local = vertices.len();
        let num_inner = halo.and_then(|halo| local.checked_sub(halo)).filter(|&inner| {
            inner < indptr.len()
                && local <= i32::MAX as usize
                && edge_ids.as_ref().is_none_or(|ids| ids.len() == indices.len())
        });
        let Some(num_inner) = num_inner.map(|inner| inner as u32) else {
            let what = "the lengths of its arrays contradict each other. Save the partition again";
            return Err(Error::format(shown(folder), what));
        };
        // Without a halo, or until it is filled.
        let halo_rows = Buffer::zeroed(1, "rows of the halo")?;
        Ok(Self { start: 0, num_inner, vertices, indptr, indices, edge_ids, halo_rows, _keeper })
    }

    /// Lets the operating system read single pages of its files, for a memory that does not keep them.
    pub fn read_few(&self) {
        self.vertices.read_few();
        self.indptr.read_few();
        self.indices.read_few();
        self.edge_ids.as_ref().inspect(|ids| ids.read_few());
    }

    /// Lets the operating system read the in-edges of inner vertices ahead, from `first` to `last`.
    pub fn read_ahead(&self, first: u32, last: u32) {
        self.indptr.read_ahead(first as usize, (last - first) as usize + 2);
        if let (Ok((from, _)), Ok((to, count))) = (self.in_edges(first), self.in_edges(last)) {
            self.indices.read_ahead(from, (to + count).saturating_sub(from));
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

    /// The error for a local id of no vertex.
    #[cold]
    pub fn no_vertex(&self) -> Error {
        damaged(self.indices.path(), "a local id of no vertex")
    }

    /// The error for the offset of no in-edge.
    #[cold]
    fn no_edge(&self) -> Error {
        damaged(self.indptr.path(), "an offset of no in-edge")
    }

    /// Brings the original id of a local vertex into the cache.
    #[inline(always)]
    pub fn prefetch_id(&self, local: u32) {
        self.vertices.prefetch(local as usize);
    }

    /// Number of in-edges.
    pub fn num_edges(&self) -> usize {
        self.indices.len()
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
        self.indices.copy(first, into).ok_or_else(|| self.no_edge())
    }

    /// Copies the ids of in-edges from in-edge `first` on.
    pub fn copy_edge_ids(&self, first: usize, into: &mut [i64]) -> Result<()> {
        if let Some(ids) = &self.edge_ids {
            return ids.copy(first, into).ok_or_else(|| self.no_edge());
        }
        into.iter_mut().zip(first as i64..).for_each(|(id, position)| *id = position);
        Ok(())
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

    /// Brings into the cache what [`Self::row_of`] reads of a local vertex in the halo, or else what lies at
    /// `of_inner` of its row.
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
        self.indices.get(edge).map(|local| local as u32).ok_or_else(|| self.no_edge())
    }

    /// Brings the id of an in-edge into the cache.
    #[inline(always)]
    pub fn prefetch_edge_id(&self, edge: usize) {
        if let Some(ids) = &self.edge_ids {
            ids.prefetch(edge);
        }
    }

    /// The id of an in-edge.
    #[inline(always)]
    pub fn edge_id(&self, edge: usize) -> Result<i64> {
        let id = self.edge_ids.as_ref().map_or(Some(edge as i64), |ids| ids.get(edge));
        id.ok_or_else(|| self.no_edge())
    }
}

/// The error for a file whose content contradicts the others.
#[cold]
pub(crate) fn damaged(file: &Path, what: &str) -> Error {
    Error::format(
        shown(file),
        format!("{what}. The file is damaged or was changed. Save the partition again"),
    )
}
