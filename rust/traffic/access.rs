//! The expected number of times that each vertex is in the batches of a part, from probabilities.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::edges::{Degrees, DirectedEdge, InEdges};
use super::epoch::Epoch;
use crate::base::{Buffer, Result, Run, ahead, prefetch, shared};
use crate::exec::{for_each, scan};

/// One, in the fixed point of the sums.
const ONE: f64 = (1_u64 << 48) as f64;

/// A sum from which on a vertex is surely met. Nothing is added to a larger one, so that none overflows. How
/// far a sum gets beyond depends on the order of the edges, and so on the threads. It is read as this one.
const ENOUGH: u64 = 64 << 48;

/// -ln(1 - q) of an edge that is sampled for certain.
const CERTAIN: f64 = 16.0;

/// Bytes per vertex and part.
pub(crate) const BYTES: u64 = 16;

/// Bytes beside them if there are several relations.
const BYTES_OF_RELATIONS: u64 = 8;

/// For each vertex and each list of `seeds`, the expected number of steps of the epoch whose batch has the
/// vertex, if the list has the seeds of one part: `count = seeds.len()` values of a vertex follow each other.
/// `degrees` are those of `edges`.
pub(crate) fn accesses(
    edges: &dyn InEdges,
    degrees: &mut Degrees<'_>,
    seeds: &[&[u32]],
    epoch: &Epoch,
    run: &Run,
) -> Result<Buffer<f32>> {
    let (n, count) = (edges.num_vertices(), seeds.len());
    let several = edges.num_relations() > 1;
    let bytes = BYTES + if several { BYTES_OF_RELATIONS } else { 0 };
    let what = format!("the access probabilities of {count} parts ({bytes} bytes per vertex and part)");
    run.require(bytes * n * count as u64, what)?;
    let mut levels = Levels::begin(n as usize, seeds, epoch, several)?;
    let items = levels.missed.len();
    for hop in 0..epoch.num_hops() {
        let sampled = epoch.sampled(hop);
        for (place, &(relation, fanout)) in sampled.iter().enumerate() {
            let degrees = degrees.of(relation, run)?;
            run.begin("access", edges.work(relation) + items as u64);
            let turn = Turn { first: place == 0, last: place + 1 == sampled.len() };
            levels.enter(turn, run, |present, vertex| weight_of(present, degrees[vertex], fanout))?;
            levels.follow(relation, edges, run)?;
        }
        levels.next(sampled.is_empty(), run)?;
    }
    run.begin("access", items as u64);
    levels.leave(run)?;
    let Levels { mut missed, .. } = levels;
    for_each(&mut missed, run, |_, missed| *missed = epoch.steps_with(f64::from(*missed)) as f32)?;
    Ok(missed)
}

/// The expected number of samples of an in-edge of each vertex in a step, in a graph with one relation, if a
/// part has the `seeds`.
pub(crate) fn expected_samples(
    edges: &dyn InEdges,
    degrees: &[u32],
    seeds: &[u32],
    epoch: &Epoch,
    run: &Run,
) -> Result<Buffer<f32>> {
    let (n, hops) = (edges.num_vertices(), epoch.num_hops());
    run.require((BYTES + 4) * n, format!("expected samples of {n} vertices ({} bytes each)", BYTES + 4))?;
    let mut levels = Levels::begin(n as usize, &[seeds], epoch, false)?;
    let mut expected = Buffer::zeroed(n as usize, "expected samples")?;
    for hop in 0..hops {
        let fanout = epoch.sampled(hop).first().map_or(Some(0), |&(_, fanout)| fanout);
        run.begin("access", edges.work(0) + 2 * n);
        let turn = Turn { first: true, last: true };
        levels.enter(turn, run, |present, vertex| weight_of(present, degrees[vertex], fanout))?;
        let weights = &levels.weights;
        for_each(&mut expected, run, |vertex, expected: &mut f32| {
            *expected -= libm::expm1f(-weights[vertex])
        })?;
        if hop + 1 < hops {
            levels.follow(0, edges, run)?;
            levels.next(false, run)?;
        }
    }
    Ok(expected)
}

/// -ln(1 - q) of the in-edges of a vertex that is in a level with probability `present`.
fn weight_of(present: f64, degree: u32, fanout: Option<u32>) -> f32 {
    let sampled = fanout.map_or(1.0, |fanout| (f64::from(fanout) / f64::from(degree.max(1))).min(1.0));
    (-libm::log1p(-sampled * present)).min(CERTAIN) as f32
}

/// A number in the fixed point of the sums.
#[inline(always)]
fn fixed(value: f64) -> u64 {
    (value.min(CERTAIN) * ONE) as u64
}

/// Whether a relation is the first or the last that is followed in a level.
#[derive(Clone, Copy)]
struct Turn {
    /// The first: it counts the level.
    first: bool,
    /// The last: it makes the level empty.
    last: bool,
}

/// The vertices in a level, and in those before it. The values of a vertex for all parts follow each other.
struct Levels {
    /// -ln(1 - q) of the in-edges of each vertex, where q is the probability that one is sampled.
    weights: Buffer<f32>,
    /// For each vertex the sum of the weights of its out-edges, which gives the probability that it is in the
    /// level.
    sums: Buffer<u64>,
    /// The sums for the next level. Empty if there is one relation: its sums then replace those of the level,
    /// which is read before.
    next: Buffer<u64>,
    /// Probability that a vertex is in no level.
    missed: Buffer<f32>,
    /// Number of parts.
    count: usize,
}

impl Levels {
    /// The seeds of each part, before level 0 begins.
    fn begin(n: usize, seeds: &[&[u32]], epoch: &Epoch, several: bool) -> Result<Self> {
        let count = seeds.len();
        let mut sums = Buffer::zeroed(n * count, "sums of access probabilities")?;
        let seed_sum = fixed(-libm::log1p(-epoch.seed_probability().min(1.0)));
        for (part, seeds) in seeds.iter().enumerate() {
            seeds.iter().for_each(|&seed| sums[seed as usize * count + part] = seed_sum);
        }
        let mut missed = Buffer::zeroed(n * count, "missed vertices")?;
        missed.fill(1.0);
        let next = Buffer::zeroed(if several { n * count } else { 0 }, "sums of access probabilities")?;
        Ok(Self { weights: Buffer::zeroed(n * count, "access probabilities")?, sums, next, missed, count })
    }

    /// Turns the sums of the level into the weights of its in-edges of a relation: `weight` of the
    /// probability that a vertex is in the level, and of the vertex.
    fn enter(&mut self, turn: Turn, run: &Run, weight: impl Fn(f64, usize) -> f32 + Sync) -> Result<()> {
        let Self { weights, sums, missed, count, .. } = self;
        let (count, size) = (*count, CHUNK * *count);
        let chunks = weights.chunks_mut(size).zip(sums.chunks_mut(size)).zip(missed.chunks_mut(size));
        let work = |(): &mut (), (((weights, sums), missed), first): (_, usize)| {
            let (weights, sums, missed): (&mut [f32], &mut [u64], &mut [f32]) = (weights, sums, missed);
            for (place, ((of_edges, sum), missed)) in weights.iter_mut().zip(sums).zip(missed).enumerate() {
                *of_edges = 0.0;
                if *sum > 0 {
                    let absent = libm::exp(-((*sum).min(ENOUGH) as f64) / ONE);
                    *missed = if turn.first { (f64::from(*missed) * absent) as f32 } else { *missed };
                    *sum = if turn.last { 0 } else { *sum };
                    *of_edges = weight(1.0 - absent, first + place / count);
                }
            }
            run.advance(weights.len() as u64)
        };
        scan(run, usize::MAX, chunks.zip((0..).step_by(CHUNK)), || Ok(()), work).map(drop)
    }

    /// Counts the last level, of which nothing is sampled.
    fn leave(&mut self, run: &Run) -> Result<()> {
        self.enter(Turn { first: true, last: true }, run, |_, _| 0.0)
    }

    /// Goes on to the next level. `skipped`: nothing was sampled of this one.
    fn next(&mut self, skipped: bool, run: &Run) -> Result<()> {
        if skipped {
            self.leave(run)?;
        }
        if !self.next.is_empty() {
            std::mem::swap(&mut self.sums, &mut self.next);
        }
        Ok(())
    }

    /// Adds up the weights of the out-edges of every vertex.
    fn follow(&mut self, relation: usize, edges: &dyn InEdges, run: &Run) -> Result<()> {
        let next = if self.next.is_empty() { &mut self.sums } else { &mut self.next };
        let (weights, sums, count) = (&self.weights, shared(next), self.count);
        edges.visit(relation, run, &|block| {
            for (index, edge) in block.iter().enumerate() {
                if let Some(ahead) = block.get(index + ahead::ENTRIES) {
                    prefetch(weights, ahead.target as usize * count);
                    prefetch(sums, ahead.source as usize * count);
                }
                add(weights, sums, count, edge);
            }
        })
    }
}

/// Vertices between two polls of the cancel flag.
const CHUNK: usize = 1 << 14;

/// Adds the weights of an edge to the sums of its source.
#[inline(always)]
fn add(weights: &[f32], sums: &[AtomicU64], count: usize, edge: &DirectedEdge) {
    let (from, to) = (edge.target as usize * count, edge.source as usize * count);
    for (&weight, sum) in weights[from..from + count].iter().zip(&sums[to..to + count]) {
        if weight > 0.0 && sum.load(Relaxed) < ENOUGH {
            sum.fetch_add(fixed(f64::from(weight)), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::Directedness;
    use crate::edges::decode::Column;
    use crate::edges::{IdType, MemoryEdges};
    use crate::traffic::GraphEdges;

    fn column(ids: &[u32]) -> Column {
        Column { start: ids.as_ptr().cast(), stride: 4, id_type: IdType::U32, swapped: false }
    }

    #[test]
    fn accesses_of_a_hub_do_not_depend_on_the_threads() {
        // Every other vertex is a seed and an out-neighbour of the hub, so that its sum ends far above what
        // is enough.
        let n = 150_001_u32;
        let (hub, seeds): (Vec<u32>, Vec<u32>) = (vec![0; n as usize - 1], (1..n).collect());
        let columns = [&hub, &seeds].map(|ids| column(ids));
        // SAFETY: both columns outlive the stream.
        let records = unsafe { MemoryEdges::new(columns, seeds.len() as u64, n.into()) };
        let edges = GraphEdges { records: &records, directions: &Directedness::Directed.into() };
        let epoch = Epoch::new(seeds.len() as u64, 149_600, &[5]).unwrap();
        let of = |threads: usize| {
            let run = Run::new(Some(threads), None).unwrap();
            accesses(&edges, &mut Degrees::new(&edges), &[&seeds], &epoch, &run).unwrap()[0].to_bits()
        };
        let one = of(1);
        for round in 0..20 {
            assert_eq!([2, 4].map(of), [one; 2], "round {round}");
        }
    }

    #[test]
    fn seeds_that_are_no_vertices_are_refused() {
        // SAFETY: nothing is read of no records.
        let records = unsafe { MemoryEdges::new([column(&[]); 2], 0, 3) };
        let edges = GraphEdges { records: &records, directions: &Directedness::Directed.into() };
        let (epoch, run) = (Epoch::new(1, 1, &[5]).unwrap(), Run::new(Some(1), None).unwrap());
        let error = crate::traffic::expected_steps(&edges, vec![3], &epoch, &run).unwrap_err();
        assert!(error.to_string().contains("3 is not one of 3 vertices"), "{error}");
    }
}
