//! The weight of the records inside and between parts.
//!
//! One pass. Sums are integers, so they do not depend on the threads. A sum beyond 2^64 - 1 stays there.

use super::validate;
use crate::base::{Result, Run, ahead, prefetch_ends, zeros};
use crate::edges::{BLOCK, EdgeStream, Weights};
use crate::exec::pass;

/// The weight of the non-loop records of a graph in a vertex partition, per part.
#[derive(Debug, PartialEq, Eq)]
pub struct WeightedCut {
    /// Weight of the records with both ends in the part.
    pub internal: Vec<u64>,
    /// Weight of the records with one end in the part.
    pub cut: Vec<u64>,
}

/// Adds up the weights of the records inside and between the parts.
pub fn weighted_cut(
    edges: &dyn EdgeStream,
    weights: &Weights,
    assignment: &[i32],
    k: u32,
    run: &Run,
) -> Result<WeightedCut> {
    validate(assignment, k, edges.num_vertices(), run)?;
    weights.check_len(edges.num_edges())?;
    weights.check_unchanged()?;
    let each = 16 * u64::from(k);
    let workers = run.workers(usize::MAX, each, each, "the weighted cut")?;
    run.begin("weighted cut", edges.num_edges());
    // For each part the weight of its inner records and of the records that leave it.
    let cells = || zeros::<[u64; 2]>(k as usize, "weighted cut");
    let init = || Ok((cells()?, Vec::new()));
    let states = pass(edges, run, BLOCK, workers, init, |(cells, buf), first, records| {
        let weights = weights.block(first..first + records.len() as u64, buf)?;
        for (index, (&[u, v], &weight)) in records.iter().zip(weights).enumerate() {
            prefetch_ends(assignment, records, index + ahead::RECORDS);
            let (p, q) = (assignment[u as usize] as usize, assignment[v as usize] as usize);
            let weight = if u == v { 0 } else { u64::from(weight) };
            let cut = usize::from(p != q);
            add(&mut cells[p][cut], weight);
            add(&mut cells[q][1], weight * cut as u64);
        }
        Ok(())
    })?;
    weights.check_unchanged()?;
    let mut total = cells()?;
    for (cells, _) in states {
        for (total, some) in total.iter_mut().flatten().zip(cells.into_iter().flatten()) {
            add(total, some);
        }
    }
    let [internal, cut] = [0, 1].map(|cut| total.iter().map(|sums| sums[cut]).collect());
    Ok(WeightedCut { internal, cut })
}

fn add(sum: &mut u64, weight: u64) {
    *sum = sum.saturating_add(weight);
}
