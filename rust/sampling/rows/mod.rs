//! Rows of features for the nodes of a batch.

mod adam;
mod cache;
pub(crate) mod direct_reads;
mod disk_rates;
mod neighbour_means;
mod packs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::npy::Item;
use crate::base::system::most_open_files;
use crate::base::{Buffer, Error, Result, budget, prefetch_at, shown};
use crate::parts::Coding;
use crate::sampling::reused_memory::Memory;
use crate::sampling::topology::Topology;
use crate::sampling::topology::arrays::MappedRows;
use crate::sampling::topology::part::Part;
use crate::sampling::topology::row_numbers::{RowId, RowSpace};
use cache::RowCache;
use direct_reads::{DirectFile, Wanted};

pub use adam::{AdamStep, LearnedRows, Number};
pub use disk_rates::{DiskRates, disk_rates};
pub use packs::{Pack, Target};

/// Rows between two polls of the cancel flag.
const STRIDE: usize = 256;

/// Bytes of rows that are on their way into the cache.
const AHEAD: usize = 4096;

/// Bytes of a row that are asked for. The processor finds the others itself.
const ASKED: usize = 1536;

/// Memory of more than `WASTE` times the rows of a batch, and of more than [`LARGE`] bytes, is given back
/// instead of used for it.
const WASTE: usize = 4;

/// Bytes of memory that is not worth giving back.
const LARGE: usize = 1 << 20;

/// How rows of files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// From maps, through the page cache.
    Mmap,
    /// Past the page cache, many at a time, where the file system does that.
    Direct,
}

impl Io {
    /// The faster way to read files of that size: maps, if memory holds them.
    pub fn fitting(bytes: u64) -> Self {
        if bytes > budget::available() { Self::Direct } else { Self::Mmap }
    }
}

/// A pack, and the step of its epoch.
pub type PackStep<'a> = (&'a Pack, usize);

/// The features of the inner vertices of parts, or of other rows of them, in files. Any of the parts may lack
/// them.
#[derive(Clone, Debug)]
pub struct Features {
    topology: Arc<Topology>,
    /// The rows of each part.
    space: Arc<RowSpace>,
    parts: Arc<[Option<MappedRows>]>,
    /// The files that are read past the page cache.
    direct: Arc<[Option<DirectFile>]>,
    /// Rows that stay in memory, if others are read past the page cache.
    cache: Option<Arc<RowCache>>,
    /// How rows are decoded. Without it they are given as they are stored.
    coding: Option<Coding>,
    /// Bytes of a row in the files.
    stored_bytes: usize,
    /// Bytes of a row that is given.
    pub row_bytes: usize,
    /// Type of the items that are given, as numpy spells it.
    pub descr: String,
    /// Shape of a row that is given.
    pub row_shape: Vec<usize>,
    /// Whether memory does not hold the files, and rows are read in their order. It does not change what is
    /// read. The operating system then reads each page once per batch, and those around it together.
    pub in_order: bool,
    /// Bytes that were read for rows and not told yet, of all that share the files.
    read: Arc<AtomicU64>,
}

impl Features {
    /// Opens the features of every part that has a file. They are those of the vertices unless another
    /// `space` is given. Without `io`, they are read as fits their size.
    pub fn open(
        files: &[Option<PathBuf>],
        topology: Arc<Topology>,
        space: Option<Arc<RowSpace>>,
        io: Option<Io>,
    ) -> Result<Self> {
        let (k, space) = (topology.parts().len(), space.unwrap_or_else(|| Arc::clone(topology.rows())));
        if files.len() != k {
            let what = format!("{} files for {k} parts. Pass one for each, or None", files.len());
            return Err(Error::parameter("files", what));
        }
        if space.starts().len() != k + 1 {
            let what = format!("{} numbers for {k} parts. Pass {}", space.starts().len(), k + 1);
            return Err(Error::parameter("starts", what));
        }
        let open = |file: &Option<PathBuf>| file.as_ref().map(|file| MappedRows::open(file)).transpose();
        let parts = files.iter().map(open).collect::<Result<Vec<_>>>()?;
        let Some(first) = parts.iter().flatten().next() else {
            return Err(Error::parameter("files", "no part has features"));
        };
        let (descr, row_shape, row_bytes) = (first.descr.clone(), first.row_shape.clone(), first.row_bytes());
        for (ends, rows) in space.starts().windows(2).zip(&parts) {
            let Some(rows) = rows else { continue };
            let expected = ends[1] - ends[0];
            if rows.len() as u64 != expected || rows.descr != descr || rows.row_shape != row_shape {
                let what = format!(
                    "{} rows of dtype {} and shape {:?}, expected {expected} of dtype {descr} and shape {row_shape:?}",
                    rows.len(),
                    rows.descr,
                    rows.row_shape
                );
                return Err(Error::format(shown(rows.path()), what));
            }
        }
        let bytes: u64 = parts.iter().flatten().map(|rows| (rows.len() * row_bytes) as u64).sum();
        let in_order = bytes > budget::available();
        if in_order {
            // Each batch of rows pushes the lists out of memory, and they are asked for one by one.
            topology.parts().iter().for_each(Part::read_few);
        }
        let io = io.unwrap_or_else(|| Io::fitting(bytes));
        let open = |rows: &Option<MappedRows>| {
            let rows = rows.as_ref().filter(|rows| io == Io::Direct && rows.row_bytes() > 0)?;
            DirectFile::open(rows.path(), rows.offset(), rows.row_bytes())
        };
        let direct: Vec<_> =
            if parts.len() <= most_files() { parts.iter().map(open).collect() } else { Vec::new() };
        let (parts, direct) = (parts.into(), direct.into());
        let (cache, coding, stored_bytes) = (None, None, row_bytes);
        Ok(Self {
            topology,
            space,
            parts,
            direct,
            cache,
            coding,
            stored_bytes,
            row_bytes,
            descr,
            row_shape,
            in_order,
            read: Arc::default(),
        })
    }

    /// These features, decoded. Both share the files.
    pub fn decoded(&self, coding: Coding) -> Result<Self> {
        if self.descr != u8::DESCR || self.row_shape != [coding.coded_bytes()] {
            let what = format!(
                "rows of dtype {} and shape {:?} are not coded rows of {} numbers",
                self.descr,
                self.row_shape,
                coding.width()
            );
            return Err(Error::parameter("coding", what));
        }
        let (descr, row_shape) = (f32::DESCR.to_owned(), vec![coding.width()]);
        let row_bytes = coding.decoded_bytes();
        Ok(Self { coding: Some(coding), descr, row_shape, row_bytes, ..self.clone() })
    }

    /// These features with the rows `ids` in memory, which `file` holds. `ids` ascend, and `checksum` is that
    /// of these rows.
    pub fn with_cache(&self, ids: &[u32], file: &Path, checksum: u64) -> Result<Self> {
        let cache = RowCache::read(ids, self.space.count_u32()?, file, self.stored_bytes, checksum)?;
        Ok(Self { cache: Some(Arc::new(cache)), ..self.clone() })
    }

    /// These features, copied from the files into memory.
    pub fn loaded(&self) -> Result<Self> {
        let load = |rows: &Option<MappedRows>| rows.as_ref().map(MappedRows::loaded).transpose();
        let parts = self.parts.iter().map(load).collect::<Result<Vec<_>>>()?;
        Ok(Self { parts: parts.into(), direct: [].into(), in_order: false, ..self.clone() })
    }

    /// Copies the features of `rows` to `target`, one after the other, decoded if they are coded. Where a
    /// part lacks them, `target` stays as it is. The rows of a planned batch are read from its pack.
    ///
    /// # Safety
    /// `target` has memory for all `rows`, and no other code uses it meanwhile.
    pub unsafe fn gather(
        &self,
        rows: &[impl RowId],
        planned: Option<PackStep<'_>>,
        target: *mut u8,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let place = |place: usize| target.wrapping_add(place * self.row_bytes);
        match &self.coding {
            None => {
                let put = |row: *const u8, at: usize| {
                    // SAFETY: a stored row, and the caller vouches for its place. They are different memory.
                    unsafe { std::ptr::copy_nonoverlapping(row, place(at), self.row_bytes) }
                };
                self.each(rows, planned, &put, check)
            }
            Some(coding) => {
                let put = |row: *const u8, at: usize| {
                    // SAFETY: as above.
                    unsafe {
                        let target = std::slice::from_raw_parts_mut(place(at).cast(), coding.width());
                        coding.decode(row, target);
                    }
                };
                self.each(rows, planned, &put, check)
            }
        }
    }

    /// Calls `put` with the bytes of each row in the files, and its place in `rows`.
    #[inline(always)]
    fn each(
        &self,
        rows: &[impl RowId],
        planned: Option<PackStep<'_>>,
        put: &impl Fn(*const u8, usize),
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        self.space.check("rows", rows)?;
        if self.is_on_disk() || planned.is_some() {
            let order = self.not_cached(rows, put);
            if let Some((pack, step)) = planned {
                self.read.fetch_add(pack.read(step, rows, &order, put, check)?, Relaxed);
                return Ok(());
            }
            let (wanted, order) = self.directly(rows, &order);
            let mut visit = |place: u32, row: &[u8]| put(row.as_ptr(), place as usize);
            self.read.fetch_add(direct_reads::read(&wanted, &mut visit, check)?, Relaxed);
            self.mapped(rows, |index| order.get(index).map(|&place| place as usize), put, check)
        } else {
            self.mapped(rows, |index| (index < rows.len()).then_some(index), put, check)
        }
    }

    /// Bytes that were read for rows since the last call: of whole blocks past the page cache and of packs,
    /// and of the rows themselves in maps.
    pub fn read_bytes(&self) -> u64 {
        self.read.swap(0, Relaxed)
    }

    /// Bytes that a batch of these rows reads without a pack, as [`Self::read_bytes`] counts them.
    pub fn bytes_of<R: RowId>(&self, rows: &[R]) -> Result<u64> {
        self.space.check("rows", rows)?;
        let stored = |row: R| if self.address(row).is_some() { self.stored_bytes as u64 } else { 0 };
        if !self.is_on_disk() {
            return Ok(rows.iter().map(|&row| stored(row)).sum());
        }
        let order = self.not_cached(rows, &|_, _| ());
        let (wanted, others) = self.directly(rows, &order);
        let blocks: u64 = wanted.iter().map(Wanted::bytes).sum();
        Ok(blocks + others.iter().map(|&place| stored(rows[place as usize])).sum::<u64>())
    }

    /// Calls `put` with the rows that stay in memory, and returns the places of the others, whose rows
    /// ascend.
    #[inline(always)]
    fn not_cached(&self, rows: &[impl RowId], put: &impl Fn(*const u8, usize)) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        if let Some(cache) = &self.cache {
            order.retain(|&place| {
                let row = cache.row(rows[place as usize].number() as u32); // it is of fewer than 2^32 rows
                row.iter().for_each(|&row| put(row, place as usize));
                row.is_none()
            });
        }
        order.sort_unstable_by_key(|&place| rows[place as usize]);
        order
    }

    /// The rows that are read past the page cache, and the places of the other rows. `order` lists the places
    /// of all rows by ascending row.
    pub(crate) fn directly<'a, R: RowId>(
        &'a self,
        rows: &'a [R],
        order: &'a [u32],
    ) -> (Vec<Wanted<'a, R>>, Vec<u32>) {
        let (mut wanted, mut others) = (Vec::new(), Vec::new());
        let mut rest = order;
        for (part, ends) in self.space.starts().windows(2).enumerate() {
            let (places, after) =
                rest.split_at(rest.partition_point(|&place| rows[place as usize].number() < ends[1]));
            rest = after;
            match self.direct(part) {
                _ if places.is_empty() => {}
                Some(file) => wanted.push(Wanted { file, base: ends[0], rows, places }),
                None => others.extend_from_slice(places),
            }
        }
        (wanted, others)
    }

    /// Calls `put` with the mapped bytes of the rows at `place(0)`, at `place(1)`, ..., and with these
    /// places.
    #[inline(always)]
    fn mapped(
        &self,
        rows: &[impl RowId],
        place: impl Fn(usize) -> Option<usize>,
        put: &impl Fn(*const u8, usize),
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let distance = (AHEAD / self.stored_bytes.max(1)).clamp(2, 16);
        let mut count = 0;
        for index in 0..rows.len() {
            let Some(at) = place(index) else { break };
            let row = rows[at];
            if let Some(address) = place(index + distance).and_then(|at| self.address(rows[at])) {
                let asked = self.stored_bytes.min(ASKED);
                for offset in (0..asked).step_by(64) {
                    prefetch_at(address.wrapping_add(offset));
                }
                // A row that begins inside of a line reaches one more. A coded row has few, and would wait
                // for half of them.
                prefetch_at(address.wrapping_add(asked.saturating_sub(1)));
            }
            if let Some(address) = self.address(row) {
                put(address, at);
                count += 1;
            }
            if index.is_multiple_of(STRIDE) {
                check()?;
            }
        }
        self.read.fetch_add(count * self.stored_bytes as u64, Relaxed);
        Ok(())
    }

    /// The file of a part, if it is read past the page cache.
    pub(crate) fn direct(&self, part: usize) -> Option<&DirectFile> {
        self.direct.get(part).and_then(Option::as_ref)
    }

    /// The rows of each part.
    pub(crate) fn space(&self) -> &Arc<RowSpace> {
        &self.space
    }

    /// The in-edges of the vertices.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether memory does not hold the rows, or they are not to go there.
    pub fn is_on_disk(&self) -> bool {
        self.in_order || self.direct.iter().any(Option::is_some)
    }

    /// Lets the operating system read all files into memory, in their order. It is faster than page by page
    /// where nearly all are read.
    pub(crate) fn read_ahead(&self) {
        self.parts.iter().flatten().for_each(MappedRows::read_ahead);
    }

    /// Whether the rows of all parts are here.
    pub(crate) fn has_all(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    /// How rows are decoded, if they are.
    pub(crate) fn coding(&self) -> Option<&Coding> {
        self.coding.as_ref()
    }

    /// Bytes of a row in the files.
    pub fn stored_bytes(&self) -> usize {
        self.stored_bytes
    }

    /// Address of the features of a row, if its part has them.
    #[inline(always)]
    pub(crate) fn address(&self, row: impl RowId) -> Option<*const u8> {
        let (row, space) = (row.number(), &*self.space);
        let part = space.part_of(row);
        self.parts[part].as_ref()?.row((row - space.starts()[part]) as usize)
    }

    /// Makes `target` hold the features of `rows` rows, and returns their address. The old content may be
    /// lost.
    pub fn reserve(&self, rows: usize, target: &mut FeatureRows) -> Result<*mut u8> {
        target.reserve(rows * self.row_bytes)
    }

    /// Copies the features of `rows` to the start of `target`, which grows as needed.
    pub fn fill(
        &self,
        rows: &[impl RowId],
        planned: Option<PackStep<'_>>,
        target: &mut FeatureRows,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let target = self.reserve(rows.len(), target)?;
        // SAFETY: the memory was reserved, and is borrowed.
        unsafe { self.gather(rows, planned, target, check) }
    }
}

/// Most files that may stay open: half of the limit of the operating system.
fn most_files() -> usize {
    most_open_files() / 2
}

/// Memory for the features of a batch.
#[derive(Debug, Default)]
pub struct FeatureRows(Option<Buffer<[u64; 8]>>);

impl FeatureRows {
    /// Makes it hold `bytes` bytes, and returns their address. The old content may be lost.
    fn reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        let capacity = self.bytes() as usize;
        if capacity < bytes || capacity / WASTE > bytes.max(LARGE) {
            self.0 = None;
            self.0 = Some(Buffer::zeroed((bytes + bytes / 4).div_ceil(64), "features of a batch")?);
        }
        Ok(self.as_mut_ptr())
    }

    /// Where they begin.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut().map_or(std::ptr::dangling_mut(), |buffer| buffer.as_mut_ptr()).cast()
    }
}

impl Memory for FeatureRows {
    fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |buffer| size_of_val(&**buffer) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::base::npy;

    #[test]
    fn rows_in_the_order_of_the_files_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("features.npy");
        let rows: Vec<u8> = (0..100).collect();
        fs::write(&file, [npy::header("|u1", &[50, 2]), rows.clone()].concat()).unwrap();
        let (vertices, indptr): (Vec<i64>, Vec<i64>) = ((0..50).collect(), vec![0; 51]);
        // SAFETY: the arrays live as long as the part.
        let part = unsafe { Part::in_memory(&vertices, &indptr, &[], Box::new(())) }.unwrap();
        let topology = Arc::new(Topology::of(vec![part]).unwrap());
        let mut features = Features::open(&[Some(file)], topology, None, None).unwrap();
        let wanted: Vec<u32> = (0..80).map(|index| index * 37 % 50).collect();
        let expected: Vec<u8> =
            wanted.iter().flat_map(|&row| [rows[2 * row as usize], rows[2 * row as usize + 1]]).collect();
        for in_order in [false, true] {
            features.in_order = in_order;
            let mut found = vec![0; 2 * wanted.len()];
            // SAFETY: it holds all rows.
            unsafe { features.gather(&wanted, None, found.as_mut_ptr(), &|| Ok(())) }.unwrap();
            assert_eq!(found, expected);
            let coding = Coding::new(2, Some(&[1.0, 2.0, 0.5, 0.25])).unwrap();
            let decoded = features.decoded(coding).unwrap();
            let mut found = vec![0f32; 2 * wanted.len()];
            // SAFETY: as above.
            unsafe { decoded.gather(&wanted, None, found.as_mut_ptr().cast(), &|| Ok(())) }.unwrap();
            let even = |code: &[u8]| [1.0 + 0.5 * f32::from(code[0]), 2.0 + 0.25 * f32::from(code[1])];
            assert_eq!(found, expected.chunks(2).flat_map(even).collect::<Vec<_>>());
        }
        assert!(features.decoded(Coding::new(2, None).unwrap()).is_err());
    }
}
