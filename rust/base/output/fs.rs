//! The system calls that an atomic output needs, behind a trait so that tests can fail any one of them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::base::system::{self, FileExt as _};

/// The operations of an output that may fail.
pub(super) trait Fs: Sync {
    /// Creates a file that must not exist, with the permissions that the umask leaves.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// Creates a directory that must not exist, and opens it.
    fn create_dir(&self, path: &Path) -> io::Result<File>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Forces a file to the disk.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Renames, replacing a file or an empty directory.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Exchanges two names in one step.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
    /// Removes a file, or a directory and all below. A path that does not exist counts as removed.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Forces the names in a directory to the disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// The file system itself.
pub(super) struct RealFs;

impl Fs for RealFs {
    fn create(&self, path: &Path) -> io::Result<File> {
        File::options().write(true).create_new(true).open(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<File> {
        std::fs::create_dir(path)?;
        // A sweeper may remove the new directory before it is open. Another name is taken then, as for one
        // that exists.
        system::open_dir(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ErrorKind::AlreadyExists.into(),
            _ => error,
        })
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        system::exchange(one, other)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = match std::fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            Err(error) => Err(error),
        };
        removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        system::sync_dir(path)
    }
}
