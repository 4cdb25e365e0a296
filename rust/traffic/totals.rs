//! The rows that each part reads and fetches in an epoch, and the savings of a cache of the most accessed
//! ones.

use super::access;
use super::edges::{Degrees, InEdges};
use super::epoch::{Epoch, check_seeds};
use super::samples::{self, Samples};
use crate::base::{Buffer, Error, Result, Run, reserved};

/// Rows per epoch of a part, by type. A row that a batch has in several levels counts once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartTraffic {
    /// Seeds of the part.
    pub seeds: u64,
    /// Rows of its batches.
    pub rows: Vec<f64>,
    /// Rows of other parts among them.
    pub remote: Vec<f64>,
    /// Rows in each cache, cache by cache.
    pub cached: Vec<Vec<u64>>,
    /// Rows of `remote` that each cache saves.
    pub saved: Vec<Vec<f64>>,
}

/// The size of the cache of each part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cache {
    /// Rows, as a share of the rows of the part that are worth anything.
    Share(f64),
    /// Bytes. The worth of a row is then its bytes.
    Bytes(u64),
}

impl Cache {
    /// The most rows that the cache may hold, for a part of `rows` rows.
    fn most(self, rows: u64, types: &Types) -> u64 {
        match self {
            Self::Share(share) => (share * rows as f64) as u64,
            Self::Bytes(bytes) => {
                let worth = types.worth.iter().copied().filter(|&worth| worth > 0.0);
                (bytes as f64 / worth.fold(f64::MAX, f64::min)) as u64
            }
        }
    }

    /// The number of the best rows, best first, that the cache holds. `most` is what [`Cache::most`] says.
    fn held(self, most: u64, best: &[u32], types: &Types) -> usize {
        let most = most.min(best.len() as u64) as usize;
        let Self::Bytes(bytes) = self else { return most };
        let mut left = bytes as f64;
        let fits = |vertex: &&u32| {
            left -= types.worth[types.of(**vertex)];
            left >= 0.0
        };
        best[..most].iter().take_while(fits).count()
    }
}

/// The types of the vertices, and the worth of a row of each to a cache.
struct Types {
    /// Where each range of vertices of one type ends, and the type.
    ranges: Vec<(u32, u16)>,
    /// By type. Rows that are worth nothing are neither cached nor counted as those of a cache.
    worth: Vec<f64>,
}

impl Types {
    /// The types of `n` vertices. `worth` has one number of at least 0 for each.
    fn new(ranges: Vec<(u32, u16)>, worth: Vec<f64>, n: u64) -> Result<Self> {
        let known = ranges.iter().all(|&(_, of_type)| usize::from(of_type) < worth.len());
        let covered = ranges.last().map_or(0, |&(end, _)| u64::from(end)) == n;
        match known && covered && worth.iter().all(|worth| (0.0..=f64::MAX).contains(worth)) {
            true => Ok(Self { ranges, worth }),
            false => Err(Error::parameter("row_bytes", "expected a number of at least 0 for each type")),
        }
    }

    /// Number of vertices of each part that are worth anything.
    fn sizes(&self, assignment: &[i32], k: u32, run: &Run) -> Result<Vec<u64>> {
        let mut sizes = vec![0; k as usize];
        run.each(assignment.len(), |vertex| {
            if self.worth[self.of(vertex)] > 0.0 {
                sizes[assignment[vertex as usize] as usize] += 1;
            }
        })?;
        Ok(sizes)
    }

    /// The type of a vertex.
    #[inline(always)]
    fn of(&self, vertex: u32) -> usize {
        match self.ranges.len() {
            1 => 0,
            _ => usize::from(self.ranges[self.ranges.partition_point(|&(end, _)| end <= vertex)].1),
        }
    }
}

/// Accesses and samples of all vertices for a group of parts. The values of a vertex follow each other.
struct Found {
    accesses: Buffer<f32>,
    masks: Buffer<u64>,
    samples: Samples,
}

fn find(
    edges: &dyn InEdges,
    degrees: &mut Degrees<'_>,
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

/// For each vertex the expected number of steps of the epoch whose batch has it, if a part has the `seeds`.
/// It is the mean of what probabilities and sampled batches say. Probabilities cover rare vertices, and
/// samples cover vertices that come together.
pub fn expected_steps(
    edges: &dyn InEdges,
    mut seeds: Vec<u32>,
    epoch: &Epoch,
    run: &Run,
) -> Result<Buffer<f32>> {
    let n = edges.num_vertices();
    check_seeds(&seeds, n)?;
    epoch.check_relations(edges.num_relations())?;
    run.require((FIXED + BYTES) * n, format!("access probabilities of {n} vertices"))?;
    seeds.sort_unstable();
    let mut degrees = Degrees::new(edges);
    let Found { mut accesses, masks, samples } = find(edges, &mut degrees, (0, &[&seeds]), epoch, run)?;
    for (steps, mask) in accesses.iter_mut().zip(masks.iter()) {
        *steps = 0.5 * (*steps + (f64::from(mask.count_ones()) * samples.scale) as f32);
    }
    Ok(accesses)
}

/// The traffic of each of `k` parts whose vertices `assignment` names. Each part trains on those of `seeds`
/// that it has. A cache holds the rows with the most accesses times `worth`, which is that of a row by type.
/// Rows that are worth nothing are never cached, and do not count for a share.
pub fn traffic(
    edges: &dyn InEdges,
    (assignment, k): (&[i32], u32),
    seeds: &[u32],
    epoch: &Epoch,
    (caches, worth): (&[Cache], &[f64]),
    run: &Run,
) -> Result<Vec<PartTraffic>> {
    let n = edges.num_vertices();
    crate::measure::validate(assignment, k, n, run)?;
    epoch.check_relations(edges.num_relations())?;
    for cache in caches {
        if let Cache::Share(share) = cache
            && !(0.0..=f64::MAX).contains(share)
        {
            return Err(Error::parameter("cache", format!("{share} is not a share of 0 or more")));
        }
    }
    run.require((FIXED + BYTES) * n, format!("access probabilities of {n} vertices"))?;
    let fitting = (run.budget() - FIXED * n).checked_div(BYTES * n).unwrap_or(1);
    let group = fitting.min(GROUP) as usize;
    let types = Types::new(edges.ranges(), worth.to_vec(), n)?;
    let lists = by_part(assignment, k, seeds)?;
    let sizes = types.sizes(assignment, k, run)?;
    let mut degrees = Degrees::new(edges);
    let (mut parts, mut before) = (Vec::new(), 0);
    for first in (0..k as usize).step_by(group) {
        let lists: Vec<&[u32]> = lists[first..].iter().take(group).map(Vec::as_slice).collect();
        let found = find(edges, &mut degrees, (before, &lists), epoch, run)?;
        before += lists.iter().map(|list| list.len() as u64).sum::<u64>();
        for (place, list) in lists.iter().enumerate() {
            let part = first + place;
            let caches: Vec<(Cache, u64)> =
                caches.iter().map(|&cache| (cache, cache.most(sizes[part], &types))).collect();
            let own = |vertex: usize| assignment[vertex] as usize == part;
            let of = found.part((place, lists.len()), own, &types, &caches, run)?;
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
            Error::parameter("seeds", format!("{seed} is not one of {} vertices", assignment.len()))
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
        types: &Types,
        caches: &[(Cache, u64)],
        run: &Run,
    ) -> Result<PartTraffic> {
        let kinds = types.worth.len();
        let mut remote = reserved(self.masks.len() / count, "rows of other parts")?;
        let (mut rows, mut fetched) = (vec![0_u64; kinds], vec![0_u64; kinds]);
        run.each(self.masks.len() / count, |vertex| {
            let index = vertex as usize * count + place;
            let (sampled, of_type) = (u64::from(self.masks[index].count_ones()), types.of(vertex));
            rows[of_type] += sampled;
            if !own(vertex as usize) && self.accesses[index] > 0.0 {
                fetched[of_type] += sampled;
                if types.worth[of_type] > 0.0 {
                    remote.push(vertex);
                }
            }
        })?;
        let scaled = |counts: Vec<u64>| counts.iter().map(|&rows| rows as f64 * self.samples.scale).collect();
        let mut of = PartTraffic {
            rows: scaled(rows),
            remote: scaled(fetched),
            cached: vec![vec![0; kinds]; caches.len()],
            saved: vec![vec![0.0; kinds]; caches.len()],
            ..Default::default()
        };
        let [first, second] = self.samples.halves();
        for (ranking, counting) in [(first, second), (second, first)] {
            let most =
                caches.iter().map(|&(_, most)| most).max().unwrap_or(0).min(remote.len() as u64) as usize;
            // The rows of one type are all worth the same.
            match types.ranges.len() {
                1 => self.most_accessed(&mut remote, (place, count), |_| 1.0, ranking, most),
                _ => {
                    let worth = |vertex| types.worth[types.of(vertex)];
                    self.most_accessed(&mut remote, (place, count), worth, ranking, most)
                }
            }
            for ((&(cache, most), cached), saved) in caches.iter().zip(&mut of.cached).zip(&mut of.saved) {
                let mut hits = vec![0_u64; kinds];
                cached.fill(0);
                for &vertex in &remote[..cache.held(most, &remote, types)] {
                    let mask = self.masks[vertex as usize * count + place];
                    hits[types.of(vertex)] += u64::from((mask & counting).count_ones());
                    cached[types.of(vertex)] += 1;
                }
                saved
                    .iter_mut()
                    .zip(hits)
                    .for_each(|(saved, hits)| *saved += hits as f64 * self.samples.scale);
            }
            run.check()?;
        }
        Ok(of)
    }

    /// Moves the `most` vertices of the largest expectations, times their worth, to the front, in their
    /// order. The samples in the batches of `ranking` count for all, so that the others can tell the savings.
    fn most_accessed(
        &self,
        vertices: &mut [u32],
        (place, count): (usize, usize),
        worth: impl Fn(u32) -> f64,
        ranking: u64,
        most: usize,
    ) {
        let scale = 2.0 * self.samples.scale;
        let accesses = |&vertex: &u32| {
            let index = vertex as usize * count + place;
            let sampled = f64::from((self.masks[index] & ranking).count_ones());
            let expected = f64::from(self.accesses[index]) + scale * sampled;
            (expected * worth(vertex)).to_bits()
        };
        let order = |a: &u32, b: &u32| accesses(b).cmp(&accesses(a)).then(a.cmp(b));
        if 0 < most && most < vertices.len() {
            vertices.select_nth_unstable_by(most - 1, order);
        }
        vertices[..most].sort_unstable_by(order);
    }
}
