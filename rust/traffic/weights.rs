//! Weights of records by how often training samples them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::access;
use super::edges::{GraphEdges, InEdges};
use super::epoch::{Epoch, check_seeds};
use crate::base::{Buffer, Result, Run, ahead, prefetch_ends, shared};
use crate::exec::each_block;

/// Weight of a record that is sampled as often as the mean.
const MEAN: f64 = 1024.0;

/// For each record how often a step samples it as an in-edge, in units of 1/1024 of the mean and at least 1.
/// The seeds of a step are spread evenly over `parts` ranks.
pub fn sampling_weights(
    edges: &GraphEdges<'_>,
    seeds: &[u32],
    parts: u32,
    batch_size: u64,
    fanouts: &[i64],
    run: &Run,
) -> Result<Buffer<u32>> {
    let (n, m) = (edges.num_vertices(), edges.records.num_edges());
    check_seeds(seeds, n)?;
    run.require(24 * n + 4 * m, format!("weights of {m} records (4 bytes each, and 24 per vertex)"))?;
    // Each rank has `batch_size` seeds of a step, in whatever part they lie.
    let epoch = Epoch::new(seeds.len() as u64 * u64::from(parts), batch_size, fanouts)?;
    let degrees = edges.in_degrees(0, run)?;
    let expected = access::expected_samples(edges, &degrees, seeds, &epoch, run)?;
    let total: f64 = expected
        .iter()
        .zip(degrees.iter())
        .map(|(&expected, &degree)| f64::from(expected) * f64::from(degree))
        .sum();
    let scale = if total > 0.0 { MEAN * m as f64 / total } else { 0.0 };
    let mut weights: Buffer<u32> = Buffer::zeroed(m as usize, "weights of records")?;
    let places: &[AtomicU32] = shared(&mut weights);
    run.begin("weights", m);
    each_block(edges.records, run, |first, records| {
        for (index, &record) in records.iter().enumerate() {
            prefetch_ends(&expected, records, index + ahead::RECORDS);
            let [u, v] = record;
            let back = if edges.directions.reverses(first + index as u64, record) {
                expected[u as usize]
            } else {
                0.0
            };
            let weight = (f64::from(expected[v as usize]) + f64::from(back)) * scale;
            // Each place is written once.
            places[first as usize + index].store((weight as u32).clamp(1, 1 << 31), Relaxed);
        }
        Ok(())
    })?;
    Ok(weights)
}
