//! The order of the vertices by clusters: a permutation, part by part, clusters side by side, the same for any threads.

use fastpart::internals::algorithms::multilevel::order::{order, places};
use fastpart::internals::base::{Error, Run};
use fastpart::internals::graph::Csr;
use proptest::prelude::*;

use crate::common::{Graph, graphs, run};

fn ids(graph: &Graph, parts: Option<(&[u32], u32)>, run: &Run) -> Vec<u32> {
    let csr = Csr::build(graph, false, run).unwrap();
    order(&csr, parts, 0, run).unwrap().to_vec()
}

/// So many cliques of 8 vertices whose ids are mixed, with a path through all of them.
fn cliques(count: u32) -> Graph {
    let id = |clique: u32, member: u32| (member * count + clique * 5) % (8 * count);
    let mut records: Vec<[u32; 2]> = Vec::new();
    for clique in 0..count {
        for one in 0..8 {
            records.extend((one + 1..8).map(|other| [id(clique, one), id(clique, other)]));
        }
        records.push([id(clique, 7), id((clique + 1) % count, 0)]);
    }
    Graph::new(u64::from(8 * count), records)
}

proptest! {
    #[test]
    fn it_is_a_permutation_part_by_part(graph in graphs(60, 200), k in 1..5_u32) {
        let parts: Vec<u32> = (0..graph.n as u32).map(|v| v * 7 % k).collect();
        let plain = ids(&graph, None, &run(1));
        let by_part = ids(&graph, Some((&parts, k)), &run(2));
        prop_assert_eq!(&plain, &ids(&graph, None, &run(4)));
        prop_assert!(by_part.is_sorted_by_key(|&v| parts[v as usize]));
        for mut found in [plain, by_part] {
            let back = places(&found, &run(1)).unwrap();
            prop_assert!(found.iter().zip(0..).all(|(&v, place)| back[v as usize] == place));
            found.sort_unstable();
            prop_assert!(found.into_iter().eq(0..graph.n as u32));
        }
    }
}

#[test]
fn cliques_lie_side_by_side() {
    let graph = cliques(101);
    let run = run(1);
    let place = places(&ids(&graph, None, &run), &run).unwrap();
    let inside = graph.records.iter().filter(|[u, v]| place[*u as usize].abs_diff(place[*v as usize]) < 16);
    assert!(inside.count() as f64 > 0.97 * graph.records.len() as f64);
}

#[test]
fn what_does_not_fit_is_refused() {
    let graph = cliques(200);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let small = Run::new(Some(1), Some(30 * graph.n)).unwrap();
    assert!(matches!(order(&csr, None, 0, &small), Err(Error::MemoryBudget { .. })));
    assert!(matches!(order(&csr, Some((&[0, 1], 2)), 0, &run(1)), Err(Error::Parameter { .. })));
}
