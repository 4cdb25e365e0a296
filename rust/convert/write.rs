//! Edges in the formats of other programs: text, METIS graphs, the `.binedgelist` of 2PS and HEP.
//!
//! **Memory.** 256 KiB, and for METIS graphs that of [`Csr`].
//!
//! **Parallelism.** None but that of [`Csr`]. A record takes some ten nanoseconds.

use std::io::Write;
use std::path::Path;

use crate::base::{AtomicFile, Error, Result, Run};
use crate::edges::{EdgeStream, Record};
use crate::exec::in_order;
use crate::graph::Csr;

/// Vertices between two looks at the cancel flag.
const STEP: u32 = 1 << 10;

/// Bytes that are handed to the file at once.
const BUFFER: usize = 1 << 16;

/// Writes one line `u`, tab, `v` per record. The format has no place for isolated vertices behind the largest id.
pub fn text(edges: &dyn EdgeStream, target: &Path, run: &Run) -> Result<Vec<String>> {
    let mut file = AtomicFile::create(target)?;
    let mut lines = Vec::new();
    each_block(edges, run, |records| {
        for &[u, v] in records {
            push_number(&mut lines, u.into());
            lines.push(b'\t');
            push_number(&mut lines, v.into());
            lines.push(b'\n');
        }
        flush(&mut lines, &mut file, 0)
    })?;
    file.commit()?;
    Ok(vec![])
}

/// Writes the number of vertices (u32) and of records (u64), then the records as u32 pairs, all little-endian.
pub fn binedgelist(edges: &dyn EdgeStream, target: &Path, run: &Run) -> Result<Vec<String>> {
    let mut file = AtomicFile::create(target)?;
    // MAX_VERTICES fits.
    let header =
        [&(edges.num_vertices() as u32).to_le_bytes()[..], &edges.num_edges().to_le_bytes()].concat();
    file.write_all(&header).map_err(|error| Error::io(target, error))?;
    each_block(edges, run, |records| {
        file.write_all(bytemuck::cast_slice(records)).map_err(|error| Error::io(target, error))
    })?;
    file.commit()?;
    Ok(vec![])
}

/// Writes a METIS graph: each line lists the neighbours of a vertex, ascending, from 1. What METIS forbids is left out, with
/// a note: loops, and records that repeat a pair.
pub fn metis(edges: &dyn EdgeStream, target: &Path, run: &Run) -> Result<Vec<String>> {
    let mut file = AtomicFile::create(target)?;
    // Both ends get an entry even if the stream is symmetric, since that has not been checked.
    let csr = Csr::build(edges, false, run)?;
    let n = csr.num_vertices() as u32;
    run.begin("write", 2 * u64::from(n));
    let mut entries = 0;
    each_vertex(n, run, |v| {
        entries += distinct(csr.neighbours(v)).count() as u64;
        Ok(())
    })?;
    let mut lines = format!("{n} {}\n", entries / 2).into_bytes();
    each_vertex(n, run, |v| {
        for (position, u) in distinct(csr.neighbours(v)).enumerate() {
            if position > 0 {
                lines.push(b' ');
            }
            push_number(&mut lines, u64::from(u) + 1);
        }
        lines.push(b'\n');
        flush(&mut lines, &mut file, BUFFER)
    })?;
    flush(&mut lines, &mut file, 0)?;
    file.commit()?;
    let mut notes = Vec::new();
    if csr.graph().loops > 0 {
        notes.push(format!("{} loops are left out, because METIS forbids them", csr.graph().loops));
    }
    let merged = (csr.num_entries() - entries) / 2;
    if merged > 0 {
        notes.push(format!("{merged} records that repeat a pair are left out, because METIS forbids them"));
    }
    Ok(notes)
}

/// The neighbours, each once.
fn distinct(neighbours: &[u32]) -> impl Iterator<Item = u32> {
    neighbours.chunk_by(|one, other| one == other).map(|equal| equal[0])
}

fn each_block(
    edges: &dyn EdgeStream,
    run: &Run,
    mut write: impl FnMut(&[Record]) -> Result<()>,
) -> Result<()> {
    run.begin("write", edges.num_edges());
    in_order(edges, 0..edges.num_edges(), run, |_, records| {
        records.chunks(BUFFER / 4).try_for_each(|records| write(records).and_then(|()| run.check()))
    })
}

fn each_vertex(n: u32, run: &Run, mut write: impl FnMut(u32) -> Result<()>) -> Result<()> {
    for v in 0..n {
        write(v)?;
        if v % STEP == STEP - 1 {
            run.advance(STEP.into())?;
        }
    }
    run.advance(u64::from(n % STEP))
}

/// Hands over what is there, if it is more than `more` bytes.
fn flush(lines: &mut Vec<u8>, file: &mut AtomicFile, more: usize) -> Result<()> {
    if lines.len() > more {
        file.write_all(lines).map_err(|error| Error::io(file.target(), error))?;
        lines.clear();
    }
    Ok(())
}

/// Appends the decimal digits. Several times as fast as the formatting of the standard library.
fn push_number(text: &mut Vec<u8>, mut number: u64) {
    let (mut digits, mut at) = ([0; 20], 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}
