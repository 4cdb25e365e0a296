//! LDG and Fennel over a given adjacency, in edges per second and pass: `cargo bench --bench vertex_streams`.
//!
//! R-MAT, n = 2^20, k = 32; 16 M records, or as many as `FASTPART_BENCH_EDGES` says. The file is made once, in `target/`.
#![allow(missing_docs)] // criterion's macros make public functions

mod common;

use std::num::NonZeroU64;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastpart::internals::algorithms::fennel::Fennel;
use fastpart::internals::algorithms::ldg::Ldg;
use fastpart::internals::algorithms::streams::vertices::VertexStream;
use fastpart::internals::base::Run;
use fastpart::internals::graph::Csr;

fn streams(criterion: &mut Criterion) {
    let csr = Csr::build(
        &common::rmat(20, common::records(16_000_000)),
        false,
        &Run::new(None, None).expect("threads"),
    )
    .expect("adjacency");
    let mut group = criterion.benchmark_group("vertex streams");
    group.sample_size(10).warm_up_time(Duration::from_millis(100));
    let (ldg, fennel) = (Ldg::new(32).stream(), Fennel::new(32).stream());
    let sequential = VertexStream { batch: NonZeroU64::new(1), ..fennel.clone() };
    let again = VertexStream { passes: 10, ..fennel.clone() };
    let all =
        [("ldg", ldg), ("fennel", fennel), ("fennel, sequential rule", sequential), ("refennel", again)];
    for (name, stream) in &all {
        group.throughput(Throughput::Elements(u64::from(stream.passes) * csr.num_entries() / 2));
        for threads in [1, 2] {
            let run = Run::new(Some(threads), None).expect("threads");
            group.bench_function(format!("{name}, {threads} threads"), |bencher| {
                bencher.iter(|| stream.partition(&csr, &run).expect("parts"));
            });
        }
    }
}

criterion_group!(benches, streams);
criterion_main!(benches);
