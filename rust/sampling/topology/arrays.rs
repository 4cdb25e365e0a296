//! Arrays in `.npy` files, mapped read-only, or in the memory of a caller.
//!
//! Another process may change the bytes under a map. So they are only ever read through the address of the
//! map, item by item and each once. Code that takes an item for an index compares it with the length of the
//! indexed list. The files are closed once they are mapped: a directory of a thousand parts has five thousand
//! of them.

use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use memmap2::Mmap;

use crate::base::npy::{Header, Item};
use crate::base::system::{Access, advise};
use crate::base::{Buffer, Error, Result, shown};
use crate::edges::open_file::{map, open_with_head};

/// Rows of bytes in a mapped file.
#[derive(Debug)]
pub(crate) struct MappedRows {
    path: PathBuf,
    /// Offset of the first row in the file.
    offset: u64,
    start: *const u8,
    len: usize,
    row_bytes: usize,
    /// Type of the items, as numpy spells it.
    pub descr: String,
    /// Shape of a row.
    pub row_shape: Vec<usize>,
    /// None: the rows are in memory.
    map: Option<Mmap>,
    /// The memory. None: there is a map, or it is a caller's.
    _memory: Option<Buffer<u8>>,
}

// SAFETY: the address is that of the map or of memory, which the value owns, or of memory that a caller
// keeps. It is only read.
unsafe impl Send for MappedRows {}
// SAFETY: as above.
unsafe impl Sync for MappedRows {}

impl MappedRows {
    /// Maps the array in `path`, of numbers or plain bytes.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (file, metadata, head) = open_with_head(path)?;
        let refused = |what: String| Error::format(shown(path), what);
        let header = Header::parse(&head).map_err(refused)?;
        let Header { data_offset, descr, fortran, shape } = header.clone();
        let (Some(item_bytes), Some((&len, row_shape))) = (item_bytes(&descr), shape.split_first()) else {
            return Err(refused(format!(
                "items of dtype {descr} and shape {shape:?} are no rows of numbers"
            )));
        };
        if fortran && !row_shape.is_empty() {
            return Err(refused("rows in Fortran order. Save numpy.ascontiguousarray of them".into()));
        }
        let cut = |what| refused(format!("{what}. It is cut off or was changed"));
        header.check_size(item_bytes, metadata.len(), &format!("the shape {shape:?}")).map_err(cut)?;
        let map = map(path, &file, metadata.len())?;
        Ok(Self {
            path: path.into(),
            offset: data_offset,
            start: map.as_ptr().wrapping_add(data_offset as usize),
            len: len as usize,
            row_bytes: (item_bytes * row_shape.iter().product::<u64>()) as usize,
            descr,
            row_shape: row_shape.iter().map(|&size| size as usize).collect(),
            map: Some(map),
            _memory: None,
        })
    }

    /// Copies the rows into memory. Where the operating system has huge pages, random rows are found faster
    /// than in a map.
    pub(crate) fn loaded(&self) -> Result<Self> {
        self.read_ahead();
        let mut memory = Buffer::<u8>::zeroed(self.len * self.row_bytes, "rows of features")?;
        // SAFETY: all rows of the map, copied into memory of their size.
        unsafe { std::ptr::copy_nonoverlapping(self.start, memory.as_mut_ptr(), memory.len()) };
        let (path, descr, row_shape) = (self.path.clone(), self.descr.clone(), self.row_shape.clone());
        let start = memory.as_ptr();
        Ok(Self { path, start, descr, row_shape, map: None, _memory: Some(memory), ..*self })
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Offset of the first row in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Lets the operating system read the pages that are asked for, and not those around them: up to 8 MB on
    /// some disks.
    pub(crate) fn read_few(&self) {
        // It is a hint: without it the reads are slower.
        self.advise(Access::Random);
    }

    /// Lets the operating system read the file ahead, in its order.
    pub(crate) fn read_ahead(&self) {
        self.advise(Access::Soon);
    }

    /// Asks the operating system to read `count` rows ahead, starting at `first`.
    fn read_ahead_of(&self, first: usize, count: usize) {
        let (from, bytes) = (self.offset as usize + first * self.row_bytes, count * self.row_bytes);
        if let Some(map) = self.map.as_ref().filter(|map| from + bytes <= map.len()) {
            advise(map.as_ptr().wrapping_add(from), bytes, Access::Soon);
        }
    }

    fn advise(&self, access: Access) {
        if let Some(map) = &self.map {
            advise(map.as_ptr(), map.len(), access);
        }
    }

    /// Address of row `index`, or of no row if there is none.
    #[inline(always)]
    pub(crate) fn row(&self, index: usize) -> Option<*const u8> {
        (index < self.len).then(|| self.start.wrapping_add(index * self.row_bytes))
    }

    /// Copies row `index`, if there is one, into memory of its size.
    pub(crate) fn copy(&self, index: usize, into: &mut [u8]) {
        assert_eq!(into.len(), self.row_bytes);
        if let Some(row) = self.row(index) {
            // SAFETY: the map has the row. Its bytes are copied as they are, even if another process changes
            // them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(row, into.as_mut_ptr(), into.len()) };
        }
    }
}

/// Bytes of an item of that type, if it is a number or plain bytes.
fn item_bytes(descr: &str) -> Option<u64> {
    let mut letters = descr.chars();
    let (order, kind) = (letters.next()?, letters.next()?);
    let known = "<|=".contains(order) && "biufcV".contains(kind);
    letters.as_str().parse().ok().filter(|&bytes| known && bytes > 0 && bytes <= 1 << 20)
}

/// One item per row.
#[derive(Debug)]
pub struct Column<T> {
    rows: MappedRows,
    item: PhantomData<T>,
}

impl<T: Item> Column<T> {
    /// Maps the array in `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let rows = MappedRows::open(path)?;
        if rows.descr == T::DESCR && rows.row_shape.is_empty() {
            return Ok(Self { rows, item: PhantomData });
        }
        let what =
            format!("dtype {} and rows of shape {:?}, expected {}", rows.descr, rows.row_shape, T::DESCR);
        Err(Error::format(shown(path), what))
    }
}

impl<T: Pod> Column<T> {
    /// Items in memory, under a name for errors.
    ///
    /// # Safety
    ///
    /// The caller keeps them as long as the column.
    pub unsafe fn in_memory(name: &Path, items: &[T]) -> Self {
        let rows = MappedRows {
            path: name.into(),
            offset: 0,
            start: items.as_ptr().cast(),
            len: items.len(),
            row_bytes: size_of::<T>(),
            descr: String::new(),
            row_shape: Vec::new(),
            map: None,
            _memory: None,
        };
        Self { rows, item: PhantomData }
    }

    /// See [`MappedRows::read_few`].
    pub fn read_few(&self) {
        self.rows.read_few();
    }

    /// Asks the operating system to read up to `count` items ahead, starting at `first`.
    pub fn read_ahead(&self, first: usize, count: usize) {
        let first = first.min(self.len());
        self.rows.read_ahead_of(first, count.min(self.len() - first));
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.rows.len
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.rows.path
    }

    /// Item `index`, if there is one.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<T> {
        // SAFETY: the map holds `len` items, of which this is one. Any bytes are a value of the type.
        (index < self.rows.len).then(|| unsafe { self.rows.start.cast::<T>().add(index).read_unaligned() })
    }

    /// Fills `into` with the items from `first` on, if there are enough.
    #[inline(always)]
    pub fn copy(&self, first: usize, into: &mut [T]) -> Option<()> {
        if first.checked_add(into.len())? > self.rows.len {
            return None;
        }
        let (from, to) = (self.rows.start.cast::<T>().wrapping_add(first), into.as_mut_ptr());
        // SAFETY: the map holds these items, as bytes that are any values of the type. The places are a
        // slice.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), size_of_val(into)) };
        Some(())
    }

    /// Brings item `index` into the cache.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        crate::base::prefetch_at(self.rows.start.cast::<T>().wrapping_add(index));
    }
}

/// The end of the first places of a range that are `within`. The steps of the search double and then halve,
/// so that a near end takes few steps.
pub(crate) fn partition_point(places: Range<usize>, within: impl Fn(usize) -> bool) -> usize {
    let (start, len, mut step) = (places.start, places.len(), 1);
    while step < len && within(start + step) {
        step *= 2;
    }
    let (mut low, mut high) = (step / 2, step.min(len));
    while low < high {
        let middle = low.midpoint(high);
        if within(start + middle) { low = middle + 1 } else { high = middle }
    }
    start + low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_runs_are_found() {
        for len in 0..70 {
            for end in 0..=len {
                assert_eq!(partition_point(7..7 + len, |place| place < 7 + end), 7 + end, "{end} of {len}");
            }
        }
    }
}
