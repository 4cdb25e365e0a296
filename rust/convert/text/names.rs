//! Text whose ids are names: one record after the other, in the dialect of the first lines.
//!
//! A record is a line. It goes on behind the line's end while a quote is open. So a name may hold anything.
//!
//! **Memory.** One record, of 1 MiB at the most.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use super::dialect::{Delimiter, Dialect, Marks, is_open, unquoted};
use super::line::{self, LONGEST_LINE, Wrong};
use super::{Asked, HEAD, MARK, Names, Reader, Seen, unreadable};
use crate::base::{Error, Result, Run};

/// Records between two polls of the cancel flag.
const CHECKED: u64 = 1 << 14;

/// Hands `deliver` the names of both ids of each record in order, and its weight if a column has it.
pub fn read<R: Read + Send>(
    source: R,
    path: &Path,
    asked: Asked,
    run: &Run,
    mut deliver: impl FnMut([&str; 2], Option<f64>) -> Result<()>,
) -> Result<Seen> {
    run.require((HEAD + 4 * LONGEST_LINE) as u64, "convert: buffers for text")?;
    let mut reader = Reader::new(source, path, HEAD, run);
    let (mut dialect, note) = reader.dialect(Asked { names: Names::Read, ..asked })?;
    dialect.named = true;
    if let Some(Err(error)) = reader.ended.take() {
        return Err(error);
    }
    let bytes = !reader.ahead.is_empty();
    let head = std::mem::take(&mut reader.ahead);
    let begin = if head.starts_with(MARK) { MARK.len() as u64 } else { 0 };
    let mut ahead = Cursor::new(head);
    ahead.set_position(begin);
    let source = BufReader::with_capacity(1 << 16, ahead.chain(reader.source));
    let mut lines = Lines { source, path, number: 0 };
    let (mut begun, mut marked, mut count) = (false, None, 0_u64);
    let mut record = Vec::new();
    while lines.next(&mut record, &dialect.marks, begun && dialect.marks == Marks::Usual)? {
        let first = lines.number;
        if count.is_multiple_of(CHECKED) {
            run.check()?;
        }
        if dialect.header == Some(first - 1) {
            begun = true;
            continue;
        }
        let comment = dialect.marks.begin(&record);
        if record.trim_ascii().is_empty() || comment && !(begun && dialect.marks == Marks::Usual) {
            continue;
        }
        begun = true;
        lines.close_quotes(&mut record, &dialect, first)?;
        let text = line::without_end(&record);
        let wrong = |fault: Wrong| {
            let more = if comment { COMMENTS } else { "" };
            lines.error(first, text, Wrong { what: format!("{}{more}", fault.what), ..fault })
        };
        let fields = line::fields(text, &dialect).map_err(wrong)?;
        let [u, v] = fields.ids.map(|(at, field)| name(at, field));
        let (u, v) = (u.map_err(wrong)?, v.map_err(wrong)?);
        fields.wrong.map_or(Ok(()), Err).map_err(wrong)?;
        let weight = match dialect.weight {
            None => None,
            Some(column) => {
                let (at, field) = dialect.delimiter.fields(text).nth(column).unwrap_or((text.len(), b""));
                Some(line::number(at, field, column + 1).map_err(wrong)?)
            }
        };
        deliver([&u, &v], weight)?;
        count += 1;
        if comment {
            let (times, _) = marked.get_or_insert((0_u64, first));
            *times += 1;
        }
    }
    let mut notes: Vec<String> = note.into_iter().collect();
    if let Some((times, first)) = marked {
        let lines = if times == 1 { "line begins" } else { "lines begin" };
        notes.push(format!(
            "{times} {lines} with a mark of comments behind the first record, and {} read as records, the first of \
             them line {first}. comments=\"#\" leaves out all lines that begin with #",
            if times == 1 { "is" } else { "are" }
        ));
    }
    Ok(Seen { notes, bytes })
}

/// The remedy for comments between records of names.
const COMMENTS: &str = ". If it is a comment, pass its mark: comments=\"#\"";

/// The name in a field, or its defect.
fn name(at: usize, field: &[u8]) -> Result<Cow<'_, str>, Wrong> {
    if field.is_empty() {
        return Err(Wrong::at(at, "an empty field where an id belongs"));
    }
    let Some(text) = unquoted(field) else {
        let what = "a quote that does not enclose its whole field. Double the quotes that belong to the text";
        return Err(Wrong::at(at, what));
    };
    let utf8 = || Wrong::at(at, "not UTF-8. Save the file as UTF-8, as `iconv -t UTF-8` does");
    match text {
        Cow::Borrowed(text) => std::str::from_utf8(text).map(Cow::Borrowed).map_err(|_| utf8()),
        Cow::Owned(text) => String::from_utf8(text).map(Cow::Owned).map_err(|_| utf8()),
    }
}

/// The lines of a source.
struct Lines<'a, S> {
    source: S,
    path: &'a Path,
    /// Lines read.
    number: u64,
}

impl<S: BufRead> Lines<'_, S> {
    /// Reads the next line. Only a comment may be longer than [`LONGEST_LINE`], unless it is `data`. False at
    /// the end.
    fn next(&mut self, line: &mut Vec<u8>, marks: &Marks, data: bool) -> Result<bool> {
        line.clear();
        self.append(line)?;
        let comment = !data && marks.begin(line);
        while comment && line.len() > LONGEST_LINE && !line.ends_with(b"\n") {
            line.truncate(LONGEST_LINE);
            let before = line.len();
            self.number -= 1;
            self.append(line)?;
            if line.len() == before {
                break;
            }
        }
        if !comment && line::without_end(line).len() > LONGEST_LINE {
            return Err(self.error(self.number, line, line::too_long()));
        }
        match line::control(line) {
            Some(wrong) => Err(self.error(self.number, line, wrong)),
            None => Ok(!line.is_empty()),
        }
    }

    fn append(&mut self, line: &mut Vec<u8>) -> Result<()> {
        let read = self.source.by_ref().take(LONGEST_LINE as u64 + 2).read_until(b'\n', line);
        read.map_err(|error| unreadable(self.path, error))?;
        self.number += 1;
        Ok(())
    }

    /// Appends lines to a record while a quote in it is open.
    fn close_quotes(&mut self, record: &mut Vec<u8>, dialect: &Dialect, first: u64) -> Result<()> {
        if !record.contains(&b'"') {
            return Ok(());
        }
        while let Some(at) = open(record, dialect.delimiter) {
            // It closes with an odd number of quotes behind the one that opens it.
            let mut quotes = record[at + 1..].iter().filter(|&&byte| byte == b'"').count();
            while quotes.is_multiple_of(2) {
                let before = record.len();
                self.append(record)?;
                quotes += record[before..].iter().filter(|&&byte| byte == b'"').count();
                if record.len() == before || record.len() > LONGEST_LINE {
                    let what =
                        "a quote that does not close. Close it, or double the quotes that belong to the text";
                    return Err(self.error(first, record, Wrong::at(at, what)));
                }
                if let Some(wrong) = line::control(&record[before..]) {
                    return Err(self.error(self.number, &record[before..], wrong));
                }
            }
            let fields = dialect.delimiter.fields(record).count();
            if dialect.width.is_some_and(|[_, most]| fields > most + 1) {
                return Ok(()); // which its width refuses
            }
        }
        Ok(())
    }

    /// The error of a record that begins on line `first`. Its place counts from the last line end before it.
    fn error(&self, first: u64, text: &[u8], Wrong { column, what, .. }: Wrong) -> Error {
        let before = &text[..column.min(text.len())];
        let line = first + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        Error::Text { path: self.path.into(), line, column: (column - start) as u64 + 1, what }
    }
}

/// Where a field begins whose quote does not close.
fn open(record: &[u8], delimiter: Delimiter) -> Option<usize> {
    delimiter.fields(line::without_end(record)).find(|(_, field)| is_open(field)).map(|(at, _)| at)
}
