//! Text edge lists and `convert`: what is read, what is refused and where, and that nothing depends on threads, on
//! how the input is cut, or on its container.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fastpart::checksum;
use fastpart::edges::convert::{Convert, Converted, convert};
use fastpart::edges::decode::{IdType, WideRecord};
use fastpart::edges::file::{EdgeFile, Io, Layout};
use fastpart::edges::pass::{blocks, pass};
use fastpart::edges::text::{self, Cut, LONGEST_LINE};
use fastpart::edges::{EdgeStream, MAX_VERTICES, Record, npy};
use fastpart::error::{Error, Result};
use fastpart::run::Run;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;

static ONE: LazyLock<Run> = LazyLock::new(|| Run::new(Some(1), None).unwrap());
static THREE: LazyLock<Run> = LazyLock::new(|| Run::new(Some(3), None).unwrap());

const TINY: Cut = Cut { batch: 5, piece: 3 };

fn parse(bytes: &[u8]) -> Result<Vec<WideRecord>> {
    text::parse_bytes(bytes, Path::new("g.txt"), u64::MAX)
}

/// The same through the streaming reader, with the notes.
fn stream(source: impl Read + Send, cut: Cut, run: &Run) -> Result<(Vec<WideRecord>, Vec<String>)> {
    let mut records = Vec::new();
    let notes = text::read(source, Path::new("g.txt"), u64::MAX, cut, run, |more| {
        records.extend_from_slice(more);
        Ok(())
    })?;
    Ok((records, notes))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Line and column of the refusal, and its text.
fn place(error: Error) -> (u64, u64, String) {
    match error {
        Error::Text { line, column, what, .. } => (line, column, what),
        other => panic!("{other}"),
    }
}

#[test]
fn all_the_ways_to_write_records() {
    for text in [
        "1 2\n3 4\n",
        "1 2\n3 4",
        "1\t2\r\n3\t4\r\n",
        "1\t2\r\n3\t4\r",
        "1,2\n3,4\n",
        "1;2\n3 ; 4\n",
        " 1 , 2 \n\t3\t,\t4\t\n",
        "1, 2,\n3, 4,,\n",
        "\u{feff}1 2\n3 4\n",
        "# a\n1 2\n\n  \n\r\n% b\n3 4\n// c",
        "  # a\n1 2\n\t//\n3 4\n# \u{fc}\n",
        "% sym unweighted\n1 2 1 1234567\n3 4 0.5 \"text\" \u{e9}\n",
        "1 2 # three\n3 4 -1 x\n",
        "01 0000000000000000000000000002\n3 4\n",
        "source,target,weight\n1,2,x\n3,4\n",
        "# SNAP\r\n\"FromNodeId\"\t\"ToNodeId\"\r\n1\t2\r\n3\t4\r\n",
        "\u{feff}u v\n1 2\n3 4\n",
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap(), [[1, 2], [3, 4]], "{text:?}");
        assert_eq!(stream(text.as_bytes(), TINY, &THREE).unwrap().0, [[1, 2], [3, 4]], "{text:?}");
    }
    for empty in ["", "\n", "\r\n", "# only\n# comments", "a,b\n", "\u{feff}", "  ", "\n\n\n"] {
        assert_eq!(parse(empty.as_bytes()).unwrap(), [[0; 2]; 0], "{empty:?}");
        assert_eq!(stream(empty.as_bytes(), TINY, &ONE).unwrap().0, [[0; 2]; 0], "{empty:?}");
    }
    let top = format!("{} {}\n", u64::MAX, u64::MAX - 1);
    assert_eq!(parse(top.as_bytes()).unwrap(), [[u64::MAX, u64::MAX - 1]]);
    let (_, notes) = stream(&b"# x\n\na b\n1 2\n"[..], TINY, &ONE).unwrap();
    assert_eq!(notes, ["line 3 is skipped as a header"]);
}

#[test]
fn refusals_name_line_column_and_cause() {
    let digits21 = "1".repeat(21);
    for (text, line, column, cause) in [
        ("1 2\n3 -4\n", 2, 3, "\"-4\" is negative"),
        ("1 2\n1.0 4\n", 2, 1, "\"1.0\" is a floating-point number"),
        ("1 2\n3 4.5 6\n", 2, 3, "floating-point"),
        ("1 2\n1e3 4\n", 2, 1, "floating-point"),
        (&format!("1 {digits21}\n"), 1, 3, "exceeds 2^64 - 1"),
        ("18446744073709551616 1", 1, 1, "exceeds 2^64 - 1"),
        ("1 2\n\n# c\n3 \0 4\n", 4, 3, "NUL"),
        ("1 2 3 \0\n", 1, 7, "NUL"),
        ("# \0\n1 2\n", 1, 3, "NUL"),
        ("1\0 \x002\0\n\0", 1, 2, "UTF-16"),
        ("1 2\r\n3\r\n", 2, 2, "one id"),
        ("1 2\n3", 2, 2, "one id"),
        ("1 2\n3 \t\n", 2, 4, "one id"),
        ("1 2\nx 4\n", 2, 1, "\"x\" is no id"),
        ("1 2\n3 x\n", 2, 3, "\"x\" is no id"),
        ("a b\nc d\n1 2\n", 2, 1, "\"c\" is no id"),
        ("1 2\n3 4x\n", 2, 3, "\"4x\" is no id"),
        ("1 2\n+3 4\n", 2, 1, "is no id"),
        ("1,,2\n", 1, 3, "empty field"),
        (",1,2\n", 1, 1, "empty field"),
        ("1 2\r3 4\r", 1, 4, "carriage return"),
        ("# mac\r1 2\r", 1, 6, "carriage return"),
        ("1 2\n\u{ff11} 2\n", 2, 1, "is no id"),
        ("\u{feff}1 x\n", 1, 3, "is no id"),
        ("%%MatrixMarket matrix coordinate\n3 3 1\n1 2\n", 1, 1, "Matrix Market"),
    ] {
        let (at, byte, what) = place(parse(text.as_bytes()).unwrap_err());
        assert_eq!((at, byte), (line, column), "{text:?}: {what}");
        assert!(what.contains(cause), "{text:?}: {what}");
        for (cut, run) in [(TINY, &ONE), (Cut { batch: 1, piece: 1 }, &THREE), (Cut::default(), &THREE)] {
            let streamed = place(stream(text.as_bytes(), cut, run).unwrap_err());
            assert_eq!(streamed, (line, column, what.clone()), "{text:?} {cut:?}");
        }
    }
}

#[test]
fn large_ids_need_relabelling() {
    let limit = MAX_VERTICES - 1;
    let text = format!("0 {limit}\n1 {}\n", limit + 1);
    let error = text::parse_bytes(text.as_bytes(), Path::new("g"), limit).unwrap_err();
    let (line, column, what) = place(error);
    assert_eq!((line, column), (2, 3));
    assert!(what.contains("4294967295 exceeds 4294967294") && what.contains("--relabel"), "{what}");
}

/// Counts what is taken from an endless source.
struct Endless<'a>(u8, &'a mut u64);

impl Read for Endless<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        bytes.fill(self.0);
        *self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }
}

#[test]
fn long_lines_are_refused_early_and_long_comments_pass() {
    let pad = |length: usize| format!("1 2\n3 4{}\n5 6\n", " ".repeat(length - 3));
    for cut in
        [Cut { batch: 1 << 14, piece: 1 << 12 }, Cut::default(), Cut { batch: 4 << 20, piece: 4 << 20 }]
    {
        let longest = pad(LONGEST_LINE);
        assert_eq!(stream(longest.as_bytes(), cut, &THREE).unwrap().0.len(), 3);
        let longer = pad(LONGEST_LINE + 1);
        let (line, column, what) = place(stream(longer.as_bytes(), cut, &THREE).unwrap_err());
        assert_eq!((line, column), (2, LONGEST_LINE as u64 + 1), "{what}");
        for filler in [b'7', b'x', b' '] {
            let mut taken = 0;
            let (line, ..) =
                place(stream(b"1 2\n".chain(Endless(filler, &mut taken)), cut, &ONE).unwrap_err());
            assert_eq!(line, 2);
            assert!(taken < (LONGEST_LINE + 4 * cut.batch) as u64, "{taken} bytes for one line");
        }
        let comment = format!("1 2\n# {}\n3 4\n-", "long ".repeat(LONGEST_LINE));
        let (line, column, what) = place(stream(comment.as_bytes(), cut, &THREE).unwrap_err());
        assert_eq!((line, column), (4, 1), "{what}");
        let damaged = comment.replace("long \n", "long\0\n");
        let (line, column, _) = place(stream(damaged.as_bytes(), cut, &THREE).unwrap_err());
        assert_eq!((line, column), (2, 2 + 5 * LONGEST_LINE as u64));
        let mut taken = 0;
        let returns = b"# mac".chain(Endless(b'\r', &mut taken));
        assert_eq!(place(stream(returns, cut, &ONE).unwrap_err()).1, 6);
        assert!(taken < 4 * cut.batch as u64, "{taken} bytes for one line");
    }
}

#[test]
fn damaged_gzip_is_refused() {
    let lines: String = (0..5000).map(|id| format!("{id} {}\n", id * 7 % 5000)).collect();
    let whole = gzip(lines.as_bytes());
    let read = |bytes: &[u8]| stream(MultiGzDecoder::new(bytes), Cut { batch: 999, piece: 99 }, &THREE);
    assert_eq!(read(&whole).unwrap().0, parse(lines.as_bytes()).unwrap());
    let two = [&whole[..], &gzip(b"7 7\n")].concat();
    assert_eq!(read(&two).unwrap().0.len(), 5001);
    for length in [1, 9, 10, 11, 100, whole.len() / 2, whole.len() - 8, whole.len() - 1] {
        let error = read(&whole[..length]).unwrap_err();
        assert!(matches!(&error, Error::Format { what, .. } if what.contains("gzip")), "{length}: {error}");
    }
    let mut flipped = whole.clone();
    let last = flipped.len() - 5;
    flipped[last] ^= 1;
    assert!(matches!(read(&flipped), Err(Error::Format { .. })));
    assert!(matches!(read(&[&whole[..], b"garbage garbage garbage"].concat()), Err(Error::Format { .. })));
}

// ---- convert ---------------------------------------------------------------------------------------------------

struct Case {
    dir: TempDir,
    input: PathBuf,
    target: PathBuf,
}

impl Case {
    fn new(name: &str, bytes: &[u8]) -> Case {
        let dir = TempDir::new().unwrap();
        let (input, target) = (dir.path().join(name), dir.path().join("out.bin"));
        fs::write(&input, bytes).unwrap();
        Case { dir, input, target }
    }

    fn convert(&self, options: &Convert) -> Result<Converted> {
        convert(&self.input, &self.target, options, &THREE)
    }

    fn records(&self) -> Vec<Record> {
        let bytes = fs::read(&self.target).unwrap();
        bytes.chunks_exact(8).map(|pair| [&pair[..4], &pair[4..]].map(le32)).collect()
    }

    fn ids(&self) -> Vec<u64> {
        let bytes = fs::read(self.dir.path().join("out.bin.ids.npy")).unwrap();
        let length = bytes.len() - bytes.len() % 64;
        let start = bytes[..length].windows(2).position(|pair| pair == b"}\x20" || pair == b"}\n");
        let start =
            bytes[start.unwrap()..].iter().position(|&byte| byte == b'\n').unwrap() + start.unwrap() + 1;
        let ids: Vec<u64> =
            bytes[start..].chunks_exact(8).map(|id| u64::from_le_bytes(id.try_into().unwrap())).collect();
        assert_eq!(&bytes[..start], npy::header("<u8", &[ids.len() as u64]));
        ids
    }

    /// Refused, with nothing new in the directory.
    fn refused(&self, options: &Convert) -> Error {
        let before = self.names();
        let error = self.convert(options).unwrap_err();
        assert_eq!(self.names(), before, "{error}");
        error
    }

    fn names(&self) -> Vec<std::ffi::OsString> {
        let mut names: Vec<_> =
            fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

fn le32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

const RELABEL: Convert =
    Convert { relabel: true, swap: false, id_type: None, layout: None, num_vertices: None };
const SWAP: Convert = Convert { relabel: false, swap: true, ..RELABEL };

fn typed(id_type: IdType) -> Convert {
    Convert { id_type: Some(id_type), ..Convert::default() }
}

fn words<const N: usize>(ids: impl IntoIterator<Item = u64>, bytes: fn(u64) -> [u8; N]) -> Vec<u8> {
    ids.into_iter().flat_map(bytes).collect()
}

/// Forty records, too few and too plain to look like anything else.
fn sample() -> Vec<u64> {
    (0..80).map(|index| index * 37 % 101).collect()
}

fn sample_records() -> Vec<Record> {
    sample().chunks(2).map(|pair| [pair[0] as u32, pair[1] as u32]).collect()
}

#[test]
fn every_container_gives_the_same_file() {
    let ids = sample();
    let text: String = ids.chunks(2).map(|pair| format!("{}\t{}\n", pair[0], pair[1])).collect();
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let columns = [0, 1].map(|slot| ids.iter().skip(slot).step_by(2).copied());
    let [sources, targets] = columns.clone();
    let transposed: Vec<u64> = sources.chain(targets).collect();
    let le32 = |id| (id as u32).to_le_bytes();
    let be32 = |id| (id as u32).to_be_bytes();
    let array = |descr, shape: [u64; 2], data| [npy::header(descr, &shape), data].concat();
    let plain = Convert::default();
    let rows = Convert { layout: Some(Layout::Rows), ..Convert::default() };
    let cases = [
        ("g.txt", text.clone().into_bytes(), plain.clone()),
        ("g", text.clone().into_bytes(), plain.clone()),
        ("g.bin", text.clone().into_bytes(), plain.clone()),
        ("out.konect", format!("% \u{fc}\u{e9} \u{4e16}\n{text}").into_bytes(), plain.clone()),
        ("g.txt.gz", gzip(text.as_bytes()), plain.clone()),
        ("g", gzip(text.as_bytes()), plain.clone()),
        ("g.bin", words(ids.clone(), le32), plain.clone()),
        ("g", words(ids.clone(), le32), plain.clone()),
        ("g.txt", words(ids.clone(), le32), typed(IdType::U32)),
        ("g.bin", words(ids.clone(), u64::to_le_bytes), typed(IdType::U64)),
        ("g.bin", words(ids.clone(), be32), SWAP),
        ("g.bin", words(ids.clone(), u64::to_be_bytes), Convert { swap: true, ..typed(IdType::U64) }),
        ("g.npy", array("<u4", [40, 2], words(ids.clone(), le32)), rows),
        ("g.npy", array("<i8", [40, 2], words(ids.clone(), u64::to_le_bytes)), plain.clone()),
        ("g.npy", array(">u8", [2, 40], words(transposed, u64::to_be_bytes)), plain.clone()),
    ];
    let mut results = Vec::new();
    for (name, bytes, options) in cases {
        let case = Case::new(name, &bytes);
        results.push(case.convert(&options).unwrap());
        assert_eq!(case.records(), sample_records(), "{name} {options:?}");
        assert_eq!(case.names().len(), 2);
        let relabelled = case.convert(&Convert { relabel: true, ..options }).unwrap();
        assert_eq!(relabelled.m, 40);
        let ids = case.ids();
        let back: Vec<u64> = case.records().into_iter().flatten().map(|id| ids[id as usize]).collect();
        assert_eq!(back, sample(), "{name}");
    }
    assert!(results.iter().all(|result| *result == results[0]), "{results:#?}");
    assert_eq!((results[0].n, results[0].m), (101, 40));
    let loops = sample().chunks(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    assert_eq!(results[0].loops, loops);
    let error = Case::new("g.txt", &[b"\xff\xfe", &utf16[..]].concat()).refused(&plain);
    assert!(matches!(error, Error::Format { .. } | Error::Text { .. }), "{error}");
}

#[test]
fn the_checksum_is_that_of_the_written_file() {
    for m in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1] {
        let mut text = String::new();
        for r in 0..m {
            text.push_str(&format!("{} {}\n", r % 1000, r / 1000));
        }
        let case = Case::new("g.tsv", text.as_bytes());
        let result = case.convert(&Convert::default()).unwrap();
        assert_eq!(result.m, m);
        let edges = EdgeFile::open(&case.target, Some(IdType::U32), None, Io::Map).unwrap();
        let hashers = pass(
            &edges,
            &THREE,
            checksum::UNIT,
            3,
            || Ok(checksum::Hasher::default()),
            |hasher, first, records| {
                hasher.update(first, records, m);
                Ok(())
            },
        );
        assert_eq!(result.checksum, checksum::combine(hashers.unwrap()), "{m} records");
        let mut buf = Vec::new();
        let n = blocks(0..m).flat_map(|range| edges.block(range, &mut buf).unwrap().to_vec()).flatten().max();
        assert_eq!(result.n, n.map_or(0, |id| u64::from(id) + 1));
    }
}

#[test]
fn wide_ids_are_refused_or_relabelled() {
    let wide = [5, 1 << 40, 1 << 40, u64::MAX, 5, 5];
    let signed = wide.map(|id| id.min(i64::MAX as u64));
    let raw = words(wide, u64::to_le_bytes);
    let array = [npy::header("<i8", &[3, 2]), words(signed, u64::to_le_bytes)].concat();
    let swapped = words(wide, u64::to_be_bytes);
    let text = "5 1099511627776\n1099511627776 18446744073709551615\n5 5\n";
    for (name, bytes, options, originals) in [
        ("g.bin", raw, typed(IdType::U64), [5, 1 << 40, u64::MAX]),
        ("g.npy", array, Convert::default(), [5, 1 << 40, i64::MAX as u64]),
        ("g.bin", swapped, Convert { swap: true, ..typed(IdType::U64) }, [5, 1 << 40, u64::MAX]),
        ("g.txt", text.into(), Convert::default(), [5, 1 << 40, u64::MAX]),
        ("g.txt.gz", gzip(text.as_bytes()), Convert::default(), [5, 1 << 40, u64::MAX]),
    ] {
        let case = Case::new(name, &bytes);
        let error = case.refused(&options);
        assert!(error.to_string().contains("relabel with `fastpart convert --relabel`"), "{error}");
        let result = case.convert(&Convert { relabel: true, ..options }).unwrap();
        assert_eq!((result.n, result.m, result.loops), (3, 3, 1));
        assert_eq!(case.records(), [[0, 1], [1, 2], [0, 0]]);
        assert_eq!(case.ids(), originals);
        let stale = case.convert(&typed(IdType::U64));
        assert!(name != "g.bin" || stale.is_err() || stale.is_ok_and(|result| result.notes.len() == 1));
    }
    let negative = [npy::header("<i8", &[1, 2]), words([1, u64::MAX], u64::to_le_bytes)].concat();
    for options in [Convert::default(), RELABEL] {
        let error = Case::new("g.npy", &negative).refused(&options);
        assert!(matches!(error, Error::IdOutOfRange { id: -1, record: 0, .. }), "{error}");
    }
}

#[test]
fn evident_mistakes_are_refused() {
    let le = |ids: &[u32]| ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>();
    let be: Vec<u8> = (0..64_u32).flat_map(|id| (id * 9).to_be_bytes()).collect();
    let wide = words(1..65, u64::to_le_bytes);
    let wide_be = words(1..65, u64::to_be_bytes);
    let array = [npy::header("<u4", &[1, 2]), le(&[1, 2])].concat();
    let index = Convert { layout: Some(Layout::EdgeIndex), ..Convert::default() };
    for (name, bytes, options, cause) in [
        ("g.bin", &le(&[1, 2, 3])[..], Convert::default(), "length 12 is not a multiple of 8"),
        ("g.bin", &le(&[1, 2, 3, 4, 5, 6]), typed(IdType::U64), "not a multiple of 16"),
        ("g.bin", &be, Convert::default(), "looks big-endian. Convert it with `fastpart convert --swap`"),
        ("g.bin", &wide, Convert::default(), "these look like u64 ids"),
        ("g.bin", &wide_be, SWAP, "these look like u64 ids"),
        ("g.npy", &array, SWAP, "swap: a .npy file says its byte order itself"),
        ("g.npy", &array, typed(IdType::U64), "dtype: u64 was given"),
        ("g.zip", b"PK\x03\x04\0\0\0\0", Convert::default(), "zip"),
        ("g.txt", b"1 2\n3 4\n", index.clone(), "layout: text"),
        ("g.bin", &le(&[1, 2]), index, "layout: a raw file"),
        ("g.txt", b"1 2\n3 \0 4\n", Convert::default(), "line 2, column 3"),
        ("g", b"1 2\nx 4\n", Convert::default(), "line 2, column 1"),
        ("g.txt.gz", &gzip(b"1 2\n3 4\n")[..17], Convert::default(), "gzip"),
    ] {
        let error = Case::new(name, bytes).refused(&options).to_string();
        assert!(error.contains(cause), "{name}: {error}");
    }
    assert_eq!(Case::new("g.txt", b"").convert(&RELABEL).unwrap().n, 0);
    let case = Case::new("g.txt", b"1 2\n");
    let vertices = |n| Convert { num_vertices: Some(n), ..Convert::default() };
    for n in [0, 2, MAX_VERTICES + 1] {
        assert!(matches!(case.refused(&vertices(n)), Error::Parameter { name: "num_vertices", .. }));
    }
    for n in [3, MAX_VERTICES] {
        assert_eq!(case.convert(&vertices(n)).unwrap().n, n);
    }
}

#[test]
fn the_input_is_never_written_over() {
    let case = Case::new("g.txt", b"1 2\n");
    let path = |name: &str| case.dir.path().join(name);
    fs::hard_link(&case.input, path("hard")).unwrap();
    std::os::unix::fs::symlink("g.txt", path("soft")).unwrap();
    std::os::unix::fs::symlink(&case.dir, path("loop")).unwrap();
    for name in ["g.txt", "hard", "soft", "loop/g.txt", "loop/soft"] {
        let error = convert(&case.input, &path(name), &Convert::default(), &ONE).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "out", .. }), "{name}: {error}");
        let error = convert(&path(name), &case.input, &RELABEL, &ONE).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "out", .. }), "{name}: {error}");
    }
    fs::hard_link(&case.input, path("o.ids.npy")).unwrap();
    let error = convert(&case.input, &path("o"), &RELABEL, &ONE).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "out", .. }), "{error}");
    assert_eq!(fs::read(&case.input).unwrap(), b"1 2\n");
}

#[test]
fn odd_names_and_odd_files() {
    for name in [&b"a b.txt"[..], b"new\nline", b"\xff\xfe.txt", b".txt"] {
        let dir = TempDir::new().unwrap();
        let input = dir.path().join(std::ffi::OsStr::from_bytes(name));
        fs::write(&input, "1 2\n3\n").unwrap();
        let target = dir.path().join(std::ffi::OsStr::from_bytes(b"out\n\xff"));
        let error = convert(&input, &target, &RELABEL, &ONE).unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains('\n'), "{error}");
        fs::write(&input, "1 2\n").unwrap();
        assert_eq!(convert(&input, &target, &RELABEL, &ONE).unwrap().n, 2);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 3);
    }
    let case = Case::new("g.txt", b"1 2\n");
    let missing = convert(&case.dir.path().join("none"), &case.target, &RELABEL, &ONE);
    assert!(
        matches!(missing, Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound)
    );
    let directory = convert(case.dir.path(), &case.target, &RELABEL, &ONE);
    assert!(matches!(directory, Err(Error::NotARegularFile { .. })));
    assert!(convert(&case.input, &case.dir.path().join("no/out.bin"), &RELABEL, &ONE).is_err());
    assert_eq!(case.names(), ["g.txt"]);
}

#[test]
fn cancelling_stops_within_a_batch() {
    let text = "1 2\n".repeat(1 << 20);
    let run = Run::new(Some(2), None).unwrap();
    let mut delivered = 0;
    let result =
        text::read(text.as_bytes(), Path::new("g"), 9, Cut { batch: 1 << 12, piece: 99 }, &run, |more| {
            delivered += more.len();
            run.cancel();
            Ok(())
        });
    assert!(matches!(result, Err(Error::Cancelled)));
    assert!(delivered < 1 << 14, "{delivered} records");
}

#[test]
fn budget_and_cancellation_leave_nothing() {
    let lines: String = (0..200_000_u64).map(|id| format!("{} {}\n", id << 32, u64::MAX - id)).collect();
    let case = Case::new("g.txt", lines.as_bytes());
    for (budget, what) in [(1 << 20, "buffers for text"), (16 << 20, "relabelling")] {
        let run = Run::new(Some(1), Some(budget)).unwrap();
        let error = convert(&case.input, &case.target, &RELABEL, &run).unwrap_err();
        assert!(matches!(&error, Error::MemoryBudget { .. }) && error.to_string().contains(what), "{error}");
    }
    for bytes in [lines.as_bytes(), &gzip(lines.as_bytes()), &[0; 1 << 20]] {
        let case = Case::new("g", bytes);
        for options in [Convert::default(), RELABEL] {
            let run = Run::new(Some(2), None).unwrap();
            run.cancel();
            assert!(matches!(convert(&case.input, &case.target, &options, &run), Err(Error::Cancelled)));
        }
        assert_eq!(case.names(), ["g"]);
    }
    assert_eq!(case.names(), ["g.txt"]);
    let run = Run::new(Some(2), None).unwrap();
    convert(&case.input, &case.target, &RELABEL, &run).unwrap();
    let progress = run.progress();
    assert_eq!((progress.done, progress.total), (lines.len() as u64, lines.len() as u64));
}

// ---- properties ------------------------------------------------------------------------------------------------

/// A line that is skipped.
fn filler() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ \t]{0,3}", "[ \t]{0,2}(#|%|//)[ -~\u{e9}]{0,40}"]
}

fn any_id() -> impl Strategy<Value = u64> {
    prop_oneof![0..30_u64, any::<u32>().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
}

/// Records, each with how it is written: what lies before, between, behind, how the line ends, what follows.
fn rendered() -> impl Strategy<Value = (Vec<WideRecord>, Vec<u8>)> {
    let line = (
        "[ \t]{0,2}",
        "[ \t]{0,2}[ \t,;][ \t]{0,2}",
        "([ \t,;][ -~]{0,12})?",
        "\r?\n",
        proptest::option::of(filler()),
    );
    let records = proptest::collection::vec(([any_id(), any_id()], line), 0..60);
    (records, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(lines, mark, header, last)| {
        let mut text = String::from(if mark { "\u{feff}" } else { "" });
        text.push_str(if header { "# x\nsource,target\n" } else { "" });
        for ([u, v], (before, between, behind, end, filler)) in &lines {
            text.push_str(&format!("{before}{u}{between}{v}{behind}{end}"));
            if let Some(filler) = filler {
                text.push_str(&format!("{filler}{end}"));
            }
        }
        if last && text.ends_with('\n') {
            text.pop();
        }
        (lines.into_iter().map(|(record, _)| record).collect(), text.into_bytes())
    })
}

fn cuts() -> impl Strategy<Value = Cut> {
    (1..80_usize, 1..40_usize).prop_map(|(batch, piece)| Cut { batch, piece })
}

/// Bytes near to text.
fn nearly_text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        8 => proptest::sample::select(&b"0123456789 \t,;\n\n\n\r#%/-.\"ax\0\xef\xbb\xbf"[..]),
        1 => any::<u8>()
    ];
    proptest::collection::vec(byte, 0..200)
}

fn outcome<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(records) => format!("{records:?}"),
        Err(error) => error.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_rendered_is_read((records, text) in rendered(), cut in cuts()) {
        prop_assert_eq!(&parse(&text).unwrap(), &records);
        let packed = gzip(&text);
        for run in [&*ONE, &*THREE] {
            prop_assert_eq!(&stream(&text[..], cut, run).unwrap().0, &records);
            prop_assert_eq!(&stream(MultiGzDecoder::new(&packed[..]), cut, run).unwrap().0, &records);
        }
    }

    #[test]
    fn no_bytes_panic_and_cuts_do_not_matter(text in nearly_text(), cut in cuts()) {
        let whole = outcome(parse(&text));
        for run in [&*ONE, &*THREE] {
            prop_assert_eq!(&outcome(stream(&text[..], cut, run).map(|(records, _)| records)), &whole);
        }
    }

    #[test]
    fn no_bytes_panic_whatever_they_are(bytes in proptest::collection::vec(any::<u8>(), 0..300), relabel: bool) {
        let case = Case::new("g", &bytes);
        let before = case.names();
        if case.convert(&Convert { relabel, ..Convert::default() }).is_err() {
            prop_assert_eq!(case.names(), before);
        }
        let _ = stream(MultiGzDecoder::new(&bytes[..]), TINY, &THREE);
    }

    #[test]
    fn a_corrupt_byte_is_found_at_its_line((records, text) in rendered(), cut in cuts(), at: prop::sample::Index) {
        prop_assume!(!text.is_empty() && !records.is_empty());
        let at = at.index(text.len());
        prop_assume!(text[at] != b'\n' && !(text.starts_with("\u{feff}".as_bytes()) && at < 3));
        let mut text = text;
        text[at] = 0;
        let line = 1 + text[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
        for run in [&*ONE, &*THREE] {
            let found = place(stream(&text[..], cut, run).unwrap_err());
            prop_assert_eq!(found.0, line, "{}", found.2);
        }
    }

    #[test]
    fn relabelling_is_a_bijection((records, text) in rendered()) {
        let case = Case::new("g.txt", &text);
        let result = case.convert(&RELABEL).unwrap();
        let ids = case.ids();
        let distinct: std::collections::HashSet<u64> = records.iter().flatten().copied().collect();
        prop_assert_eq!(ids.len(), distinct.len());
        prop_assert_eq!(result.n, ids.len() as u64);
        let back: Vec<WideRecord> = case.records().iter().map(|record| record.map(|id| ids[id as usize])).collect();
        prop_assert_eq!(back, records.clone());
        let mut seen = std::collections::HashSet::new();
        let order: Vec<u64> = records.into_iter().flatten().filter(|&id| seen.insert(id)).collect();
        prop_assert_eq!(ids, order);
    }
}
