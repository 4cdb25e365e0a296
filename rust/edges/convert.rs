//! Any edge list to the one format that everything else maps: headerless pairs of little-endian u32.
//!
//! The input's bytes say what it is: `.npy`, gzip, text, else raw words; its name only decides for doubtful ones.
//! Records keep their order. The target gets its name when it is complete; with `relabel`, so does, just before,
//! `TARGET.ids.npy` (uint64: row = new id, value = original id).
//!
//! **Memory.** The buffers of [`text`] (binary input needs less), and with `relabel` up to 256 MB of table and 20 to 39
//! bytes for each id beyond it.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::decode::{IdType, WideRecord, largest};
use super::file::{EdgeFile, Io, Layout, open_regular};
use super::relabel::Relabel;
use super::{BLOCK, EdgeStream, MAX_VERTICES, Record, npy, pass, plausible, text};
use crate::checksum::{self, Hasher, UNIT};
use crate::error::{Error, Result, shown};
use crate::output::AtomicFile;
use crate::run::Run;

/// Names of raw files: bytes that happen to look like text, mostly, do not make them text.
const RAW: [&str; 6] = ["bin", "raw", "u32", "u64", "edges32", "edges64"];

/// Names of text, whatever is in it.
const TEXT: [&str; 3] = ["txt", "tsv", "csv"];

/// How to convert.
#[derive(Debug, Clone, Default)]
pub struct Convert {
    /// Give dense ids in order of first appearance.
    pub relabel: bool,
    /// The input is raw and big-endian.
    pub swap: bool,
    /// Type of the ids of raw input; `None`: found from the bytes.
    pub id_type: Option<IdType>,
    /// Layout of `.npy` input; `None`: found from its shape.
    pub layout: Option<Layout>,
    /// Number of vertices; `None`: largest id + 1.
    pub num_vertices: Option<u64>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// Number of vertices.
    pub n: u64,
    /// Number of records.
    pub m: u64,
    /// Records whose two ids are equal.
    pub loops: u64,
    /// See [`crate::checksum`].
    pub checksum: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What the input holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    GzipText,
    Npy,
    Raw,
}

/// Converts the file `input` into the file `target`.
pub fn convert(input: &Path, target: &Path, options: &Convert, run: &Run) -> Result<Converted> {
    let (file, metadata) = open_regular(input)?;
    let ids_target = with_suffix(target, ".ids.npy");
    refuse_same(&metadata, input, target)?;
    if options.relabel {
        refuse_same(&metadata, input, &ids_target)?;
    }
    if let Some(given) = options.num_vertices.filter(|&given| given > MAX_VERTICES) {
        return Err(Error::parameter("num_vertices", format!("{given}; at most {MAX_VERTICES}")));
    }
    let format = find_format(&file, input, options)?;
    if matches!(format, Format::Text | Format::GzipText) && options.layout.is_some() {
        let what = "text holds one record a line; layout= is for arrays and .npy";
        return Err(Error::parameter("layout", what));
    }
    let mut sink = Sink::new(target, options.relabel.then_some(&*ids_target), run)?;
    match format {
        Format::Text | Format::GzipText => {
            run.begin("convert", metadata.len());
            let read = from_text(&file, input, format, &mut sink, run);
            // Asked first: nonsense in a file that changed is no fault of the file.
            check_unchanged(&file, &metadata, input)?;
            read?;
        }
        Format::Npy | Format::Raw => from_binary(input, options, &mut sink, run)?,
    }
    sink.finish(options.num_vertices)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Refuses to write over the input, under whatever name.
fn refuse_same(input: &Metadata, path: &Path, output: &Path) -> Result<()> {
    match std::fs::metadata(output) {
        Ok(output) if (output.dev(), output.ino()) == (input.dev(), input.ino()) => {
            let what = format!("{} is the input; name another file", shown(path));
            Err(Error::parameter("out", what))
        }
        _ => Ok(()),
    }
}

fn check_unchanged(file: &File, before: &Metadata, path: &Path) -> Result<()> {
    let now = file.metadata().map_err(|error| Error::io(path, error))?;
    let state = |metadata: &Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    if state(&now) == state(before) {
        return Ok(());
    }
    Err(Error::FileChanged { path: path.into(), what: "its size or modification time is another" })
}

fn find_format(mut file: &File, path: &Path, options: &Convert) -> Result<Format> {
    let mut head = Vec::new();
    io::Seek::rewind(&mut file)
        .and_then(|()| file.take(1 << 12).read_to_end(&mut head))
        .and_then(|_| io::Seek::rewind(&mut file))
        .map_err(|error| Error::io(path, error))?;
    let named =
        |names: &[&str]| path.extension().and_then(OsStr::to_str).is_some_and(|name| names.contains(&name));
    let gzip = plausible::is_gzip(&head) || head.starts_with(&[0x1f, 0x8b]) && named(&["gz"]);
    Ok(match () {
        () if head.starts_with(npy::MAGIC) => Format::Npy,
        () if options.swap || options.id_type.is_some() => Format::Raw,
        () if gzip => Format::GzipText,
        () if plausible::is_text(&head) || named(&TEXT) => Format::Text,
        () if !named(&RAW) && is_nearly_text(&head) => Format::Text,
        () => Format::Raw,
    })
}

/// Text with marks, foreign letters or damage in it, which the parser finds; three of four bytes are text. In raw u32
/// ids, below 2^24 every fourth byte is zero, and of the others few happen to be text.
fn is_nearly_text(head: &[u8]) -> bool {
    let text = |byte: &&u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    head.starts_with(text::MARK) || 4 * head.iter().filter(text).count() > 3 * head.len()
}

/// Counts what is read from a file as progress.
struct Counted<'a> {
    file: &'a File,
    run: &'a Run,
}

impl Read for Counted<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(bytes)?;
        // The reader of the text asks for cancellation itself.
        let _ = self.run.advance(count as u64);
        Ok(count)
    }
}

fn from_text(file: &File, path: &Path, format: Format, sink: &mut Sink, run: &Run) -> Result<()> {
    let largest = if sink.ids.is_some() { u64::MAX } else { MAX_VERTICES - 1 };
    let source = Counted { file, run };
    let deliver = |records: &[WideRecord]| sink.push_wide(records);
    let notes = if format == Format::GzipText {
        let source = MultiGzDecoder::new(BufReader::with_capacity(1 << 16, source));
        text::read(source, path, largest, text::Cut::default(), run, deliver)?
    } else {
        text::read(source, path, largest, text::Cut::default(), run, deliver)?
    };
    sink.notes.extend(notes);
    Ok(())
}

fn from_binary(path: &Path, options: &Convert, sink: &mut Sink, run: &Run) -> Result<()> {
    let edges = if options.swap {
        EdgeFile::open_big_endian(path, options.id_type, Io::Map)?
    } else {
        EdgeFile::open(path, options.id_type, options.layout, Io::Map)?
    };
    run.begin("convert", edges.num_edges());
    edges.check_unchanged()?;
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for range in pass::blocks(0..edges.num_edges()) {
        let count = range.end - range.start;
        if sink.ids.is_some() {
            edges.wide_block(range, &mut wide)?;
            sink.push_wide(&wide)?;
        } else {
            sink.push(edges.block(range, &mut narrow)?)?;
        }
        run.advance(count)?;
    }
    edges.check_unchanged()
}

/// Takes the records in order: relabels, writes, counts, hashes.
struct Sink<'a> {
    file: AtomicFile,
    ids: Option<Ids<'a>>,
    narrow: Vec<Record>,
    hasher: Hasher,
    n: u64,
    m: u64,
    loops: u64,
    notes: Vec<String>,
    run: &'a Run,
}

/// The relabelling, and the file of the original ids.
struct Ids<'a> {
    relabel: Relabel<'a>,
    file: AtomicFile,
    originals: Vec<u64>,
}

impl<'a> Sink<'a> {
    fn new(target: &Path, ids: Option<&Path>, run: &'a Run) -> Result<Self> {
        let file = AtomicFile::create(target)?;
        let ids = ids.map(|path| {
            let held = text::memory_for(run);
            Ok(Ids {
                relabel: Relabel::new(run, held)?,
                file: AtomicFile::create(path)?,
                originals: Vec::new(),
            })
        });
        let ids = ids.transpose()?;
        let (narrow, hasher, notes) = (Vec::new(), Hasher::default(), Vec::new());
        Ok(Self { file, ids, narrow, hasher, n: 0, m: 0, loops: 0, notes, run })
    }

    /// Adds records whose ids are relabelled here, or fit.
    fn push_wide(&mut self, wide: &[WideRecord]) -> Result<()> {
        let mut narrow = std::mem::take(&mut self.narrow);
        for wide in wide.chunks(BLOCK as usize / 8) {
            narrow.clear();
            match &mut self.ids {
                Some(ids) => ids.relabel(wide, &mut narrow)?,
                None => narrow.extend(wide.iter().map(|record| record.map(|id| id as u32))),
            }
            self.push(&narrow)?;
            self.run.advance(0)?;
        }
        self.narrow = narrow;
        Ok(())
    }

    fn push(&mut self, records: &[Record]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.file.write_at(bytemuck::cast_slice(records), self.m * size_of::<Record>() as u64)?;
        self.n = self.n.max(u64::from(largest(records)) + 1);
        self.loops += records.iter().filter(|[u, v]| u == v).count() as u64;
        let room = (UNIT - self.m % UNIT) as usize;
        let (head, tail) = records.split_at(room.min(records.len()));
        for part in [head, tail].into_iter().filter(|part| !part.is_empty()) {
            // The number of records is not known yet: `finish` closes the last unit.
            self.hasher.update(self.m, part, u64::MAX);
            self.m += part.len() as u64;
        }
        Ok(())
    }

    fn finish(mut self, num_vertices: Option<u64>) -> Result<Converted> {
        if let Some(given) = num_vertices.filter(|&given| given < self.n) {
            let what = format!("{given}, but the largest id is {}", self.n - 1);
            return Err(Error::parameter("num_vertices", what));
        }
        if !self.m.is_multiple_of(UNIT) {
            self.hasher.update(self.m, &[], self.m);
        }
        if let Some(ids) = self.ids {
            ids.file.write_at(&ids_header(ids.relabel.n()), 0)?;
            self.run.advance(0)?;
            ids.file.commit()?;
        }
        self.file.commit()?;
        let checksum = checksum::combine([self.hasher]);
        let n = num_vertices.unwrap_or(self.n);
        Ok(Converted { n, m: self.m, loops: self.loops, checksum, notes: self.notes })
    }
}

impl Ids<'_> {
    fn relabel(&mut self, wide: &[WideRecord], narrow: &mut Vec<Record>) -> Result<()> {
        let first = self.relabel.n();
        self.originals.clear();
        self.relabel.records(wide, narrow, &mut self.originals)?;
        let offset = ids_header(first).len() + first as usize * size_of::<u64>();
        self.file.write_at(bytemuck::cast_slice(&self.originals), offset as u64)
    }
}

/// The header for `n` ids; it has the same length for every `n`.
fn ids_header(n: u64) -> Vec<u8> {
    npy::header("<u8", &[n])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_lengths_are_equally_long() {
        let mut lengths = (0..=10).map(|digits| ids_header(10_u64.pow(digits)).len());
        assert!(lengths.all(|length| length == ids_header(0).len()));
    }
}
