//! What the benchmarks share: R-MAT graphs in `target/`, each made once.

// Each benchmark is a crate of its own and uses some of this.
#![allow(dead_code)]

use std::path::PathBuf;

use fastpart::internals::base::Run;
use fastpart::internals::edges::{EdgeFile, Io};
use fastpart::internals::generate;

/// The folder of the graphs, on a disk.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target")
}

/// As many records as `FASTPART_BENCH_EDGES` says, or else `usual`.
pub fn records(usual: u64) -> u64 {
    std::env::var("FASTPART_BENCH_EDGES").ok().and_then(|m| m.parse().ok()).unwrap_or(usual)
}

/// R-MAT of `2^levels` vertices and `m` records.
pub fn rmat(levels: u32, m: u64) -> EdgeFile {
    let path = folder().join(format!("rmat-{levels}-{m}.bin"));
    if !path.exists() {
        let run = Run::new(None, None).expect("threads");
        let model = generate::Rmat::new(1 << levels, m, 0).expect("sizes");
        generate::write(&model, &path, &run).expect("disk space");
    }
    let mut edges = EdgeFile::open(&path, None, None, Io::Map).expect("edges");
    edges.set_num_vertices(1 << levels);
    edges
}
