//! GREM: what must hold for every result, on graphs of any shape.

use crate::common::{Graph, OfVertices, graphs, run};
use fastpart::internals::algorithms::grem::{Chunk, Grem, Order};
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::capacity::cap;
use proptest::prelude::*;

proptest! {
    #[test]
    fn caps_hold_and_threads_change_nothing(
        graph in graphs(40, 120),
        k in 1_u32..20,
        records in 1_u64..30,
        passes in 1_u32..3,
        revise: bool,
        order in prop::sample::select(vec![Order::Random, Order::File]),
        balance in prop::sample::select(vec![1.0, 1.1, 2.0]),
    ) {
        let chunk = Chunk::Records(records);
        let grem = Grem { chunk, passes, revise, balance, order, ..Grem::new(k) };
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

/// The chunk that a refusal names.
fn named(grem: &Grem, graph: &Graph, budget: u64) -> Option<u64> {
    let refusal = grem.partition(graph, &Run::new(Some(1), Some(budget)).unwrap()).unwrap_err();
    let Error::MemoryBudget { what, .. } = &refusal else { panic!("{refusal}") };
    let (_, remedy) = what.split_once("(chunk=")?;
    remedy.split_once(" is the largest that fits").unwrap().0.parse().ok()
}

/// Whatever the memory, the chunk is the one asked for: one that does not fit is refused, with the largest that fits.
#[test]
fn a_chunk_that_does_not_fit_is_refused() {
    // With clusters a chunk takes less: of 600,000 records more fit than of 500,000.
    let thick = Graph::new(1 << 19, (0..1_u32 << 20).map(|r| [r >> 1, (r * 77) % (1 << 19)]).collect());
    let thin = Graph::new(50_000, (0..100_000_u32).map(|r| [r / 2, (r * 77) % 50_000]).collect());
    for (graph, share) in [(&thin, 0.1), (&thin, 1.0), (&thick, 0.4), (&thick, 1.0)] {
        let grem = Grem { chunk: Chunk::Share(share), ..Grem::new(8) };
        let (fixed, each) = grem.needed(graph.n, graph.m());
        let of =
            |records| Grem { chunk: Chunk::Records(records), ..grem.clone() }.needed(graph.n, graph.m()).1;
        for room in [each - 1, each / 2, each / 10] {
            let largest = named(&grem, graph, fixed + room).unwrap();
            assert!(of(largest) <= room, "{largest} records, {room} bytes");
            assert!(largest == graph.m() || of(largest + 1) > room, "{largest} records, {room} bytes");
        }
        assert_eq!(named(&grem, graph, fixed), None, "not even one record");
        assert_eq!(named(&grem, graph, 100), None);
    }
    let grem = Grem { order: Order::File, ..Grem::new(8) };
    let (fixed, each) = grem.needed(thin.n, thin.m());
    let tight = Run::new(Some(1), Some(fixed + each)).unwrap();
    let [tight, roomy] = [&tight, &run(1)].map(|run| grem.partition(&thin, run).unwrap().assignment);
    assert_eq!(tight[..], roomy[..]);
}

#[test]
fn files_in_memory_count_as_memory() {
    let memory = std::path::Path::new("/dev/shm");
    if !memory.exists() {
        return;
    }
    let graph = Graph::new(5000, (0..100_000_u32).map(|r| [r % 5000, (r * 77) % 4999]).collect());
    let grem = Grem { order: Order::File, ..Grem::new(8) };
    let (fixed, each) = grem.needed(graph.n, graph.m());
    let with = |budget| {
        let run = Run::new(Some(1), Some(budget)).unwrap().with_tmp_dir(Some(memory.into()));
        grem.partition(&graph, &run).map(|partition| partition.assignment)
    };
    let files = 16 * graph.m();
    let error = with(fixed + each + files - 1).unwrap_err().to_string();
    assert!(error.contains("1.6 MB of temporary files in /dev/shm, which is memory (tmp_dir="), "{error}");
    assert!(error.contains("is the largest that fits"), "{error}");
    assert_eq!(
        with(fixed + each + files).unwrap()[..],
        grem.partition(&graph, &run(1)).unwrap().assignment[..]
    );
}
