//! The streams of records beside the scan limit, in records per second: `cargo bench --bench edge_streams`.
//!
//! R-MAT, n = 2^20, 16 M records; k = 32, and 8 and 128 for HDRF; one thread and two. Degrees, clusters and memory
//! are not counted, but in HDRF and HEP "from degrees to loops".
#![allow(missing_docs)] // criterion's macros make public functions

mod common;

use std::time::{Duration, Instant};

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use fastpart::internals::algorithms::hdrf::Hdrf;
use fastpart::internals::algorithms::hep::Hep;
use fastpart::internals::algorithms::streams::edges::loads::Balance;
use fastpart::internals::algorithms::streams::edges::{Affinity, EdgeStreamer, Limit, by_degree};
use fastpart::internals::base::Buffer;
use fastpart::internals::base::Run;
use fastpart::internals::edges::EdgeFile;
use fastpart::internals::edges::Record;
use fastpart::internals::graph::degrees;
use fastpart::internals::graph::largest_id;
use fastpart::internals::partition::{EdgeParts, Input, partition};

const M: u64 = 16_000_000;

/// A rule of placing: the affinity, the balance, and the share of the cap that is open in the beginning.
type Rule = (Affinity, Balance, f64);

fn stream(edges: &EdgeFile, known: &[u32], k: u32, (affinity, balance, start): Rule, run: &Run) -> Duration {
    let cap = fastpart::internals::capacity::cap(1.1, M, k);
    let mut streamer = EdgeStreamer::new(known.len(), k, cap, balance).expect("memory");
    if affinity == Affinity::Remaining {
        let mut degrees = Buffer::zeroed(known.len(), "degrees").expect("memory");
        degrees.copy_from_slice(known);
        streamer = streamer.counting(degrees);
    }
    let mut parts = EdgeParts::new(M, k, None).expect("memory");
    streamer.begin(M, Limit { cap, start });
    let began = Instant::now();
    let worth = |records: &[Record], gains: &mut _| {
        if affinity == Affinity::Degree {
            by_degree(known, |&degree| degree, records, gains);
        }
    };
    streamer.stream_all(edges, &mut parts, run, true, worth).expect("parts");
    began.elapsed()
}

fn bench(group: &mut BenchmarkGroup<WallTime>, name: String, mut once: impl FnMut() -> Duration) {
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|rounds| (0..rounds).map(|_| once()).sum());
    });
}

fn streams(criterion: &mut Criterion) {
    let edges = common::rmat(20, M);
    let run = Run::new(Some(1), None).expect("threads");
    let known = degrees::scan(&edges, &run).expect("degrees").degree;
    let mut group = criterion.benchmark_group("edge streams");
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).throughput(Throughput::Elements(M));
    bench(&mut group, "scan".into(), || {
        let began = Instant::now();
        largest_id(&edges, &run).expect("scan");
        began.elapsed()
    });
    let hdrf = (Affinity::Degree, Balance::Records(1.0), 1.0);
    let greedy = (Affinity::Remaining, Balance::Records(1.0), 1.0);
    let sigma = (Affinity::Degree, Balance::RecordsAndReplicas(1.0), 0.9);
    for threads in [1, 2] {
        let run = Run::new(Some(threads), None).expect("threads");
        bench(&mut group, format!("degrees, {threads} threads"), || {
            let began = Instant::now();
            degrees::scan(&edges, &run).expect("degrees");
            began.elapsed()
        });
        for (name, rule, k) in [
            ("hdrf", hdrf, 8),
            ("hdrf", hdrf, 32),
            ("hdrf", hdrf, 128),
            ("greedy", greedy, 32),
            ("sigma", sigma, 32),
        ] {
            let name = format!("{name}, k = {k}, {threads} threads");
            bench(&mut group, name, || stream(&edges, &known, k, rule, &run));
        }
        let whole = |name: &str| format!("{name}, k = 32, {threads} threads, from degrees to loops");
        bench(&mut group, whole("hdrf"), || {
            let began = Instant::now();
            partition(&Hdrf::new(32), &Input::new(&edges), &run).expect("parts");
            began.elapsed()
        });
        bench(&mut group, whole("hep"), || {
            let began = Instant::now();
            partition(&Hep::new(32), &Input::new(&edges), &run).expect("parts");
            began.elapsed()
        });
    }
}

criterion_group!(benches, streams);
criterion_main!(benches);
