//! Weights of records: one u32 for each, beside the records, from a `.npy` or from memory.
//!
//! As records, weights are copied into a private buffer and only read there. Every value is valid.

use std::ops::Range;
use std::path::Path;

use super::decode::IdType;
use super::open_file::{Io, OpenFile};
use crate::base::npy::Header;
use crate::base::{Error, Result, shown};

/// The expected form of a file of weights.
const EXPECTED: &str = "Weights are uint32 of shape (m,). For other numbers pass an array as weights=";

/// The weights of all records.
#[derive(Debug)]
pub struct Weights {
    source: Source,
    len: u64,
    origin: String,
}

#[derive(Debug)]
enum Source {
    /// From this byte of the file on, perhaps big-endian.
    File { bytes: OpenFile, offset: u64, swapped: bool },
    /// From this address on.
    Memory(*const u8),
}

// SAFETY: the address is that of memory which, as `in_memory` demands, may be read from anywhere.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Weights {
    /// Weights in a `.npy` file.
    pub fn open(path: &Path, io: Io) -> Result<Self> {
        let (bytes, (header, swapped)) = OpenFile::open(path, io, |head, size| {
            let refused = |what| Error::format(shown(path), what);
            let header = Header::parse(head).map_err(refused)?;
            let stored = IdType::of_npy(&header.descr);
            let stored = stored.map_err(|_| refused(format!("dtype {}. {EXPECTED}", header.descr)))?;
            let ((IdType::U32, swapped), &[len]) = (stored, &header.shape[..]) else {
                let what = format!("{} of shape {:?}. {EXPECTED}", stored.0.name(), header.shape);
                return Err(refused(what));
            };
            header.check_size(4, size, &format!("the {len} weights")).map_err(refused)?;
            Ok((header, swapped))
        })?;
        let source = Source::File { bytes, offset: header.data_offset, swapped };
        Ok(Self { source, len: header.shape[0], origin: shown(path) })
    }

    /// Weights in memory, native u32.
    ///
    /// # Safety
    /// `len` of them must stay readable from `start` on as long as this value lives.
    pub unsafe fn in_memory(start: *const u8, len: u64) -> Self {
        Self { source: Source::Memory(start), len, origin: "weights".into() }
    }

    /// Number of weights.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether they may change without notice.
    pub fn may_change(&self) -> bool {
        matches!(self.source, Source::Memory(_))
    }

    /// Refuses them for another number of records than `m`.
    pub fn check_len(&self, m: u64) -> Result<()> {
        if self.len == m {
            return Ok(());
        }
        let what = format!("{} weights for {m} records. They belong to another graph", self.len);
        Err(self.refusal(&what))
    }

    /// Refuses weights that are all 0.
    pub fn check_total(&self, total: u64) -> Result<()> {
        if total > 0 || self.len == 0 {
            return Ok(());
        }
        Err(self.refusal("all weights are 0, so no record would count. Leave them out"))
    }

    fn refusal(&self, what: &str) -> Error {
        match self.source {
            Source::File { .. } => Error::format(self.origin.as_str(), what),
            Source::Memory(_) => Error::parameter("weights", what),
        }
    }

    /// Reads the weights `range` into `buf` (its old content is lost) and returns them.
    pub fn block<'a>(&self, range: Range<u64>, buf: &'a mut Vec<u32>) -> Result<&'a [u32]> {
        let end = range.end.min(self.len);
        let first = range.start.min(end);
        let count = (end - first) as usize;
        buf.clear();
        buf.resize(count, 0);
        match &self.source {
            Source::File { bytes, offset, swapped } => {
                bytes.read_at(bytemuck::cast_slice_mut(buf), offset + 4 * first)?;
                if *swapped {
                    buf.iter_mut().for_each(|weight| *weight = weight.swap_bytes());
                }
            }
            // SAFETY: the range lies within the `len` weights that `in_memory` was promised. Only bytes are
            // copied, which others may change meanwhile.
            Source::Memory(start) => unsafe {
                let from = start.add(first as usize * 4);
                std::ptr::copy_nonoverlapping(from, buf.as_mut_ptr().cast::<u8>(), 4 * count);
            },
        }
        Ok(buf)
    }

    /// An error when the file changed since it was opened.
    pub fn check_unchanged(&self) -> Result<()> {
        match &self.source {
            Source::File { bytes, .. } => bytes.check_unchanged(),
            Source::Memory(_) => Ok(()),
        }
    }
}
