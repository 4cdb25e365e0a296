//! METIS graphs: what is read and written, what is refused and where.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use crate::common::text::{Case, ONE, gzip, place};
use crate::common::{Graph, graphs, run};
use fastpart::internals::base::Run;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::convert::{Convert, Format, metis, write};
use fastpart::internals::edges::Record;
use fastpart::internals::edges::WideRecord;
use proptest::prelude::*;
use tempfile::TempDir;

fn read(text: impl Read, run: &Run) -> Result<(Vec<WideRecord>, u64)> {
    let mut records = Vec::new();
    let found = metis::read(text, Path::new("g.graph"), run, |more, _| {
        records.extend_from_slice(more);
        Ok(())
    })?;
    Ok((records, found.n))
}

#[test]
fn all_the_ways_to_write_a_graph() {
    // A path 0 - 1 - 2, and vertex 3 alone.
    for text in [
        "4 2\n2\n1 3\n2\n\n",
        "4 2\r\n2\r\n1 3\r\n2\r\n\r\n",
        "% a\n%\n4 2\n2\n% b % c\n1 3\n2\n\n% d\n\n\n",
        "  4\t2 \n 2 \n3 1\n\t2\n \t\n",
        "4 2 0\n2\n1 3\n2\n\n",
        "4 2 000 0\n2\n1 3\n2\n\n",
        "4 2 1\n2 70\n1 70 3 80\n2 80\n\n",
        "4 2 10\n9 2\n9 1 3\n9 2\n0\n",
        "4 2 011 2\n9 9 2 70\n9 9 1 70 3 80\n9 9 2 80\n9 9",
        "4 2 100\n9 2\n9 1 3\n9 2\n9\n",
        "4 2 111 1\n9 8 2 70\n9 8 1 70 3 80\n9 8 2 80\n9 8\n",
        "4 2 110 3\n9 8 8 8 2\n9 8 8 8 1 3\n9 8 8 8 2\n9 8 8 8\n",
    ] {
        assert_eq!(read(text.as_bytes(), &ONE).unwrap(), (vec![[0, 1], [1, 2]], 4), "{text:?}");
        assert_eq!(read(Slow(text.as_bytes()), &ONE).unwrap(), (vec![[0, 1], [1, 2]], 4), "{text:?}");
    }
    assert_eq!(read(&b"0 0\n"[..], &ONE).unwrap(), (vec![], 0));
    assert_eq!(read(&b"2 0\n\n\n"[..], &ONE).unwrap(), (vec![], 2));
    assert_eq!(read(&b"2 2\n1 2\n1"[..], &ONE).unwrap(), (vec![[0, 0], [0, 1]], 2));
    assert_eq!(read(&b"2 2\n2 2\n1 1"[..], &ONE).unwrap(), (vec![[0, 1], [0, 1]], 2));
}

/// Gives a byte at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let length = bytes.len().min(1);
        self.0.read(&mut bytes[..length])
    }
}

// 19
#[test]
fn refusals_name_line_column_and_cause() {
    for (text, line, column, cause) in [
        ("", 1, 1, "no header"),
        ("% only\n", 2, 1, "no header"),
        ("5\n", 1, 2, "a header of one number"),
        ("3 2 1 1 1\n", 1, 9, "a fifth number in the header"),
        ("3 2 7\n2\n", 1, 5, "fmt is 7"),
        ("3 2 1000\n2\n", 1, 5, "fmt is 1000"),
        ("3 2 10 0\n", 1, 8, "ncon is 0"),
        ("3 2 1 2\n", 1, 7, "no weights of vertices"),
        ("4294967296 2\n", 1, 1, "4294967296 vertices"),
        // n too large, too small; a line missing.
        ("4 2\n2\n1 3\n2\n", 5, 1, "the header says 4 vertices, and only 3 have a line"),
        ("4 2\n2\n1 3\n2", 5, 1, "the header says 4 vertices, and only 3 have a line"),
        ("3 3\n2 3\n2 1\n", 4, 1, "only 2 have a line"),
        ("2 2\n2\n1 3\n2\n", 3, 3, "the neighbour 3 of vertex 2 is outside 1..2"),
        ("2 1\n2\n1\n\n2\n", 5, 1, "a line after that of the last vertex. The header says 2"),
        // m too large, too small.
        ("3 3\n2\n1 3\n2\n", 1, 3, "the header says 3 edges, but the lines hold 2"),
        ("% c\n3  1\n2\n1 3\n2\n", 2, 4, "the header says 1 edges, but the lines hold 2"),
        ("3 18446744073709551616\n2\n1 3\n2\n", 1, 3, "edges, but the lines hold 2"),
        // Weights that fmt does not say, and the other way round.
        ("3 2 1\n2 9\n1 9 3\n2 9\n", 3, 6, "a neighbour without its weight"),
        ("3 2\n2 9\n1 9 3 9\n2 9\n", 2, 3, "the header's fmt does not announce the weights"),
        ("3 2 10\n1 2\n1 1 3\n\n", 4, 1, "0 numbers, but the header's fmt puts 1 before the neighbours"),
        ("3 2 0\n5 2\n5 1 3\n5 2\n", 2, 1, "the neighbour 5"),
        // Neighbours.
        ("2 1\n0\n1\n", 2, 1, "the neighbour 0 of vertex 1"),
        ("2 1\n2 99999999999999999999\n1\n", 2, 3, "2^64 - 1 or more"),
        ("3 2\n2 3\n1\n\n", 1, 3, "not every edge is listed by both its ends"),
        ("4 2\n2\n1\n4\n2\n", 1, 3, "not every edge is listed by both its ends"),
        // Bytes.
        ("2 1\n2\n-1\n", 3, 1, "'-' in a METIS graph"),
        ("2 1\n2\n1.5\n", 3, 2, "'.'"),
        ("2 1\n2 # x\n1\n", 2, 3, "'#'"),
        ("2 1\n2 % x\n1\n", 2, 3, "'%'"),
        ("2 1\n2\0\n1\n", 2, 2, "'\\u{0}'"),
        ("2 1\n2 \r 1\n", 2, 3, "carriage return"),
        ("# Nodes: 2\n1 2\n", 1, 1, "format=\"text\""),
    ] {
        let (at, byte, what) = place(read(text.as_bytes(), &ONE).unwrap_err());
        assert_eq!((at, byte), (line, column), "{text:?}: {what}");
        assert!(what.contains(cause), "{text:?}: {what}");
        assert_eq!(place(read(Slow(text.as_bytes()), &ONE).unwrap_err()), (line, column, what));
    }
}

#[test]
fn convert_reads_it_by_name_or_by_format() {
    let text = b"% x\n4 2 1\n2 70\n1 70 3 80\n2 80\n\n";
    let metis = Convert { format: Some(Format::Metis), ..Convert::default() };
    for (name, bytes, options) in [
        ("g.graph", &text[..], Convert::default()),
        ("g.metis", text, Convert::default()),
        ("g.graph.gz", &gzip(text), Convert::default()),
        ("g.txt", text, metis.clone()),
        ("g", &gzip(text), metis.clone()),
    ] {
        let case = Case::new(name, bytes);
        let done = case.convert(&options).unwrap();
        assert_eq!((done.n, done.m, case.records()), (4, 2, vec![[0, 1], [1, 2]]), "{name}");
        assert_eq!(done.notes, ["the weights of the edges of the METIS graph are not kept"]);
        let more = case.convert(&Convert { num_vertices: Some(9), ..options.clone() }).unwrap();
        assert_eq!(more.n, 9);
        let fewer = case.refused(&Convert { num_vertices: Some(3), ..options.clone() }).to_string();
        assert!(fewer.contains("num_vertices: 3, but the input says 4"), "{fewer}");
        assert_eq!(case.convert(&Convert { relabel: true, ..options }).unwrap().n, 3);
    }
    let case = Case::new("g.graph", b"1 2\n3 4\n");
    assert!(matches!(case.refused(&Convert::default()), Error::Text { line: 2, column: 1, .. }));
    let edges = Convert { format: Some(Format::Text), ..Convert::default() };
    case.convert(&edges).unwrap();
    assert_eq!(case.records(), [[1, 2], [3, 4]]);
    let case = Case::new("g.graph", &gzip(text)[..30]);
    assert!(matches!(case.refused(&Convert::default()), Error::Format { .. }));
}

#[test]
fn memory_is_bounded_and_runs_can_be_cancelled() {
    // One vertex of degree 400,000: a line of 2.7 MB.
    let leaves = 400_000;
    let mut text = format!("{} {leaves}\n", leaves + 1);
    for leaf in 2..=leaves + 1 {
        text.push_str(&format!("{leaf} "));
    }
    text.push('\n');
    text.push_str(&"1\n".repeat(leaves));
    let small = Run::new(Some(1), Some(1 << 20)).unwrap();
    assert_eq!(read(text.as_bytes(), &small).unwrap().0.len(), leaves);
    let tiny = Run::new(Some(1), Some(1 << 19)).unwrap();
    assert!(matches!(read(text.as_bytes(), &tiny), Err(Error::MemoryBudget { .. })));
    let cancelled = run(1);
    cancelled.cancel();
    assert!(matches!(read(text.as_bytes(), &cancelled), Err(Error::Cancelled)));
}

/// What is written as METIS, read again; and the notes.
fn through_metis(graph: &Graph) -> (Vec<Record>, u64, Vec<String>) {
    let home = TempDir::new().unwrap();
    let path = home.path().join("g.graph");
    let notes = write(Format::Metis, graph, None, &path, &run(2)).unwrap();
    let (records, n) = read(std::fs::File::open(&path).unwrap(), &ONE).unwrap();
    (records.into_iter().map(|record| record.map(|id| id as u32)).collect(), n, notes)
}

/// The graph as METIS has it: the pairs, lower id first, in ascending order.
fn simple(records: &[Record]) -> Vec<Record> {
    let pairs = records.iter().filter(|[u, v]| u != v).map(|&[u, v]| [u.min(v), u.max(v)]);
    pairs.collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn what_metis_forbids_is_left_out_with_a_note() {
    let graph = Graph::new(5, vec![[2, 1], [1, 2], [3, 3], [0, 1], [1, 0], [1, 0]]);
    let (records, n, notes) = through_metis(&graph);
    assert_eq!((records, n), (vec![[0, 1], [1, 2]], 5));
    assert_eq!(notes.len(), 2);
    assert!(notes[0].starts_with("1 loops are left out") && notes[1].starts_with("3 records"), "{notes:?}");
    let (records, n, notes) = through_metis(&Graph::new(0, vec![]));
    assert_eq!((records, n, notes), (vec![], 0, vec![]));
}

#[test]
fn binedgelists_and_text_are_written() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("out");
    let graph = Graph::new(1234, (0..200_000).map(|r| [r % 1234, r % 77]).collect());
    write(Format::Text, &graph, None, &path, &run(1)).unwrap();
    let expected: String = graph.records.iter().map(|[u, v]| format!("{u}\t{v}\n")).collect();
    assert!(std::fs::read_to_string(&path).unwrap() == expected);
    write(Format::Binedgelist, &graph, None, &path, &run(1)).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[..12], [&1234_u32.to_le_bytes()[..], &200_000_u64.to_le_bytes()].concat());
    assert!(bytes[12..] == *bytemuck::cast_slice::<_, u8>(&graph.records));
    let case = Case::new("g.binedgelist", &bytes);
    let done = case.convert(&Convert::default()).unwrap();
    assert!((done.n, done.m, done.notes.len()) == (1234, 200_000, 0) && case.records() == graph.records);
}

#[test]
fn binedgelists_are_checked() {
    let make = |n: u32, m: u64, ids: &[u32]| {
        [&n.to_le_bytes()[..], &m.to_le_bytes(), bytemuck::cast_slice(ids)].concat()
    };
    let zero = Case::new("g.binedgelist", &make(9, 2, &[0, 1, 5, 8]));
    assert_eq!(zero.convert(&Convert::default()).unwrap().n, 9);
    let one = Case::new("g.binedgelist", &make(3, 2, &[1, 2, 2, 3]));
    let done = one.convert(&Convert::default()).unwrap();
    assert_eq!((done.n, one.records()), (4, vec![[1, 2], [2, 3]]));
    assert!(done.notes[0].contains("ids count from 1"), "{:?}", done.notes);
    let relabelled = one.convert(&Convert { relabel: true, ..Convert::default() }).unwrap();
    assert_eq!((relabelled.n, one.records(), relabelled.notes), (3, vec![[0, 1], [1, 2]], vec![]));
    for (bytes, cause) in [
        (&make(3, 2, &[1, 2, 2, 3])[..11], "11 bytes are no .binedgelist"),
        (&make(3, 2, &[1, 2, 2, 3])[..24], "length 24, but"),
        (&make(3, 3, &[1, 2, 2, 3]), "12 + 8 * 3"),
        (&make(3, u64::MAX, &[1, 2]), "length 20, but"),
        (&make(3, 2, &[1, 2, 2, 4]), "record 1 holds the id 4"),
    ] {
        let error = Case::new("g.binedgelist", bytes).refused(&Convert::default()).to_string();
        assert!(error.contains(cause), "{error}");
    }
    let named = Case::new("g.bin", &make(9, 2, &[0, 1, 5, 8]));
    let error = named.refused(&Convert::default()).to_string();
    assert!(error.contains("fastpart convert x.binedgelist OUT.bin"), "{error}");
    let said = Convert { format: Some(Format::Binedgelist), ..Convert::default() };
    assert_eq!(named.convert(&said).unwrap().m, 2);
    let both = named.refused(&Convert { swap: true, ..said }).to_string();
    assert!(both.contains("format: dtype= and swap="), "{both}");
}

/// A graph as text with the given flags, and with comments and blanks.
fn rendered(graph: &Graph, [sizes, weights, edge_weights]: [bool; 3], ncon: usize) -> String {
    let pairs = simple(&graph.records);
    let flags = [sizes, weights, edge_weights].map(|flag| if flag { "1" } else { "0" }).concat();
    let mut text = format!("%\n{} {} {flags}", graph.n, pairs.len());
    text.push_str(&if weights { format!(" {ncon}\n") } else { "\n".into() });
    for v in 0..graph.n as u32 {
        let mut line = vec!["7".to_string(); usize::from(sizes) + if weights { ncon } else { 0 }];
        for &[a, b] in pairs.iter().filter(|pair| pair.contains(&v)) {
            line.push((a + b - v + 1).to_string());
            line.extend(edge_weights.then(|| "5".to_string()));
        }
        text.push_str(&format!("{}\n", line.join(" ")));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(graph in graphs(30, 100)) {
        let (records, n, _) = through_metis(&graph);
        prop_assert_eq!((records, n), (simple(&graph.records), graph.n));
    }

    #[test]
    fn weights_are_read_past(graph in graphs(30, 100), flags: [bool; 3], ncon in 1..4_usize) {
        let text = rendered(&graph, flags, ncon);
        let (records, n) = read(text.as_bytes(), &ONE).unwrap();
        let records: Vec<Record> = records.into_iter().map(|record| record.map(|id| id as u32)).collect();
        prop_assert_eq!((records, n), (simple(&graph.records), graph.n));
    }

    #[test]
    fn a_changed_line_count_is_found(graph in graphs(30, 100), flags: [bool; 3], at: prop::sample::Index) {
        let text = rendered(&graph, flags, 1);
        let mut lines: Vec<&str> = text.split_inclusive('\n').skip(2).collect();
        prop_assume!(!lines.is_empty());
        lines.remove(at.index(lines.len()));
        let header: String = text.split_inclusive('\n').take(2).collect();
        let fewer = header + &lines.concat();
        prop_assert!(read(fewer.as_bytes(), &ONE).is_err(), "{}", fewer);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(
        prop_oneof![9 => proptest::sample::select(&b"01234 \t\n\n\n\r%-x"[..]), 1 => any::<u8>()], 0..200)) {
        let whole = read(&bytes[..], &ONE).map_err(|error| error.to_string());
        prop_assert_eq!(read(Slow(&bytes), &ONE).map_err(|error| error.to_string()), whole);
    }
}
