//! A pass over the adjacency as lists of 4 bytes and packed, in entries per second: `cargo bench --bench packed`.
//!
//! The pass sums the connections of every vertex to 8 parts. One thread; planted communities of 64 vertices, n = 2^18,
//! and a grid with mixed ids, n = 2^18; as the ids are given, and in the order by clusters. 4 M records of the first,
//! or as many as `FASTPART_BENCH_EDGES` says. It prints the bytes per entry of both.
#![allow(missing_docs)] // criterion's macros make public functions

mod common;

use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastpart::internals::algorithms::multilevel::order::{order, places};
use fastpart::internals::base::Run;
use fastpart::internals::convert::renumber;
use fastpart::internals::edges::{EdgeFile, Io};
use fastpart::internals::generate;
use fastpart::internals::generate::Generator;
use fastpart::internals::graph::{Csr, Packed};

const N: u64 = 1 << 18;
const K: u64 = 8;

fn opened(path: &Path) -> EdgeFile {
    let mut edges = EdgeFile::open(path, None, None, Io::Map).expect("edges");
    edges.set_num_vertices(N);
    edges
}

/// The adjacency with mixed ids, and that in the order by clusters.
fn adjacencies(model: &dyn Generator, run: &Run) -> [Arc<Csr>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let [made, mixed, ordered] = ["made", "mixed", "ordered"].map(|name| folder.path().join(name));
    generate::write(model, &made, run).expect("disk space");
    let write = |from: &Path, ids: &[u32], to: &Path| {
        let places = places(ids, run).expect("memory");
        renumber(&opened(from), ids, &places, to, run).expect("disk space");
        Csr::build(&opened(to), false, run).expect("memory")
    };
    let ids: Vec<u32> = (0..N).map(|v| (v * 0x9e37_79b1 % N) as u32).collect();
    let csr = write(&made, &ids, &mixed);
    let ids = order(&csr, None, 0, run).expect("memory");
    [csr, write(&mixed, &ids, &ordered)]
}

/// The connections of a vertex, summed up as the partitioners do it.
struct Connections {
    sums: Vec<u32>,
    parts: Vec<u32>,
    count: usize,
}

impl Connections {
    fn new() -> Self {
        Self { sums: vec![0; 64], parts: vec![0; 64], count: 0 }
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.parts[..self.count].iter().for_each(|&part| self.sums[part as usize] = 0);
        self.count = 0;
    }

    #[inline(always)]
    fn add(&mut self, part: u32) {
        self.parts[self.count] = part;
        self.count += usize::from(self.sums[part as usize] == 0);
        self.sums[part as usize] += 1;
    }

    fn largest(&self) -> u64 {
        self.parts[..self.count].iter().map(|&part| self.sums[part as usize].into()).max().unwrap_or(0)
    }
}

fn passes(criterion: &mut Criterion) {
    let run = Run::new(Some(1), None).expect("threads");
    let planted = generate::Planted::new(N, common::records(4_000_000), N / 64, 0, 0).expect("sizes");
    let grid = generate::Grid::new(1 << 9, N >> 9).expect("sizes");
    let part_of: Vec<u32> = (0..N).map(|v| (v * K / N) as u32).collect();
    for (graph, model) in [("planted", &planted as &dyn Generator), ("grid", &grid)] {
        for (csr, ids) in adjacencies(model, &run).iter().zip(["mixed", "ordered"]) {
            let vertices = csr.num_vertices();
            let list = |v| (csr.neighbours(v), None);
            let whole = || std::iter::once(0..N as u32);
            let packed = Packed::of(vertices, false, whole, list, u64::MAX, &run);
            let packed = packed.expect("disk space").expect("lists");
            let plain = 4 * csr.num_entries() + 8 * (N + 1);
            let per_entry = |bytes: u64| bytes as f64 / csr.num_entries() as f64;
            println!(
                "{graph}, {ids}: {:.2} and {:.2} bytes per entry",
                per_entry(plain),
                per_entry(packed.len())
            );
            let mut group = criterion.benchmark_group(format!("{graph}, {ids}"));
            group.sample_size(20).throughput(Throughput::Elements(csr.num_entries()));
            let mut connections = Connections::new();
            group.bench_function("plain", |bencher| {
                bencher.iter(|| {
                    let largest = |v| {
                        connections.clear();
                        csr.neighbours(v).iter().for_each(|&u| connections.add(part_of[u as usize]));
                        connections.largest()
                    };
                    (0..N as u32).map(largest).sum::<u64>()
                });
            });
            group.bench_function("packed", |bencher| {
                bencher.iter(|| {
                    let largest = |v| {
                        connections.clear();
                        packed.each(v, |u, _| connections.add(part_of[u as usize]));
                        connections.largest()
                    };
                    (0..N as u32).map(largest).sum::<u64>()
                });
            });
            group.finish();
        }
    }
}

criterion_group!(benches, passes);
criterion_main!(benches);
