//! Of several things that are wrong, the first is named, whatever the threads.

use std::fmt::Write;

use crate::common::{Graph, run};
use fastpart::internals::convert::{Convert, convert};
use fastpart::internals::graph::degrees;
use fastpart::internals::measure;

const THREADS: [usize; 4] = [1, 2, 3, 8];

#[test]
fn ids() {
    let mut records = vec![[0, 1]; 2_000_000];
    for at in [1_999_999, 1_200_001, 700_000, 1_200_000] {
        records[at] = [1, at as u32];
    }
    let graph = Graph::new(5, records);
    for threads in THREADS {
        for _ in 0..5 {
            let error = degrees::scan(&graph, &run(threads)).unwrap_err().to_string();
            assert!(error.contains("record 700000 holds the id 700000"), "{threads} threads: {error}");
        }
    }
}

#[test]
fn parts_of_vertices() {
    let mut parts = vec![0; 2_000_000];
    for at in [1_999_999, 1_200_001, 700_000] {
        parts[at] = 9;
    }
    for threads in THREADS {
        let error = measure::validate(&parts, 3, 2_000_000, &run(threads)).unwrap_err().to_string();
        assert!(error.contains("vertex 700000 has part 9"), "{threads} threads: {error}");
    }
}

#[test]
fn lines_of_text() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("g.txt"), folder.path().join("g.bin"));
    let mut text = String::new();
    for line in 1..=1_000_000 {
        let bad = [999_999, 600_001, 300_000].contains(&line);
        writeln!(text, "{line} {}", if bad { "x" } else { "7" }).unwrap();
    }
    std::fs::write(&source, text).unwrap();
    for relabel in [false, true] {
        for threads in THREADS {
            let options = Convert { relabel, ..Convert::default() };
            let error = convert(&source, &out, &options, &run(threads)).unwrap_err().to_string();
            assert!(error.contains("line 300000, column 8"), "{threads} threads: {error}");
            assert!(!out.exists());
        }
    }
}
