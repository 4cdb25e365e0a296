//! The multilevel partitioner, given the adjacency, in edges per second: `cargo bench --bench multilevel`.
//!
//! R-MAT (skewed degrees) and planted communities, n = 2^18, k = 8; 4 M records, or as many as `FASTPART_BENCH_EDGES`
//! says.
#![allow(missing_docs)] // criterion's macros make public functions

mod common;

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastpart::internals::algorithms::multilevel::{Bound, Goal, Multilevel};
use fastpart::internals::base::Run;
use fastpart::internals::edges::EdgeStream;
use fastpart::internals::edges::{EdgeFile, Io};
use fastpart::internals::generate;
use fastpart::internals::generate::Generator;
use fastpart::internals::graph::Csr;

const N: u64 = 1 << 18;

fn adjacency(model: &dyn Generator, run: &Run) -> (Arc<Csr>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("g.bin");
    generate::write(model, &path, run).expect("disk space");
    let mut edges = EdgeFile::open(&path, None, None, Io::Map).expect("edges");
    edges.set_num_vertices(N);
    (Csr::build(&edges, false, run).expect("memory"), edges.num_edges())
}

fn bounds(criterion: &mut Criterion) {
    let m = common::records(4_000_000);
    let all = Run::new(None, None).expect("threads");
    let rmat = generate::Rmat::new(N, m, 0).expect("sizes");
    let planted = generate::Planted::new(N, m, 64, 0, 0).expect("sizes");
    for (graph, model) in [("rmat", &rmat as &dyn Generator), ("planted", &planted)] {
        let (csr, edges) = adjacency(model, &all);
        let mut group = criterion.benchmark_group(format!("multilevel, {graph}"));
        group.sample_size(10).throughput(Throughput::Elements(edges));
        for threads in [1, 2] {
            let run = Run::new(Some(threads), None).expect("threads");
            for (name, bounds) in [("one bound", vec![]), ("two bounds", vec![Bound::Volume(1.1)])] {
                let multilevel = Multilevel::from(Goal { bounds, ..Goal::new(8) });
                group.bench_function(format!("{name}, {threads} threads"), |bencher| {
                    bencher.iter(|| multilevel.partition(&csr, &run).expect("parts"));
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, bounds);
criterion_main!(benches);
