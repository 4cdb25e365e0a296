//! Generated graphs: the same bytes for any number of threads, and the structure they promise.

// The helpers below are test code, too, which clippy sees only in functions marked so.
use std::path::Path;

use fastpart::internals::base::Random;
use fastpart::internals::base::Run;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::edges::Record;
use fastpart::internals::generate;
use fastpart::internals::generate::{BarabasiAlbert, FeatureDtype, Generator, Grid, Planted, Rmat};
use tempfile::TempDir;

/// More than one checksum unit, and no multiple of anything.
const MANY: u64 = (1 << 20) + 12_345;

fn run(threads: usize) -> Run {
    Run::new(Some(threads), None).unwrap()
}

fn read(path: &Path) -> Vec<Record> {
    let bytes = std::fs::read(path).unwrap();
    let ids: Vec<u32> =
        bytes.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]])).collect();
    assert_eq!(bytes.len() % 8, 0);
    ids.chunks_exact(2).map(|record| [record[0], record[1]]).collect()
}

/// The records that `write` gives the file, alike for 1, 2 and 3 threads and for [`generate::records`].
fn written(generator: &dyn Generator) -> Vec<Record> {
    let home = TempDir::new().unwrap();
    let path = home.path().join("g.bin");
    let mut checksums = Vec::new();
    let expected = generate::records(generator, 0..generator.num_edges(), &run(2)).unwrap();
    for threads in 1..=3 {
        let run = run(threads);
        checksums.push(generate::write(generator, &path, &run).unwrap());
        assert_eq!(run.progress().done, generator.num_edges());
        assert!(read(&path) == expected, "{threads} threads");
    }
    let mut hasher = fastpart::internals::graph::checksum::Hasher::default();
    for (unit, records) in expected.chunks(1 << 20).enumerate() {
        hasher.update((unit as u64) << 20, records, generator.num_edges());
    }
    let checksum = fastpart::internals::graph::checksum::combine([hasher]);
    assert_eq!(checksums, [checksum.as_str(); 3]);
    assert!(expected.iter().flatten().all(|&id| u64::from(id) < generator.num_vertices()));
    expected
}

fn degrees(records: &[Record], n: u64) -> Vec<u64> {
    let mut degrees = vec![0; n as usize];
    for &id in records.iter().flatten() {
        degrees[id as usize] += 1;
    }
    degrees
}

fn mean_and_most(records: &[Record], n: u64) -> (f64, f64) {
    let degrees = degrees(records, n);
    let most = degrees.iter().copied().max().unwrap_or(0);
    (2.0 * records.len() as f64 / n as f64, most as f64)
}

#[test]
fn empty_graphs_are_empty_files() {
    for n in [0, 1, 5] {
        assert!(written(&Rmat::new(n, 0, 1).unwrap()).is_empty());
        assert!(written(&Planted::new(n, 0, n.min(1), 3, 1).unwrap()).is_empty());
        assert!(written(&BarabasiAlbert::new(n, 0, 1).unwrap()).is_empty());
        assert!(written(&Grid::new(n, 0).unwrap()).is_empty());
        assert!(written(&Grid::new(0, n).unwrap()).is_empty());
    }
}

#[test]
fn rmat_of_any_size_is_skewed() {
    for n in [1, 2, 3, 1000, 1 << 16, (1 << 16) + 1] {
        let records = written(&Rmat::new(n, if n < 1000 { 100 } else { MANY }, 7).unwrap());
        if n > 1000 {
            let (mean, most) = mean_and_most(&records, n);
            assert!(most > 100.0 * mean, "n = {n}: mean {mean}, largest {most}");
        }
    }
}

#[test]
fn seeds_differ() {
    let rmat = |seed| written(&Rmat::new(1000, 1000, seed).unwrap());
    let planted = |seed| written(&Planted::new(1000, 1000, 4, 0, seed).unwrap());
    assert_ne!(rmat(1), rmat(2));
    let attached = |seed| written(&BarabasiAlbert::new(1000, 2000, seed).unwrap());
    assert_ne!(attached(1), attached(2));
    assert_ne!(planted(1), planted(2));
    assert_eq!(planted(1), planted(1));
    assert_ne!(
        Planted::new(1000, 0, 4, 0, 1).unwrap().labels(&run(1)).unwrap(),
        Planted::new(1000, 0, 4, 0, 2).unwrap().labels(&run(1)).unwrap()
    );
}

/// The same graph with a table of all endpoints.
#[test]
fn barabasi_albert_attaches_to_endpoints_before() {
    for (n, m) in [(2, 9), (3, 4), (10, 100), (1000, 7777), (1000, 999), (1000, 400), (5, 4)] {
        let mut endpoints: Vec<u32> = Vec::new();
        let mut expected = Vec::new();
        for v in 1..n {
            let first = endpoints.len() as u64 / 2;
            for r in (0..m).filter(|r| 1 + r * (n - 1) / m == v) {
                let drawn = || endpoints[Random::new(7, r).below(2 * first) as usize];
                let target = if v == 1 || first == 0 { 0 } else { drawn() };
                expected.push([v as u32, target]);
            }
            endpoints = expected.iter().flatten().copied().collect();
        }
        assert_eq!(written(&BarabasiAlbert::new(n, m, 7).unwrap()), expected, "n = {n}, m = {m}");
    }
    assert_eq!(written(&BarabasiAlbert::new(1, 3, 0).unwrap()), [[0, 0]; 3]);
}

#[test]
fn barabasi_albert_degrees_follow_a_power_law() {
    let n = 1 << 18;
    let records = written(&BarabasiAlbert::new(n, MANY, 3).unwrap());
    assert!(records.iter().all(|[u, v]| u > v) && records.is_sorted_by_key(|[u, _]| *u));
    let (mean, most) = mean_and_most(&records, n);
    assert!(most > 50.0 * mean, "mean {mean}, largest {most}");
    // The number of vertices of degree >= d falls as d^-2.
    let degrees = degrees(&records, n);
    let above = |least: u64| degrees.iter().filter(|&&degree| degree >= least).count() as f64;
    let exponent = (above(16) / above(128)).ln() / 8_f64.ln();
    assert!((1.8..2.2).contains(&exponent), "{exponent}");
}

#[test]
fn grids_join_neighbours() {
    for (rows, columns) in [(1, 1), (1, 5), (5, 1), (3, 4), (1000, 701)] {
        let mut expected = Vec::new();
        for row in 0..rows {
            let vertex = |row: u64, column| (row * columns + column) as u32;
            expected.extend((1..columns).map(|column| [vertex(row, column - 1), vertex(row, column)]));
            expected.extend(
                (0..columns)
                    .filter(|_| row + 1 < rows)
                    .map(|column| [vertex(row, column), vertex(row + 1, column)]),
            );
        }
        assert!(written(&Grid::new(rows, columns).unwrap()) == expected, "{rows} x {columns}");
    }
}

#[test]
fn planted_classes_are_equal_scattered_and_dense() {
    let (n, classes) = (20_011, 7);
    let planted = Planted::new(n, MANY, classes, 0, 3).unwrap();
    let labels = planted.labels(&run(2)).unwrap();
    assert_eq!(labels, planted.labels(&run(3)).unwrap());
    for class in 0..classes {
        let size = labels.iter().filter(|&&label| label == class as i64).count() as u64;
        assert!(size == n / classes || size == n.div_ceil(classes), "class {class}: {size}");
    }
    let neighbours_alike = labels.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64 / n as f64;
    assert!((neighbours_alike - 1.0 / classes as f64).abs() < 0.02, "{neighbours_alike}");

    let records = written(&planted);
    let inside = records.iter().filter(|[u, v]| labels[*u as usize] == labels[*v as usize]).count();
    let (inside, expected) = (inside as f64 / MANY as f64, 0.8 + 0.2 / classes as f64);
    assert!((inside - expected).abs() < 0.005, "{inside} of the records are inside, not {expected}");
    assert_eq!(records.iter().filter(|[u, v]| u == v).count(), 0);
}

#[test]
fn planted_degrees_follow_a_capped_power_law() {
    let (n, m) = (1 << 16, 1 << 20);
    let records = written(&Planted::new(n, m, 4, 0, 3).unwrap());
    let (mean, most) = mean_and_most(&records, n);
    let cap = mean * (n as f64 / 4.0).sqrt();
    assert!(most > 20.0 * mean && most < 1.2 * cap, "mean {mean}, largest {most}, cap {cap}");
    // The number of vertices of degree >= d falls as d^-1.5.
    let degrees = degrees(&records, n);
    let above = |times: f64| degrees.iter().filter(|&&degree| degree as f64 >= times * mean).count() as f64;
    let exponent = (above(2.0) / above(8.0)).ln() / 4_f64.ln();
    assert!((1.3..1.8).contains(&exponent), "{exponent}");
}

#[test]
fn tiny_planted_graphs_have_few_loops() {
    for (n, classes) in [(2, 1), (2, 2), (3, 3), (5, 2)] {
        let records = written(&Planted::new(n, 2000, classes, 0, 1).unwrap());
        let loops = records.iter().filter(|[u, v]| u == v).count();
        assert!(loops < 20, "n = {n}, {classes} classes: {loops} loops");
    }
    // One vertex has nowhere else to go.
    assert_eq!(written(&Planted::new(1, 3, 1, 0, 1).unwrap()), [[0, 0]; 3]);
}

#[test]
fn splits_cover_all_vertices_once() {
    let planted = Planted::new(10_000, 0, 4, 0, 3).unwrap();
    let splits = planted.split(&run(2)).unwrap();
    for (split, share) in splits.iter().zip([0.6, 0.2, 0.2]) {
        assert!(split.is_sorted());
        assert!((split.len() as f64 / 10_000.0 - share).abs() < 0.02);
    }
    let mut all = splits.concat();
    all.sort_unstable();
    assert_eq!(all, (0..10_000).collect::<Vec<_>>());
}

/// The rows of a `.npy` of float32.
fn rows(path: &Path, width: usize) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    let data = &bytes[10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))..];
    let values: Vec<f32> = data
        .chunks_exact(4)
        .map(|value| f32::from_le_bytes([value[0], value[1], value[2], value[3]]))
        .collect();
    values.chunks_exact(width).map(<[f32]>::to_vec).collect()
}

#[test]
fn features_are_an_imperfect_classifier() {
    let (n, classes) = (3000_usize, 8_usize);
    let home = TempDir::new().unwrap();
    for features in [3_usize, 32] {
        let planted = Planted::new(n as u64, 0, classes as u64, features as u32, 5).unwrap();
        let paths = [1, 3].map(|threads| {
            let path = home.path().join(format!("{threads}.npy"));
            planted.write_features(&path, FeatureDtype::Float32, &run(threads)).unwrap();
            path
        });
        assert_eq!(std::fs::read(&paths[0]).unwrap(), std::fs::read(&paths[1]).unwrap());
        let rows = rows(&paths[0], features);
        assert_eq!(rows.len(), n);

        let labels = planted.labels(&run(1)).unwrap();
        let mut centroids = vec![vec![0.0; features]; classes];
        for (row, &label) in rows.iter().zip(&labels) {
            for (sum, value) in centroids[label as usize].iter_mut().zip(row) {
                *sum += value * classes as f32 / n as f32;
            }
        }
        let distance = |row: &[f32], centroid: &[f32]| -> f32 {
            row.iter().zip(centroid).map(|(x, c)| (x - c) * (x - c)).sum()
        };
        let spread: f32 =
            rows.iter().zip(&labels).map(|(row, &label)| distance(row, &centroids[label as usize])).sum();
        let variance = spread / (n * features) as f32;
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        let right = rows.iter().zip(&labels).filter(|&(row, &label)| {
            let nearest = (0..classes)
                .min_by(|&a, &b| distance(row, &centroids[a]).total_cmp(&distance(row, &centroids[b])));
            nearest == Some(label as usize)
        });
        let accuracy = right.count() as f64 / n as f64;
        assert!((0.4..0.9).contains(&accuracy), "{features} features: {accuracy}");
    }
    for dtype in [FeatureDtype::Float32, FeatureDtype::Float16, FeatureDtype::Int8] {
        let none = home.path().join("none.npy");
        Planted::new(3, 0, 2, 0, 5).unwrap().write_features(&none, dtype, &run(1)).unwrap();
    }
}

#[test]
fn wrong_parameters_are_named() {
    fn name<T>(made: Result<T>) -> &'static str {
        match made {
            Err(Error::Parameter { name, .. }) => name,
            _ => panic!("not refused as a parameter"),
        }
    }
    assert_eq!(name(Rmat::new(0, 1, 0)), "n");
    assert_eq!(name(Rmat::new(1 << 32, 1, 0)), "n");
    assert_eq!(name(BarabasiAlbert::new(0, 1, 0)), "n");
    assert_eq!(name(Grid::new(1 << 16, 1 << 16)), "n");
    assert_eq!(name(Grid::new(1 << 32, 1 << 32)), "rows");
    assert_eq!(name(Planted::new(0, 1, 1, 0, 0)), "n");
    assert_eq!(name(Planted::new(10, 1, 0, 0, 0)), "classes");
    assert_eq!(name(Planted::new(10, 1, 11, 0, 0)), "classes");
    assert_eq!(name(Planted::new(10, 1, 2, u32::MAX, 0)), "features");
    let huge = Rmat::new(10, u64::MAX / 8, 0).unwrap();
    let home = TempDir::new().unwrap();
    assert_eq!(name(generate::write(&huge, &home.path().join("g.bin"), &run(1))), "m");
}

#[test]
fn a_cancelled_run_leaves_no_file() {
    let home = TempDir::new().unwrap();
    let run = run(2);
    run.cancel();
    let rmat = Rmat::new(1000, MANY, 0).unwrap();
    assert!(matches!(generate::write(&rmat, &home.path().join("g.bin"), &run), Err(Error::Cancelled)));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

/// A seed means the same graph on every machine and in every release.
#[test]
fn frozen() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("g.bin");
    let (rmat, planted) = (Rmat::new(1000, 5000, 1).unwrap(), Planted::new(1000, 5000, 7, 5, 1).unwrap());
    let mut sums = vec![
        generate::write(&rmat, &path, &run(2)).unwrap(),
        generate::write(&planted, &path, &run(2)).unwrap(),
    ];
    planted.write_features(&path, FeatureDtype::Float32, &run(2)).unwrap();
    let hash = |bytes: &[u8]| format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes));
    sums.push(hash(&std::fs::read(&path).unwrap()));
    sums.push(hash(format!("{:?}", planted.labels(&run(1)).unwrap()).as_bytes()));
    sums.push(hash(format!("{:?}", planted.split(&run(1)).unwrap()).as_bytes()));
    let expected = [
        "259f165e65f8afa066c5a3486c74750c",
        "16077bf2c158ad8520b1480677ee9fab",
        "5821cc4abcfb333bf197f7732789adad",
        "8c778ea0527ca3ebc12e8b6db160a35e",
        "9e3d768ec22519142eabbf09bd31eb62",
    ];
    assert_eq!(sums, expected);
}
