//! Sparse matrices in the text format of Matrix Market: an entry a line, row and column from 1.
//!
//! **Format.** The first line is `%%MatrixMarket matrix coordinate FIELD SYMMETRY`. Comments begin with `%`.
//! Then a line holds the numbers of rows, columns and entries, and each further line an entry: row, column
//! and, unless the field is `pattern`, a value. The field is pattern, integer or real, and the matrix general
//! or symmetric and square.
//!
//! **Output.** Every entry as a record, from 0. A symmetric matrix lists every edge once, a general one each
//! direction by itself.
//!
//! **Source.** Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats: Initial Design", NISTIR
//! 5935, 1996.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::foreign;
use super::sink::Intake;
use super::text::{self, Asked, Column, Cut, LONGEST_LINE};
use crate::base::{Error, Result, Run, shown};
use crate::edges::{MAX_VERTICES, WideRecord};

/// The lines before the entries.
struct Header {
    pattern: bool,
    symmetric: bool,
    n: u64,
    entries: u64,
    /// Number of lines before the entries.
    lines: u64,
}

/// Hands the entries of `source`, which came from `path`, to `intake`, with their values as weights if
/// `weighted`. Returns the number of vertices, and whether an undirected edge has two entries.
pub(super) fn read(
    source: impl Read + Send,
    path: &Path,
    weighted: bool,
    intake: &mut Intake,
    run: &Run,
) -> Result<(u64, bool)> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let Header { pattern, symmetric, n, entries, lines } = header(&mut source, path)?;
    if pattern && weighted {
        let what = format!("{}: a pattern matrix has no values. Leave it out", shown(path));
        return Err(Error::parameter("weights", what));
    }
    if !pattern && !weighted {
        intake.notes.push("the values of the matrix are not read. weights=3 reads them".into());
    }
    let value = Column::Number(3);
    let asked = Asked { weight: weighted.then_some(&value), ..Asked::default() };
    let mut count = 0;
    let mut shifted: Vec<WideRecord> = Vec::new();
    let deliver = |records: &[WideRecord], weights: &[f64]| {
        if let Some(at) = records.iter().position(|record| record.iter().any(|id| !(1..=n).contains(id))) {
            let [row, column] = records[at];
            let what =
                format!("entry {}: row {row}, column {column} is outside 1..{n}", count + at as u64 + 1);
            return Err(Error::format(shown(path), what));
        }
        count += records.len() as u64;
        shifted.clear();
        shifted.extend(records.iter().map(|record| record.map(|id| id - 1)));
        intake.weigh(&shifted, weights)?;
        intake.push_wide(&shifted)
    };
    let entry_lines = text::read(source, path, MAX_VERTICES, Cut::default(), asked, run, deliver);
    entry_lines.map_err(|error| match error {
        Error::Text { path, line, column, what } => Error::Text { path, line: line + lines, column, what },
        other => other,
    })?;
    if count != entries {
        return Err(Error::format(
            shown(path),
            format!(
                "its header says {entries} entries, but {count} lines follow. The file is cut off or damaged"
            ),
        ));
    }
    Ok((n, !symmetric))
}

/// Reads the lines up to the sizes.
fn header(source: &mut impl BufRead, path: &Path) -> Result<Header> {
    let refuse = |line, what: String| Err(Error::Text { path: path.into(), line, column: 1, what });
    let (mut pattern, mut symmetric) = (false, false);
    for number in 1.. {
        let mut line = Vec::new();
        let read = source.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
        read.map_err(|error| text::unreadable(path, error))?;
        let line = String::from_utf8_lossy(&line).to_ascii_lowercase();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if number == 1 {
            match words[..] {
                ["%%matrixmarket", "matrix", "coordinate", field, symmetry] => {
                    if !matches!(field, "pattern" | "integer" | "real") {
                        return refuse(
                            1,
                            format!("a matrix of {field} values. Use pattern, integer or real"),
                        );
                    }
                    if !matches!(symmetry, "general" | "symmetric") {
                        return refuse(1, format!("a {symmetry} matrix. Save it as general or symmetric"));
                    }
                    (pattern, symmetric) = (field == "pattern", symmetry == "symmetric");
                }
                _ if line.starts_with("%matrixmarket") => {
                    let remedy = foreign::one_percent(&shown(path).to_string());
                    return refuse(1, format!("Matrix Market whose first line begins with one %. {remedy}"));
                }
                _ => {
                    return refuse(1, "no sparse matrix. Expected `%%MatrixMarket matrix coordinate`".into());
                }
            }
            continue;
        }
        if line.is_empty() {
            break;
        }
        if words.is_empty() || line.starts_with('%') {
            continue;
        }
        let sizes: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
        return match sizes[..] {
            [rows, columns, entries] if words.len() == 3 => {
                if rows != columns {
                    return refuse(
                        number,
                        format!("{rows} rows and {columns} columns. A graph is a square matrix"),
                    );
                }
                if rows > MAX_VERTICES {
                    return refuse(number, format!("{rows} rows. Use at most {MAX_VERTICES}"));
                }
                Ok(Header { pattern, symmetric, n: rows, entries, lines: number })
            }
            _ => refuse(number, "expected the numbers of rows, columns and entries".into()),
        };
    }
    refuse(1, "the file ends before the numbers of rows, columns and entries".into())
}
