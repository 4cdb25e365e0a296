//! Ids for another library, as a stream of one batch of one column.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::{ArrowArray, ArrowSchema, ArrowStream};

/// Ids for another library: a column `id`.
pub struct IdBatch {
    /// The format of the column: `l`, `L`, `U` or `Z`.
    format: &'static CStr,
    len: usize,
    /// Values, or offsets and bytes.
    buffers: Vec<Vec<u64>>,
    bytes: Vec<u8>,
}

impl IdBatch {
    /// Integers, as their bits.
    pub fn of_integers(values: Vec<u64>, signed: bool) -> Self {
        let format = if signed { c"l" } else { c"L" };
        IdBatch { format, len: values.len(), buffers: vec![values], bytes: Vec::new() }
    }

    /// Texts or bytes, one behind the other. `ends` begins with 0.
    pub fn of_bytes(ends: Vec<u64>, bytes: Vec<u8>, text: bool) -> Self {
        let format = if text { c"U" } else { c"Z" };
        IdBatch { format, len: ends.len() - 1, buffers: vec![ends], bytes }
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A stream of this one batch.
    pub fn into_stream(self) -> Box<ArrowStream> {
        let source = Box::new(Source { format: self.format, batch: Some(self) });
        Box::new(ArrowStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(no_error),
            release: Some(release_stream),
            private: Box::into_raw(source).cast(),
        })
    }
}

struct Source {
    format: &'static CStr,
    batch: Option<IdBatch>,
}

struct Owner {
    batch: IdBatch,
    pointers: Vec<*const c_void>,
    child: *mut ArrowArray,
}

unsafe extern "C" fn get_schema(stream: *mut ArrowStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the interface passes the stream that was handed out and a place to fill.
    unsafe {
        let format = (*(*stream).private.cast::<Source>()).format;
        let child = Box::into_raw(Box::new(schema_of(format, c"id", std::ptr::null_mut())));
        let children = Box::into_raw(Box::new(child));
        out.write(ArrowSchema { n_children: 1, ..schema_of(c"+s", c"", children) });
    }
    0
}

fn schema_of(format: &'static CStr, name: &'static CStr, children: *mut *mut ArrowSchema) -> ArrowSchema {
    ArrowSchema {
        format: format.as_ptr(),
        name: name.as_ptr(),
        metadata: std::ptr::null(),
        flags: 0,
        n_children: 0,
        children,
        dictionary: std::ptr::null_mut(),
        release: Some(release_schema),
        private: std::ptr::null_mut(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: what `get_schema` made, once. A consumer may have moved the child away, which its cleared
    // release says.
    unsafe {
        if !(*schema).children.is_null() {
            let child = *Box::from_raw((*schema).children);
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as for the schema.
    unsafe {
        let Some(batch) = (*(*stream).private.cast::<Source>()).batch.take() else {
            out.write(std::mem::zeroed());
            return 0;
        };
        let len = batch.len;
        let mut pointers = vec![std::ptr::null()];
        pointers.extend(batch.buffers.iter().map(|values| values.as_ptr().cast::<c_void>()));
        if matches!(batch.format.to_bytes(), b"U" | b"Z") {
            pointers.push(batch.bytes.as_ptr().cast());
        }
        let owner = Box::new(Owner { batch, pointers, child: std::ptr::null_mut() });
        let child = Box::into_raw(Box::new(array_of(len, owner)));
        let none = IdBatch::of_integers(Vec::new(), true);
        let owner = Box::new(Owner { batch: none, pointers: vec![std::ptr::null()], child });
        let mut array = array_of(len, owner);
        array.n_children = 1;
        array.children = &raw mut (*array.private.cast::<Owner>()).child;
        out.write(array);
    }
    0
}

/// An array over the buffers of its owner.
fn array_of(len: usize, owner: Box<Owner>) -> ArrowArray {
    ArrowArray {
        length: len as i64,
        null_count: 0,
        offset: 0,
        n_buffers: owner.pointers.len() as i64,
        n_children: 0,
        buffers: owner.pointers.as_ptr(),
        children: std::ptr::null_mut(),
        dictionary: std::ptr::null_mut(),
        release: Some(release_array),
        private: Box::into_raw(owner).cast(),
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: what `get_next` made, once. A consumer may have moved the child away, which its cleared release
    // says.
    unsafe {
        let owner = Box::from_raw((*array).private.cast::<Owner>());
        if !owner.child.is_null() {
            if let Some(release) = (*owner.child).release {
                release(owner.child);
            }
            drop(Box::from_raw(owner.child));
        }
        drop(owner.batch);
        (*array).release = None;
    }
}

unsafe extern "C" fn no_error(_: *mut ArrowStream) -> *const c_char {
    std::ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowStream) {
    // SAFETY: what `into_stream` made, once.
    unsafe {
        drop(Box::from_raw((*stream).private.cast::<Source>()));
        (*stream).release = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    fn through(batch: IdBatch) -> Table {
        let mut stream = batch.into_stream();
        // SAFETY: a stream of our own.
        unsafe { Table::take(&raw mut *stream) }.unwrap()
    }

    #[test]
    fn integers_come_back() {
        let mut table = through(IdBatch::of_integers(vec![3, u64::MAX, 0], true));
        let chunk = table.next_chunk().unwrap().unwrap();
        let column = chunk.column(0).unwrap();
        assert!(!column.has_nulls() && chunk.rows() == 3 && chunk.column(1).is_err());
        assert!(matches!(column.ids, Ids::Integers([3, u64::MAX, 0], true)));
        drop(chunk);
        assert!(table.next_chunk().unwrap().is_none());
    }

    #[test]
    fn offsets_are_refused_and_streams_read_once() {
        let batch = IdBatch::of_bytes(vec![0, 2], b"ab".to_vec(), true);
        assert_eq!(batch.len(), 1);
        let mut stream = batch.into_stream();
        // SAFETY: a stream of our own.
        let text = unsafe { Table::take(&raw mut *stream) }.err().unwrap().to_string();
        assert!(text.contains("not cast"), "{text}");
        // SAFETY: it was taken, which it says.
        assert!(unsafe { Table::take(&raw mut *stream) }.is_err());
    }

    /// A stream of one table whose rows begin at `offset`, with integers that lie in `values`, and bits of
    /// its rows.
    fn sliced(
        values: &'static [u64],
        offset: i64,
        len: i64,
        rows: Option<&'static [u8]>,
    ) -> Box<ArrowStream> {
        let stream = IdBatch::of_integers(values.to_vec(), false).into_stream();
        Box::new(ArrowStream {
            get_schema: Some(Sliced::get_schema),
            get_next: Some(Sliced::get_next),
            get_last_error: Some(no_error),
            release: Some(Sliced::release),
            private: Box::into_raw(Box::new((stream, offset, len, rows))).cast(),
        })
    }

    type Inner = (Box<ArrowStream>, i64, i64, Option<&'static [u8]>);

    struct Sliced;

    impl Sliced {
        unsafe extern "C" fn get_schema(stream: *mut ArrowStream, out: *mut ArrowSchema) -> c_int {
            // SAFETY: the stream of `sliced`.
            unsafe { get_schema(&raw mut *(*(*stream).private.cast::<Inner>()).0, out) }
        }

        unsafe extern "C" fn get_next(stream: *mut ArrowStream, out: *mut ArrowArray) -> c_int {
            // SAFETY: the stream of `sliced`. The owner has one pointer, which is that of the rows' bits.
            unsafe {
                let (inner, offset, len, rows) = &mut *(*stream).private.cast::<Inner>();
                assert_eq!(get_next(&raw mut **inner, out), 0);
                if (*out).release.is_some() {
                    ((*out).offset, (*out).length) = (*offset, *len);
                    if let Some(rows) = rows {
                        (*out).null_count = -1;
                        let owner = &mut *(*out).private.cast::<Owner>();
                        owner.pointers[0] = rows.as_ptr().cast();
                    }
                }
            }
            0
        }

        unsafe extern "C" fn release(stream: *mut ArrowStream) {
            // SAFETY: what `sliced` made, once.
            unsafe {
                drop(Box::from_raw((*stream).private.cast::<Inner>()));
                (*stream).release = None;
            }
        }
    }

    #[test]
    fn sliced_tables_keep_to_their_columns() {
        let read = |offset, len, rows| {
            let mut stream = sliced(&[1, 2, 3, 4], offset, len, rows);
            // SAFETY: a stream of our own.
            let mut table = unsafe { Table::take(&raw mut *stream) }.unwrap();
            let chunk = table.next_chunk().unwrap().unwrap();
            let column = chunk.column(0).map_err(|error| error.to_string())?;
            let Ids::Integers(ids, _) = column.ids else { panic!("{offset}") };
            Ok(ids
                .iter()
                .enumerate()
                .map(|(row, &id)| (!column.is_null(row)).then_some(id))
                .collect::<Vec<_>>())
        };
        assert_eq!(read(1, 3, None), Ok::<_, String>(vec![Some(2), Some(3), Some(4)]));
        assert_eq!(read(1, 3, Some(&[0b1010])), Ok(vec![Some(2), None, Some(4)]));
        // The offset of the table counts, and one beyond all numbers is no way round it.
        for (offset, len) in [(1, 4), (4, 1), (-1, 2), (i64::MAX, 1)] {
            assert!(
                read(offset, len, None).unwrap_err().contains("shorter than the table"),
                "{offset} {len}"
            );
        }
    }

    #[test]
    fn schemas_that_are_refused_are_released() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static RELEASED: AtomicUsize = AtomicUsize::new(0);
        unsafe extern "C" fn counted(schema: *mut ArrowSchema) {
            RELEASED.fetch_add(1, Ordering::Relaxed);
            // SAFETY: a schema of `get_schema`.
            unsafe { release_schema(schema) }
        }
        unsafe extern "C" fn counting(stream: *mut ArrowStream, out: *mut ArrowSchema) -> c_int {
            // SAFETY: a stream of `into_stream`.
            unsafe {
                get_schema(stream, out);
                (*out).release = Some(counted);
            }
            0
        }
        for (text, refused) in [(true, true), (false, false)] {
            let batch = if text {
                IdBatch::of_bytes(vec![0, 2], b"ab".to_vec(), true)
            } else {
                IdBatch::of_integers(vec![1], true)
            };
            let mut stream = batch.into_stream();
            stream.get_schema = Some(counting);
            let before = RELEASED.load(Ordering::Relaxed);
            // SAFETY: a stream of our own.
            assert_eq!(unsafe { Table::take(&raw mut *stream) }.is_err(), refused);
            assert_eq!(RELEASED.load(Ordering::Relaxed), before + 1);
        }
    }

    #[test]
    fn unread_streams_leave_nothing() {
        drop(IdBatch::of_bytes(vec![0], Vec::new(), false).into_stream());
        drop(through(IdBatch::of_integers(vec![1], false)));
    }
}
