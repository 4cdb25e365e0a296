//! Files that are opened only if they are regular: a pipe would stop the run, a device would never end, and a
//! link in a folder of fastpart's own would lead to somebody else's file.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use super::error::{Error, Result};
use super::system;

/// Opens a regular file for reading and refuses everything else, without ever blocking on a FIFO.
pub(crate) fn open_regular(path: &Path) -> Result<(File, Metadata)> {
    let opened = system::without_waiting(OpenOptions::new().read(true)).open(path);
    refuse_special(path, opened)
}

/// Opens a file that fastpart itself made, as `options` say. A link is also refused: fastpart makes none.
pub(crate) fn open_own(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let opened = system::without_links(options).open(path);
    refuse_special(path, opened).map(|(file, _)| file)
}

/// A regular file that was opened without blocking. Everything else is refused.
fn refuse_special(path: &Path, opened: io::Result<File>) -> Result<(File, Metadata)> {
    let file = opened.map_err(|error| match error.raw_os_error() {
        // open(2) returns this for a socket, and for a FIFO opened to write that has no reader.
        Some(libc::ENXIO) => {
            Error::NotARegularFile { path: path.into(), kind: "a FIFO, a socket or a device" }
        }
        Some(libc::ELOOP) if path.is_symlink() => {
            Error::NotARegularFile { path: path.into(), kind: "a link" }
        }
        _ => Error::io(path, error),
    })?;
    let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
    let kind = metadata.file_type();
    let kind = match () {
        () if kind.is_file() => return Ok((file, metadata)),
        () if kind.is_dir() => "a directory",
        () if kind.is_symlink() => "a link",
        () => system::kind_of(kind),
    };
    Err(Error::NotARegularFile { path: path.into(), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened_and_only_open_regular_follows_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, nothing, pipe] =
            ["file", "link", "nothing", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, [7; 3]).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink("none", &nothing).unwrap();
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: the name ends with a NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);

        let kind = |result: Result<File>| match result.unwrap_err() {
            Error::NotARegularFile { kind, .. } => kind,
            other => panic!("{other}"),
        };
        let own = |path: &Path| open_own(path, OpenOptions::new().read(true).write(true).create(true));
        assert_eq!(open_regular(&file).unwrap().1.len(), 3);
        assert_eq!(open_regular(&link).unwrap().1.len(), 3);
        assert_eq!(own(&file).unwrap().metadata().unwrap().len(), 3);
        assert_eq!(kind(own(&link)), "a link");
        assert_eq!(kind(own(&nothing)), "a link");
        assert!(!folder.path().join("none").exists());
        assert_eq!(kind(open_regular(&pipe).map(|(file, _)| file)), "a FIFO");
        assert_eq!(kind(own(&pipe)), "a FIFO");
        assert_eq!(kind(open_regular(folder.path()).map(|(file, _)| file)), "a directory");
    }
}
