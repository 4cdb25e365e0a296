//! Every partitioner, watched: its steps have a length that they keep to, and none goes long without a look at the
//! cancel flag.
//!
//! Processor time is measured, not time, so that other processes change nothing; what counts as long grows with what a
//! plain pass over the records takes on the same machine; and only what is long again and again counts, since the
//! system may take its time over new pages. There is one test, since the clock counts all threads of the process.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::Graph;
use fastpart::internals::algorithms::{PARTITIONERS, SUCCESSORS};
use fastpart::internals::base::Step;
use fastpart::internals::generate::{Rmat, records};
use fastpart::internals::graph::degrees;
use fastpart::internals::partition::{Entry, Given, Input, Of, Value};

fn steps(entry: &Entry, of: Of, graph: &Graph) -> Vec<Step> {
    let run = common::run(1).watched();
    let values = (entry.fields)().into_iter().filter_map(|field| {
        let value = match field.kind {
            "partition" => (0..graph.n as u32).map(|v| v % 8).collect(),
            "splits" => (0..graph.n as u32).map(|v| u32::from(v % 16 == 0)).collect(),
            _ => return None,
        };
        Some((field.name.to_owned(), Value::PerVertex(value)))
    });
    let given = Given { k: 8, of, values: values.collect() };
    (entry.partition)(given, &Input::new(graph), &run).unwrap();
    run.advance(0).unwrap();
    run.steps()
}

#[test]
fn steps_keep_to_their_length_and_look_at_the_cancel_flag() {
    const N: u64 = 1 << 19;
    let model = Rmat::new(N, N, 1).unwrap();
    let graph = Graph::new(N, records(&model, 0..N, &common::run(2)).unwrap());
    let alone = common::run(1).watched();
    degrees::scan(&graph, &alone).unwrap();
    let limit = Duration::from_millis(250).max(10 * alone.steps()[0].longest);
    // Restreaming is streaming again.
    let again = ["reldg", "refennel"];
    for entry in PARTITIONERS.iter().chain(SUCCESSORS).filter(|entry| !again.contains(&entry.name)) {
        for &of in entry.of {
            let mut long = None;
            for _ in 0..3 {
                let steps = steps(entry, of, &graph);
                for Step { progress, .. } in &steps {
                    let at_its_end = progress.done == progress.total
                        // Of what is merged, the sizes alone are known before.
                        || progress.phase == "merging" && progress.done < progress.total;
                    assert!(progress.total > 0 && at_its_end, "{}, {of:?}: {progress:?}", entry.name);
                }
                long = steps.into_iter().find(|step| step.longest > limit);
                if long.is_none() {
                    break;
                }
            }
            assert!(long.is_none(), "{}, {of:?}: {long:?}, more than {limit:?}", entry.name);
        }
    }
}
