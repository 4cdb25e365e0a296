//! The passes of SPRING, and the stream partitioners, beside the scan limit, in edges per second: `cargo bench`.
//!
//! R-MAT, n = 2^22; 64 M records, or as many as `FASTPART_BENCH_EDGES` says. The file is made once, in `target/`.
#![allow(missing_docs)] // criterion's macros make public functions

mod common;

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastpart::internals::algorithms::dbh::Dbh;
use fastpart::internals::algorithms::spring::Spring;
use fastpart::internals::algorithms::two_phase::{Scoring, TwoPhase};
use fastpart::internals::base::Run;
use fastpart::internals::edges::EdgeStream;
use fastpart::internals::graph::Csr;
use fastpart::internals::graph::degrees;
use fastpart::internals::graph::largest_id;
use fastpart::internals::measure;
use fastpart::internals::partition::{Input, partition};

fn passes(criterion: &mut Criterion) {
    let edges = common::rmat(22, common::records(64_000_000));
    let mut group = criterion.benchmark_group("rmat");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .throughput(Throughput::Elements(edges.num_edges()));
    for threads in [1, 2] {
        let run = Run::new(Some(threads), None).expect("threads");
        let spring = Spring::new(8);
        group.bench_function(format!("scan, {threads} threads"), |bencher| {
            bencher.iter(|| largest_id(&edges, &run).expect("scan"));
        });
        group.bench_function(format!("degrees, {threads} threads"), |bencher| {
            bencher.iter(|| degrees::scan(&edges, &run).expect("degrees"));
        });
        group.bench_function(format!("spring clustering, {threads} threads"), |bencher| {
            bencher.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    let known = degrees::scan(&edges, &run).expect("degrees");
                    let clustering = spring.clustering(edges.num_edges() - known.graph.loops);
                    let start = Instant::now();
                    clustering.follow(&edges, known.degree, &run).expect("clustering");
                    spent += start.elapsed();
                }
                spent
            });
        });
        group.bench_function(format!("spring, {threads} threads"), |bencher| {
            bencher.iter(|| partition(&spring, &Input::new(&edges), &run).expect("spring"));
        });
        let dbh = Dbh { k: 32, seed: 0 };
        group.bench_function(format!("dbh, {threads} threads"), |bencher| {
            bencher.iter(|| partition(&dbh, &Input::new(&edges), &run).expect("dbh"));
        });
        for scoring in [Scoring::Linear, Scoring::Hdrf] {
            let two_phase = TwoPhase { scoring, ..TwoPhase::new(32) };
            group.bench_function(format!("two_phase, {scoring:?}, {threads} threads"), |bencher| {
                bencher.iter(|| partition(&two_phase, &Input::new(&edges), &run).expect("two_phase"));
            });
        }
        let made = partition(&spring, &Input::new(&edges), &run).expect("spring");
        let part = made.partition.vertices().expect("vertices");
        group.bench_function(format!("evaluate, {threads} threads"), |bencher| {
            bencher.iter(|| {
                measure::cut(&edges, &part.assignment, 8, &run).expect("cut");
                measure::halo_sizes(&edges, &part.assignment, 8, &run).expect("halo");
            });
        });
    }
}

/// R-MAT, n = 2^20, 16 M records: in memory, and out of core on the disk of `target/`.
fn csr(criterion: &mut Criterion) {
    let edges = common::rmat(20, 16_000_000);
    let mut group = criterion.benchmark_group("csr");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for (place, budget) in [("in memory", 1 << 32), ("out of core", 64 << 20)] {
        for threads in [1, 2] {
            let run = Run::new(Some(threads), Some(budget)).expect("threads");
            let run = run.with_tmp_dir(Some(common::folder()));
            group.bench_function(format!("{place}, {threads} threads"), |bencher| {
                bencher.iter(|| Csr::build(&edges, false, &run).expect("adjacency"));
            });
        }
    }
}

criterion_group!(benches, passes, csr);
criterion_main!(benches);
