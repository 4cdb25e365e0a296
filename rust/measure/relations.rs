//! Where the records of each relation of a typed graph lie in a vertex partition.
//!
//! **Memory.** 8 bytes per part and worker, whatever the number of relations.
//!
//! **Algorithm and parallelism.** A relation is a range of records. The relations are counted one after the
//! other, each by all threads.

use std::ops::Range;

use super::{check_sizes, total, validate};
use crate::base::{Result, Run, ahead, prefetch_ends, zeros};
use crate::edges::{EdgeStream, Record};
use crate::exec::{blocks, scan};

/// Where the records of one relation lie in a vertex partition.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RelationCut {
    /// Number of loops.
    pub loops: u64,
    /// Non-loop records with ends in two parts.
    pub cut: u64,
    /// The most ends of non-loop records in one part.
    pub largest_volume: u64,
}

/// Counts the records of each relation. Relations are ranges of records of the sizes `relations`, one after
/// the other.
pub fn relation_cuts(
    edges: &dyn EdgeStream,
    assignment: &[i32],
    k: u32,
    relations: &[u64],
    run: &Run,
) -> Result<Vec<RelationCut>> {
    validate(assignment, k, edges.num_vertices(), run)?;
    check_sizes("relations", relations, edges.num_edges())?;
    let each = 8 * u64::from(k);
    let workers = run.workers(usize::MAX, each, each, &format!("the ends in {k} parts"))?;
    run.begin("relations", edges.num_edges());
    edges.check_unchanged()?;
    let mut first = 0;
    let cuts = relations.iter().map(|&size| {
        let range = first..first + size;
        first += size;
        count(edges, assignment, k, range, workers, run)
    });
    let cuts = cuts.collect();
    edges.check_unchanged()?;
    cuts
}

/// The counts of a worker for one relation.
struct Tally {
    /// Ends of non-loop records in each part.
    ends: Vec<u64>,
    loops: u64,
    cut: u64,
}

impl Tally {
    fn add(&mut self, assignment: &[i32], records: &[Record]) {
        for (index, &[u, v]) in records.iter().enumerate() {
            prefetch_ends(assignment, records, index + ahead::RECORDS);
            let (p, q) = (assignment[u as usize] as usize, assignment[v as usize] as usize);
            // A loop adds 0: cheaper than a branch.
            self.ends[p] += u64::from(u != v);
            self.ends[q] += u64::from(u != v);
            self.loops += u64::from(u == v);
            self.cut += u64::from(p != q);
        }
    }
}

/// Counts the records of one relation.
fn count(
    edges: &dyn EdgeStream,
    assignment: &[i32],
    k: u32,
    records: Range<u64>,
    workers: usize,
    run: &Run,
) -> Result<RelationCut> {
    let empty = || Ok(Tally { ends: zeros(k as usize, "ends in the parts")?, loops: 0, cut: 0 });
    let init = || Ok((empty()?, Vec::new()));
    let blocks: Vec<Range<u64>> = blocks(records).collect();
    let states = scan(run, workers, blocks.into_iter(), init, |(tally, buf), range| {
        let records = edges.block(range, buf)?;
        tally.add(assignment, records);
        run.advance(records.len() as u64)
    })?;
    let mut found = RelationCut::default();
    let mut ends = Vec::new();
    for (tally, _) in states {
        found.loops += tally.loops;
        found.cut += tally.cut;
        ends.push(tally.ends);
    }
    found.largest_volume = total(ends, k as usize).into_iter().max().unwrap_or(0);
    Ok(found)
}
