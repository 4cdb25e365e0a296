//! Code for all operating systems except Windows.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

pub(crate) use std::os::unix::fs::FileExt;

use super::Access;

/// Lets nothing stop an opening: neither a FIFO without another end nor a terminal.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
}

/// Lets an opening fail at a link, besides.
pub(crate) fn without_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW)
}

/// Lets only its owner read and write a file that is made.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// The kind of a file that is neither a regular file nor a directory.
pub(crate) fn kind_of(file: FileType) -> &'static str {
    match () {
        () if file.is_fifo() => "a FIFO",
        () if file.is_char_device() || file.is_block_device() => "a device",
        () => "a special file",
    }
}

/// Whether `other` is the file `path`, which is `known`, under whatever name.
pub(crate) fn same_file(known: &Metadata, _path: &Path, other: &Path) -> bool {
    std::fs::metadata(other).is_ok_and(|found| (found.dev(), found.ino()) == (known.dev(), known.ino()))
}

/// Whether an open file has lost its name.
pub(crate) fn has_no_name(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.nlink() == 0)
}

/// Opens a directory, to lock it.
pub(crate) fn open_dir(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens a file, to force it to the disk.
pub(crate) fn open_to_sync(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Forces the names in a directory to the disk.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        // Some network file systems have no such operation.
        Err(error) if is_unsupported(&error) => Ok(()),
        synced => synced,
    }
}

/// Whether the file system has no such operation.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::ENOTSUP))
}

/// Tells the operating system how bytes in memory are going to be accessed. It may ignore that.
pub(crate) fn advise(start: *const u8, bytes: usize, access: Access) {
    let advice = match access {
        Access::Normal => libc::MADV_NORMAL,
        Access::Sequential => libc::MADV_SEQUENTIAL,
        Access::Random => libc::MADV_RANDOM,
        Access::Soon => libc::MADV_WILLNEED,
        #[cfg(target_os = "linux")]
        Access::HugePages => libc::MADV_HUGEPAGE,
        #[cfg(not(target_os = "linux"))]
        Access::HugePages => return,
    };
    // SAFETY: a question to the operating system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize;
    let before = start.addr() % page;
    // SAFETY: none of this advice changes what is in the pages, whosever they are. Refused, pages are read
    // when they are touched.
    unsafe { libc::madvise(start.wrapping_sub(before).cast_mut().cast(), before + bytes, advice) };
}

/// Most files that the process may have open.
pub(crate) fn most_open_files() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes the struct.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    if known { limit.rlim_cur as usize } else { 0 }
}

/// Processor time of the process so far.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Half of the memory of the machine: the call for the free memory differs between operating systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_left() -> Option<u64> {
    // SAFETY: questions to the operating system.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages > 0 && page > 0).then(|| pages as u64 / 2 * page as u64)
}
