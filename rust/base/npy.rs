//! `.npy` files: their headers, and arrays of one dimension that are written, and read again, from front to
//! back.

use std::fs::File;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use super::error::{Error, Result};
use super::run::Run;
use super::system::FileExt as _;

/// The first bytes of every `.npy` file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The header never needs more than this. Larger claims are refused.
pub(crate) const LONGEST_HEADER: usize = 1 << 16;

/// Where the data of an array are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// First byte of the data.
    pub data_offset: u64,
    /// Type of the items, as numpy spells it: `<f4`.
    pub descr: String,
    /// Column-major order.
    pub fortran: bool,
    /// Length of each axis.
    pub shape: Vec<u64>,
}

impl Header {
    /// Reads it from the first bytes of a file. The error says what is wrong and the remedy.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, String> {
        let rest = head.strip_prefix(MAGIC).ok_or("no .npy magic at its start")?;
        let (length_bytes, version) = match rest {
            [1, _, ..] => (2, 1),
            [2 | 3, _, ..] => (4, 2),
            _ => return Err("unknown .npy version. Save it again with numpy.save".into()),
        };
        let length = rest.get(2..2 + length_bytes).ok_or("the .npy header is cut off")?;
        let length = length.iter().rev().fold(0_usize, |value, &byte| value << 8 | usize::from(byte));
        let start = MAGIC.len() + 2 + length_bytes;
        if length > LONGEST_HEADER {
            return Err(format!("the .npy header (version {version}) claims {length} bytes"));
        }
        let text = head.get(start..start + length).ok_or("the .npy header is cut off")?;
        let text = std::str::from_utf8(text).map_err(|_| "the .npy header is not text")?;

        let descr = string_value(text, "descr").ok_or("the .npy header has no descr")?.to_owned();
        let fortran = match value(text, "fortran_order") {
            Some(flag) if flag.starts_with("True") => true,
            Some(flag) if flag.starts_with("False") => false,
            _ => return Err("the .npy header has no fortran_order".into()),
        };
        let shape = value(text, "shape")
            .and_then(|text| text.strip_prefix('(')?.split_once(')'))
            .ok_or("the .npy header has no shape")?
            .0;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        let shape = sizes
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| format!("the .npy header has the shape ({shape})"))?;
        Ok(Self { data_offset: (start + length) as u64, descr, fortran, shape })
    }

    /// Refuses a file of `size` bytes that items of `width` bytes do not fill. `claimed` is what they are.
    pub(crate) fn check_size(&self, width: u64, size: u64, claimed: &str) -> Result<(), String> {
        let bytes = self.shape.iter().rev().try_fold(width, |bytes, &size| bytes.checked_mul(size));
        if bytes.and_then(|bytes| bytes.checked_add(self.data_offset)) == Some(size) {
            return Ok(());
        }
        Err(format!("{size} bytes do not hold {claimed} that its header claims"))
    }
}

/// The text behind `'key':` of a Python dict literal.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let at = text.find(&format!("'{key}'"))? + key.len() + 2;
    Some(text[at..].trim_start().strip_prefix(':')?.trim_start())
}

fn string_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    Some(value(text, key)?.strip_prefix('\'')?.split_once('\'')?.0)
}

/// A type of items in a `.npy` file.
pub trait Item: Pod {
    /// The type's name in the header.
    const DESCR: &'static str;
}

macro_rules! item {
    ($($type:ty => $descr:literal),*) => {
        $(impl Item for $type {
            const DESCR: &'static str = $descr;
        })*
    };
}
item!(u8 => "|u1", u16 => "<u2", i16 => "<i2", i32 => "<i4", i64 => "<i8", u64 => "<u8", f32 => "<f4");

/// The header of an array of these items.
pub fn header_of<T: Item>(items: &[T]) -> Vec<u8> {
    header(T::DESCR, &[items.len() as u64])
}

/// A header as `numpy.save` writes it (version 1.0, data aligned to 64 bytes) for a C-ordered array. `descr`
/// names a type, or is a list of fields.
pub fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    let quote = if descr.starts_with('[') { "" } else { "'" };
    let comma = if shape.len() == 1 { "," } else { "" };
    let text = format!(
        "{{'descr': {quote}{descr}{quote}, 'fortran_order': False, 'shape': ({}{comma}), }}",
        sizes.join(", ")
    );
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    let padding = unpadded.next_multiple_of(64) - unpadded;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(((text.len() + padding + 1) as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(std::iter::repeat_n(b' ', padding));
    bytes.push(b'\n');
    bytes
}

/// Bytes of the header of every one-dimensional array, however long.
const HEADER: u64 = 128;

/// Bytes collected before the operating system is called.
const BUFFER: usize = 1 << 16;

/// Bytes written between two polls of the cancel flag: a busy disk may take its time.
const AT_ONCE: usize = 1 << 20;

/// Bytes on their way to the end of a plain file: it lies in a directory that appears as a whole or not at
/// all, and that its owner forces to the disk.
pub(crate) struct Appender<'a> {
    run: &'a Run,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Bytes of the buffer from which on it is written.
    most: usize,
    /// Where the buffer goes.
    offset: u64,
}

impl<'a> Appender<'a> {
    /// Opens `path` at its end. The bytes that are collected lie in `buffer`.
    pub(crate) fn open(
        path: PathBuf,
        start: Start,
        most: usize,
        buffer: Vec<u8>,
        run: &'a Run,
    ) -> Result<Self> {
        let anew = start == Start::Anew;
        let opened = File::options().write(true).create(anew).truncate(anew).open(&path);
        let opened = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (offset, file) = opened.map_err(|error| Error::io(&path, error))?;
        Ok(Self { run, path, file, buffer, most, offset })
    }

    /// Appends the `count` bytes at `start`.
    ///
    /// # Safety
    /// They must be readable. They may change meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, start: *const u8, count: usize) -> Result<()> {
        self.buffer.reserve(count);
        let filled = self.buffer.len();
        // SAFETY: the caller vouches for the bytes, and `reserve` for their place, which is different memory.
        unsafe {
            std::ptr::copy_nonoverlapping(start, self.buffer.as_mut_ptr().add(filled), count);
            self.buffer.set_len(filled + count);
        }
        if self.buffer.len() >= self.most { self.flush() } else { Ok(()) }
    }

    /// Writes the collected bytes.
    fn flush(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for bytes in bytes.chunks(AT_ONCE) {
            self.file.write_all_at(bytes, self.offset).map_err(|error| Error::io(&self.path, error))?;
            self.offset += bytes.len() as u64;
            self.run.check()?;
        }
        Ok(())
    }

    /// Writes the collected bytes. Returns the memory of the buffer.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>> {
        self.flush().map(|()| self.buffer)
    }
}

/// Where writing begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// In a new file, which replaces an existing one.
    Anew,
    /// At the end of a file.
    AtEnd,
}

/// A one-dimensional array that is being written from front to back. `finish` makes it valid.
pub(crate) struct ArrayWriter<'a, T> {
    file: Appender<'a>,
    item: PhantomData<T>,
}

impl<'a, T: Item> ArrayWriter<'a, T> {
    /// Creates `folder/name`. An existing file is replaced.
    pub(crate) fn create(folder: &Path, name: &str, run: &'a Run) -> Result<Self> {
        Self::open(folder, name, Start::Anew, run)
    }

    /// Opens `folder/name`, either to append to a finished array or to write a new one.
    pub(crate) fn open(folder: &Path, name: &str, start: Start, run: &'a Run) -> Result<Self> {
        let file = Appender::open(folder.join(name), start, BUFFER, Vec::new(), run)?;
        let offset = file.offset.max(HEADER);
        Ok(Self { file: Appender { offset, ..file }, item: PhantomData })
    }

    /// Appends an item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Result<()> {
        self.file.buffer.extend_from_slice(bytemuck::bytes_of(&item));
        if self.file.buffer.len() >= BUFFER { self.file.flush() } else { Ok(()) }
    }

    /// Appends items.
    pub(crate) fn extend(&mut self, items: &[T]) -> Result<()> {
        self.file.flush()?;
        self.file.write(bytemuck::cast_slice(items))
    }

    /// Number of items so far.
    pub(crate) fn count(&self) -> u64 {
        (self.file.offset - HEADER + self.file.buffer.len() as u64) / size_of::<T>() as u64
    }

    /// Writes the header. Returns the number of items.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.file.flush()?;
        let head = header(T::DESCR, &[self.count()]);
        debug_assert_eq!(head.len() as u64, HEADER);
        let written = self.file.file.write_all_at(&head, 0);
        written.map(|()| self.count()).map_err(|error| Error::io(&self.file.path, error))
    }
}

/// A one-dimensional int64 array that an [`ArrayWriter`] wrote, read piece by piece.
pub(crate) struct Ids {
    path: PathBuf,
    file: File,
    next: u64,
    end: u64,
    buffer: Vec<i64>,
}

impl Ids {
    /// Opens `folder/name` at the items `start..end`.
    pub(crate) fn open(folder: &Path, name: &str, start: u64, end: u64) -> Result<Self> {
        let path = folder.join(name);
        let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
        Ok(Self { path, file, next: start, end, buffer: Vec::new() })
    }

    /// The next ids, at most 64 KiB of them. None at the end.
    pub(crate) fn read(&mut self) -> Result<&[i64]> {
        let count = (self.end - self.next.min(self.end)).min((BUFFER / 8) as u64);
        self.buffer.resize(count as usize, 0);
        let offset = HEADER + 8 * self.next;
        let read = self.file.read_exact_at(bytemuck::cast_slice_mut(&mut self.buffer), offset);
        read.map_err(|error| Error::io(&self.path, error))?;
        self.next += count;
        Ok(&self.buffer)
    }

    /// Hands all ids to `each`.
    pub(crate) fn for_each(mut self, run: &Run, mut each: impl FnMut(u64) -> Result<()>) -> Result<()> {
        loop {
            let ids = self.read()?;
            if ids.is_empty() {
                return Ok(());
            }
            ids.iter().try_for_each(|&id| each(id as u64))?;
            run.check()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_write_we_read() {
        let bytes = header("<u4", &[7, 2]);
        assert_eq!(bytes.len() % 64, 0);
        let parsed = Header::parse(&bytes).unwrap();
        assert_eq!((&parsed.shape[..], &parsed.descr[..], parsed.fortran), (&[7, 2][..], "<u4", false));
        assert_eq!(Header::parse(&header("<u4", &[7])).unwrap().shape, [7]);
        assert_eq!(parsed.data_offset, bytes.len() as u64);
        assert!(parsed.check_size(4, parsed.data_offset + 56, "all").is_ok());
        assert!(parsed.check_size(4, parsed.data_offset + 57, "all").is_err());
    }

    #[test]
    fn refusals_name_the_cause() {
        for (bytes, cause) in
            [(header("<u4", &[7, 2])[..20].to_vec(), "cut off"), (b"PK\x03\x04".to_vec(), "magic")]
        {
            let error = Header::parse(&bytes).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
    }
}
