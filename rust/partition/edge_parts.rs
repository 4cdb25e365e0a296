//! Parts of records, in the narrowest type that holds them, in memory or in a mapped `.npy` file.
//!
//! **Types.** `u8` for k <= 255, `i16` for k <= 32,767, else `i32`: what torch 2.2 reads. The highest value of each
//! marks a record whose part is still open, [`DEFERRED`].
//!
//! **Memory.** 1, 2 or 4 bytes per record; none of it anonymous when it lies in a file, which is for the caller to
//! name and rename.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use memmap2::MmapMut;

use crate::base::buffer::Buffer;
use crate::base::error::{Error, Result};
use crate::base::run::Run;
use crate::edges::{BLOCK, EdgeStream, Record, npy};
use crate::exec::scan::scan;

/// What [`EdgeParts::read`] gives for a record without a part.
pub const DEFERRED: u32 = u32::MAX;

/// Bytes of the part of a record, for `k` parts.
pub fn width(k: u32) -> u64 {
    match k {
        0..=255 => 1,
        256..=32_767 => 2,
        _ => 4,
    }
}

/// The parts of `m` records; all are 0 in the beginning.
#[derive(Debug)]
pub struct EdgeParts {
    words: Words,
    m: u64,
}

/// The parts as they are stored.
#[derive(Debug)]
pub enum Words {
    /// Of k <= 255.
    U8(Place<u8>),
    /// Of k <= 32,767.
    I16(Place<i16>),
    /// Of more parts.
    I32(Place<i32>),
}

/// Where parts lie.
#[derive(Debug)]
pub enum Place<T> {
    /// In memory.
    Memory(Buffer<T>),
    /// In a file, behind its header.
    File {
        /// The whole file.
        map: MmapMut,
        /// Length of the header.
        start: usize,
    },
}

impl<T: Pod> Place<T> {
    fn new(m: u64, descr: &str, out: Option<&Path>) -> Result<Self> {
        let Some(path) = out else {
            return Ok(Place::Memory(Buffer::zeroed(m as usize, "parts of the records")?));
        };
        let io = |error| Error::io(path, error);
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).open(path).map_err(io)?;
        let header = npy::header(descr, &[m]);
        file.write_all(&header).map_err(io)?;
        let bytes = header.len() as u64 + m * size_of::<T>() as u64;
        // The blocks are taken now: a write through the map that finds the disk full would end the process.
        // SAFETY: a call on an open file.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
            0 => {}
            errno => return Err(io(std::io::Error::from_raw_os_error(errno))),
        }
        // SAFETY: the file was made here, under a temporary name; that nobody cuts it meanwhile is the contract of `out`.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(io)?;
        Ok(Place::File { map, start: header.len() })
    }

    fn words(&self) -> &[T] {
        match self {
            Place::Memory(buffer) => buffer,
            Place::File { map, start } => cast_slice(&map[*start..]),
        }
    }

    fn words_mut(&mut self) -> &mut [T] {
        match self {
            Place::Memory(buffer) => buffer,
            Place::File { map, start } => cast_slice_mut(&mut map[*start..]),
        }
    }
}

/// A stored part: the cast from u32 keeps the low bits, of which the mark's are all ones but the sign.
trait Word: Pod + Zeroable + Send + Sync {
    const MARK: Self;
    fn from_part(part: u32) -> Self;
    fn part(self) -> u32;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            const MARK: Self = <$type>::MAX;
            #[inline(always)]
            fn from_part(part: u32) -> Self {
                if part == DEFERRED { Self::MARK } else { part as $type }
            }
            #[inline(always)]
            fn part(self) -> u32 {
                if self == Self::MARK { DEFERRED } else { self as u32 }
            }
        }
    };
}
word!(u8);
word!(i16);
word!(i32);

/// Does the same with words of any type.
macro_rules! with_words {
    ($words:expr, $place:ident => $work:expr) => {
        match $words {
            Words::U8($place) => $work,
            Words::I16($place) => $work,
            Words::I32($place) => $work,
        }
    };
}

impl EdgeParts {
    /// `m` parts below `k`, in the file `out` (created, or cut) or in memory.
    pub fn new(m: u64, k: u32, out: Option<&Path>) -> Result<Self> {
        let words = match width(k) {
            1 => Words::U8(Place::new(m, "|u1", out)?),
            2 => Words::I16(Place::new(m, "<i2", out)?),
            _ => Words::I32(Place::new(m, "<i4", out)?),
        };
        Ok(Self { words, m })
    }

    /// Bytes of memory that `m` parts below `k` take.
    pub fn memory(m: u64, k: u32, out: Option<&Path>) -> u64 {
        if out.is_some() { 0 } else { m * width(k) }
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.m
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.m == 0
    }

    /// The parts as they are stored.
    pub fn into_words(self) -> Words {
        self.words
    }

    /// Reads the parts of the records `range` into `buf`, whose old content is lost.
    pub fn read<'a>(&self, range: Range<u64>, buf: &'a mut Vec<u32>) -> &'a [u32] {
        let range = range.start as usize..range.end as usize;
        buf.clear();
        with_words!(&self.words, place => buf.extend(place.words()[range].iter().map(|word| word.part())));
        buf
    }

    /// Sets the parts of the records from `first` on.
    pub fn write(&mut self, first: u64, parts: &[u32]) {
        let range = first as usize..first as usize + parts.len();
        with_words!(&mut self.words, place => store(&mut place.words_mut()[range], parts));
    }

    /// Sets the parts of all records, block by block, in parallel: `step` gets a worker's state, the number of the
    /// block's first record, the records, and their parts as they are, to be changed. The states are returned, in no
    /// order.
    pub fn update<S: Send>(
        &mut self,
        edges: &dyn EdgeStream,
        run: &Run,
        init: impl Fn() -> Result<S> + Sync,
        step: impl Fn(&mut S, u64, &[Record], &mut [u32]) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        with_words!(&mut self.words, place => update(place.words_mut(), edges, run, init, step))
    }
}

fn store<T: Word>(words: &mut [T], parts: &[u32]) {
    words.iter_mut().zip(parts).for_each(|(word, &part)| *word = T::from_part(part));
}

fn update<T: Word, S: Send>(
    words: &mut [T],
    edges: &dyn EdgeStream,
    run: &Run,
    init: impl Fn() -> Result<S> + Sync,
    step: impl Fn(&mut S, u64, &[Record], &mut [u32]) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    edges.check_unchanged()?;
    let states = scan(
        run,
        usize::MAX,
        words.chunks_mut(BLOCK as usize).enumerate(),
        || Ok((init()?, Vec::new(), Vec::new())),
        |(state, buf, parts), (index, words)| {
            let first = index as u64 * BLOCK;
            let records = edges.block(first..first + words.len() as u64, buf)?;
            parts.clear();
            parts.extend(words.iter().map(|word| word.part()));
            step(state, first, records, parts)?;
            store(words, parts);
            run.advance(records.len() as u64)
        },
    );
    edges.check_unchanged()?;
    Ok(states?.into_iter().map(|(state, ..)| state).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_keeps_parts_and_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        for k in [1, 255, 256, 32_767, 32_768, 1 << 20] {
            for out in [None, Some(folder.path().join("parts.npy"))] {
                let mut parts = EdgeParts::new(5, k, out.as_deref()).unwrap();
                parts.write(1, &[k - 1, DEFERRED, 0]);
                assert_eq!(parts.read(0..5, &mut Vec::new()), [0, k - 1, DEFERRED, 0, 0]);
                assert_eq!(parts.len(), 5);
            }
        }
    }
}
