//! GREM and its steps, in edges per second: `cargo bench --bench grem`.
//!
//! R-MAT, n = 2^20, k = 8; 16 M records, or as many as `FASTPART_BENCH_EDGES` says. The file is made once, in `target/`.
#![allow(missing_docs)] // criterion's macros make public functions

mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastpart::internals::algorithms::grem::Grem;
use fastpart::internals::base::Run;
use fastpart::internals::edges::EdgeStream;
use fastpart::internals::exec::shuffle;
use fastpart::internals::partition::{Input, partition};

fn steps(criterion: &mut Criterion) {
    let edges = common::rmat(20, common::records(16_000_000));
    let mut group = criterion.benchmark_group("grem");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for threads in [1, 2] {
        let run = Run::new(Some(threads), None).expect("threads");
        group.bench_function(format!("random order, {threads} threads"), |bencher| {
            bencher.iter(|| shuffle(&edges, 0, run.tmp_dir(), &run, |_| Ok(())).expect("order"));
        });
        for (name, grem) in [
            ("one bisection", Grem::new(2)),
            ("8 parts", Grem::new(8)),
            ("8 parts, first decisions", Grem { revise: false, ..Grem::new(8) }),
        ] {
            group.bench_function(format!("{name}, {threads} threads"), |bencher| {
                bencher.iter(|| partition(&grem, &Input::new(&edges), &run).expect("parts"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
