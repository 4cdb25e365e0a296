//! Fixed vertices on the way: clusters, contracted graphs and induced graphs know them.

use fastpart::internals::algorithms::multilevel::coarsening::{Clusterer, contract};
use fastpart::internals::algorithms::multilevel::{Rating, model};
use fastpart::internals::base::{NONE, splitmix64};
use fastpart::internals::graph::Csr;
use proptest::prelude::*;

use crate::common::{Graph, graphs, run};

/// A part for some vertices.
fn labels(n: u64, k: u32, seed: u64) -> Vec<u32> {
    let label = |hash: u64| if hash.is_multiple_of(3) { NONE } else { (hash / 3 % u64::from(k)) as u32 };
    (0..n).map(|v| label(splitmix64(seed ^ v))).collect()
}

proptest! {
    #[test]
    fn a_cluster_holds_fixed_vertices_of_one_part(
        given in graphs(60, 200), k in 1_u32..6, cap in 2_u64..40, seed: u64, threads in 1_usize..=3,
    ) {
        let (run, labels) = (run(threads), labels(given.n, k, seed));
        let csr = Csr::build(&given, false, &run).unwrap();
        let whole = model::Graph::<1>::finest(&csr, &|_| [1], &run).unwrap().with_fixed(Some(&labels));
        for rating in [Rating::Weight, Rating::Density] {
            let clusterer = Clusterer { rating, cap: [cap], rounds: 3, seed };
            let clustering = clusterer.cluster(&whole, None, &run).unwrap();
            let coarse = contract(&whole, &clustering, &run).unwrap();
            let mut expected = vec![NONE; clustering.count];
            for (&cluster, &label) in clustering.cluster_of.iter().zip(&labels) {
                let known = &mut expected[cluster as usize];
                prop_assert!(label == NONE || *known == NONE || *known == label, "{known} and {label}");
                *known = if label == NONE { *known } else { label };
            }
            for (cluster, &label) in (0..).zip(&expected) {
                prop_assert_eq!((coarse.fixed(cluster), coarse.may_move(cluster)), (label, label == NONE));
            }
        }
        // Parts 2 and 3 become 0 and 1.
        let side_of: Vec<u32> = labels.iter().map(|&label| if label == NONE { 1 } else { label / 2 }).collect();
        let (induced, ids) = whole.induced(&side_of, 1, 2, &run).unwrap();
        for (index, &v) in (0..).zip(&ids) {
            let label = labels[v as usize];
            prop_assert_eq!(induced.fixed(index), if label == NONE { NONE } else { label - 2 });
        }
    }
}

/// If most vertices are fixed, they still form clusters.
#[test]
fn fixed_vertices_of_a_part_are_clustered() {
    let records: Vec<[u32; 2]> = (0..600).map(|v| [v, (v + 1) % 600]).collect();
    let (given, run) = (Graph::new(600, records), run(2));
    let csr = Csr::build(&given, false, &run).unwrap();
    for labels in [vec![0; 600], (0..600).map(|v| v / 200).collect::<Vec<u32>>()] {
        let whole = model::Graph::<1>::finest(&csr, &|_| [1], &run).unwrap().with_fixed(Some(&labels));
        let clusterer = Clusterer { rating: Rating::Weight, cap: [20], rounds: 3, seed: 1 };
        let count = clusterer.cluster(&whole, None, &run).unwrap().count;
        assert!(count <= 300, "{count} clusters");
    }
}
