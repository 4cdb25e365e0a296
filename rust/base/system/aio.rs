//! Reads of files by the asynchronous calls of the kernel, `io_submit` and `io_getevents`.
//!
//! One thread has many reads under way, without a switch of threads for each: they take a third of the
//! processor time of 64 threads that wait for one read each (60,000 blocks of 4 KiB: 0.15 s instead of 0.48
//! s), and are as fast. Control groups and containers allow these calls more often than `io_uring`. The
//! kernel only reads asynchronously past the page cache.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;

/// A context of the kernel's asynchronous I/O.
type Context = libc::c_ulong;

/// `struct iocb` of `linux/aio_abi.h`, little endian: a read to do.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event_file: u32,
}

/// `IOCB_CMD_PREAD`.
const READ: u16 = 0;

/// `struct io_event`: a read that is done.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    more: i64,
}

/// Reads under way.
#[derive(Debug)]
pub(crate) struct Reads {
    context: Context,
    events: Vec<Event>,
    under_way: usize,
}

impl Reads {
    /// A queue for `most` reads at a time. The operating system may have no queue left, or not allow one.
    pub(crate) fn new(most: usize) -> Result<Self> {
        let mut context: Context = 0;
        // SAFETY: it writes the context, which is 0 before, as the call demands.
        answer(unsafe { libc::syscall(libc::SYS_io_setup, most as libc::c_long, &raw mut context) })?;
        Ok(Self { context, events: vec![Event::default(); most], under_way: 0 })
    }

    /// Begins a read of `bytes` bytes at `offset` into `buffer`. `number` identifies the read.
    ///
    /// # Safety
    /// Nobody uses the buffer until [`Self::wait`] has told that the read is done, or the value is dropped,
    /// and the file stays open.
    pub(crate) unsafe fn begin(
        &mut self,
        number: usize,
        file: &File,
        offset: u64,
        buffer: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let mut control = Control {
            data: number as u64,
            operation: READ,
            file: file.as_raw_fd() as u32,
            buffer: buffer as u64,
            bytes: bytes as u64,
            offset: offset as i64,
            ..Control::default()
        };
        let list = [&raw mut control];
        loop {
            // SAFETY: the kernel copies the control block, and the caller vouches for the buffer.
            match answer(unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, 1 as libc::c_long, list.as_ptr())
            }) {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.under_way += 1;
        Ok(())
    }

    /// Waits until at least `least` reads are done, and returns the number and the bytes of each. Also none,
    /// after a signal.
    pub(crate) fn wait(&mut self, least: usize) -> Result<impl Iterator<Item = (usize, Result<usize>)>> {
        let least = least.min(self.under_way) as libc::c_long;
        let (most, events) = (self.events.len() as libc::c_long, self.events.as_mut_ptr());
        let no_limit = std::ptr::null::<libc::timespec>();
        // SAFETY: it writes at most `most` events.
        let found =
            unsafe { libc::syscall(libc::SYS_io_getevents, self.context, least, most, events, no_limit) };
        let found = match answer(found) {
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            answered => answered? as usize,
        };
        self.under_way -= found;
        Ok(self.events[..found].iter().map(|event| (event.data as usize, outcome(event.result))))
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        // SAFETY: it waits for the reads under way. The context is not used again.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

/// The answer of a call: the returned value, or the error that libc put aside.
fn answer(returned: i64) -> Result<i64> {
    if returned < 0 { Err(Error::last_os_error()) } else { Ok(returned) }
}

/// The outcome of a read: its bytes, or its error, negated. -1 is EPERM here.
fn outcome(result: i64) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::from_raw_os_error(-result as i32))
}
