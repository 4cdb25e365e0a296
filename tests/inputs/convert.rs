//! `convert`: the same file from every container, and what is refused.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::common::text::*;
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::base::npy;
use fastpart::internals::convert::{Convert, convert};
use fastpart::internals::edges::IdType;
use fastpart::internals::edges::{EdgeFile, Io, Layout};
use fastpart::internals::edges::{EdgeStream, MAX_VERTICES, Record};
use fastpart::internals::exec::{blocks, pass};
use fastpart::internals::graph::checksum;
use tempfile::TempDir;

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
        assert!(error.to_string().contains("Relabel with `fastpart convert --relabel`"), "{error}");
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
