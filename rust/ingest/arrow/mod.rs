//! Columns of ids from another library, and ids for it, by the Arrow C stream interface.
//!
//! Polars hands its frames over without a copy, and reads what comes back. The three structures of the
//! interface are frozen (<https://arrow.apache.org/docs/format/CStreamInterface.html>), so no library of
//! Arrow is needed. Columns of four types are read: `l` and `L`, which are i64 and u64, and `vu` and `vz`,
//! views of text and of bytes. The caller casts others. [`batch`] is the way back.

mod batch;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;

pub use self::batch::IdBatch;

use crate::base::{Error, Result};

/// The schema of the interface.
#[repr(C)]
pub(super) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private: *mut c_void,
}

/// The array of the interface.
#[repr(C)]
pub(super) struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private: *mut c_void,
}

impl ArrowArray {
    fn buffers(&self) -> &[*const c_void] {
        match self.n_buffers {
            // SAFETY: the interface promises `n_buffers` buffers.
            1.. if !self.buffers.is_null() => unsafe {
                std::slice::from_raw_parts(self.buffers, self.n_buffers as usize)
            },
            _ => &[],
        }
    }

    /// The entries from `start` on that are present, unless all are.
    fn validity(&self, start: usize) -> Option<Validity<'_>> {
        let bits = self.buffers().first()?;
        (self.null_count != 0 && !bits.is_null()).then(|| Validity {
            bits: bits.cast(),
            start,
            chunk: PhantomData,
        })
    }
}

/// The stream of the interface.
#[repr(C)]
pub struct ArrowStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowStream)>,
    private: *mut c_void,
}

/// A table that arrives in chunks.
pub struct Table {
    stream: ArrowStream,
    formats: Vec<Format>,
}

// SAFETY: the interface allows that another thread goes on with a stream, one at a time.
unsafe impl Send for Table {}

/// The content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Signed,
    Unsigned,
    View,
}

impl Table {
    /// Takes over a stream. The value left at `stream` counts as released.
    ///
    /// # Safety
    /// `stream` points to a stream of the interface that nobody else uses.
    pub unsafe fn take(stream: *mut ArrowStream) -> Result<Self> {
        // SAFETY: the caller vouches for it. The copy is the only one that is released.
        let mut stream = unsafe {
            let taken = stream.read();
            (*stream).release = None;
            taken
        };
        if stream.release.is_none() {
            return Err(broken("it was read before"));
        }
        let get = stream.get_schema.ok_or_else(|| broken("it has no schema"))?;
        let mut schema = std::mem::MaybeUninit::<ArrowSchema>::zeroed();
        // SAFETY: the interface asks for a place to fill, which is read only if that succeeded.
        let failed = unsafe { get(&raw mut stream, schema.as_mut_ptr()) != 0 };
        let mut table = Table { stream, formats: Vec::new() };
        if failed {
            return Err(table.failure());
        }
        // SAFETY: filled, as the result said.
        table.formats = formats(&Owned(unsafe { schema.assume_init() }).0)?;
        Ok(table)
    }

    /// The next rows.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>> {
        let get = self.stream.get_next.ok_or_else(|| broken("it has no arrays"))?;
        let mut array = std::mem::MaybeUninit::<ArrowArray>::zeroed();
        // SAFETY: as for the schema.
        if unsafe { get(&raw mut self.stream, array.as_mut_ptr()) } != 0 {
            return Err(self.failure());
        }
        // SAFETY: filled. At the end of the stream it is zero.
        let array = unsafe { array.assume_init() };
        Ok(array.release.is_some().then_some(Chunk { array, formats: &self.formats }))
    }

    fn failure(&mut self) -> Error {
        let text = self.stream.get_last_error.and_then(|get| {
            // SAFETY: the interface has this called after a failure. The text lives until the next call.
            unsafe {
                let text = get(&raw mut self.stream);
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        });
        broken(&text.unwrap_or_else(|| "it says nothing".into()))
    }
}

/// A schema that was received, which is released however its reading ends. The type of the interface has no
/// `Drop` of its own, since children that we hand out are released by their parent.
struct Owned(ArrowSchema);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: a schema is released once, by its own function.
            unsafe { release(&raw mut self.0) }
        }
    }
}

impl Drop for ArrowStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a stream is released once, by its own function, which clears itself.
            unsafe { release(self) }
        }
    }
}

fn broken(what: &str) -> Error {
    Error::format("table", format!("the Arrow stream cannot be read: {what}"))
}

fn formats(schema: &ArrowSchema) -> Result<Vec<Format>> {
    let mut formats = Vec::new();
    for index in 0..schema.n_children.max(0) as usize {
        // SAFETY: the interface promises `n_children` children with formats that end with a zero.
        let format = unsafe { CStr::from_ptr((**schema.children.add(index)).format) };
        formats.push(match format.to_bytes() {
            b"l" => Format::Signed,
            b"L" => Format::Unsigned,
            b"vu" | b"vz" => Format::View,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(Error::Internal(format!("ids of the Arrow type {other:?} were not cast")));
            }
        });
    }
    Ok(formats)
}

/// Some rows of a table.
pub struct Chunk<'a> {
    array: ArrowArray,
    formats: &'a [Format],
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        if let Some(release) = self.array.release {
            // SAFETY: it is released once, by its own function.
            unsafe { release(&raw mut self.array) }
        }
    }
}

impl Chunk<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.array.length.max(0) as usize
    }

    /// A column.
    pub fn column(&self, index: usize) -> Result<Column<'_>> {
        let format = *self.formats.get(index).ok_or_else(|| broken("a column is missing"))?;
        if index >= self.array.n_children.max(0) as usize {
            return Err(broken("a column is missing"));
        }
        // SAFETY: the interface promises `n_children` children.
        let column = unsafe { &**self.array.children.add(index) };
        let len = self.rows();
        if len == 0 {
            return Ok(Column { ids: Ids::Integers(&[], false), validity: [None, None] });
        }
        let buffers = column.buffers();
        let needed = if format == Format::View { 3 } else { 2 };
        // The rows of a table begin at its offset in each column, behind the column's own.
        let begins = self.array.offset;
        let holds = begins.checked_add(len as i64).is_some_and(|end| begins >= 0 && column.length >= end);
        if buffers.len() < needed || column.offset < 0 || !holds {
            return Err(broken("a column is shorter than the table"));
        }
        let start = (begins + column.offset) as usize;
        // A row that is null as a whole is null in each column.
        let validity = [self.array.validity(begins as usize), column.validity(start)];
        // SAFETY: the interface promises `length` values behind `offset` in the second buffer, of the type
        // that the format names, which is aligned. They live as long as the chunk.
        let ids = unsafe {
            match format {
                Format::Signed | Format::Unsigned => Ids::Integers(
                    std::slice::from_raw_parts(buffers[1].cast::<u64>().add(start), len),
                    format == Format::Signed,
                ),
                Format::View => {
                    let data = &buffers[2..buffers.len() - 1];
                    let lengths: &[i64] = if data.is_empty() {
                        &[]
                    } else {
                        std::slice::from_raw_parts(buffers[buffers.len() - 1].cast(), data.len())
                    };
                    let views = std::slice::from_raw_parts(buffers[1].cast::<[u32; 4]>().add(start), len);
                    Ids::Views { views, data, lengths }
                }
            }
        };
        Ok(Column { ids, validity })
    }
}

/// The ids of a column.
pub struct Column<'a> {
    /// The ids, those of null rows included.
    pub ids: Ids<'a>,
    /// Bits of the rows of the table, and bits of the column.
    validity: [Option<Validity<'a>>; 2],
}

struct Validity<'a> {
    bits: *const u8,
    start: usize,
    chunk: PhantomData<&'a ()>,
}

/// Ids of one type.
pub enum Ids<'a> {
    /// Integers as their bits, and whether they have a sign.
    Integers(&'a [u64], bool),
    /// Length and text, or length, prefix, buffer and place there.
    Views {
        /// One for each row.
        views: &'a [[u32; 4]],
        /// Where longer text lies.
        data: &'a [*const c_void],
        /// Bytes of each buffer.
        lengths: &'a [i64],
    },
}

impl Column<'_> {
    /// Whether any row may be null.
    pub fn has_nulls(&self) -> bool {
        self.validity.iter().any(Option::is_some)
    }

    /// Whether the row is null.
    #[inline(always)]
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.iter().flatten().any(|validity| {
            let bit = validity.start + row;
            // SAFETY: the interface promises a bit for each row behind the offset.
            unsafe { *validity.bits.add(bit / 8) >> (bit % 8) & 1 == 0 }
        })
    }

    /// The bytes of a row, for views.
    #[inline(always)]
    pub fn bytes(&self, row: usize) -> Result<&[u8]> {
        let Ids::Views { views, data, lengths } = &self.ids else { return Ok(&[]) };
        let view = &views[row];
        let len = view[0] as usize;
        if len <= 12 {
            return Ok(&bytemuck::cast_slice(&view[1..])[..len]);
        }
        let (buffer, start) = (view[2] as usize, view[3] as usize);
        if buffer >= data.len() || (start + len) as i64 > lengths[buffer] {
            return Err(broken("a text lies outside its buffer"));
        }
        // SAFETY: inside the buffer, as just checked. It lives as long as the chunk.
        Ok(unsafe { std::slice::from_raw_parts(data[buffer].cast::<u8>().add(start), len) })
    }
}
