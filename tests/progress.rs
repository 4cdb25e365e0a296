//! Every partitioner, watched: its steps have a length that they keep to, and none goes long without a look at the
//! cancel flag.
//!
//! Processor time is measured, not time, so that other processes change nothing; what counts as long grows with what a
//! plain pass over the records takes on the same machine; and only what is long again and again counts, since the
//! system may take its time over new pages. There is one test, since the clock counts all threads of the process.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::Graph;
use fastpart::algorithms::{PARTITIONERS, SUCCESSORS};
use fastpart::base::error::Result;
use fastpart::base::run::{Run, Step};
use fastpart::edges::EdgeStream;
use fastpart::generate::{Rmat, records};
use fastpart::graph::csr::Csr;
use fastpart::graph::degrees;
use fastpart::partition::Of;
use fastpart::partition::contract::{Entry, Input};
use fastpart::partition::parameters::{Value, Values};

struct Call(Graph);

impl Input for Call {
    fn edges(&self) -> &dyn EdgeStream {
        &self.0
    }

    fn is_symmetric(&self) -> bool {
        false
    }

    fn adjacency(&self, run: &Run) -> Result<Arc<Csr>> {
        Csr::build(&self.0, false, run)
    }

    fn out(&self) -> Option<&Path> {
        None
    }
}

fn steps(entry: &Entry, of: Of, call: &Call) -> Vec<Step> {
    let run = common::run(1).watched();
    let mut values = Values::new(8, of, &(entry.fields)());
    values.set("partition", Value::PerVertex((0..call.0.n as u32).map(|v| v % 8).collect()));
    values.set("splits", Value::PerVertex((0..call.0.n as u32).map(|v| u32::from(v % 16 == 0)).collect()));
    (entry.solve)(values, call, &run).unwrap();
    run.advance(0).unwrap();
    run.steps()
}

#[test]
fn steps_keep_to_their_length_and_look_at_the_cancel_flag() {
    const N: u64 = 1 << 19;
    let model = Rmat::new(N, N, 1).unwrap();
    let call = Call(Graph::new(N, records(&model, 0..N, &common::run(2)).unwrap()));
    let alone = common::run(1).watched();
    degrees::scan(&call.0, &alone).unwrap();
    let limit = Duration::from_millis(250).max(10 * alone.steps()[0].longest);
    // Restreaming is streaming again.
    let again = ["reldg", "refennel"];
    for entry in PARTITIONERS.iter().chain(SUCCESSORS).filter(|entry| !again.contains(&entry.name)) {
        for &of in entry.of {
            let mut long = None;
            for _ in 0..3 {
                let steps = steps(entry, of, &call);
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
