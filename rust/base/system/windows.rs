//! Code for Windows in place of that for Unix.

use std::ffi::c_void;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::windows::fs::{FileExt as _, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use super::Access;

/// Reads and writes at a place of a file. None of the callers uses the place that Windows keeps for an open
/// file.
pub(crate) trait FileExt {
    /// Reads at most as many bytes as `bytes` holds.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Fills `bytes`.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(bytes, offset)
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.seek_read(&mut bytes[done..], offset + done as u64) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(more) => done += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.seek_write(&bytes[done..], offset + done as u64) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(more) => done += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Nothing stops an opening.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Opens a link itself, which is then no regular file.
pub(crate) fn without_links(options: &mut OpenOptions) -> &mut OpenOptions {
    const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    options.custom_flags(OPEN_REPARSE_POINT)
}

/// The directory of a file decides who may read it.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The kind of a file that is neither a regular file nor a directory.
pub(crate) fn kind_of(_file: FileType) -> &'static str {
    "a special file"
}

/// Whether `other` is the file `path`. A second hard link is not noticed.
pub(crate) fn same_file(_known: &Metadata, path: &Path, other: &Path) -> bool {
    match (std::fs::canonicalize(path), std::fs::canonicalize(other)) {
        (Ok(path), Ok(other)) => path == other,
        _ => false,
    }
}

/// An open file keeps its name, as far as we can see.
pub(crate) fn has_no_name(_file: &File) -> bool {
    false
}

/// Opens a directory, to lock it.
pub(crate) fn open_dir(path: &Path) -> io::Result<File> {
    /// `FILE_FLAG_BACKUP_SEMANTICS`, without which no directory can be opened.
    const DIRECTORY: u32 = 0x0200_0000;
    OpenOptions::new().read(true).custom_flags(DIRECTORY).open(path)
}

/// Opens a file, to force it to the disk, which Windows does only for those that may write.
pub(crate) fn open_to_sync(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// The names in a directory reach the disk without us.
pub(crate) fn sync_dir(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether the file system has no such operation.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Unsupported
}

/// The operating system is told nothing.
pub(crate) fn advise(_start: *const u8, _bytes: usize, _access: Access) {}

/// Most files that the process may have open. Far more are allowed, but each has its price.
pub(crate) fn most_open_files() -> usize {
    4096
}

/// `MEMORYSTATUSEX`.
#[repr(C)]
#[derive(Default)]
struct MemoryStatus {
    bytes: u32,
    percent_used: u32,
    physical: u64,
    physical_free: u64,
    page_file: u64,
    page_file_free: u64,
    addresses: u64,
    addresses_free: u64,
    extended: u64,
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GlobalMemoryStatusEx(status: *mut MemoryStatus) -> i32;
    fn GetCurrentProcess() -> *mut c_void;
    fn GetProcessTimes(
        process: *mut c_void,
        began: *mut u64,
        ended: *mut u64,
        kernel: *mut u64,
        user: *mut u64,
    ) -> i32;
}

/// Memory that is free.
pub(crate) fn memory_left() -> Option<u64> {
    let mut status = MemoryStatus { bytes: size_of::<MemoryStatus>() as u32, ..MemoryStatus::default() };
    // SAFETY: the struct is as long as it says, and the call fills it.
    let known = unsafe { GlobalMemoryStatusEx(&mut status) } != 0;
    known.then_some(status.physical_free)
}

/// Processor time of the process so far.
pub(crate) fn processor_time() -> Duration {
    let [mut began, mut ended, mut kernel, mut user] = [0; 4];
    // SAFETY: the process is this one, and the four numbers are places for the answers, of as many bytes as a
    // FILETIME.
    unsafe { GetProcessTimes(GetCurrentProcess(), &mut began, &mut ended, &mut kernel, &mut user) };
    Duration::from_nanos(100 * (kernel + user))
}
