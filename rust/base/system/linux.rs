//! Calls that only Linux has.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Exchanges two names in one step.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let (one, other) =
        (CString::new(one.as_os_str().as_bytes())?, CString::new(other.as_os_str().as_bytes())?);
    let (here, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // By number: the C library has a function for it only since glibc 2.28.
    // SAFETY: both paths are NUL-terminated and outlive the call, which only reads them.
    let status =
        unsafe { libc::syscall(libc::SYS_renameat2, here, one.as_ptr(), here, other.as_ptr(), flags) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the disk that these bytes of a file need, and makes the file as long: a write through a map that
/// finds the disk full would end the process.
pub(crate) fn allocate(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let (start, len) = (bytes.start as libc::off_t, (bytes.end - bytes.start) as libc::off_t);
    // SAFETY: a call on an open file.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), start, len) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A file in a directory that never had a name. None: its file system knows no such files.
pub(crate) fn nameless(dir: &Path, options: &mut OpenOptions) -> Option<File> {
    options.custom_flags(libc::O_TMPFILE).open(dir).ok()
}

/// A file that is read past the page cache, in whole blocks. None: its file system does not do that.
pub(crate) fn open_direct(path: &Path) -> Option<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | libc::O_NONBLOCK).open(path).ok()
}

/// Tells the operating system that reads of a file are at random places, so it does not read ahead.
pub(crate) fn expect_random(file: &File) {
    // SAFETY: advice on an open file, which changes nothing. Refused, more is read.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM);
    }
}

/// Returns the free pages of all heaps. Each thread has a heap, which otherwise keeps its pages.
pub(crate) fn trim_heaps() {
    // SAFETY: the allocator locks its heaps, and touches free pages only.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes that the process has read from storage and written to it.
pub(crate) fn counted_io() -> Option<[u64; 2]> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some([number("read_bytes:")?, number("write_bytes:")?])
}

/// Whether what is written to `dir` takes memory: a file system in memory is mounted there.
pub(crate) fn lies_in_memory(dir: &Path) -> bool {
    /// Numbers of tmpfs and ramfs. Their type depends on the processor.
    const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
    let Ok(path) = CString::new(dir.as_os_str().as_bytes()) else { return false };
    let mut stats = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a zero, and `stats` is a place for the answer, which is there on success.
    unsafe {
        libc::statfs(path.as_ptr(), stats.as_mut_ptr()) == 0
            && IN_MEMORY.contains(&(stats.assume_init().f_type as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_memory() {
        assert!(!Path::new("/dev/shm").exists() || lies_in_memory(Path::new("/dev/shm")));
        assert!(!lies_in_memory(Path::new("/proc")) && !lies_in_memory(Path::new("/nowhere")));
    }
}
