//! Text as a table that Polars reads, for graphs whose vertices are numbered by the rank of their ids.
//!
//! The records are those of [`text`], in the same order. The table is CSV with the columns `source`, `target`
//! and, if a column of the text has them, `weight`. Names are quoted, numbers are not.
//!
//! **Memory.** The buffers of [`text`].

use std::fs::{File, Metadata};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::input::{Input, check_unchanged, unpacked};
use super::text::{self, Asked, Cut, Seen};
use super::{Column, Convert, WeightsFrom, no_record, origin_of};
use crate::base::regular_file::open_regular;
use crate::base::{Error, Result, Run};

/// Whether the first lines of a file of text say that its ids are names.
pub fn holds_names(input: &Path, options: &Convert, run: &Run) -> Result<bool> {
    let (file, metadata, gzip) = open(input)?;
    text::holds_names(unpacked((&file, &metadata), gzip, run), input, options.asked(weight(options)), run)
}

/// Writes the records of text to a new file. `names`: read the ids as names. Returns notes for the user.
pub fn tabulate(
    inputs: &[PathBuf],
    target: &Path,
    names: bool,
    options: &Convert,
    run: &Run,
) -> Result<Vec<String>> {
    let failed = |error| Error::io(target, error);
    let mut table = BufWriter::with_capacity(1 << 20, File::create_new(target).map_err(failed)?);
    let weighted = if weight(options).is_some() { ",weight" } else { "" };
    writeln!(table, "source,target{weighted}").map_err(failed)?;
    let (mut records, mut bytes, mut notes) = (0_u64, false, Vec::new());
    for input in inputs {
        let (file, metadata, gzip) = open(input)?;
        let source = unpacked((&file, &metadata), gzip, run);
        let asked = options.asked(weight(options));
        let read = match names {
            true => text::names::read(source, input, asked, run, |[u, v], weight| {
                records += 1;
                write_name(&mut table, u)
                    .and_then(|()| table.write_all(b","))
                    .and_then(|()| write_name(&mut table, v))
                    .and_then(|()| write_weight(&mut table, weight))
                    .map_err(failed)
            }),
            false => numbers(source, input, asked, run, &mut records, &mut table, target),
        };
        check_unchanged(&file, &metadata, input)?;
        let seen = read?;
        bytes |= seen.bytes;
        notes.extend(seen.notes);
    }
    table.flush().map_err(failed)?;
    if bytes && records == 0 {
        return Err(no_record(&origin_of(inputs)));
    }
    Ok(notes)
}

fn numbers(
    source: impl std::io::Read + Send,
    path: &Path,
    asked: Asked,
    run: &Run,
    count: &mut u64,
    table: &mut (impl Write + Send),
    target: &Path,
) -> Result<Seen> {
    text::read(source, path, u64::MAX, Cut::default(), asked, run, |records, weights| {
        *count += records.len() as u64;
        for (place, [u, v]) in records.iter().enumerate() {
            let written =
                write!(table, "{u},{v}").and_then(|()| write_weight(table, weights.get(place).copied()));
            written.map_err(|error| Error::io(target, error))?;
        }
        Ok(())
    })
}

fn write_name(table: &mut impl Write, name: &str) -> std::io::Result<()> {
    table.write_all(b"\"")?;
    for (place, part) in name.split('"').enumerate() {
        if place > 0 {
            table.write_all(b"\"\"")?;
        }
        table.write_all(part.as_bytes())?;
    }
    table.write_all(b"\"")
}

fn write_weight(table: &mut impl Write, weight: Option<f64>) -> std::io::Result<()> {
    match weight {
        Some(weight) => writeln!(table, ",{weight}"),
        None => table.write_all(b"\n"),
    }
}

/// The column of the weights.
fn weight(options: &Convert) -> Option<&Column> {
    match &options.weights {
        WeightsFrom::Column(column) => Some(column),
        _ => None,
    }
}

/// Opens a file of text, and says whether it is compressed.
fn open(input: &Path) -> Result<(File, Metadata, bool)> {
    let (file, metadata) = open_regular(input)?;
    let gzip = matches!(Input::find(&file, input, &Convert::default())?, Input::Text { gzip: true, .. });
    Ok((file, metadata, gzip))
}
