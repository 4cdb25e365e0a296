//! GREM: what must hold for every result, on graphs of any shape.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Graph, graphs, run};
use fastpart::algorithms::grem::{Chunk, Grem};
use fastpart::base::error::Error;
use fastpart::base::run::Run;
use fastpart::capacity::cap;
use proptest::prelude::*;

proptest! {
    #[test]
    fn caps_hold_and_threads_change_nothing(
        graph in graphs(40, 120),
        k in 1_u32..20,
        records in 1_u64..30,
        passes in 1_u32..3,
        refine: bool,
        shuffle: bool,
        balance in prop::sample::select(vec![1.0, 1.1, 2.0]),
    ) {
        let chunk = Chunk::Records(records);
        let grem = Grem { chunk, passes, refine, balance, shuffle, ..Grem::new(k) };
        let made = grem.partition(&graph, &run(1)).unwrap();
        let most = cap(balance, graph.n, k);
        prop_assert_eq!(made.cap, Some(most));
        prop_assert_eq!(made.loads.iter().sum::<u64>(), graph.n);
        prop_assert!(made.loads.iter().all(|&load| load <= most));
        let mut loads = vec![0; k as usize];
        made.assignment.iter().for_each(|&part| loads[part as usize] += 1);
        prop_assert_eq!(&loads, &made.loads);
        prop_assert_eq!(&grem.partition(&graph, &run(3)).unwrap().assignment[..], &made.assignment[..]);
    }

    #[test]
    fn faithful_places_every_vertex(graph in graphs(40, 120), k in 1_u32..20) {
        let made = Grem { faithful: true, ..Grem::new(k) }.partition(&graph, &run(1)).unwrap();
        prop_assert_eq!(made.cap, None);
        prop_assert_eq!(made.loads.iter().sum::<u64>(), graph.n);
    }
}

#[test]
fn refusals() {
    let graph = Graph::new(2, vec![[0, 1]]);
    for share in [0.0, -1.0, 1.1, f64::NAN] {
        let grem = Grem { chunk: Chunk::Share(share), ..Grem::new(2) };
        assert!(matches!(grem.partition(&graph, &run(1)), Err(Error::Parameter { name: "chunk", .. })));
    }
    let little = Run::new(Some(1), Some(100)).unwrap();
    assert!(matches!(Grem::new(2).partition(&graph, &little), Err(Error::MemoryBudget { .. })));
}

#[test]
fn a_share_that_does_not_fit_is_lowered() {
    let grem = Grem::new(8);
    let (n, m) = (1 << 20, 100 << 20);
    let (fixed, each) = grem.memory(n, m);
    let kept = |budget| grem.clone().within(n, m, &Run::new(Some(1), Some(budget)).unwrap()).chunk;
    assert_eq!(kept(fixed + each), Chunk::Share(0.1));
    assert_eq!(
        kept(fixed + each / 100),
        Chunk::Share(0.1),
        "too little even for a tenth of it: refused later"
    );
    let Chunk::Records(records) = kept(fixed + each / 2) else { panic!("not lowered") };
    let of = |records| Grem { chunk: Chunk::Records(records), ..grem.clone() }.memory(n, m).1;
    assert!(of(records) <= each / 2 && each / 2 < of(records + 1));
}
