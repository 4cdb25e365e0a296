//! The rows that each part reads and fetches in an epoch, and what a cache of the most accessed ones saves.

use super::access;
use super::edges::InEdges;
use super::epoch::{Epoch, check_seeds};
use super::samples::{self, Samples};
use crate::base::{Buffer, Error, Result, Run, reserved};

/// Rows per epoch of a part. A row that a batch has in several levels counts once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartTraffic {
    /// Seeds of the part.
    pub seeds: u64,
    /// Rows of its batches.
    pub rows: f64,
    /// Rows of other parts among them.
    pub remote: f64,
    /// Rows in each cache.
    pub cached: Vec<u64>,
    /// Rows of `remote` that each cache saves.
    pub saved: Vec<f64>,
}

/// What is known of the vertices for a group of parts. The values of a vertex follow each other.
struct Found {
    accesses: Buffer<f32>,
    masks: Buffer<u64>,
    samples: Samples,
}

fn find(
    edges: &dyn InEdges,
    degrees: &[u32],
    (before, seeds): (u64, &[&[u32]]),
    epoch: &Epoch,
    run: &Run,
) -> Result<Found> {
    let accesses = access::accesses(edges, degrees, seeds, epoch, run)?;
    let samples = Samples::new(epoch);
    let masks = samples.masks(edges, degrees, (before, seeds), epoch, run)?;
    Ok(Found { accesses, masks, samples })
}

/// Bytes per vertex and part: the results of the one method stay while the other works.
const BYTES: u64 = 4 + if access::BYTES > samples::BYTES { access::BYTES } else { samples::BYTES };

/// Bytes per vertex beside them: degrees, and the candidates for a cache.
const FIXED: u64 = 4 + 12;

/// Most parts that are followed together. The values of a vertex then fill a line of the cache.
const GROUP: u64 = 8;

/// For each vertex the expected number of steps of the epoch whose batch has it, if a part has the `seeds`. It is the mean
/// of what probabilities and sampled batches say. The first know rare vertices, the second what comes together.
pub fn expected_steps(
    edges: &dyn InEdges,
    mut seeds: Vec<u32>,
    epoch: &Epoch,
    run: &Run,
) -> Result<Buffer<f32>> {
    let n = edges.num_vertices();
    check_seeds(&seeds, n)?;
    run.require((FIXED + BYTES) * n, format!("access probabilities of {n} vertices"))?;
    seeds.sort_unstable();
    let degrees = edges.in_degrees(run)?;
    let Found { mut accesses, masks, samples } = find(edges, &degrees, (0, &[&seeds]), epoch, run)?;
    for (steps, mask) in accesses.iter_mut().zip(masks.iter()) {
        *steps = 0.5 * (*steps + (f64::from(mask.count_ones()) * samples.scale) as f32);
    }
    Ok(accesses)
}

/// The traffic of each of `k` parts whose vertices `assignment` names. Each part trains on those of `seeds` that it has. A
/// cache holds so many rows as a share of the rows of the part.
pub fn traffic(
    edges: &dyn InEdges,
    assignment: &[i32],
    k: u32,
    seeds: &[u32],
    epoch: &Epoch,
    caches: &[f64],
    run: &Run,
) -> Result<Vec<PartTraffic>> {
    let n = edges.num_vertices();
    crate::measure::validate(assignment, k, n, run)?;
    if let Some(cache) = caches.iter().find(|cache| !(0.0..=f64::MAX).contains(*cache)) {
        return Err(Error::parameter("cache", format!("{cache} is not a share of 0 or more")));
    }
    run.require((FIXED + BYTES) * n, format!("access probabilities of {n} vertices"))?;
    let fitting = (run.budget() - FIXED * n).checked_div(BYTES * n).unwrap_or(1);
    let group = fitting.min(GROUP) as usize;
    let lists = by_part(assignment, k, seeds)?;
    let sizes = crate::measure::part_sizes(assignment, k, run)?;
    let degrees = edges.in_degrees(run)?;
    let (mut parts, mut before) = (Vec::new(), 0);
    for first in (0..k as usize).step_by(group) {
        let lists: Vec<&[u32]> = lists[first..].iter().take(group).map(Vec::as_slice).collect();
        let found = find(edges, &degrees, (before, &lists), epoch, run)?;
        before += lists.iter().map(|list| list.len() as u64).sum::<u64>();
        for (place, list) in lists.iter().enumerate() {
            let part = first + place;
            let caches: Vec<u64> = caches.iter().map(|cache| (cache * sizes[part] as f64) as u64).collect();
            let own = |vertex: usize| assignment[vertex] as usize == part;
            let of = found.part((place, lists.len()), own, &caches, run)?;
            parts.push(PartTraffic { seeds: list.len() as u64, ..of });
        }
    }
    Ok(parts)
}

/// The seeds of each part, ascending.
fn by_part(assignment: &[i32], k: u32, seeds: &[u32]) -> Result<Vec<Vec<u32>>> {
    let mut lists = vec![Vec::new(); k as usize];
    for &seed in seeds {
        let part = assignment.get(seed as usize).ok_or_else(|| {
            Error::parameter("seeds", format!("{seed} is none of {} vertices", assignment.len()))
        })?;
        lists[*part as usize].push(seed);
    }
    lists.iter_mut().for_each(|list| list.sort_unstable());
    Ok(lists)
}

impl Found {
    /// The traffic of the part at `place` of a group of `count`.
    fn part(
        &self,
        (place, count): (usize, usize),
        own: impl Fn(usize) -> bool,
        caches: &[u64],
        run: &Run,
    ) -> Result<PartTraffic> {
        let mut of = PartTraffic {
            cached: vec![0; caches.len()],
            saved: vec![0.0; caches.len()],
            ..Default::default()
        };
        let mut remote = reserved(self.masks.len() / count, "rows of other parts")?;
        let (mut rows, mut fetched) = (0_u64, 0_u64);
        run.each(self.masks.len() / count, |vertex| {
            let index = vertex as usize * count + place;
            let sampled = u64::from(self.masks[index].count_ones());
            rows += sampled;
            if !own(vertex as usize) && self.accesses[index] > 0.0 {
                fetched += sampled;
                remote.push(vertex);
            }
        })?;
        (of.rows, of.remote) = (rows as f64 * self.samples.scale, fetched as f64 * self.samples.scale);
        let [first, second] = self.samples.halves();
        for (ranking, counting) in [(first, second), (second, first)] {
            let most = caches.iter().copied().max().unwrap_or(0).min(remote.len() as u64) as usize;
            self.most_accessed(&mut remote, (place, count), ranking, most);
            for ((&cache, cached), saved) in caches.iter().zip(&mut of.cached).zip(&mut of.saved) {
                *cached = cache.min(remote.len() as u64);
                let hits = remote[..*cached as usize].iter();
                let hits = hits
                    .map(|&v| u64::from((self.masks[v as usize * count + place] & counting).count_ones()));
                *saved += hits.sum::<u64>() as f64 * self.samples.scale;
            }
            run.check()?;
        }
        Ok(of)
    }

    /// Moves the `most` vertices of the largest expectations to the front, in their order. What is sampled in the batches of
    /// `ranking` counts for all, so that the others can tell what is saved.
    fn most_accessed(&self, vertices: &mut [u32], (place, count): (usize, usize), ranking: u64, most: usize) {
        let scale = 2.0 * self.samples.scale;
        let accesses = |&vertex: &u32| {
            let index = vertex as usize * count + place;
            let sampled = f64::from((self.masks[index] & ranking).count_ones());
            (f64::from(self.accesses[index]) + scale * sampled).to_bits()
        };
        let order = |a: &u32, b: &u32| accesses(b).cmp(&accesses(a)).then(a.cmp(b));
        if 0 < most && most < vertices.len() {
            vertices.select_nth_unstable_by(most - 1, order);
        }
        vertices[..most].sort_unstable_by(order);
    }
}
