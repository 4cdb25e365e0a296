//! Files that are open for reading: mapped or read, and watched for changes.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::SystemTime;

use memmap2::Mmap;

use crate::base::npy::LONGEST_HEADER;
use crate::base::regular_file::open_regular;
use crate::base::system::{self, Access, FileExt as _};
use crate::base::{Error, Result, shown};

/// How the bytes reach the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Io {
    /// Through a read-only map: the fastest.
    #[default]
    Map,
    /// By reads: for disks where others may truncate the file.
    Read,
}

/// A file that must not change while it is open.
#[derive(Debug)]
pub(crate) struct OpenFile {
    path: PathBuf,
    file: File,
    map: Option<Mmap>,
    size: u64,
    modified: Option<SystemTime>,
}

impl OpenFile {
    /// Opens `path`, whose first bytes and length say its shape.
    pub(crate) fn open<S>(
        path: &Path,
        io: Io,
        shape: impl FnOnce(&[u8], u64) -> Result<S>,
    ) -> Result<(Self, S)> {
        let (file, metadata, head) = open_with_head(path)?;
        let size = metadata.len();
        let shape = shape(&head, size)?;
        let map = if io == Io::Map && size > 0 { Some(map(path, &file, size)?) } else { None };
        // A hint: passes run from front to back.
        if let Some(map) = &map {
            system::advise(map.as_ptr(), map.len(), Access::Sequential);
        }
        let modified = metadata.modified().ok();
        Ok((Self { path: path.to_path_buf(), file, map, size, modified }, shape))
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where its bytes lie, if it is mapped.
    pub(crate) fn start(&self) -> Option<*const u8> {
        self.map.as_ref().map(|map| map.as_ptr())
    }

    /// Reads bytes from `offset` on: from the map, if it holds them.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        if let Some(map) = &self.map
            && offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= self.size)
        {
            let from = map.as_ptr().wrapping_add(offset as usize);
            // SAFETY: the map has `size` bytes. They are copied, and others may change them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
            return Ok(());
        }
        self.file.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.changed("it became shorter"),
            _ => Error::io(&self.path, error),
        })
    }

    /// An error when the file changed since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|error| Error::io(&self.path, error))?;
        if now.len() != self.size {
            return Err(self.changed("its size changed"));
        }
        if now.modified().ok() != self.modified {
            return Err(self.changed("its modification time changed"));
        }
        Ok(())
    }

    fn changed(&self, what: &'static str) -> Error {
        Error::FileChanged { path: self.path.clone(), what }
    }
}

/// Opens a regular file, and reads its first bytes.
pub(crate) fn open_with_head(path: &Path) -> Result<(File, Metadata, Vec<u8>)> {
    let (file, metadata) = open_regular(path)?;
    let mut head = Vec::new();
    (&file).take(LONGEST_HEADER as u64).read_to_end(&mut head).map_err(|error| Error::io(path, error))?;
    Ok((file, metadata, head))
}

/// Maps the file, which must still have the `size` that its shape was read from. The map must only be read
/// through its address: its bytes may change. So it is not for other crates, which could read it as a slice.
pub(crate) fn map(path: &Path, file: &File, size: u64) -> Result<Mmap> {
    // SAFETY: maps are only ever read through raw pointers, byte copies into private memory, in `decode` and
    // by those who sample. No reference lies over them, so bytes that change cannot break Rust's rules.
    let map = unsafe { Mmap::map(file) }.map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => Error::MemoryBudget {
            what: format!("{}: mapping the file (io=\"read\" needs no map)", shown(path)),
            needed: size,
            budget: crate::base::budget::available(),
        },
        _ => Error::io(path, error),
    })?;
    if map.len() as u64 != size {
        return Err(Error::FileChanged { path: path.into(), what: "its size changed" });
    }
    Ok(map)
}

/// The bytes of a regular file, mapped read-only. The file is closed at once. Others may change the bytes, so
/// all that is given away is their address.
#[derive(Debug)]
pub struct MappedFile {
    /// None: an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, metadata) = open_regular(path)?;
        let size = metadata.len();
        Ok(Self { map: (size > 0).then(|| map(path, &file, size)).transpose()? })
    }

    /// Where the bytes lie, and how many they are.
    pub fn bytes(&self) -> (*const u8, usize) {
        let nothing = (NonNull::<u8>::dangling().as_ptr().cast_const(), 0);
        self.map.as_ref().map_or(nothing, |map| (map.as_ptr(), map.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_before_it_is_mapped_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.bin");
        std::fs::write(&path, [0; 80]).unwrap();
        let (file, metadata) = open_regular(&path).unwrap();
        assert_eq!(map(&path, &file, metadata.len()).unwrap().len(), 80);
        for len in [72, 0, 88] {
            File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            let error = map(&path, &file, metadata.len()).unwrap_err();
            assert!(matches!(error, Error::FileChanged { .. }), "{len}: {error}");
        }
    }
}
