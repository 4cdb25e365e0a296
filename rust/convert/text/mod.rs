//! Edge lists as text (SNAP, TSV, CSV, KONECT), plain or gzip, read as a stream.
//!
//! **Format.** One record a line. The first lines of a file tell its [`dialect`], and every line is held to
//! it: what separates fields (one of comma, semicolon and tab, with blanks around it, or blanks), whether a
//! header names them, how many there are, and which hold the ids and the weight. Fields may be quoted. Empty
//! fields at the end of a line do not count. Lines end with LF or CR LF. The last one may lack its end. Blank
//! lines and a UTF-8 byte order mark are skipped. Everything else is refused with line and column (in bytes,
//! both from 1, without the mark).
//!
//! **Readers.** [`read`] takes ids that are numbers, on all threads. [`names::read`] takes ids that are
//! names, one line after the other, and their quotes may hold line ends. Among numbers a line that begins
//! with a mark (`#`, `%`, `//`) is a comment anywhere. Among names it is one before the header or the first
//! record only. Behind that it is a record, and a note counts such lines. A mark that the caller gives is a
//! comment anywhere in both.
//!
//! **Algorithm.** The input is read in batches that end at a line end. Batches are cut into pieces. All
//! threads parse the pieces of one batch while the records of the batch before are delivered, in order, and
//! the batch after is read. An error stays with its piece, so that the first error of the file is reported
//! for any threads and sizes.
//!
//! **Memory.** At most three batches and the records of two, 16 bytes a line: about 11 MiB a thread for any
//! input. A line that is no comment may have 1 MiB. A comment may have any length.

mod dialect;
mod finding;
mod line;
pub mod names;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use self::dialect::{Asked, Column, Names};
use self::dialect::{Dialect, Unknown};
use self::line::{Fault, Piece};
use super::foreign;
use crate::base::{Error, Result, Run, shown};
use crate::edges::WideRecord;
use crate::exec::{join, side_by_side};
pub use line::LONGEST_LINE;

/// The UTF-8 byte order mark.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// How a Matrix Market file begins: its first line of numbers is no record.
const MATRIX_MARKET: &[u8] = b"%%MatrixMarket";

/// Whether text begins as a Matrix Market file does.
pub(super) fn is_matrix_market(text: &[u8]) -> bool {
    text.get(..MATRIX_MARKET.len()).is_some_and(|start| start.eq_ignore_ascii_case(MATRIX_MARKET))
}

/// Bytes in which a header is looked for.
const HEAD: usize = 1 << 16;

/// Bytes between two polls of the cancel flag.
const READ: usize = 1 << 18;

/// How text is cut for the threads. Never changes a result.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Bytes that each thread gets at once.
    pub batch: usize,
    /// Bytes of a piece.
    pub piece: usize,
}

impl Default for Cut {
    fn default() -> Self {
        Self { batch: 1 << 20, piece: 1 << 18 }
    }
}

/// Facts about text that was read.
#[derive(Debug, Default)]
pub struct Seen {
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Whether the source has any byte.
    pub bytes: bool,
}

/// Reads the whole of `source`, which came from `path`, and hands `deliver` the records in order, with their
/// weights if a column has them. Ids go up to `largest`.
pub fn read<R: Read + Send>(
    source: R,
    path: &Path,
    largest: u64,
    cut: Cut,
    asked: Asked,
    run: &Run,
    mut deliver: impl FnMut(&[WideRecord], &[f64]) -> Result<()> + Send,
) -> Result<Seen> {
    let batch = cut.batch.max(1) * run.threads();
    run.require(memory(batch), "convert: buffers for text")?;
    let mut reader = Reader::new(source, path, batch, run);
    let (dialect, note) = reader.dialect(asked)?;
    let mut order = Order::new(path, &dialect);
    order.notes.extend(note);
    let bytes = !reader.ahead.is_empty();
    run.install(|| {
        reader.marks = Some(&dialect);
        let (mut parsed, mut next) = (Vec::new(), reader.next());
        loop {
            let Ok(Some(batch)) = &next else {
                // Records read before the failure come first.
                order.deliver(parsed, &mut deliver)?;
                return next.map(|_| ());
            };
            let (pieces, (delivered, after)) = join(
                || batch.parse(cut.piece, largest, &dialect, run),
                || join(|| order.deliver(parsed, &mut deliver), || reader.next()),
            );
            delivered?;
            (parsed, next) = (pieces, after);
        }
    })?;
    Ok(Seen { notes: order.notes, bytes })
}

/// Whether the first lines of `source` say that the ids are names.
pub(super) fn holds_names<R: Read + Send>(source: R, path: &Path, asked: Asked, run: &Run) -> Result<bool> {
    let asked = Asked { names: Names::Read, ..asked };
    Ok(Reader::new(source, path, HEAD, run).dialect(asked)?.0.named)
}

/// Bytes held while text is converted.
pub(super) fn memory_for(run: &Run) -> u64 {
    memory(Cut::default().batch * run.threads())
}

/// Bytes held for batches of `batch` bytes, in which a line has at least 4.
fn memory(batch: usize) -> u64 {
    (3 * batch + 2 * batch * size_of::<WideRecord>() / 4 + LONGEST_LINE) as u64
}

/// The text behind a byte order mark, unless it says that it is no edge list.
fn after_mark<'a>(text: &'a [u8], path: &Path) -> Result<&'a [u8]> {
    let text = text.strip_prefix(MARK).unwrap_or(text);
    if !is_matrix_market(text) {
        return Ok(text);
    }
    let what = "a Matrix Market file, whose first line of numbers holds sizes. Name it x.mtx, or x.mtx.gz";
    Err(Error::Text { path: path.into(), line: 1, column: 1, what: what.into() })
}

/// Cuts a source into batches.
struct Reader<'a, R> {
    source: R,
    /// Bytes that were read ahead to look for a header, and how the source ended there.
    ahead: Vec<u8>,
    ended: Option<Result<()>>,
    path: &'a Path,
    batch: usize,
    run: &'a Run,
    /// The line that the last batch was cut from.
    rest: Vec<u8>,
    /// Bytes before the next batch of the comment that it begins in.
    comment: Option<u64>,
    /// How the source ended.
    end: Option<Result<()>>,
    started: bool,
    marks: Option<&'a Dialect>,
}

/// Bytes that end at a line's end, within a comment or with the source.
struct Batch {
    text: Vec<u8>,
    comment: Option<u64>,
}

impl<'a, R: Read> Reader<'a, R> {
    fn new(source: R, path: &'a Path, batch: usize, run: &'a Run) -> Self {
        let (ahead, rest) = (Vec::new(), Vec::new());
        let (comment, end, started, marks) = (None, None, false, None);
        Self { source, ahead, ended: None, path, batch, run, rest, comment, end, started, marks }
    }

    /// The dialect, by the first lines, and a note on it.
    fn dialect(&mut self, asked: Asked) -> Result<(Dialect, Option<String>)> {
        let mut head = Vec::new();
        self.fill(&mut head, HEAD)?;
        let text = after_mark(&head, self.path)?;
        foreign::check(text, self.path)?;
        let found = finding::find(text, head.len() == HEAD, asked).map_err(|unknown| match unknown {
            Unknown::Line(line, what) => {
                Error::Text { path: self.path.into(), line: line + 1, column: 1, what }
            }
            Unknown::Columns(what) => Error::parameter("columns", format!("{}: {what}", shown(self.path))),
        })?;
        (self.ahead, self.ended) = (head, self.end.take());
        Ok(found)
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let mut text = std::mem::take(&mut self.rest);
        let mut searched = 0;
        if !self.started {
            self.started = true;
            self.fill(&mut text, MARK.len() + MATRIX_MARKET.len())?;
            text = after_mark(&text, self.path)?.to_vec();
        }
        loop {
            self.fill(&mut text, searched + self.batch)?;
            if let Some(newline) = text[searched..].iter().rposition(|&byte| byte == b'\n') {
                self.rest = text.split_off(searched + newline + 1);
                return Ok(Some(Batch { text, comment: self.comment.take() }));
            }
            searched = text.len();
            match self.end.take() {
                // The parts of a line before a failure are no line.
                Some(Err(error)) => return Err(error),
                Some(Ok(())) if text.is_empty() => return Ok(None),
                Some(Ok(())) => {
                    self.end = Some(Ok(()));
                    return Ok(Some(Batch { text, comment: self.comment.take() }));
                }
                None => {}
            }
            let comment =
                self.comment.is_some() || self.marks.is_some_and(|dialect| dialect.marks.begin(&text));
            if !comment && text.len() > LONGEST_LINE {
                // The parser refuses it at its line, and nothing behind it matters.
                self.end = Some(Ok(()));
                return Ok(Some(Batch { text, comment: None }));
            }
            // A carriage return stays with the byte that tells whether it ends the line.
            if comment && (!text.ends_with(b"\r") || text.ends_with(b"\r\r")) {
                let before = self.comment.replace(self.comment.unwrap_or(0) + text.len() as u64);
                return Ok(Some(Batch { text, comment: before }));
            }
        }
    }

    /// Makes `text` `length` bytes long, or as long as the source lasts.
    fn fill(&mut self, text: &mut Vec<u8>, length: usize) -> Result<()> {
        text.reserve(length.saturating_sub(text.len()));
        while text.len() < length && self.end.is_none() {
            self.run.check()?;
            let part = READ.min(length - text.len());
            if !self.ahead.is_empty() {
                text.extend(self.ahead.drain(..part.min(self.ahead.len())));
                continue;
            }
            if self.ended.is_some() {
                self.end = self.ended.take();
                continue;
            }
            match self.source.by_ref().take(part as u64).read_to_end(text) {
                Ok(0) => self.end = Some(Ok(())),
                Ok(_) => {}
                Err(error) => self.end = Some(Err(unreadable(self.path, error))),
            }
        }
        Ok(())
    }
}

/// The error of the operating system, or of the decoder of compressed data.
pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::io(path, error);
    }
    let what =
        format!("the gzip data are damaged or cut off ({error}). Fetch the file again, test with `gzip -t`");
    Error::format(shown(path), what)
}

impl Batch {
    /// Parses by all threads.
    fn parse(&self, piece: usize, largest: u64, dialect: &Dialect, run: &Run) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let (mut rest, mut comment) = (&self.text[..], self.comment);
        while !rest.is_empty() {
            let newline = rest.iter().skip(piece.max(1) - 1).position(|&byte| byte == b'\n');
            let (text, after) = rest.split_at(newline.map_or(rest.len(), |at| at + piece.max(1)));
            pieces.push((text, comment.take()));
            rest = after;
        }
        side_by_side(run, pieces, |(text, comment)| line::parse(text, largest, comment, dialect))
    }
}

/// Puts the pieces back in order: counts lines, finds the header.
struct Order {
    path: PathBuf,
    newlines: u64,
    header: Option<u64>,
    /// Whether a name where a number belongs says that the caller should read names.
    by_name: bool,
    notes: Vec<String>,
}

impl Order {
    fn new(path: &Path, dialect: &Dialect) -> Self {
        let by_name = dialect.by_name && dialect.names == Names::Possible;
        Self { path: path.into(), newlines: 0, header: dialect.header, by_name, notes: Vec::new() }
    }

    fn deliver(
        &mut self,
        pieces: Vec<Piece>,
        deliver: &mut impl FnMut(&[WideRecord], &[f64]) -> Result<()>,
    ) -> Result<()> {
        for Piece { records, weights, newlines, header, fault } in pieces {
            if let Some(header) = header {
                if self.header.is_none_or(|line| line + 1 != self.line(&header)) {
                    return Err(self.error(header));
                }
                self.notes.push(format!("line {} is skipped as a header", self.line(&header)));
            }
            deliver(&records, &weights)?;
            if let Some(fault) = fault {
                return Err(self.error(fault));
            }
            self.newlines += newlines;
        }
        Ok(())
    }

    fn line(&self, fault: &Fault) -> u64 {
        self.newlines + fault.newlines + 1
    }

    fn error(&self, fault: Fault) -> Error {
        let (path, line, column) = (self.path.clone(), self.line(&fault), fault.column + 1);
        match fault.name && self.by_name {
            true => Error::Name { path, line, column, what: fault.what },
            false => Error::Text { path, line, column, what: fault.what },
        }
    }
}
