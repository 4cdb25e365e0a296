//! Sorted-list scheduling: jobs, heaviest first, each to the machine with the least load (Graham, "Bounds on
//! Multiprocessing Timing Anomalies", 1969); the largest load is at most 4/3 of the best possible.

use std::cmp::Reverse;

use super::LeastLoaded;
use crate::base::{Buffer, Result, Run};
use crate::exec::sort_by_key;

/// A machine for each job: jobs in descending weight (tie: lower job) onto one of `k` machines, the least
/// loaded (tie: lower machine). 8 bytes per job beside the result; O(c log c + c log k).
pub(crate) fn schedule(weights: &[u64], k: u32, run: &Run) -> Result<Buffer<u32>> {
    let mut order: Buffer<u32> = Buffer::zeroed(weights.len(), "order of clusters")?;
    order.iter_mut().zip(0..).for_each(|(job, index)| *job = index);
    sort_by_key(&mut order, run, |&job| (Reverse(weights[job as usize]), job));
    run.check()?;
    let mut machine_of: Buffer<u32> = Buffer::zeroed(weights.len(), "parts of clusters")?;
    let mut machines = LeastLoaded::new((0..k).map(|_| 0));
    run.each(order.len(), |place| {
        let job = order[place as usize] as usize;
        machine_of[job] = machines.place(weights[job]);
    })?;
    Ok(machine_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_by_hand(weights in proptest::collection::vec(0_u64..20, 0..80), k in 1_u32..9) {
            let mut order: Vec<usize> = (0..weights.len()).collect();
            order.sort_by(|&a, &b| weights[b].cmp(&weights[a]));
            let mut loads = vec![0; k as usize];
            let mut expected = vec![0; weights.len()];
            for job in order {
                let least = (0..loads.len()).min_by_key(|&machine| loads[machine]).unwrap();
                expected[job] = least as u32;
                loads[least] += weights[job];
            }
            for threads in [1, 2] {
                let run = Run::new(Some(threads), None).unwrap();
                prop_assert_eq!(&schedule(&weights, k, &run).unwrap()[..], &expected[..]);
            }
        }
    }
}
