//! Vertices by the keys of their ids.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::key::{Key, Kind};
use crate::base::prefetch::prefetch;
use crate::base::regular_file::open_own;
use crate::base::{Buffer, Error, Result};

/// The vertex of an id that nobody declared.
pub(super) const MISSING: u32 = u32::MAX;

/// Keys that are looked up ahead of the one at work, so that their cache lines arrive.
pub(super) const AHEAD: usize = 16;

/// Keys that are read at a time.
const BLOCK: usize = 1 << 14;

/// An open table of 16-byte slots at a load of at most three quarters. A slot holds the 96 bits of a key and
/// one more than its vertex.
pub(super) struct Table {
    slots: Buffer<[u32; 4]>,
}

impl Table {
    /// An empty table for `keys` keys.
    pub(super) fn with_capacity(keys: usize) -> Result<Self> {
        Ok(Table { slots: Buffer::zeroed(keys * 4 / 3 + 16, "a table of ids")? })
    }

    /// The keys of these files, which [`super::numbering`] wrote.
    pub(super) fn load(files: &[PathBuf], kind: Kind) -> Result<Self> {
        let entry = kind.key_bytes() as u64 + 4;
        let mut keys = 0;
        for file in files {
            keys += std::fs::metadata(file).map_err(|error| Error::io(file, error))?.len() / entry;
        }
        let mut table = Self::with_capacity(keys as usize)?;
        files.iter().try_for_each(|file| table.fill(file, kind))?;
        Ok(table)
    }

    fn fill(&mut self, path: &Path, kind: Kind) -> Result<()> {
        let mut file = open_own(path, File::options().read(true))?;
        let width = kind.key_bytes();
        let mut block = vec![0; (width + 4) * BLOCK];
        loop {
            let read = read_full(&mut file, &mut block).map_err(|error| Error::io(path, error))?;
            for entry in block[..read].chunks_exact(width + 4) {
                let mut vertex = [0; 4];
                vertex.copy_from_slice(&entry[width..]);
                if !self.insert(Key::from_bytes(&entry[..width]), u32::from_le_bytes(vertex)) {
                    let what = "two ids have the same 96 bits of their XXH3-128. Change one of them";
                    return Err(Error::format("ids", what));
                }
            }
            if read < block.len() {
                return Ok(());
            }
        }
    }

    /// The slot where a search begins: a product instead of a power of two, so that the table is as large as
    /// it must be.
    #[inline(always)]
    fn home(&self, key: Key) -> usize {
        ((u128::from(key.low.rotate_left(8)) * self.slots.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn words(key: Key) -> [u32; 3] {
        [key.low as u32, (key.low >> 32) as u32, key.high]
    }

    /// Adds a key. False if it is there already.
    #[inline(always)]
    pub(super) fn insert(&mut self, key: Key, vertex: u32) -> bool {
        let words = Self::words(key);
        let mut at = self.home(key);
        loop {
            let slot = &mut self.slots[at];
            if slot[3] == 0 {
                *slot = [words[0], words[1], words[2], vertex + 1];
                return true;
            }
            if slot[..3] == words {
                return false;
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }

    /// Asks for the slot of a key.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: Key) {
        prefetch(&self.slots, self.home(key));
    }

    /// The vertex of a key.
    #[inline(always)]
    pub(super) fn get(&self, key: Key) -> Option<u32> {
        let words = Self::words(key);
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at];
            if slot[3] == 0 {
                return None;
            }
            if slot[..3] == words {
                return Some(slot[3] - 1);
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }

    /// The vertices of keys, [`MISSING`] where there is none.
    pub(super) fn resolve(&self, keys: &[Key], vertices: &mut [u32]) {
        for (index, vertex) in vertices.iter_mut().enumerate() {
            if let Some(&ahead) = keys.get(index + AHEAD) {
                self.prefetch(ahead);
            }
            *vertex = self.get(keys[index]).unwrap_or(MISSING);
        }
    }
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read(&mut buffer[read..])? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_others_are_not() {
        let mut table = Table::with_capacity(1000).unwrap();
        for id in 0..1000 {
            assert!(table.insert(Key::of_integer(id), id as u32));
            assert!(!table.insert(Key::of_integer(id), 5));
        }
        let keys: Vec<Key> = (0..2000).map(Key::of_integer).collect();
        let mut vertices = vec![0; 2000];
        table.resolve(&keys, &mut vertices);
        let expected = (0..2000).map(|id| if id < 1000 { id } else { MISSING });
        assert!(vertices.into_iter().eq(expected));
    }
}
