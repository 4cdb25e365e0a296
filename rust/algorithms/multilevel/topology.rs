//! Parts on machines: few cut edges between machines first, and then few between the parts of each.
//!
//! The graph is partitioned into as many groups as there are machines. Each group may weigh what its parts may weigh
//! together. Then the graph of each group is partitioned into its parts. So no move between the
//! parts of a machine changes what is cut between machines.
//!
//! **Figures.** On 17 real graphs (balance 1.03, one seed), with two machines of 4 parts, the cut between machines is 0.996
//! of that of a partition into 2 parts in the geometric mean, and never above 1.005. The whole cut is 1.023 of that of
//! a partition into 8 parts, and 1.14 at worst. With four machines of 8 parts it is 0.989 and 1.012, at worst 1.12 and
//! 1.05.
//!
//! **Memory.** [`memory`]: the graph of a group, which may have nearly all entries.
//!
//! **Parallelism.** That of the partitions, one after the other.

use super::graph::Graph;
use super::scheme::Scheme;
use super::scheme::initial::sum;
use crate::base::{Buffer, Error, Result, Run, splitmix64};
use crate::capacity::Load;

/// Refuses machines whose parts are not `k` in all.
pub fn validate(machines: &[u32], k: u32) -> Result<()> {
    let sum: u64 = machines.iter().map(|&parts| u64::from(parts)).sum();
    if sum == u64::from(k) && !machines.contains(&0) {
        return Ok(());
    }
    let what =
        format!("{machines:?} are {sum} parts, but k is {k}. Use numbers of at least 1 whose sum is k");
    Err(Error::parameter("machines", what))
}

/// Bytes for the graph of a group beside what its partition takes, for `n` vertices and so many entries.
pub fn memory(n: u64, entries: u64) -> u64 {
    entries.saturating_mul(8).saturating_add(32 * n)
}

/// Parts of the vertices of `graph`, one for each of `caps`, and the number of rounds. `solve` partitions a graph with
/// the scheme that it is given.
pub fn partition<const D: usize>(
    scheme: &Scheme,
    graph: &Graph<D>,
    caps: &[Load<D>],
    machines: &[u32],
    run: &Run,
    solve: impl Fn(&Scheme, &Graph<D>, &[Load<D>]) -> Result<(Buffer<u32>, u64)>,
) -> Result<(Buffer<u32>, u64)> {
    let mut rest = caps;
    let groups: Vec<&[Load<D>]> =
        machines.iter().map(|&parts| rest.split_off(..parts as usize).unwrap_or_default()).collect();
    let sums: Vec<Load<D>> = groups.iter().map(|caps| sum(caps)).collect();
    let each = scheme.units / (machines.len() as u64 + 1);
    let whole = Scheme { units: scheme.units - each * machines.len() as u64, ..scheme.clone() };
    let ((machine_of, _), mut rounds) = whole.partition(graph, &sums, run)?;
    let mut part_of: Buffer<u32> = Buffer::zeroed(graph.len(), "parts")?;
    let mut first = 0;
    for (machine, caps) in (0..).zip(groups) {
        let (group, ids) = graph.induced(&machine_of, machine, run)?;
        let seed = splitmix64(scheme.seed ^ u64::from(machine + 1));
        let (parts, more) = solve(&Scheme { units: each, seed, ..scheme.clone() }, &group, caps)?;
        run.each(ids.len(), |i| part_of[ids[i as usize] as usize] = first + parts[i as usize])?;
        first += caps.len() as u32;
        rounds = rounds.max(more);
    }
    Ok((part_of, rounds))
}
