//! Edges in the formats of other programs: text, METIS graphs, the `.binedgelist` of 2PS and HEP.
//!
//! Weights of records become the third number of a line of text, or the weights of the edges of a METIS
//! graph.
//!
//! **Memory.** 256 KiB, and for METIS graphs that of [`Csr`].
//!
//! **Parallelism.** None but that of [`Csr`]. A record takes some ten nanoseconds.

use std::path::Path;

use super::Format;
use crate::base::{AtomicFile, Result, Run};
use crate::edges::{EdgeStream, Record, Weights};
use crate::exec::in_order;
use crate::graph::Csr;

/// Vertices between two polls of the cancel flag.
const STEP: u32 = 1 << 10;

/// Bytes that are handed to the file at once.
const BUFFER: usize = 1 << 16;

/// Weights of records, and by what they were multiplied.
pub(crate) type Scaled<'a> = (&'a Weights, f64);

/// Writes the edges to `target`. Returns notes for the user.
pub fn write(
    format: Format,
    edges: &dyn EdgeStream,
    weights: Option<Scaled>,
    target: &Path,
    run: &Run,
) -> Result<Vec<String>> {
    let mut file = AtomicFile::create(target)?;
    let mut notes = Vec::new();
    match format {
        Format::Text => text(edges, weights, &mut file, run)?,
        Format::Binedgelist => binedgelist(edges, &mut file, run)?,
        Format::Metis => notes = metis(edges, weights, &mut file, run)?,
    }
    file.commit()?;
    Ok(notes)
}

/// Writes one line `u`, tab, `v` per record, and after another tab its weight. The format has no place for
/// isolated vertices behind the largest id.
fn text(edges: &dyn EdgeStream, weights: Option<Scaled>, file: &mut AtomicFile, run: &Run) -> Result<()> {
    let (mut lines, mut buf) = (Vec::new(), Vec::new());
    each_block(edges, run, |first, records| {
        let weighed = match weights {
            Some((weights, _)) => weights.block(first..first + records.len() as u64, &mut buf)?,
            None => &[],
        };
        for (index, &[u, v]) in records.iter().enumerate() {
            push_number(&mut lines, u.into());
            lines.push(b'\t');
            push_number(&mut lines, v.into());
            if let (Some((_, scale)), Some(&weight)) = (weights, weighed.get(index)) {
                lines.push(b'\t');
                lines.extend((f64::from(weight) / scale).to_string().into_bytes());
            }
            lines.push(b'\n');
        }
        file.append(&lines)?;
        lines.clear();
        Ok(())
    })
}

/// Writes the number of vertices (u32) and of records (u64), then the records as u32 pairs, all
/// little-endian.
fn binedgelist(edges: &dyn EdgeStream, file: &mut AtomicFile, run: &Run) -> Result<()> {
    // MAX_VERTICES fits.
    file.append(&(edges.num_vertices() as u32).to_le_bytes())?;
    file.append(&edges.num_edges().to_le_bytes())?;
    each_block(edges, run, |_, records| file.append(bytemuck::cast_slice(records)))
}

/// Writes a METIS graph: each line lists the neighbours of a vertex, ascending, from 1. Records that METIS
/// forbids are left out, with a note: loops, and records that repeat a pair, whose weights are added up.
fn metis(
    edges: &dyn EdgeStream,
    weights: Option<Scaled>,
    file: &mut AtomicFile,
    run: &Run,
) -> Result<Vec<String>> {
    // Both ends get an entry even if the stream is symmetric, since that has not been checked.
    let csr = Csr::build_weighted(edges, weights.map(|(weights, _)| weights), false, run)?;
    let n = csr.num_vertices() as u32;
    run.begin("write", 2 * u64::from(n));
    let mut entries = 0;
    each_vertex(n, run, |v| {
        entries += distinct(&csr, v).count() as u64;
        Ok(())
    })?;
    let fmt = if weights.is_some() { " 1" } else { "" };
    // Equal weights are 1 in the adjacency.
    let unit = csr.extent().filter(|extent| extent.least == extent.most).map_or(1, |extent| extent.most);
    file.append(format!("{n} {}{fmt}\n", entries / 2).as_bytes())?;
    let mut lines = Vec::new();
    each_vertex(n, run, |v| {
        for (position, (u, weight)) in distinct(&csr, v).enumerate() {
            if position > 0 {
                lines.push(b' ');
            }
            push_number(&mut lines, u64::from(u) + 1);
            if weights.is_some() {
                lines.push(b' ');
                push_number(&mut lines, weight * u64::from(unit));
            }
        }
        lines.push(b'\n');
        file.append(&lines)?;
        lines.clear();
        Ok(())
    })?;
    let mut notes = Vec::new();
    if csr.graph().loops > 0 {
        notes.push(format!("{} loops are left out, because METIS forbids them", csr.graph().loops));
    }
    let scaled = csr
        .extent()
        .is_some_and(|extent| extent.least != extent.most && (extent.least == 0 || extent.total >= 1 << 31));
    if scaled || weights.is_some_and(|(_, scale)| scale != 1.0) {
        notes.push("the weights are scaled to whole numbers above 0, which METIS demands".into());
    }
    let merged = (csr.num_entries() - entries) / 2;
    if merged > 0 && weights.is_some() {
        notes.push(format!("{merged} records that repeat a pair are added to its weight"));
    } else if merged > 0 {
        notes.push(format!("{merged} records that repeat a pair are left out, because METIS forbids them"));
    }
    Ok(notes)
}

/// The neighbours of a vertex, each once, with the weight of all edges to it.
fn distinct(csr: &Csr, v: u32) -> impl Iterator<Item = (u32, u64)> {
    let mut at = csr.offsets()[v as usize] as usize;
    csr.neighbours(v).chunk_by(|one, other| one == other).map(move |equal| {
        let entries = at..at + equal.len();
        at = entries.end;
        let weight = csr.weights().map_or(equal.len() as u64, |weights| {
            weights[entries].iter().map(|&weight| u64::from(weight)).sum()
        });
        (equal[0], weight)
    })
}

fn each_block(
    edges: &dyn EdgeStream,
    run: &Run,
    mut write: impl FnMut(u64, &[Record]) -> Result<()>,
) -> Result<()> {
    run.begin("write", edges.num_edges());
    in_order(edges, 0..edges.num_edges(), run, |first, records| {
        let chunks = (first..).step_by(BUFFER / 4).zip(records.chunks(BUFFER / 4));
        chunks.into_iter().try_for_each(|(first, records)| write(first, records).and_then(|()| run.check()))
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
