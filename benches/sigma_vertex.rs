//! The steps of SIGMA's vertex mode, in edges per second: `cargo bench --bench sigma_vertex`.
//!
//! R-MAT, n = 2^20, k = 32; 16 M records, or as many as `FASTPART_BENCH_EDGES` says. The file is made once, in `target/`.
#![allow(missing_docs)] // criterion's macros make public functions

use std::path::PathBuf;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fastpart::algorithms::sigma::preference::{Weight, preferred_parts};
use fastpart::algorithms::sigma::vertex::{Objective, SigmaVertex};
use fastpart::base::buffer::Buffer;
use fastpart::base::run::Run;
use fastpart::edges::EdgeStream;
use fastpart::edges::file::{EdgeFile, Io};
use fastpart::generate;
use fastpart::graph::csr::Csr;

const N: u64 = 1 << 20;
const K: u32 = 32;

fn graph() -> EdgeFile {
    let m = std::env::var("FASTPART_BENCH_EDGES").ok().and_then(|m| m.parse().ok()).unwrap_or(16_000_000);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("target/rmat-20-{m}.bin"));
    if !path.exists() {
        let run = Run::new(None, None).expect("threads");
        let model = generate::Rmat::new(N, m, 0).expect("sizes");
        generate::write(&model, &path, &run).expect("disk space");
    }
    let mut edges = EdgeFile::open(&path, None, None, Io::Map).expect("edges");
    edges.set_num_vertices(N);
    edges
}

fn copy(parts: &Buffer<u32>) -> Buffer<u32> {
    let mut copy = Buffer::zeroed(parts.len(), "copy").expect("memory");
    copy.copy_from_slice(parts);
    copy
}

fn steps(criterion: &mut Criterion) {
    let edges = graph();
    let mut group = criterion.benchmark_group("sigma, vertex mode");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for threads in [1, 2] {
        let run = Run::new(Some(threads), None).expect("threads");
        let csr = Csr::build(&edges, false, &run).expect("adjacency");
        let caps = SigmaVertex::new(K).caps(&csr);
        let preferred = preferred_parts(&csr, K, caps, Weight::Vertices, &run).expect("clusters");
        for objective in [Objective::Cut, Objective::Multi] {
            let sigma = SigmaVertex { objective, ..SigmaVertex::new(K) };
            group.bench_function(format!("{objective:?} given clusters, {threads} threads"), |bencher| {
                let place = |preferred| sigma.place(&csr, preferred, &run).expect("parts");
                bencher.iter_batched(|| copy(&preferred), place, BatchSize::PerIteration);
            });
            group.bench_function(format!("{objective:?} from the records, {threads} threads"), |bencher| {
                bencher.iter(|| {
                    let csr = Csr::build(&edges, false, &run).expect("adjacency");
                    sigma.partition(&csr, &run).expect("parts")
                });
            });
        }
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
