//! The records in memory, whose ends both have a low degree.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::base::{Result, Run};
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::pass;
use crate::sets::Bits;

/// Bytes of an entry of a [`histogram`] map, its free places included.
const BYTES_PER_DEGREE: u64 = 64;

/// The records between low ends. All others are loops, which are not stored.
pub(crate) struct LowGraph<'a> {
    edges: &'a dyn EdgeStream,
    high: Bits,
}

impl<'a> LowGraph<'a> {
    /// Bytes for `n` vertices.
    pub(crate) fn memory(n: u64) -> u64 {
        Bits::memory(n)
    }

    /// The records of `edges` whose ends have degrees up to `threshold`.
    pub(crate) fn new(edges: &'a dyn EdgeStream, degrees: &[u32], threshold: u32, run: &Run) -> Result<Self> {
        let mut high = Bits::new(degrees.len() as u64, "vertices of high degree")?;
        run.each(degrees.len(), |v| {
            if degrees[v as usize] > threshold {
                high.insert(v);
            }
        })?;
        Ok(Self { edges, high })
    }
}

// SAFETY: the ids are those of another stream.
unsafe impl EdgeStream for LowGraph<'_> {
    fn num_vertices(&self) -> u64 {
        self.edges.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.edges.num_edges()
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        self.edges.block(range, buf)?;
        let is_high = |id: u32| self.high.contains(id);
        for [u, v] in buf.iter_mut() {
            *v = if is_high(*u) | is_high(*v) { *u } else { *v };
        }
        Ok(buf)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.edges.check_unchanged()
    }
}

/// The largest of `values`, and their sum.
pub(crate) fn most_and_sum(values: &[u32], run: &Run) -> Result<(u64, u64)> {
    let (mut most, mut sum) = (0, 0);
    run.each(values.len(), |v| {
        let value = u64::from(values[v as usize]);
        (most, sum) = (value.max(most), sum + value);
    })?;
    Ok((most, sum))
}

/// Bytes of [`largest_tau`] on `m` records, the degrees of which take at most `2 sqrt(m)` values.
pub(crate) fn memory_of_largest_tau(m: u64, threads: usize) -> u64 {
    BYTES_PER_DEGREE * 2 * (m.isqrt() + 1) * (threads as u64 + 1)
}

/// The largest tau of few digits at which the lists fit. `fits` gets a bound on the length of the longest
/// list, and the number of entries.
pub(crate) fn largest_tau(
    edges: &dyn EdgeStream,
    degrees: &[u32],
    mean: f64,
    most: u64,
    fits: impl Fn(u64, u64) -> bool,
    run: &Run,
) -> Result<f64> {
    let (mut entries, mut low, mut next) = (0, 0, None);
    for (degree, count) in histogram(edges, degrees, run)? {
        entries += count;
        if u64::from(degree) > most || !fits(degree.into(), entries) {
            next = Some(degree);
            break;
        }
        low = degree;
    }
    Ok(between(low, next.unwrap_or(low + 1), mean))
}

/// Ends of records by the larger degree of both, ascending.
fn histogram(edges: &dyn EdgeStream, degrees: &[u32], run: &Run) -> Result<Vec<(u32, u64)>> {
    run.begin("records by degree", edges.num_edges());
    let init = || Ok(FxHashMap::<u32, u64>::default());
    let count = |counts: &mut FxHashMap<u32, u64>, _, records: &[Record]| {
        for &[u, v] in records.iter().filter(|[u, v]| u != v) {
            *counts.entry(degrees[u as usize].max(degrees[v as usize])).or_default() += 2;
        }
        Ok(())
    };
    let mut sum = FxHashMap::default();
    for counts in pass(edges, run, BLOCK, usize::MAX, init, count)? {
        counts.into_iter().for_each(|(degree, count)| *sum.entry(degree).or_default() += count);
    }
    let mut sum: Vec<_> = sum.into_iter().collect();
    sum.sort_unstable();
    Ok(sum)
}

/// The number with the fewest decimals, and of these the largest, whose product with `mean` is at least `low`
/// and less than `next`.
fn between(low: u32, next: u32, mean: f64) -> f64 {
    let rounded = |digits| {
        let scale = 10_u64.pow(digits) as f64;
        ((f64::from(next) / mean * scale).ceil() - 1.0) / scale
    };
    let found = (0..=17).map(rounded).find(|tau| (f64::from(low)..f64::from(next)).contains(&(tau * mean)));
    found.unwrap_or(if mean > 0.0 { (f64::from(low) + 0.5) / mean } else { 0.0 })
}
