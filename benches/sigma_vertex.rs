//! The steps of SIGMA of vertices, in edges per second: `cargo bench --bench sigma_vertex`.
//!
//! R-MAT, n = 2^20, k = 32; 16 M records, or as many as `FASTPART_BENCH_EDGES` says. The file is made once, in `target/`.
#![allow(missing_docs)] // criterion's macros make public functions

mod common;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fastpart::internals::algorithms::sigma::Sigma;
use fastpart::internals::algorithms::sigma::preference::{Weight, preferred_parts};
use fastpart::internals::algorithms::sigma::vertex::Objective;
use fastpart::internals::base::Buffer;
use fastpart::internals::base::Run;
use fastpart::internals::edges::EdgeStream;
use fastpart::internals::graph::Csr;

const K: u32 = 32;

fn copy(parts: &Buffer<u32>) -> Buffer<u32> {
    let mut copy = Buffer::zeroed(parts.len(), "copy").expect("memory");
    copy.copy_from_slice(parts);
    copy
}

fn steps(criterion: &mut Criterion) {
    let edges = common::rmat(20, common::records(16_000_000));
    let mut group = criterion.benchmark_group("sigma of vertices");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for threads in [1, 2] {
        let run = Run::new(Some(threads), None).expect("threads");
        let csr = Csr::build(&edges, false, &run).expect("adjacency");
        let caps = Sigma::new(K).caps(&csr);
        let preferred = preferred_parts(&csr, K, caps, Weight::Vertices, &run).expect("clusters");
        for objective in [Objective::Cut, Objective::Multi] {
            let sigma = Sigma { objective, ..Sigma::new(K) };
            group.bench_function(format!("{objective:?} given clusters, {threads} threads"), |bencher| {
                let place = |preferred| sigma.place(&csr, preferred, &run).expect("parts");
                bencher.iter_batched(|| copy(&preferred), place, BatchSize::PerIteration);
            });
            group.bench_function(format!("{objective:?} from the records, {threads} threads"), |bencher| {
                bencher.iter(|| {
                    let csr = Csr::build(&edges, false, &run).expect("adjacency");
                    sigma.partition_vertices(&csr, &run).expect("parts")
                });
            });
        }
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
