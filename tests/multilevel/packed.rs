//! Packed lists of the multilevel partitioner: the same entries in the same order, and the same parts.

use std::ops::Range;

use fastpart::internals::algorithms::multilevel::model::Graph as Weighted;
use fastpart::internals::algorithms::multilevel::refine::Refine;
use fastpart::internals::algorithms::multilevel::{Bound, Goal, Multilevel, Objective, Path};
use fastpart::internals::base::{Buffer, Run};
use fastpart::internals::generate::{Rmat, records};
use fastpart::internals::graph::Csr;
use proptest::prelude::*;

use crate::common::{Graph, run};

/// A graph of these lists in files, in any order of the neighbours, as a level has them.
fn in_files(all: &[Vec<[u32; 2]>]) -> Weighted<'static, 1> {
    let mut offsets: Buffer<u64> = Buffer::zeroed(all.len() + 1, "offsets").unwrap();
    let [mut targets, mut weights] =
        [(); 2].map(|()| Buffer::<u32>::in_file(all.iter().map(Vec::len).sum(), run(1).tmp_dir()).unwrap());
    let mut end = 0;
    for (v, list) in all.iter().enumerate() {
        for &[u, w] in list {
            (targets[end], weights[end]) = (u, w);
            end += 1;
        }
        offsets[v + 1] = end as u64;
    }
    let vertices = Buffer::zeroed(all.len(), "weights").unwrap();
    let sum = weights.iter().map(|&weight| u64::from(weight)).sum();
    Weighted::of(offsets, targets, (weights, sum), vertices, &run(1)).unwrap()
}

/// Lists with neighbours and weights of all lengths.
fn any_lists() -> impl Strategy<Value = Vec<Vec<[u32; 2]>>> {
    let entry = (any::<[u32; 2]>(), [0_u32..32, 0_u32..32]);
    let entry = entry.prop_map(|([u, w], [by, also])| [u >> by, (w >> also).max(1)]);
    let list = prop::collection::vec(entry, 0..40);
    prop::collection::vec(list, 0..60)
}

fn in_two_levels() -> Multilevel {
    Multilevel { path: Some(Path::TwoLevels), sample: Some(0.2), ..Multilevel::new(8) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_lists_are_the_same_in_any_order(
        lists in any_lists(), threads in 1_usize..4, order in prop::collection::vec(any::<prop::sample::Index>(), 0..80),
    ) {
        let plain = in_files(&lists);
        let bytes = 8 * plain.num_entries();
        // What memory has room for stays plain.
        let plain = plain.packed(bytes, &run(threads)).unwrap();
        prop_assert!(plain.arrays().is_some());
        let packed = plain.packed(0, &run(threads)).unwrap();
        for v in order.iter().filter(|_| !lists.is_empty()).map(|index| index.index(lists.len())) {
            let mut list = vec![];
            packed.each(v as u32, |u, w| list.push([u, w]));
            prop_assert_eq!(&list, &lists[v]);
            packed.prefetch_neighbours(v as u32, 3, &lists);
        }
        packed.prefetch_neighbours(lists.len() as u32, 3, &lists);
        // Passes read the lists ahead, from any vertex on.
        let ranges: Vec<Range<u32>> = packed.ranges(0..lists.len() as u32).collect();
        prop_assert!(ranges.into_iter().flatten().eq(0..lists.len() as u32));
        let all: u64 = lists.iter().flatten().map(|&[_, w]| u64::from(w)).sum();
        prop_assert_eq!((packed.edge_weight(), 8 * packed.num_entries()), (all, bytes));
    }
}

#[test]
fn packed_lists_lead_to_the_same_parts() {
    let model = Rmat::new(1 << 13, 100_000, 3).unwrap();
    let graph = Graph::new(1 << 13, records(&model, 0..100_000, &run(1)).unwrap());
    let least = Csr::least_budgets(&graph, false, false, &run(1))[0];
    let with = |threads, limit| Run::new(Some(threads), Some(limit)).unwrap();
    let csr = Csr::build(&graph, false, &with(1, least)).unwrap();
    assert!(!csr.is_in_memory());
    let n = csr.num_vertices() as u64;
    for multilevel in [
        in_two_levels(),
        Multilevel { path: Some(Path::OneLevel), sample: Some(0.5), ..Multilevel::new(3) },
        Multilevel { path: Some(Path::Memory), ..Multilevel::new(4) },
        Multilevel {
            goal: Goal { objective: Objective::Halo, bounds: vec![Bound::Volume(1.1)], ..Goal::new(8) },
            ..in_two_levels()
        },
    ] {
        let memory = multilevel.plans(n, csr.most_entries())[0].1;
        let all = [(1, 1 << 40), (1, memory), (3, memory)];
        let made =
            all.map(|(threads, limit)| multilevel.partition(&csr, &with(threads, limit)).unwrap().assignment);
        assert!(made[0][..] == made[1][..] && made[1][..] == made[2][..]);
        let refine = Refine::new(multilevel.goal, vec![0; n as usize]);
        let refined = [1 << 40, 0].map(|limit| refine.partition(&csr, &with(2, limit)).unwrap().0.assignment);
        assert!(refined[0][..] == refined[1][..]);
    }
}
