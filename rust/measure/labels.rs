//! The distance of the labels of a part from those of the graph.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustc_hash::FxHashMap;

use super::{over_vertices, validate};
use crate::base::{Error, Result, Run};

/// Bytes of one (part, label) in a hash map that has just grown, with its predecessor.
const BYTES_PER_PAIR: u64 = 3 * 25;

/// For each part the total-variation distance between the distribution of its labels and that of all labels.
/// NaN for a part without labelled vertices. A negative label means "unlabelled" and is ignored.
///
/// Labels may be any numbers: only pairs of part and label that occur take memory. The distance is the share
/// by which the part's more frequent labels exceed the graph's, a sum of integers divided once.
pub fn label_skew(assignment: &[i32], labels: &[i64], k: u32, run: &Run) -> Result<Vec<f64>> {
    validate(assignment, k, assignment.len() as u64, run)?;
    if labels.len() != assignment.len() {
        let what = format!("{} labels for {} vertices. Give one per vertex", labels.len(), assignment.len());
        return Err(Error::parameter("labels", what));
    }
    let pairs = count_pairs(assignment, labels, k, run)?;
    let mut part_total = vec![0_u64; k as usize];
    let mut label_total: FxHashMap<i64, u64> = FxHashMap::default();
    for (&(part, label), count) in &pairs {
        part_total[part as usize] += count;
        *label_total.entry(label).or_default() += count;
    }
    let total: u64 = part_total.iter().sum();
    let mut excess = vec![0_u128; k as usize];
    for ((part, label), count) in pairs {
        let seen = u128::from(count) * u128::from(total);
        let expected = u128::from(label_total[&label]) * u128::from(part_total[part as usize]);
        excess[part as usize] += seen.saturating_sub(expected);
    }
    // 0 / 0 is the NaN of a part without labels.
    let whole = |part: u64| (u128::from(part) * u128::from(total)) as f64;
    Ok(excess.iter().zip(part_total).map(|(&excess, part)| excess as f64 / whole(part)).collect())
}

/// Number of vertices of each part with each label.
fn count_pairs(assignment: &[i32], labels: &[i64], k: u32, run: &Run) -> Result<FxHashMap<(i32, i64), u64>> {
    run.require(24 * u64::from(k), format!("label counts of {k} parts"))?;
    run.begin("labels", assignment.len() as u64);
    let num_pairs = AtomicU64::new(0);
    let init = || Ok(FxHashMap::default());
    let maps = over_vertices(assignment.len(), usize::MAX, run, init, |pairs, range| {
        let before = pairs.len();
        for (&part, &label) in assignment[range.clone()].iter().zip(&labels[range]) {
            if label >= 0 {
                *pairs.entry((part, label)).or_insert(0) += 1;
            }
        }
        let new = (pairs.len() - before) as u64;
        // The merged counts may hold all pairs once more.
        let pairs = num_pairs.fetch_add(new, Relaxed) + new;
        run.require(2 * pairs * BYTES_PER_PAIR, format!("label counts of {k} parts"))
    })?;
    let mut total = FxHashMap::default();
    for (pair, count) in maps.into_iter().flatten() {
        *total.entry(pair).or_insert(0) += count;
        run.check()?;
    }
    Ok(total)
}
