//! Whether a stream that was opened as symmetric is. Gains would go wrong if it is not.
//!
//! **Algorithm.** Every entry `v -> u` adds the hash of the edge and its weight to a sum if `v < u`, and
//! takes it off else. The sum is 0 if both directions are there equally often and with the same weights. If
//! they are not, it is 0 with a probability of 2^-64. The lists are read once, from the first to the last,
//! since they may lie in a file that is larger than the memory. Only if the sum is not 0, two more passes
//! look for an edge to name.
//!
//! **Parallelism.** By ranges of vertices. The order of a sum does not matter.

use std::cmp::Ordering;

use crate::base::{Buffer, Error, Result, Run, splitmix64};
use crate::exec::scan;
use crate::graph::Csr;

/// Vertices that a thread takes at a time.
const VERTICES: usize = 1 << 12;
/// Entries between two polls of the cancel flag.
const CHUNK: usize = 1 << 14;

/// Refuses the adjacency of a stream that was opened as symmetric and is not, or whose weights are not.
pub(crate) fn check_symmetry(csr: &Csr, run: &Run) -> Result<()> {
    if !csr.is_symmetric() {
        return Ok(());
    }
    let n = csr.num_vertices();
    run.begin("symmetry", csr.num_entries());
    let here = csr.division().map_or(0..n, |division| {
        let here = division.here();
        here.start as usize..here.end as usize
    });
    let starts = here.clone().step_by(VERTICES);
    let sums = scan(
        run,
        usize::MAX,
        starts,
        || Ok(0_u64),
        |sum, start| {
            for v in start..here.end.min(start + VERTICES) {
                each(csr, v as u32, run, |u, w| *sum = sum.wrapping_add(term(v as u32, u, w)))?;
            }
            Ok(())
        },
    )?;
    let sum = sums.into_iter().fold(0, u64::wrapping_add);
    match csr.division() {
        None if sum == 0 => Ok(()),
        None => Err(culprit(csr, run)?),
        Some(division) if division.sum(sum)? == 0 => Ok(()),
        Some(_) => Err(Error::parameter(
            "directedness",
            "\"symmetric\", but the records do not list both directions of all edges alike. Open them as undirected or directed",
        )),
    }
}

/// Hands `visit` the target and the weight of each entry of `v`.
fn each(csr: &Csr, v: u32, run: &Run, mut visit: impl FnMut(u32, u32)) -> Result<()> {
    let first = csr.offsets()[v as usize] as usize;
    for (chunk, start) in csr.neighbours(v).chunks(CHUNK).zip((first..).step_by(CHUNK)) {
        match csr.weights() {
            None => chunk.iter().for_each(|&u| visit(u, 1)),
            Some(weights) => chunk.iter().zip(&weights[start..]).for_each(|(&u, &w)| visit(u, w)),
        }
        run.advance(chunk.len() as u64)?;
    }
    Ok(())
}

/// The term of an entry in the sum: the opposite of the term of the other direction.
#[inline(always)]
fn term(v: u32, u: u32, weight: u32) -> u64 {
    let edge = u64::from(v.min(u)) << 32 | u64::from(v.max(u));
    let hash = splitmix64(splitmix64(edge).wrapping_add(weight.into()));
    if v < u { hash } else { hash.wrapping_neg() }
}

/// The refusal, which names the first edge that is not symmetric.
fn culprit(csr: &Csr, run: &Run) -> Result<Error> {
    // A sum for each vertex, of its edges to those behind it.
    let n = csr.num_vertices() as u32;
    let mut sums: Buffer<u64> = Buffer::zeroed(n as usize, "directions of edges")?;
    run.begin("symmetry", 2 * csr.num_entries());
    for v in 0..n {
        each(csr, v, run, |u, w| {
            let sum = &mut sums[v.min(u) as usize];
            *sum = sum.wrapping_add(term(v, u, w));
        })?;
    }
    let own = sums.iter().position(|&sum| sum != 0).unwrap_or(0) as u32;
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for v in own..n {
        each(csr, v, run, |u, w| {
            if v == own && u > own {
                there.push((u, w));
            } else if u == own {
                back.push((v, w));
            }
        })?;
    }
    Ok(refusal(own, &there, &back))
}

/// Names the first edge of `own` that differs. Both lists ascend.
fn refusal(own: u32, there: &[(u32, u32)], back: &[(u32, u32)]) -> Error {
    let at =
        there.iter().zip(back).position(|(one, other)| one != other).unwrap_or(there.len().min(back.len()));
    let other = [there.get(at), back.get(at)].into_iter().flatten().map(|&(u, _)| u).min().unwrap_or(own);
    let count = |list: &[(u32, u32)]| list.iter().filter(|&&(u, _)| u == other).count();
    let what = match count(there).cmp(&count(back)) {
        Ordering::Greater => format!("list {own} to {other} more often than {other} to {own}"),
        Ordering::Less => format!("list {other} to {own} more often than {own} to {other}"),
        Ordering::Equal => format!("from {own} to {other} and from {other} to {own} differ in weight"),
    };
    let remedy = "Open them as undirected or directed";
    Error::parameter("directedness", format!("\"symmetric\", but the records {what}. {remedy}"))
}
