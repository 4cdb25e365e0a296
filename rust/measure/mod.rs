//! The integers behind every measure of a partition.
//!
//! **Requirements.** A vertex partition as one part per vertex, `0..k`, in the order of the vertices. Every
//! function checks it first, and its error names the first wrong vertex.
//!
//! **Memory.** [`cut()`]: `8 k²` bytes, per worker for small k (`16 k` per worker above [`cut::DENSE_PARTS`]
//! parts). [`halo_sizes`]: 8 bytes per vertex. [`components()`]: 4 bytes per vertex. Counts over the
//! vertices: `8 k` bytes per worker. All of it is compared with the budget first.
//!
//! **Algorithm.** One pass over the records for the cut, one for each 64 parts for the halos, and one over
//! the vertices for sizes, splits and labels. Every result is a sum of integers, so it does not depend on the
//! threads. The one place with fractions, [`label_skew`], divides exact sums once. In a typed graph a type is
//! a range of vertices, and a relation a range of records: [`halo_sizes_of_types`], [`replicas_of_types`] and
//! [`relation_cuts`] count by range.
//!
//! **Definitions.** A loop has no cut and no halo. It is counted separately. A parallel record counts like
//! any other.

mod components;
pub mod cut;
mod halo;
pub(crate) mod homes;
mod labels;
mod relations;
mod replicas;
mod weighted_cut;

use std::ops::Range;

use crate::base::{Error, Result, Run, zeros};
use crate::capacity::validate_parts;
use crate::edges::EdgeStream;
use crate::exec::scan_ranges;
use crate::sets::Bits;

pub use components::components;
pub use cut::{Cut, SparseMatrix, cut, sparse_matrix};
pub use halo::{halo_sizes, halo_sizes_of_types};
pub use homes::home_parts;
pub use labels::label_skew;
pub use relations::{RelationCut, relation_cuts};
pub use replicas::{Replicas, TypeReplicas, replicas, replicas_of_types};
pub use weighted_cut::{WeightedCut, weighted_cut};

/// Vertices between two polls of the cancel flag: far below a millisecond.
const CHUNK: usize = 1 << 16;

/// Refuses an assignment that does not give each of `n` vertices a part in `0..k`.
pub fn validate(assignment: &[i32], k: u32, n: u64, run: &Run) -> Result<()> {
    validate_parts(k)?;
    if assignment.len() as u64 != n {
        let what = format!("{} entries for {n} vertices. It belongs to another graph", assignment.len());
        return Err(Error::parameter("assignment", what));
    }
    run.begin("validate", n);
    // A negative part is a huge one as u32. The maximum, unlike a search, is found at the pace of the memory.
    let wrong = over_vertices(
        assignment.len(),
        usize::MAX,
        run,
        || Ok(None),
        |wrong, range| {
            let largest =
                assignment[range.clone()].iter().fold(0, |largest, &part| (part as u32).max(largest));
            if wrong.is_none() && largest >= k {
                *wrong = Some(range.start);
            }
            Ok(())
        },
    )?;
    let Some(first) = wrong.into_iter().flatten().min() else { return Ok(()) };
    let bad = assignment[first..].iter().zip(first..).find(|&(&part, _)| part as u32 >= k);
    let (part, vertex) = bad.map_or((-1, first), |(&part, vertex)| (part, vertex));
    Err(Error::parameter("assignment", format!("vertex {vertex} has part {part}, outside 0..{k}")))
}

/// Refuses another number of parts of records than `edges` has records.
pub(crate) fn validate_records<P>(edges: &dyn EdgeStream, assignment: &[P], k: u32) -> Result<()> {
    validate_parts(k)?;
    let (given, m) = (assignment.len(), edges.num_edges());
    if given as u64 == m {
        return Ok(());
    }
    let what = format!("{given} entries for {m} records. It belongs to another graph");
    Err(Error::parameter("assignment", what))
}

/// Refuses types or relations, called `name`, that are not all of `total` vertices or records.
fn check_sizes(name: &'static str, sizes: &[u64], total: u64) -> Result<()> {
    let sum = sizes.iter().fold(0, |sum: u64, &size| sum.saturating_add(size));
    if sum == total {
        return Ok(());
    }
    Err(Error::parameter(name, format!("{sum} together, expected {total}")))
}

/// Number of vertices of each part.
pub fn part_sizes(assignment: &[i32], k: u32, run: &Run) -> Result<Vec<u64>> {
    count_vertices(assignment, k, run, |_| true)
}

/// Number of vertices of each part among `ids`: a split given as a set of ids. An id that occurs twice counts
/// once, as it would in a mask.
pub fn split_counts(assignment: &[i32], ids: &[i64], k: u32, run: &Run) -> Result<Vec<u64>> {
    let n = assignment.len();
    run.require(Bits::memory(n as u64), "the ids of a split as a set")?;
    let mut selected = Bits::new(n as u64, "split")?;
    run.begin("split", ids.len() as u64);
    for (chunk, ids) in ids.chunks(CHUNK).enumerate() {
        for (&id, position) in ids.iter().zip(chunk * CHUNK..) {
            // A negative id is a huge one here.
            if id as u64 >= n as u64 {
                let what = format!("entry {position} is {id}, outside 0..{n}. Ids number the vertices");
                return Err(Error::parameter("splits", what));
            }
            selected.insert(id as u64);
        }
        run.advance(ids.len() as u64)?;
    }
    count_vertices(assignment, k, run, |vertex| selected.contains(vertex as u64))
}

/// Number of vertices of each part that `selected` holds for.
fn count_vertices(
    assignment: &[i32],
    k: u32,
    run: &Run,
    selected: impl Fn(usize) -> bool + Sync,
) -> Result<Vec<u64>> {
    validate(assignment, k, assignment.len() as u64, run)?;
    let each = 8 * u64::from(k);
    let workers = run.workers(usize::MAX, each, each, &format!("counts of {k} parts"))?;
    run.begin("count", assignment.len() as u64);
    let init = || zeros(k as usize, "counts of the parts");
    let states = over_vertices(assignment.len(), workers, run, init, |counts, range| {
        for (&part, vertex) in assignment[range.clone()].iter().zip(range) {
            counts[part as usize] += u64::from(selected(vertex));
        }
        Ok(())
    })?;
    Ok(total(states, k as usize))
}

/// The sums of the workers' counts for each of `k` parts.
pub(crate) fn total(counts: Vec<Vec<u64>>, k: usize) -> Vec<u64> {
    counts.into_iter().fold(vec![0; k], |mut total, counts| {
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        total
    })
}

/// Hands chunks of the vertices `0..n` to at most `workers` workers and returns their states, in any order.
fn over_vertices<S: Send>(
    n: usize,
    workers: usize,
    run: &Run,
    init: impl Fn() -> Result<S> + Sync,
    step: impl Fn(&mut S, Range<usize>) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    scan_ranges(run, workers, n, CHUNK, init, |state, range| {
        run.advance(range.len() as u64)?;
        step(state, range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run::new(Some(3), None).unwrap()
    }

    #[test]
    fn the_first_wrong_vertex_is_named() {
        let mut assignment = vec![1; 5 * CHUNK];
        assert!(validate(&assignment, 2, assignment.len() as u64, &run()).is_ok());
        assignment[3 * CHUNK + 7] = 2;
        assignment[4 * CHUNK] = -1;
        let error = validate(&assignment, 2, assignment.len() as u64, &run()).unwrap_err().to_string();
        assert_eq!(error, format!("assignment: vertex {} has part 2, outside 0..2", 3 * CHUNK + 7));
        let error = validate(&[0, -1, 5], 2, 3, &run()).unwrap_err().to_string();
        assert_eq!(error, "assignment: vertex 1 has part -1, outside 0..2");
        let error = validate(&[0], 2, 2, &run()).unwrap_err().to_string();
        assert!(error.contains("1 entries for 2 vertices"), "{error}");
        assert!(validate(&[], 0, 0, &run()).is_err() && validate(&[], 1, 0, &run()).is_ok());
    }

    #[test]
    fn splits_are_sets_of_valid_ids() {
        let assignment = [0, 2, 2, 1];
        assert_eq!(split_counts(&assignment, &[1, 2, 1, 3], 3, &run()).unwrap(), [0, 1, 2]);
        for (ids, named) in [([0, 4], "entry 1 is 4"), ([-1, 0], "entry 0 is -1")] {
            let error = split_counts(&assignment, &ids, 3, &run()).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_cancelled_run_stops() {
        let run = run();
        run.cancel();
        assert!(matches!(part_sizes(&[0; 10], 1, &run), Err(Error::Cancelled)));
    }
}
