//! What must hold of clusters on every graph; the rules themselves are held against oracles in Python.

use std::num::NonZeroUsize;

use crate::common::{graphs, run};
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::clustering::{Clusters, Hollocou, Modularity};
use fastpart::internals::generate::{Generator, Rmat};
use fastpart::internals::graph::Csr;
use fastpart::internals::graph::degrees;
use fastpart::internals::{clustering, generate};
use proptest::prelude::*;
use proptest::sample::select;

/// Recounts sizes, volumes and modularity.
fn check(csr: &Csr, clusters: &Clusters) {
    let n = csr.num_vertices() as u32;
    let (mut sizes, mut volumes) = (Vec::new(), Vec::new());
    let mut inside = 0.0;
    for v in 0..n {
        let cluster = clusters.cluster_of[v as usize] as usize;
        assert!(cluster <= sizes.len(), "clusters are numbered in the order of their lowest vertices");
        if cluster == sizes.len() {
            sizes.push(0);
            volumes.push(0);
        }
        sizes[cluster] += 1;
        volumes[cluster] += u64::from(csr.degree(v));
        let same = |&&u: &&u32| clusters.cluster_of[u as usize] as usize == cluster;
        inside += csr.neighbours(v).iter().filter(same).count() as f64;
    }
    assert_eq!((&clusters.sizes[..], &clusters.volumes[..]), (&sizes[..], &volumes[..]));
    let ends = csr.num_entries().max(1) as f64;
    let expected = inside / ends - volumes.iter().map(|&volume| (volume as f64 / ends).powi(2)).sum::<f64>();
    assert!((clustering::modularity(csr, clusters, &run(2)).unwrap() - expected).abs() < 1e-12);
}

fn caps() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (1_u64..40).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn caps_hold_and_threads_change_nothing(
        graph in graphs(120, 400),
        max_vertices in caps(),
        max_volume in caps(),
        batch in select(vec![None, Some(1), Some(5), Some(64)]),
    ) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let clusters = |threads| Modularity { max_vertices, max_volume, batch: batch.and_then(NonZeroUsize::new) }.cluster(&csr, &run(threads)).unwrap();
        let expected = clusters(1);
        check(&csr, &expected);
        prop_assert_eq!(&expected.cluster_of[..], &clusters(3).cluster_of[..]);
        for (&size, &volume) in expected.sizes.iter().zip(&expected.volumes[..]) {
            prop_assert!(u64::from(size) <= max_vertices.unwrap_or(u64::MAX));
            prop_assert!(size == 1 || volume + u64::from(size) <= max_volume.unwrap_or(u64::MAX));
        }
    }

    #[test]
    fn hollocou_is_recounted(graph in graphs(60, 200), max_volume in 0_u64..50, passes in 1_u32..3) {
        let degree = degrees::scan(&graph, &run(1)).unwrap().degree;
        let clusters = Hollocou { passes, ..Hollocou::new(max_volume) }.cluster(&graph, degree, &run(2)).unwrap();
        check(&Csr::build(&graph, false, &run(1)).unwrap(), &clusters);
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        prop_assert_eq!(
            clustering::modularity(&csr, &clusters, &run(1)).unwrap(),
            clustering::modularity_of_stream(&graph, &clusters, &run(2)).unwrap()
        );
    }
}

/// Large enough for batches by default, with hubs that share them.
#[test]
fn large_graph() {
    let rmat = Rmat::new(40_000, 400_000, 5).unwrap();
    let records = generate::records(&rmat, 0..rmat.num_edges(), &run(2)).unwrap();
    let graph = crate::common::Graph::new(rmat.num_vertices(), records);
    let csr = Csr::build(&graph, false, &run(2)).unwrap();
    let capped = Modularity { max_vertices: Some(2000), max_volume: Some(50_000), batch: None };
    let expected = capped.cluster(&csr, &run(1)).unwrap();
    check(&csr, &expected);
    for threads in [2, 3] {
        assert!(capped.cluster(&csr, &run(threads)).unwrap().cluster_of[..] == expected.cluster_of[..]);
    }
    let forced =
        Modularity { batch: NonZeroUsize::new(1024), ..capped.clone() }.cluster(&csr, &run(2)).unwrap();
    assert!(forced.cluster_of[..] == expected.cluster_of[..]);
    let sequential = Modularity { batch: NonZeroUsize::new(1), ..capped }.cluster(&csr, &run(2)).unwrap();
    assert!(sequential.cluster_of[..] != expected.cluster_of[..], "the default should work in batches");
    let [batched, sequential] =
        [&expected, &sequential].map(|c| clustering::modularity(&csr, c, &run(2)).unwrap());
    assert!(batched >= 0.98 * sequential, "{batched} {sequential}");
}

#[test]
fn refusals() {
    let graph = crate::common::Graph::new(3, vec![[0, 1], [1, 2]]);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let named = |modularity: Modularity| match modularity.cluster(&csr, &run(1)).unwrap_err() {
        Error::Parameter { name, .. } => name,
        other => panic!("{other}"),
    };
    assert_eq!(named(Modularity { max_vertices: Some(0), ..Modularity::default() }), "max_vertices");
    assert_eq!(named(Modularity { max_volume: Some(0), ..Modularity::default() }), "max_volume");
    let tight = Run::new(Some(1), Some(10)).unwrap();
    assert!(matches!(Modularity::default().cluster(&csr, &tight), Err(Error::MemoryBudget { .. })));
    let cancelled = run(2);
    cancelled.cancel();
    assert!(matches!(Modularity::default().cluster(&csr, &cancelled), Err(Error::Cancelled)));
}
