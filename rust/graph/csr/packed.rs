//! What the lists of an adjacency take as differences.
//!
//! A list is the difference of its first neighbour from the vertex itself, and then the gaps from each neighbour to the next.
//! Each is a varint of 7 bits per byte. Where neighbours have ids near each other, most take a byte instead of four.

use super::Csr;
use crate::base::{Result, Run};
use crate::exec::scan;

/// Vertices that a worker takes at a time.
const CHUNK: u32 = 1 << 10;

/// Bytes of the lists of all vertices, if vertex v had the id `places[v]`.
pub fn packed_len(csr: &Csr, places: Option<&[u32]>, run: &Run) -> Result<u64> {
    let n = csr.num_vertices() as u32;
    let place = |v: u32| places.map_or(v, |places| places[v as usize]);
    let init = || Ok((0, Vec::new()));
    let add = |(sum, list): &mut (u64, Vec<u32>), first: u32| {
        for v in first..n.min(first.saturating_add(CHUNK)) {
            list.clear();
            list.extend(csr.neighbours(v).iter().map(|&u| place(u)));
            list.sort_unstable();
            *sum += differences(place(v), list).map(|difference| varint_len(difference) as u64).sum::<u64>();
        }
        run.advance(CHUNK.into())
    };
    let sums = scan(run, usize::MAX, (0..n).step_by(CHUNK as usize), init, add)?;
    Ok(sums.into_iter().map(|(sum, _)| sum).sum())
}

/// What stands for an ascending list of the neighbours of `v`.
fn differences(v: u32, list: &[u32]) -> impl Iterator<Item = u64> {
    let from = i64::from(list.first().copied().unwrap_or(v)) - i64::from(v);
    // Small whether it is above 0 or below.
    let first = (from << 1 ^ from >> 63) as u64;
    let gaps = list.windows(2).map(|pair| u64::from(pair[1] - pair[0]));
    (!list.is_empty()).then_some(first).into_iter().chain(gaps)
}

/// Bytes of a varint.
fn varint_len(number: u64) -> u32 {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7)
}
