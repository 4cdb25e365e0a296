//! Graphs in the text format of METIS: one line per vertex, which lists its neighbours.
//!
//! **Format.** The first line is the header `n m [fmt [ncon]]`. Then line v, from 1, holds
//! `[size] [weight ...] (neighbour [weight]) ...`. Neighbours are counted from 1. The digits of `fmt` say
//! what is there: 100 sizes of vertices, 10 weights of vertices (`ncon` of each), 1 weights of edges. Lines
//! that begin with `%` are comments. An empty line is a vertex without neighbours. Numbers are integers,
//! separated by blanks. Lines end with LF or CR LF.
//!
//! **Output.** Every undirected edge once, at its lower vertex, from 0, with its weight. Sizes and weights of
//! vertices are skipped. The format has no loops, but a vertex that lists itself gives one each time. Both
//! ends must list every edge, with the same weight. This is checked by the numbers of entries up and down and
//! by a sum of hashes of each. Unequal lists have equal sums with a probability of 2^-64.
//!
//! **Memory.** One block of bytes and the records in it, 0.6 MB: a line may have any length, as a vertex any
//! degree.
//!
//! **Parallelism.** None: a byte costs about a nanosecond.
//!
//! **Source.** Karypis, Kumar, "METIS: A Software Package for Partitioning Unstructured Graphs", manual of
//! version 5, section 4.1.1.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::text;
use crate::base::{Error, Result, Run, splitmix64};
use crate::edges::{MAX_VERTICES, WideRecord};

/// Bytes read at once.
const BLOCK: usize = 1 << 16;

/// Bytes held: a block, and records, which take two bytes of text at the least.
const MEMORY: u64 = (BLOCK + BLOCK / 2 * size_of::<WideRecord>()) as u64;

/// The header of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metis {
    /// Number of vertices.
    pub n: u64,
    /// Numbers at the beginning of each line that are no neighbours.
    pub vertex_weights: u64,
    /// Whether each neighbour is followed by a weight.
    pub edge_weights: bool,
}

/// Reads the whole of `source`, which came from `path`, and hands `deliver` the records in order, with their
/// weights if there are any.
pub fn read(
    mut source: impl Read,
    path: &Path,
    run: &Run,
    mut deliver: impl FnMut(&[WideRecord], &[f64]) -> Result<()>,
) -> Result<Metis> {
    run.require(MEMORY, "convert: buffers for text")?;
    let mut parser = Parser::new(path);
    let mut block = vec![0; BLOCK];
    loop {
        run.check()?;
        let count = match source.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(text::unreadable(path, error)),
        };
        // Records before a fault are delivered, and thrown away with the output.
        let parsed = parser.block(&block[..count]);
        // The last record of a block may wait for its weight.
        let waiting = match &parser.metis {
            Some(metis) if metis.edge_weights => parser.records.split_off(parser.weights.len()),
            _ => Vec::new(),
        };
        deliver(&parser.records, &parser.weights)?;
        parser.records.clear();
        parser.records.extend(waiting);
        parser.weights.clear();
        parsed?;
    }
    let metis = parser.end()?;
    deliver(&parser.records, &parser.weights)?;
    Ok(metis)
}

/// A number that a fault may point to: where its first digit stands.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    line: u64,
    column: u64,
}

/// Where in a line the parser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Position {
    /// Numbers and blanks.
    #[default]
    Numbers,
    /// A comment, to the end of the line.
    Comment,
    /// Behind a carriage return.
    Return,
}

/// The automaton: its state after the bytes before.
#[derive(Default)]
struct Parser {
    path: PathBuf,
    records: Vec<WideRecord>,
    weights: Vec<f64>,
    metis: Option<Metis>,
    /// The neighbour whose weight comes next.
    neighbour: u64,
    /// Numbers of the header so far, and their places.
    header: Vec<(u64, Place)>,
    /// Number of records that the header announces.
    m: (u64, Place),
    /// Line and column, from 1, of the next byte.
    line: u64,
    column: u64,
    within: Position,
    /// The number that is being read, and how many digits it has. More than `u64` holds stays the largest.
    value: u64,
    digits: u64,
    /// Numbers of this line before that one.
    position: u64,
    /// Lines of vertices that ended.
    vertices: u64,
    loops: u64,
    up: Entries,
    down: Entries,
}

/// Entries of all lines whose neighbour is above the vertex, or below.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entries {
    count: u64,
    hash: u64,
}

impl Entries {
    fn add(&mut self, low: u64, high: u64) {
        self.count += 1;
        self.hash = self.hash.wrapping_add(splitmix64(low << 32 | high));
    }

    fn weigh(&mut self, low: u64, high: u64, weight: u64) {
        self.hash = self.hash.wrapping_add(splitmix64(splitmix64(low << 32 | high) ^ weight));
    }
}

impl Parser {
    fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            // One per two bytes of a block.
            records: Vec::with_capacity(BLOCK / 2 + 1),
            line: 1,
            column: 1,
            ..Self::default()
        }
    }

    fn block(&mut self, bytes: &[u8]) -> Result<()> {
        for &byte in bytes {
            match byte {
                b'0'..=b'9' if self.within == Position::Numbers => {
                    let digit = u64::from(byte - b'0');
                    self.value = self.value.saturating_mul(10).saturating_add(digit);
                    self.digits += 1;
                }
                _ => self.other(byte)?,
            }
            self.column += 1;
        }
        Ok(())
    }

    /// A byte that is no digit of a number.
    fn other(&mut self, byte: u8) -> Result<()> {
        match (self.within, byte) {
            (_, b'\n') => self.end_line(),
            (Position::Comment, _) => Ok(()),
            (Position::Return, _) => {
                Err(self.fault(self.column - 1, "a carriage return within the line. Write line feeds"))
            }
            (Position::Numbers, b' ' | b'\t') => self.end_number(),
            (Position::Numbers, b'\r') => {
                self.end_number()?;
                self.within = Position::Return;
                Ok(())
            }
            (Position::Numbers, b'%') if self.column == 1 => {
                self.within = Position::Comment;
                Ok(())
            }
            (Position::Numbers, _) => {
                let seen = (byte as char).escape_default();
                let what = format!(
                    "'{seen}' in a METIS graph, which holds whole numbers, blanks and comment lines that begin with %. If \
                     this is an edge list, pass format=\"text\""
                );
                Err(self.fault(self.column, what))
            }
        }
    }

    fn end_line(&mut self) -> Result<()> {
        let comment = self.within == Position::Comment;
        if !comment {
            self.end_number()?;
            self.line_is_complete()?;
        }
        self.within = Position::Numbers;
        self.position = 0;
        self.line += 1;
        // The caller counts the newline itself.
        self.column = 0;
        Ok(())
    }

    /// A line that is no comment ended.
    fn line_is_complete(&mut self) -> Result<()> {
        let Some(metis) = self.metis else { return self.end_header() };
        if self.vertices == metis.n {
            return if self.position == 0 { Ok(()) } else { Err(self.behind_the_last(metis.n)) };
        }
        if self.position < metis.vertex_weights {
            let what = format!(
                "{} numbers, but the header's fmt puts {} before the neighbours of each vertex",
                self.position, metis.vertex_weights
            );
            return Err(self.fault(self.column, what));
        }
        if metis.edge_weights && !(self.position - metis.vertex_weights).is_multiple_of(2) {
            let what = "a neighbour without its weight, which the header's fmt announces";
            return Err(self.fault(self.column, what));
        }
        self.vertices += 1;
        Ok(())
    }

    fn end_number(&mut self) -> Result<()> {
        if self.digits == 0 {
            return Ok(());
        }
        let place = Place { line: self.line, column: self.column - self.digits };
        let value = std::mem::take(&mut self.value);
        self.digits = 0;
        self.position += 1;
        match self.metis {
            None if self.position <= 4 => {
                self.header.push((value, place));
                Ok(())
            }
            None => Err(self.at(place, "a fifth number in the header. Write: n m [fmt [ncon]]")),
            Some(metis) => self.number(metis, value, place),
        }
    }

    /// A number of a vertex's line.
    fn number(&mut self, metis: Metis, neighbour: u64, place: Place) -> Result<()> {
        if self.vertices == metis.n {
            return Err(self.behind_the_last(metis.n));
        }
        let Some(entry) = (self.position - 1).checked_sub(metis.vertex_weights) else { return Ok(()) };
        if metis.edge_weights && entry % 2 == 1 {
            self.weigh(neighbour);
            return Ok(());
        }
        if !(1..=metis.n).contains(&neighbour) {
            let seen = if neighbour == u64::MAX { "2^64 - 1 or more".into() } else { neighbour.to_string() };
            let what = format!(
                "the neighbour {seen} of vertex {} is outside 1..{}, counted from 1. Otherwise a line is missing, or \
                 the header's fmt does not announce the weights",
                self.vertices + 1,
                metis.n
            );
            return Err(self.at(place, what));
        }
        let (v, u) = (self.vertices, neighbour - 1);
        self.neighbour = u;
        match u.cmp(&v) {
            std::cmp::Ordering::Greater => self.up.add(v, u),
            std::cmp::Ordering::Less => {
                self.down.add(u, v);
                return Ok(());
            }
            std::cmp::Ordering::Equal => self.loops += 1,
        }
        self.records.push([v, u]);
        Ok(())
    }

    /// The weight of the last neighbour.
    fn weigh(&mut self, weight: u64) {
        let (v, u) = (self.vertices, self.neighbour);
        match u.cmp(&v) {
            std::cmp::Ordering::Less => return self.down.weigh(u, v, weight),
            std::cmp::Ordering::Greater => self.up.weigh(v, u, weight),
            std::cmp::Ordering::Equal => {}
        }
        self.weights.push(weight as f64);
    }

    fn end_header(&mut self) -> Result<()> {
        let numbers = std::mem::take(&mut self.header);
        let (&[(n, n_place), m, ref rest @ ..], column) = (&numbers[..], self.column) else {
            // An empty line before the header.
            if numbers.is_empty() {
                return Ok(());
            }
            return Err(self.fault(self.column, "a header of one number. Write: n m [fmt [ncon]]"));
        };
        if n > MAX_VERTICES {
            return Err(self.at(n_place, format!("{n} vertices. Use at most {MAX_VERTICES}")));
        }
        let flags = rest.first().copied().unwrap_or_default();
        let digits = [100, 10, 1].map(|power| flags.0 / power % 10);
        if flags.0 > 111 || digits.iter().any(|&digit| digit > 1) {
            let what = format!("fmt is {}. It has up to three digits, each 0 or 1", flags.0);
            return Err(self.at(flags.1, what));
        }
        let [sizes, weighted, edge_weights] = digits;
        let ncon = match (weighted, rest.get(1)) {
            (1, Some(&(0, place))) => {
                return Err(self.at(place, "ncon is 0, but fmt announces weights of vertices"));
            }
            (0, Some(&(ncon, place))) if ncon > 0 => {
                return Err(
                    self.at(place, format!("ncon is {ncon}, but fmt announces no weights of vertices"))
                );
            }
            (_, given) => given.map_or(weighted, |&(ncon, _)| ncon),
        };
        if ncon > u64::from(u32::MAX) {
            return Err(self.fault(column, format!("ncon is {ncon}: more weights than a line holds")));
        }
        self.m = m;
        self.metis = Some(Metis { n, vertex_weights: sizes + ncon, edge_weights: edge_weights == 1 });
        Ok(())
    }

    /// The source ended.
    fn end(&mut self) -> Result<Metis> {
        // The last line may lack its end, but a line of no bytes is none.
        if self.column > 1 {
            self.end_line()?;
        }
        let Some(metis) = self.metis else {
            return Err(self.fault(1, "no header. A METIS graph begins with: n m [fmt [ncon]]"));
        };
        if self.vertices < metis.n {
            let what = format!(
                "the file ends here, but the header says {} vertices, and only {} have a line (an empty one, if there \
                 is no neighbour)",
                metis.n, self.vertices
            );
            return Err(self.fault(1, what));
        }
        let (m, place) = self.m;
        let edges = self.up.count + self.loops;
        if self.up != self.down {
            let what = format!(
                "not every edge is listed by both its ends{}, as METIS demands: {} entries have the higher neighbour, {} the \
                 lower. A line may be missing, or the graph is directed",
                if metis.edge_weights { " with one weight" } else { "" },
                self.up.count,
                self.down.count
            );
            return Err(self.at(place, what));
        }
        if edges != m {
            return Err(self.at(place, format!("the header says {m} edges, but the lines hold {edges}")));
        }
        Ok(metis)
    }

    fn behind_the_last(&self, n: u64) -> Error {
        self.fault(1, format!("a line after that of the last vertex. The header says {n} vertices"))
    }

    fn fault(&self, column: u64, what: impl Into<String>) -> Error {
        self.at(Place { line: self.line, column }, what)
    }

    fn at(&self, Place { line, column }: Place, what: impl Into<String>) -> Error {
        Error::Text { path: self.path.clone(), line, column, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, block: usize) -> Result<(Vec<WideRecord>, Metis)> {
        let path = Path::new("g.graph");
        let mut parser = Parser::new(path);
        for part in text.as_bytes().chunks(block) {
            parser.block(part)?;
        }
        let metis = parser.end()?;
        Ok((parser.records, metis))
    }

    #[test]
    fn blocks_may_end_anywhere() {
        let text = "% c\r\n4 3 011 2 \r\n1 1 2 7 3 8\r\n% in between\n2 2 1 7\n3 3  1 8\t4 9\r\n4 4 3 9";
        let whole = parse(text, usize::MAX).unwrap();
        assert_eq!(whole.0, [[0, 1], [0, 2], [2, 3]]);
        assert_eq!(whole.1, Metis { n: 4, vertex_weights: 2, edge_weights: true });
        for block in 1..text.len() {
            assert_eq!(parse(text, block).unwrap(), whole);
        }
        let wrong = text.replace("4 9\r", "5 9\r");
        let expected = parse(&wrong, usize::MAX).unwrap_err().to_string();
        for block in 1..text.len() {
            assert_eq!(parse(&wrong, block).unwrap_err().to_string(), expected);
        }
    }
}
