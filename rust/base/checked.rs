//! Files of numbers and arrays that carry a checksum: a damaged one is never taken for a whole one.
//!
//! **Format.** Eight bytes that name the kind, a key of what the content depends on, numbers and arrays as
//! they lie in memory, and the XXH3-128 of all before it. A file is there as a whole or not at all
//! ([`AtomicFile`]).

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use bytemuck::{Pod, bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};
use xxhash_rust::xxh3::Xxh3;

use super::buffer::{Buffer, zeros};
use super::error::{Error, Result};
use super::output::AtomicFile;
use super::run::Run;
use super::temporary::TempFile;

/// Bytes that are read, written and hashed at a time.
const CHUNK: usize = 1 << 16;

/// The header of a file: its kind, and the key of its inputs.
pub(crate) type Head = ([u8; 8], u128);

/// Why a file cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    Damaged,
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Failed(error)
    }
}

pub(crate) type Read<T> = Result<T, Fault>;

/// Writes such a file.
pub(crate) struct Writer<'a> {
    file: AtomicFile,
    hash: Xxh3,
    run: &'a Run,
}

impl<'a> Writer<'a> {
    /// Begins the file at `path`.
    pub(crate) fn create(path: &Path, (kind, key): Head, run: &'a Run) -> Result<Self> {
        let mut writer = Self { file: AtomicFile::create(path)?, hash: Xxh3::new(), run };
        writer.bytes(&kind)?;
        writer.number(&key)?;
        Ok(writer)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        let written = self.file.write_all(bytes);
        written.map_err(|error| Error::io(self.file.target(), error))?;
        self.run.check()
    }

    /// Adds a number.
    pub(crate) fn number<T: Pod>(&mut self, number: &T) -> Result<()> {
        self.bytes(bytes_of(number))
    }

    /// Adds an array, whose length the reader has to know.
    pub(crate) fn items<T: Pod>(&mut self, items: &[T]) -> Result<()> {
        cast_slice(items).chunks(CHUNK).try_for_each(|chunk| self.bytes(chunk))
    }

    /// Adds the first `count` numbers of a temporary file.
    pub(crate) fn items_of(&mut self, file: &TempFile, count: u64) -> Result<()> {
        let mut chunk: Vec<u32> = zeros(CHUNK / 4, "a chunk of a file")?;
        for first in (0..count).step_by(CHUNK / 4) {
            let items = &mut chunk[..(CHUNK / 4).min((count - first) as usize)];
            file.read(first, items)?;
            self.items(items)?;
        }
        Ok(())
    }

    /// Ends the file, which is there from now on.
    pub(crate) fn finish(mut self) -> Result<()> {
        let digest = self.hash.digest128();
        self.number(&digest)?;
        self.file.commit()
    }
}

/// Reads such a file.
pub(crate) struct Reader<'a> {
    file: File,
    hash: Xxh3,
    path: &'a Path,
    run: &'a Run,
}

impl<'a> Reader<'a> {
    /// Begins to read the file, which was opened at `path`.
    pub(crate) fn begin(file: File, path: &'a Path, (kind, key): Head, run: &'a Run) -> Read<Self> {
        let mut reader = Self { file, hash: Xxh3::new(), path, run };
        let its: [u8; 8] = reader.number()?;
        if its == kind && reader.number::<u128>()? == key { Ok(reader) } else { Err(Fault::Damaged) }
    }

    fn bytes(&mut self, bytes: &mut [u8]) -> Read<()> {
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Fault::Damaged,
            _ => Fault::Failed(Error::io(self.path, error)),
        })?;
        self.hash.update(bytes);
        Ok(self.run.check()?)
    }

    /// Refuses more items of 4 bytes than the file can hold.
    pub(crate) fn expect(&self, count: u64) -> Read<()> {
        let known = self.file.metadata().map_err(|error| Error::io(self.path, error))?;
        if count > known.len() / 4 { Err(Fault::Damaged) } else { Ok(()) }
    }

    /// The next number.
    pub(crate) fn number<T: Pod>(&mut self) -> Read<T> {
        let mut number = T::zeroed();
        self.bytes(bytes_of_mut(&mut number))?;
        Ok(number)
    }

    /// The next array, which has as many items as `items`.
    pub(crate) fn items<T: Pod>(&mut self, items: &mut [T]) -> Read<()> {
        cast_slice_mut(items).chunks_mut(CHUNK).try_for_each(|chunk| self.bytes(chunk))
    }

    /// `count` ids below `end`.
    pub(crate) fn ids(&mut self, count: usize, end: u64, what: &str) -> Read<Buffer<u32>> {
        let mut ids: Buffer<u32> = Buffer::zeroed(count, what)?;
        self.items(&mut ids)?;
        if ids.iter().all(|&id| u64::from(id) < end) { Ok(ids) } else { Err(Fault::Damaged) }
    }

    /// Copies `count` numbers below `end` into a temporary file, from its item number `to` on. Returns their
    /// sum.
    pub(crate) fn copy(&mut self, count: u64, end: u64, into: &TempFile, to: u64) -> Read<u64> {
        self.expect(count)?;
        let mut sum = 0_u64;
        let mut chunk: Vec<u32> = zeros(CHUNK / 4, "a chunk of a file")?;
        for first in (0..count).step_by(CHUNK / 4) {
            let items = &mut chunk[..(CHUNK / 4).min((count - first) as usize)];
            self.items(items)?;
            if items.iter().any(|&id| u64::from(id) >= end) {
                return Err(Fault::Damaged);
            }
            into.write(to + first, items)?;
            // The sum of a damaged file is not used.
            sum = items.iter().fold(sum, |sum, &item| sum.wrapping_add(item.into()));
        }
        Ok(sum)
    }

    /// Ends the reading. The content counts only if this succeeds.
    pub(crate) fn finish(mut self) -> Read<()> {
        let digest = self.hash.digest128();
        if self.number::<u128>()? == digest { Ok(()) } else { Err(Fault::Damaged) }
    }
}
