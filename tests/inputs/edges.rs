//! Edge files: every container holds the same records, and what is no edge file is refused by name.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use crate::common::{Graph, graphs, run};
use fastpart::internals::base::{Error, Result};
use fastpart::internals::edges::IdType;
use fastpart::internals::edges::{BLOCK, EdgeStream, Record};
use fastpart::internals::edges::{EdgeFile, Io, Layout};
use fastpart::internals::exec::pass;
use fastpart::internals::graph::{checksum, degrees};
use fastpart::internals::graph::{find_num_vertices, largest_id};
use proptest::prelude::*;
use tempfile::TempDir;

const TYPES: [IdType; 4] = [IdType::U32, IdType::I32, IdType::U64, IdType::I64];

/// A file with `bytes`; the directory lives as long as it is held.
fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let home = TempDir::new().unwrap();
    let path = home.path().join("g.bin");
    fs::write(&path, bytes).unwrap();
    (home, path)
}

fn u32s(ids: impl IntoIterator<Item = u32>) -> Vec<u8> {
    ids.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn u64s(ids: impl IntoIterator<Item = u64>) -> Vec<u8> {
    ids.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn open(bytes: &[u8], id_type: Option<IdType>) -> Result<EdgeFile> {
    let (_home, path) = file(bytes);
    EdgeFile::open(&path, id_type, None, Io::Map)
}

fn all(edges: &dyn EdgeStream) -> Result<Vec<Record>> {
    let mut buf = Vec::new();
    Ok(edges.block(0..edges.num_edges(), &mut buf)?.to_vec())
}

/// The text of a refusal that is a `Format` error.
fn format_error<T>(result: Result<T>) -> String {
    match result.map(|_| ()).unwrap_err() {
        error @ Error::Format { .. } => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// Ids in the given type, byte order and order.
fn encode(records: &[Record], id_type: IdType, swapped: bool, by_rows: bool) -> Vec<u8> {
    let ids: Vec<u32> = if by_rows {
        records.iter().flatten().copied().collect()
    } else {
        (0..2).flat_map(|slot| records.iter().map(move |record| record[slot])).collect()
    };
    let bytes = |id: u32| {
        let mut bytes = u64::from(id).to_le_bytes()[..id_type.width()].to_vec();
        if swapped {
            bytes.reverse();
        }
        bytes
    };
    ids.into_iter().flat_map(bytes).collect()
}

/// A `.npy` file as numpy writes it: version, dtype, order and shape.
fn npy(version: u8, descr: &str, fortran: bool, shape: [usize; 2], data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let mut text = format!(
        "{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({}, {}), }}",
        shape[0], shape[1]
    );
    let prefix = if version == 1 { 10 } else { 12 };
    while (prefix + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    bytes.extend(&(text.len() as u32).to_le_bytes()[..prefix - 8]);
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

proptest! {
    /// Raw files and `.npy` files of every version, type, byte order, order and layout.
    #[test]
    fn every_container_holds_the_same(graph in graphs(60, 40), version in 1_u8..=3) {
        let run = run(2);
        let identity = degrees::identify(&graph, &run).unwrap().checksum;
        let same = |path: &Path, id_type, layout| {
            for io in [Io::Map, Io::Read] {
                let mut edges = EdgeFile::open(path, id_type, layout, io).unwrap();
                edges.set_num_vertices(graph.n);
                assert_eq!(all(&edges).unwrap(), graph.records);
                assert_eq!(degrees::identify(&edges, &run).unwrap().checksum, identity);
                // Any range, and beyond the end.
                let (mut buf, mut expected) = (Vec::new(), Vec::new());
                for range in [1..3, 2..2, 0..u64::MAX, graph.m()..graph.m() + 1] {
                    let found = edges.block(range.clone(), &mut buf).unwrap();
                    assert_eq!(found, graph.block(range, &mut expected).unwrap());
                }
            }
        };
        for id_type in TYPES {
            let (_home, path) = file(&encode(&graph.records, id_type, false, true));
            same(&path, Some(id_type), None);
            let m = graph.records.len();
            for (swapped, fortran, by_rows) in (0..8).map(|bits| (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0)) {
                let name = id_type.name();
                let descr = format!("{}{}{}", if swapped { '>' } else { '<' }, &name[..1], id_type.width());
                let data = encode(&graph.records, id_type, swapped, by_rows != fortran);
                let shape = if by_rows { [m, 2] } else { [2, m] };
                let (_home, path) = file(&npy(version, &descr, fortran, shape, &data));
                let layout = if by_rows { Layout::Rows } else { Layout::EdgeIndex };
                same(&path, Some(id_type), Some(layout));
                // Where the shape is clear, nothing needs to be said.
                if by_rows || m != 2 {
                    same(&path, None, None);
                }
            }
        }
    }

    #[test]
    fn largest_id_and_n(graph in graphs(60, 300), threads in 1_usize..=3) {
        let largest = graph.records.iter().flatten().copied().max();
        prop_assert_eq!(largest_id(&graph, &run(threads)).unwrap(), largest);
        let n = find_num_vertices(&graph, &run(threads), None, "g").unwrap();
        prop_assert_eq!(n, largest.map_or(0, |largest| u64::from(largest) + 1));
    }
}

#[test]
fn missing_file() {
    let path = Path::new("no such directory/g.bin");
    match EdgeFile::open(path, None, None, Io::Map).unwrap_err() {
        Error::Io { path: named, source } => {
            assert_eq!((named.as_path(), source.kind()), (path, std::io::ErrorKind::NotFound));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_permission() {
    let (_home, path) = file(&u32s([0, 1]));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        return; // the superuser may read it all the same
    }
    let error = EdgeFile::open(&path, None, None, Io::Map).unwrap_err();
    let denied = std::io::ErrorKind::PermissionDenied;
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == denied), "{error:?}");
}

/// Refused as "not a regular file" within ten seconds.
fn not_regular(path: &Path, expected: &str) {
    let (sender, answer) = mpsc::channel();
    let owned = path.to_path_buf();
    std::thread::spawn(move || _ = sender.send(EdgeFile::open(&owned, None, None, Io::Map)));
    match answer.recv_timeout(Duration::from_secs(10)).expect("opening blocks").unwrap_err() {
        Error::NotARegularFile { path: named, kind } => assert_eq!((named.as_path(), kind), (path, expected)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn neither_directories_nor_pipes_nor_devices_nor_sockets() {
    let home = TempDir::new().unwrap();
    not_regular(home.path(), "a directory");
    not_regular(Path::new("/dev/zero"), "a device");
    let fifo = home.path().join("fifo");
    let name = CString::new(fifo.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is a C string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    not_regular(&fifo, "a FIFO");
    let socket = home.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    not_regular(&socket, "a FIFO, a socket or a device");
}

#[test]
fn odd_paths_work_and_are_shown_on_one_line() {
    let home = TempDir::new().unwrap();
    let path = home.path().join(OsStr::from_bytes(b"a b\nc\xff.bin"));
    fs::write(&path, u32s([0, 1, 2])).unwrap();
    let error = format_error(EdgeFile::open(&path, None, None, Io::Map));
    assert_contains(&error, &["a b\\nc\u{fffd}.bin: length 12"]);
    fs::write(&path, u32s([0, 1])).unwrap();
    assert_eq!(all(&EdgeFile::open(&path, None, None, Io::Map).unwrap()).unwrap(), [[0, 1]]);
}

#[test]
fn an_empty_file_is_an_empty_graph() {
    for io in [Io::Map, Io::Read] {
        let (_home, path) = file(&[]);
        let edges = EdgeFile::open(&path, None, None, io).unwrap();
        assert_eq!((edges.num_edges(), all(&edges).unwrap()), (0, Vec::new()));
        assert_eq!(find_num_vertices(&edges, &run(2), None, "g").unwrap(), 0);
        assert_eq!(degrees::identify(&edges, &run(2)).unwrap().checksum, checksum::combine([]));
    }
}

#[test]
fn odd_lengths_are_explained() {
    let u32_error = |length: usize| format_error(open(&vec![7; length], Some(IdType::U32)));
    assert_contains(&u32_error(17), &["length 17", "multiple of 8", "remainder 1", "cut off"]);
    assert_contains(&u32_error(12 + 8 * 5), &["remainder 4", "header of 12 bytes", "convert x.binedgelist"]);
    let u64_error = |length: usize| format_error(open(&vec![7; length], Some(IdType::U64)));
    assert_contains(&u64_error(24), &["multiple of 16", "remainder 8", "dtype=\"u32\""]);
    assert_contains(&u64_error(23), &["remainder 7", "cut off"]);
    // Without a dtype, too.
    assert_contains(&format_error(open(&u32s([1 << 20, 2, 3]), None)), &["length 12"]);
}

#[test]
fn implausibly_large_ids_are_refused_before_anything_is_allocated() {
    let edges = open(&u32s([0, 1, 3, u32::MAX - 1]), None).unwrap();
    let error = format_error(find_num_vertices(&edges, &run(2), None, "g.bin"));
    assert_contains(
        &error,
        &["max id 4294967294", "137.4 GB", "convert --relabel", "max_vertices=4294967295"],
    );
    assert_eq!(find_num_vertices(&edges, &run(2), Some(u64::MAX), "g.bin").unwrap(), u64::from(u32::MAX));
    let error = format_error(find_num_vertices(&edges, &run(2), Some(1000), "g.bin"));
    assert_contains(&error, &["max_vertices=1000"]);
    // 2^32 - 1 is never an id, whether the bytes are looked at or not.
    let bytes = u32s([0, 1, 2, u32::MAX]);
    for id_type in [None, Some(IdType::U32)] {
        let guessed = open(&bytes, id_type)
            .and_then(|edges| find_num_vertices(&edges, &run(2), Some(u64::MAX), "g.bin"));
        let error = guessed.unwrap_err();
        assert!(matches!(error, Error::IdOutOfRange { record: 1, id: 0xffff_ffff, .. }), "{error:?}");
    }
}

#[test]
fn wrong_widths_are_refused_and_never_wrap() {
    // u64 taken for u32: zero high words, or implausible ids.
    let narrow = u64s((0..100).flat_map(|v| [v, v + 1]));
    assert_contains(&format_error(open(&narrow, None)), &["u64 ids", "dtype=\"u64\""]);
    assert_eq!(open(&narrow, Some(IdType::U32)).unwrap().num_edges(), 200);
    let wide = u64s((0..100).flat_map(|v| [v << 28, (v << 28) + 1]));
    let guessed = open(&wide, None).and_then(|edges| find_num_vertices(&edges, &run(1), None, "g"));
    assert_contains(&format_error(guessed), &["dtype=\"u64\""]);
    // u64 ids that do not fit.
    let error = all(&open(&wide, Some(IdType::U64)).unwrap()).unwrap_err();
    assert!(matches!(error, Error::IdOutOfRange { record: 16, id: 0x1_0000_0000, .. }), "{error:?}");
    // u32 taken for u64, as asked.
    let error = all(&open(&u32s(1..=4), Some(IdType::U64)).unwrap()).unwrap_err();
    assert!(matches!(error, Error::IdOutOfRange { record: 0, id: 0x2_0000_0001, .. }), "{error:?}");
    // Negative ids.
    for id_type in [IdType::I32, IdType::I64] {
        let minus = [0, -1_i64].iter().flat_map(|id| id.to_le_bytes()[..id_type.width()].to_vec());
        let edges = open(&minus.collect::<Vec<u8>>(), Some(id_type)).unwrap();
        let error = all(&edges).unwrap_err();
        assert!(matches!(error, Error::IdOutOfRange { record: 0, id: -1, .. }), "{error:?}");
        assert_contains(&error.to_string(), &["must not be negative"]);
    }
}

#[test]
fn foreign_byte_order_is_noticed() {
    let bytes: Vec<u8> = (0..1000_u32).flat_map(u32::to_be_bytes).collect();
    assert_contains(&format_error(open(&bytes, None)), &["big-endian", "convert --swap", "dtype=\"u32\""]);
    let (_home, path) = file(&bytes);
    let swapped = EdgeFile::open_ordered(&path, None, None, Io::Map, true).unwrap();
    assert_eq!(all(&swapped).unwrap()[499], [998, 999]);
    assert!(open(&bytes, Some(IdType::U32)).is_ok());
}

#[test]
fn other_kinds_of_files_are_named() {
    let gzip = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[7; 14]].concat();
    for (bytes, seen) in [
        (&b"0 1\n1 2\n2 3\n3 4\n"[..], "this is text"),
        (&gzip, "a gzip file (magic 1f 8b)"),
        (b"PK\x03\x04 a zip archive ", "magic PK"),
        (b"PAR1 a table PAR1", "Parquet"),
        (b"\x28\xb5\x2f\xfd and more", "zstd"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", "ELF"),
    ] {
        assert_contains(&format_error(open(bytes, None)), &[seen, "g.bin", "dtype="]);
    }
    // Whoever says that it is binary is believed.
    assert_eq!(open(b"0 1\n1 2\n2 3\n3 4\n", Some(IdType::U32)).unwrap().num_edges(), 2);
}

#[test]
fn wrong_npy_files_are_refused() {
    let data = u32s(0..10);
    let good = npy(1, "<u4", false, [5, 2], &data);
    assert_eq!(all(&open(&good, None).unwrap()).unwrap()[4], [8, 9]);
    for (bytes, cause) in [
        (npy(1, "<f4", false, [5, 2], &data), "dtype <f4"),
        (npy(1, "|O", false, [5, 2], &data), "dtype |O"),
        (npy(1, "<u4", false, [2, 3], &data), "do not hold the 3 records"),
        (npy(1, "<u4", false, [6, 2], &data), "do not hold the 6 records"),
        (npy(1, "<u4", false, [1 << 62, 2], &data), "do not hold"),
        (npy(1, "<u4", false, [10, 1], &data), "shape [10, 1]"),
        (npy(9, "<u4", false, [5, 2], &data), "unknown .npy version"),
        (good[..30].to_vec(), "cut off"),
        (good[..good.len() - 1].to_vec(), "do not hold the 5 records"),
    ] {
        assert_contains(&format_error(open(&bytes, None)), &[cause]);
    }
    let (_home, path) = file(&good);
    let opened = |id_type, layout| EdgeFile::open(&path, id_type, layout, Io::Map);
    assert_contains(&format_error(opened(None, Some(Layout::EdgeIndex))), &["shape [5, 2]"]);
    let error = opened(Some(IdType::I64), None).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "dtype", .. }), "{error:?}");
    let (_home, raw) = file(&data);
    let error = EdgeFile::open(&raw, None, Some(Layout::EdgeIndex), Io::Map).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "layout", .. }), "{error:?}");
}

/// What a change between opening and a pass leads to.
fn after(io: Io, change: impl Fn(&Path)) -> Error {
    let (_home, path) = file(&u32s(0..1000));
    let edges = EdgeFile::open(&path, None, None, io).unwrap();
    change(&path);
    largest_id(&edges, &run(2)).unwrap_err()
}

#[test]
fn changed_files_are_noticed() {
    for io in [Io::Map, Io::Read] {
        let longer = |path: &Path| fs::write(path, u32s(0..1002)).unwrap();
        let shorter = |path: &Path| File::options().write(true).open(path).unwrap().set_len(8).unwrap();
        for error in [after(io, longer), after(io, shorter)] {
            assert!(matches!(error, Error::FileChanged { what: "its size changed", .. }), "{error:?}");
        }
        let touched = |path: &Path| {
            let later = SystemTime::now() + Duration::from_secs(2);
            File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
        };
        let error = after(io, touched);
        assert!(
            matches!(error, Error::FileChanged { what: "its modification time changed", .. }),
            "{error:?}"
        );
    }
}

#[test]
fn replaced_or_deleted_files_stay_readable() {
    for io in [Io::Map, Io::Read] {
        let (home, path) = file(&u32s(0..1000));
        let edges = EdgeFile::open(&path, None, None, io).unwrap();
        fs::write(home.path().join("new"), u32s(0..10)).unwrap();
        fs::rename(home.path().join("new"), &path).unwrap();
        assert_eq!(largest_id(&edges, &run(2)).unwrap(), Some(999));
        fs::remove_file(&path).unwrap();
        assert_eq!(largest_id(&edges, &run(2)).unwrap(), Some(999));
    }
}

#[test]
fn a_file_truncated_during_a_pass_is_noticed() {
    let (_home, path) = file(&u32s(0..8 * BLOCK as u32));
    let edges = EdgeFile::open(&path, None, None, Io::Read).unwrap();
    let shorten = |path: &Path| File::options().write(true).open(path).unwrap().set_len(8 * BLOCK).unwrap();
    let mut buf = Vec::new();
    let result = pass(
        &edges,
        &run(1),
        BLOCK,
        1,
        || Ok(()),
        |(), _, _| {
            shorten(&path);
            Ok(())
        },
    );
    assert!(matches!(result, Err(Error::FileChanged { .. })), "{result:?}");
    // And where nobody looks at the size: the read itself.
    let error = edges.block(3 * BLOCK..4 * BLOCK, &mut buf).unwrap_err();
    assert!(matches!(error, Error::FileChanged { what: "it became shorter", .. }), "{error:?}");
}

/// Of many bad records the first is named, whatever the threads, the input and the type.
#[test]
fn the_first_bad_record_is_named() {
    let m = 6 * BLOCK as usize + 100;
    let mut records: Vec<Record> = (0..m as u32).map(|r| [r % 1000, r % 999]).collect();
    let first = 2 * BLOCK as usize + 4321;
    for bad in (first..m).step_by(1000) {
        records[bad][1] = 5000 + bad as u32;
        records[bad + 1][0] = 4000;
    }
    let check = |edges: &dyn EdgeStream| {
        for threads in [1, 2, 3, 8] {
            match degrees::scan(edges, &run(threads))
                .err()
                .or(largest_id(edges, &run(threads)).err())
                .unwrap()
            {
                Error::IdOutOfRange { record, id, n: 1000, remedy, .. } => {
                    assert_eq!((record, id), (first as u64, 5000 + first as i128));
                    assert_contains(&remedy, &[&format!("num_vertices={}", 5001 + first)]);
                }
                other => panic!("{other:?}"),
            }
        }
    };
    check(&Graph::new(1000, records.clone()));
    for id_type in TYPES {
        let (_home, path) = file(&encode(&records, id_type, false, true));
        for io in [Io::Map, Io::Read] {
            let mut edges = EdgeFile::open(&path, Some(id_type), None, io).unwrap();
            edges.set_num_vertices(1000);
            check(&edges);
        }
    }
}

#[test]
fn degrees_depend_on_no_threads_and_no_counters() {
    // Many records of one vertex, so that workers that share a counter meet.
    let records: Vec<Record> = (0..300_000).map(|r| [r % 5, r % 1000]).collect();
    let graph = Graph::new(1000, records);
    let [both, sources] = [degrees::scan, degrees::scan_sources].map(|scan| {
        let [alone, two, shared] =
            [1, 2, degrees::PRIVATE + 2].map(|threads| scan(&graph, &run(threads)).unwrap());
        assert_eq!((&*alone.degree, alone.graph.loops), (&*two.degree, two.graph.loops));
        assert_eq!((&*alone.degree, alone.graph.loops), (&*shared.degree, shared.graph.loops));
        alone.degree.iter().map(|&degree| u64::from(degree)).sum::<u64>()
    });
    assert_eq!(both, 2 * sources);
    assert_eq!(sources, 300_000 - 300_000 / 1000 * 5);
}
