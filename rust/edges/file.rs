//! Edges in a file, mapped or read: headerless pairs of little-endian u32 or u64, or a `.npy` array.
//!
//! The contract: the file is opened read-only and must not be changed or truncated during a run. It may be
//! replaced by rename or deleted. Size and modification time are compared before and after every pass. Ids
//! are range-checked as they are copied out of the map, so changed bytes can never cause an out-of-bounds
//! access. Truncation under a map can still end the process with SIGBUS. `Io::Read` rules that out.

use std::ops::Range;
use std::path::Path;

use bytemuck::Pod;

use super::decode::{BadId, Column, IdType, WideRecord, check, decode, decode_wide, is_packed_u32};
use super::memory::remedy;
pub(crate) use super::open_file::Io;
use super::open_file::OpenFile;
use super::{EdgeStream, MAX_VERTICES, Record, plausible};
use crate::base::npy::{Header, MAGIC};
use crate::base::{Error, Result, shown};

/// The axis of a two-dimensional array that has length 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// (m, 2): one record a row.
    Rows,
    /// (2, m): sources, then targets, as an edge index.
    EdgeIndex,
}

/// Where the records lie in the file.
#[derive(Debug, Clone, Copy)]
struct Shape {
    data_offset: u64,
    m: u64,
    id_type: IdType,
    swapped: bool,
    layout: Layout,
}

/// An edge file.
#[derive(Debug)]
pub struct EdgeFile {
    bytes: OpenFile,
    shape: Shape,
    n: u64,
    /// The remedy for an id that is not below `n`, if the caller knows where `n` is from.
    remedy: Option<String>,
}

impl EdgeFile {
    /// Opens `path`. A raw file holds ids of `id_type` (`None`: u32, after a look at the bytes that refuses
    /// what is evidently something else). A `.npy` file says its own type, with which a given one must agree.
    /// Until [`EdgeFile::set_num_vertices`], any id that fits is accepted.
    pub fn open(path: &Path, id_type: Option<IdType>, layout: Option<Layout>, io: Io) -> Result<Self> {
        Self::open_ordered(path, id_type, layout, io, false)
    }

    /// Opens a file of the 2PS and HEP programs: the number of vertices (u32) and of records (u64), then u32
    /// pairs, all little-endian. Also returns the number of vertices, without comparing the ids with it.
    pub fn open_binedgelist(path: &Path, io: Io) -> Result<(Self, u64)> {
        let (bytes, (n, shape)) = OpenFile::open(path, io, |head, size| binedgelist_shape(path, head, size))?;
        Ok((Self { bytes, shape, n: MAX_VERTICES, remedy: None }, n))
    }

    /// Opens `path` as [`EdgeFile::open`] does. The ids of a raw file may be big-endian. Without an `id_type`
    /// they are then u32, and of the looks at the bytes only that for u64 ids is taken.
    pub fn open_ordered(
        path: &Path,
        id_type: Option<IdType>,
        layout: Option<Layout>,
        io: Io,
        big_endian: bool,
    ) -> Result<Self> {
        let mut is_npy = false;
        let (bytes, shape) = OpenFile::open(path, io, |head, size| {
            is_npy = head.starts_with(MAGIC);
            let mut shape = match is_npy {
                true if big_endian => {
                    return Err(Error::parameter(
                        "swap",
                        "a .npy file says its byte order itself. Leave it out",
                    ));
                }
                true => npy_shape(path, head, size, id_type, layout)?,
                false => raw_shape(path, head, size, id_type.or(big_endian.then_some(IdType::U32)), layout)?,
            };
            shape.swapped |= big_endian;
            Ok(shape)
        })?;
        let edges = Self { bytes, shape, n: MAX_VERTICES, remedy: None };
        match (id_type, is_npy) {
            (None, false) if big_endian => plausible::check_width(&edges, 0, &shown(path))?,
            (None, false) => plausible::check_words(&edges, &shown(path))?,
            _ => {}
        }
        Ok(edges)
    }

    /// Requires ids to be below `n`.
    pub fn set_num_vertices(&mut self, n: u64) {
        self.n = n;
    }

    /// Says what to do about an id that is not below `n`.
    pub fn set_remedy(&mut self, remedy: String) {
        self.remedy = Some(remedy);
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.bytes.path()
    }

    /// Type of the stored ids.
    pub fn id_type(&self) -> IdType {
        self.shape.id_type
    }

    fn columns(&self, start: *const u8) -> [Column; 2] {
        let width = self.shape.id_type.width();
        let (stride, second) = match self.shape.layout {
            Layout::Rows => (2 * width, width),
            Layout::EdgeIndex => (width, self.shape.m as usize * width),
        };
        [0, second].map(|offset| Column {
            start: start.wrapping_add(offset),
            stride: stride as isize,
            id_type: self.shape.id_type,
            swapped: self.shape.swapped,
        })
    }

    /// The records `range` as the file has them: of any width, not compared with `n`.
    pub fn wide_block(&self, range: Range<u64>, buf: &mut Vec<WideRecord>) -> Result<()> {
        // SAFETY: as in `block`.
        self.with_columns(range, buf, |columns, first, out| unsafe { decode_wide(columns, first, out) })
    }

    /// Calls `decode` with columns, the first record to read from them, and where to. All are readable.
    fn with_columns<T: Pod>(
        &self,
        range: Range<u64>,
        buf: &mut Vec<[T; 2]>,
        decode: impl FnOnce([Column; 2], u64, &mut [[T; 2]]) -> Result<(), BadId>,
    ) -> Result<()> {
        let end = range.end.min(self.shape.m);
        let range = range.start.min(end)..end;
        let count = (range.end - range.start) as usize;
        let decoded = match self.bytes.start() {
            Some(start) => {
                // `open` checked that the map holds all `m` records.
                let columns = self.columns(start.wrapping_add(self.shape.data_offset as usize));
                buf.resize(count, [T::zeroed(); 2]);
                decode(columns, range.start, buf)
            }
            None => {
                // The bytes lie behind the records, in memory that serves all blocks.
                let length = 2 * count * self.shape.id_type.width();
                buf.resize(count + length.div_ceil(size_of::<[T; 2]>()), [T::zeroed(); 2]);
                let (out, behind) = buf.split_at_mut(count);
                let bytes = &mut bytemuck::cast_slice_mut(behind)[..length];
                self.read(&range, bytes)?;
                let mut columns = self.columns(bytes.as_ptr());
                if self.shape.layout == Layout::EdgeIndex {
                    columns[1].start = bytes[length / 2..].as_ptr();
                }
                let decoded = decode(columns, 0, out);
                buf.truncate(count);
                decoded
            }
        };
        decoded.or_else(|bad| self.refuse(range.start, bad))
    }

    /// The error for an id that does not fit, `first` records into the file.
    fn refuse(&self, first: u64, bad: BadId) -> Result<()> {
        // Nonsense in a file that changed is no fault of the file.
        self.check_unchanged()?;
        Err(Error::IdOutOfRange {
            origin: shown(self.path()),
            record: first + bad.position as u64,
            id: bad.id,
            n: self.n,
            remedy: self.remedy.clone().unwrap_or_else(|| remedy(bad.id, self.n)),
        })
    }

    /// Reads the bytes of `range`: one column after the other, or rows, as in the file.
    fn read(&self, range: &Range<u64>, bytes: &mut [u8]) -> Result<()> {
        let width = self.shape.id_type.width() as u64;
        let at = |id: u64| self.shape.data_offset + id * width;
        match self.shape.layout {
            Layout::Rows => self.bytes.read_at(bytes, at(2 * range.start)),
            Layout::EdgeIndex => {
                let (sources, targets) = bytes.split_at_mut(bytes.len() / 2);
                self.bytes.read_at(sources, at(range.start))?;
                self.bytes.read_at(targets, at(self.shape.m + range.start))
            }
        }
    }
}

// SAFETY: `decode` compares every id that it copies with `n`, which only `set_num_vertices` changes, by
// `&mut self`.
unsafe impl EdgeStream for EdgeFile {
    fn num_vertices(&self) -> u64 {
        self.n
    }

    fn num_edges(&self) -> u64 {
        self.shape.m
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        if self.bytes.start().is_none() && is_packed_u32(self.columns(std::ptr::null())) {
            // As the file has them: read to where they are wanted.
            let end = range.end.min(self.shape.m);
            let first = range.start.min(end);
            buf.resize((end - first) as usize, [0; 2]);
            let offset = self.shape.data_offset + first * size_of::<Record>() as u64;
            self.bytes.read_at(bytemuck::cast_slice_mut(buf), offset)?;
            check(buf, self.n).or_else(|bad| self.refuse(first, bad))?;
            return Ok(buf);
        }
        // SAFETY: `with_columns` vouches for the records of the range. Another process may change the bytes,
        // which `decode` allows for.
        self.with_columns(range, buf, |columns, first, out| unsafe { decode(columns, first, self.n, out) })?;
        Ok(buf)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.bytes.check_unchanged()
    }
}

fn raw_shape(
    path: &Path,
    head: &[u8],
    size: u64,
    id_type: Option<IdType>,
    layout: Option<Layout>,
) -> Result<Shape> {
    if layout == Some(Layout::EdgeIndex) {
        let what =
            "a raw file holds one record after the other. layout=\"edge_index\" is for arrays and .npy";
        return Err(Error::parameter("layout", what));
    }
    if id_type.is_none() {
        plausible::check_magic(head, &shown(path))?;
    }
    let id_type = id_type.unwrap_or(IdType::U32);
    let record = 2 * id_type.width() as u64;
    if !size.is_multiple_of(record) {
        return Err(Error::format(shown(path), plausible::odd_length(size, id_type)));
    }
    Ok(Shape { data_offset: 0, m: size / record, id_type, swapped: false, layout: Layout::Rows })
}

/// Bytes before the records of a `.binedgelist`.
pub(super) const BINEDGELIST_HEADER: u64 = 12;

/// Number of vertices and shape of a `.binedgelist`.
fn binedgelist_shape(path: &Path, head: &[u8], size: u64) -> Result<(u64, Shape)> {
    let header = head.split_first_chunk::<4>().and_then(|(n, rest)| Some((n, rest.first_chunk::<8>()?)));
    let Some((n, m)) = header else {
        let what = format!("{size} bytes are no .binedgelist, whose header has {BINEDGELIST_HEADER}");
        return Err(Error::format(shown(path), what));
    };
    let (n, m) = (u64::from(u32::from_le_bytes(*n)), u64::from_le_bytes(*m));
    if m.checked_mul(8).and_then(|bytes| bytes.checked_add(BINEDGELIST_HEADER)) != Some(size) {
        let what = format!(
            "length {size}, but a .binedgelist of the {m} records that its header claims has {BINEDGELIST_HEADER} + 8 * {m}. \
             It is cut off, or of another kind (raw pairs: pass dtype=\"u32\")"
        );
        return Err(Error::format(shown(path), what));
    }
    let rows = Layout::Rows;
    Ok((n, Shape { data_offset: BINEDGELIST_HEADER, m, id_type: IdType::U32, swapped: false, layout: rows }))
}

fn npy_shape(
    path: &Path,
    head: &[u8],
    size: u64,
    id_type: Option<IdType>,
    layout: Option<Layout>,
) -> Result<Shape> {
    let refused = |what| Error::format(shown(path), what);
    let header = Header::parse(head).map_err(refused)?;
    let (stored, swapped) = IdType::of_npy(&header.descr).map_err(refused)?;
    if let Some(wanted) = id_type.filter(|&wanted| wanted != stored) {
        let what = format!("{} was given, but {} holds {}", wanted.name(), shown(path), stored.name());
        return Err(Error::parameter("dtype", what));
    }
    let (by_rows, m) = match (&header.shape[..], layout) {
        (&[m, 2], None | Some(Layout::Rows)) => (true, m),
        (&[2, m], None | Some(Layout::EdgeIndex)) => (false, m),
        (shape, _) => {
            let what = format!("shape {shape:?}. Edges are (m, 2) or, with layout=\"edge_index\", (2, m)");
            return Err(refused(what));
        }
    };
    header.check_size(stored.width() as u64, size, &format!("the {m} records")).map_err(refused)?;
    // The transpose of a Fortran-ordered array is C-ordered.
    let layout = if by_rows != header.fortran { Layout::Rows } else { Layout::EdgeIndex };
    Ok(Shape { data_offset: header.data_offset, m, id_type: stored, swapped, layout })
}
