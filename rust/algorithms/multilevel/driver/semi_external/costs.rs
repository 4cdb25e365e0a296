//! The costs of each plan, estimated before it is carried out: memory, temporary files, bytes read and
//! written, seconds.
//!
//! **Memory and files** are upper bounds. For the files these are the spilled sums of a contraction (12 bytes
//! each, at most one per entry), the lists of the levels (8 per entry, and no level has more entries than the
//! graph), and the adjacency, if it lies in files, perhaps with its packed lists, which take no more than the
//! plain ones.
//!
//! **Bytes read and written** are expectations: all that passes over lists in files touch. A page cache that
//! holds the files saves all of the reads. One that holds half of them saves little, since passes read from
//! front to back. Lists that do not fit into the memory left over are packed
//! ([`Graph::packed`](super::Graph::packed)), which takes two passes over the plain
//! lists. The size of packed lists depends on the order of the vertices. It is taken to be arbitrary.
//!
//! **Seconds** are a sum over the steps: entries, vertices and parts times a constant, divided by what the
//! threads are worth. A disk adds the bytes divided by its rate, as if nothing were read ahead. The constants
//! are those below. Measured: processor time of one thread on a server of 2024 (2 cores, 24 GB), for R-MAT,
//! planted graphs and grids (n = 2^16 to 2^20, k = 4 to 64) whose files were in the page cache. The degrees
//! ([`Hubs`]) say where lists are read in no order, and where a bound on volume holds from the start on.
//! Caches of the processor hold less of the vertices of a larger graph ([`GROWTH`]).

use super::path;
use super::path::{Path, Plan};
use crate::algorithms::multilevel::coarsening::LEAST_DEGREE;
use crate::algorithms::multilevel::driver::scheme::{Moments, are_skewed, with_degree};
use crate::algorithms::multilevel::driver::{Effort, Multilevel};
use crate::algorithms::multilevel::model::{Bound, Objective};
use crate::base::{Result, Run, bytes, reserved};
use crate::graph::Csr;
use crate::graph::csr::expected;
use crate::partition::Input;

/// Bytes per second of the disk that notes suppose.
pub(crate) const DISK: f64 = 0.5e9;

/// Nanoseconds per entry: the adjacency is built, clusters are found in all rounds, contracted, refined in
/// all iterations.
const BUILD: f64 = 30.0;
const CLUSTER: f64 = 40.0;
const CONTRACT: f64 = 45.0;
const REFINE: f64 = 80.0;
/// Nanoseconds per entry and per vertex of a graph whose levels lie in memory, for all levels, and per part.
const MEMORY: f64 = 160.0;
const VERTEX: f64 = 890.0;
const PART: f64 = 3.5e6;
/// The share of the time that each doubling of the parts beyond `FEW_PARTS` adds.
const DOUBLING: f64 = 0.1;
const FEW_PARTS: f64 = 4.0;
/// The share of the time that each doubling of the vertices beyond `CACHED` adds.
const GROWTH: f64 = 0.05;
const CACHED: f64 = 262_144.0;
/// Factors on the time where a few vertices have most of the edges, with levels in memory and in files.
const SKEWED: f64 = 1.6;
const SKEWED_IN_FILES: f64 = 1.3;
/// Factor on the time of refinement and of the partition of the top under several bounds. Loose bounds hardly
/// count where parts keep them by themselves.
const BOUNDS: f64 = 3.0;
/// The addition of a loose bound to this factor where hubs break it, times the square root of the parts.
const BREAKS: f64 = 4.0;
/// The share of the volume by which the vertices of highest degree, as many as a part has, exceed a loose
/// bound that is expected to be broken.
const BROKEN: f64 = 0.25;
/// Factors on the time of partitions for machines, and of partitions with a low communication volume.
const MACHINES: f64 = 4.5;
const VOLUME: f64 = 2.0;
/// The speedup by each thread beyond the first.
const THREAD: f64 = 0.7;
/// Passes over a level for clusters and their contraction.
const PASSES: f64 = 5.0;
/// Passes over the top, whose levels are smaller.
const TOP: f64 = 25.0;
/// Nanoseconds that an entry takes longer in each pass if lists are packed.
const UNPACK: f64 = 2.0;
/// Passes over plain lists that pack them. Bytes of a packed entry of a level.
const PACKING: f64 = 2.0;
const PACKED: f64 = 4.0;
/// Entries of a level per entry of the finer one, and of the next one; spilled sums per entry.
const LEVEL: [f64; 2] = [0.6, 0.15];
const SUMS: f64 = 0.8;

/// The costs of a partition by a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// The plan.
    pub plan: Plan,
    /// The memory limit that leads to it.
    pub memory: u64,
    /// Bytes of it beside the adjacency.
    pub beside: u64,
    /// Whether the adjacency lies in files.
    pub outside: bool,
    /// Most bytes of temporary files.
    pub files: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Seconds, if the page cache holds all files.
    pub seconds: f64,
}

/// The hubs of a graph, as far as they count for the time of its partition. By default there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hubs {
    /// Whether a few vertices have most of the edges, which are then read in no order.
    pub skewed: bool,
    /// Whether parts that ignore a loose bound on volume are expected to break it.
    pub breaks: bool,
}

impl Costs {
    /// Seconds with a disk that reads and writes `rate` bytes per second, and no page cache.
    pub fn seconds_at(&self, rate: f64) -> f64 {
        self.seconds + (self.read + self.written) as f64 / rate
    }

    /// The costs as a sentence.
    pub fn note(&self) -> String {
        let Plan { path, sample } = self.plan;
        let (name, cached) = (path.name(), duration(self.seconds));
        if self.files == 0 {
            return format!("multilevel: path=\"{name}\", about {cached}");
        }
        let sample = if path == Path::Memory { String::new() } else { format!(", sample={sample}") };
        let (disk, files) = (duration(self.seconds_at(DISK)), bytes(self.files));
        format!(
            "multilevel: path=\"{name}\"{sample}, about {cached} if the page cache holds the files, {disk} with a disk of \
             0.5 GB/s; up to {files} of temporary files"
        )
    }
}

/// `40 s`, `12 min` or `3.1 h`.
fn duration(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{seconds:.1} s"),
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

impl Plan {
    /// Most bytes of its temporary files beside the adjacency.
    pub fn files(self, n: u64, entries: u64) -> u64 {
        let kept = self.entries(entries).max(LEAST_DEGREE * n);
        let kept = kept.saturating_add(kept / 32).min(entries);
        // A level that gets another one below it needs the lists of both, and the sums in between.
        let (levels, last) = match self.path {
            Path::Memory => return 0,
            Path::OneLevel => (entries.saturating_mul(20), kept.saturating_mul(28)),
            Path::TwoLevels => (
                entries.saturating_mul(28),
                entries.saturating_mul(8).saturating_add(kept.saturating_mul(28)),
            ),
        };
        levels.max(last)
    }
}

/// The plans that a memory limit chooses from.
struct Choice<'a> {
    n: u64,
    m: u64,
    entries: u64,
    /// Bytes of an entry.
    each: u64,
    plans: Vec<(Plan, u64)>,
    hubs: Hubs,
    /// The least limits with which the adjacency is built in files, and in memory.
    least: [u64; 2],
    run: &'a Run,
}

impl Choice<'_> {
    /// Bytes of temporary files that lie in memory.
    fn in_memory(&self, files: u64) -> u64 {
        self.run.temporary(self.run.tmp_dir(), files, "").0
    }

    /// Bytes of the lists of the adjacency.
    fn lists(&self) -> u64 {
        self.entries.saturating_mul(self.each)
    }

    /// Bytes that a plan needs beside the adjacency, and in all.
    fn needs(&self, (plan, memory): (Plan, u64), outside: bool) -> [u64; 2] {
        let beside = memory.saturating_add(self.in_memory(plan.files(self.n, self.entries)));
        let lists = if outside { self.in_memory(self.lists()) } else { self.lists() };
        [beside, beside.saturating_add(lists).saturating_add(8 * self.n + 8)]
    }

    /// The plan within a limit, its memory beside the adjacency, and whether the adjacency lies in files. It
    /// does if a better plan fits then. So a larger limit never leads to a worse plan.
    fn within(&self, limit: u64) -> Option<(Plan, u64, bool)> {
        let [in_files, in_memory] = self.least;
        let best = self.plans.iter().find(|&&plan| self.needs(plan, true)[1] <= limit);
        let &best = best.filter(|_| limit >= in_files)?;
        let [beside, all] = self.needs(best, false);
        Some((best.0, beside, limit < in_memory || limit < all))
    }

    /// Bytes of memory that a limit leaves for plain lists in files.
    fn available(&self, limit: u64, beside: u64, outside: bool) -> u64 {
        let lists = if outside { 0 } else { self.lists() };
        let used = beside.saturating_add(lists).saturating_add(8 * self.n + 8);
        path::available(limit.saturating_sub(used), self.run)
    }

    /// All limits at which another plan, or another place of the adjacency, may begin.
    fn limits(&self) -> Vec<u64> {
        let of_plans = [true, false]
            .into_iter()
            .flat_map(|outside| self.plans.iter().map(move |&plan| self.needs(plan, outside)[1]));
        let mut limits: Vec<u64> = of_plans.chain(self.least).collect();
        limits.sort_unstable();
        limits
    }
}

/// Bytes and time that add up.
#[derive(Default)]
struct Totals {
    read: f64,
    written: f64,
    nanoseconds: f64,
}

/// The lists of a graph in files.
struct ListSize {
    entries: f64,
    /// Bytes of an entry, plain and packed.
    each: [f64; 2],
    /// Bytes of plain lists that stay in memory.
    available: f64,
}

impl Totals {
    /// Adds a number of passes over lists.
    fn pass(&mut self, ListSize { entries, each: [plain, packed], available }: ListSize, passes: f64) {
        if plain * entries <= available {
            self.read += passes * plain * entries;
            return;
        }
        self.read += (PACKING * plain + passes * packed) * entries;
        self.written += packed * entries;
        self.nanoseconds += UNPACK * passes * entries;
    }
}

impl Multilevel {
    /// The hubs of a graph with these degrees, one per vertex.
    pub fn hubs(&self, degrees: &[u32]) -> Result<Hubs> {
        let moments =
            degrees.iter().fold(Moments::default(), |moments, &degree| with_degree(moments, degree.into()));
        let shares = self.goal.shares()?;
        let loose = self.goal.bounds.iter().find_map(|bound| match bound {
            Bound::Volume(ratio) if bound.is_loose() => Some(*ratio),
            _ => None,
        });
        let breaks = match loose {
            None => false,
            Some(ratio) => {
                let mut volumes = reserved(degrees.len(), "volumes")?;
                volumes.extend(degrees.iter().map(|&degree| u64::from(degree) + 1));
                let cap = shares.caps(ratio, volumes.iter().sum()).max().unwrap_or(0);
                self.goal.beyond(volumes, cap, &shares) > BROKEN
            }
        };
        Ok(Hubs { skewed: are_skewed(moments), breaks })
    }

    /// The costs for each memory limit, from the lowest one that is enough. A limit leads to the last of
    /// these plans whose `memory` is not above it.
    pub fn costs(&self, input: &Input, hubs: Hubs, run: &Run) -> Vec<Costs> {
        let choice = self.choice(input, hubs, run);
        let mut steps: Vec<Costs> = Vec::new();
        for costs in choice.limits().into_iter().filter_map(|limit| self.costs_of(&choice, limit)) {
            if steps.last().is_none_or(|last| (last.plan, last.outside) != (costs.plan, costs.outside)) {
                steps.push(costs);
            }
        }
        steps
    }

    /// The costs within a memory limit, if that is enough.
    pub fn costs_within(&self, limit: u64, input: &Input, run: &Run) -> Option<Costs> {
        self.costs_of(&self.choice(input, Hubs::default(), run), limit)
    }

    fn choice<'a>(&self, input: &Input, hubs: Hubs, run: &'a Run) -> Choice<'a> {
        let (shape, weighted) = (input.shape(), input.weights.is_some());
        let (n, m, entries, each) = (shape.n, shape.m, shape.entries(), if weighted { 8 } else { 4 });
        let least = Csr::least_budgets(input.edges, weighted, shape.symmetric, run);
        Choice { n, m, entries, each, plans: self.plans(n, entries), hubs, least, run }
    }

    fn costs_of(&self, choice: &Choice, limit: u64) -> Option<Costs> {
        let (plan, beside, outside) = choice.within(limit)?;
        let &Choice { n, m, entries, each, run, .. } = choice;
        let available = choice.available(limit, beside, outside);
        let sum = self.sum(choice, plan, outside, available as f64);
        let building = if outside { entries.saturating_mul(2 + each) } else { 0 };
        let lists = if outside { choice.lists() } else { 0 };
        let packed = if lists > available { lists } else { 0 };
        let times = if self.goal.machines.is_some() { MACHINES } else { 1.0 }
            * if self.goal.objective == Objective::Halo { VOLUME } else { 1.0 };
        let build = BUILD * entries as f64;
        let growth = 1.0 + GROWTH * libm::log2((n as f64 / CACHED).max(1.0));
        let skew = match plan.path {
            _ if !choice.hubs.skewed => 1.0,
            Path::Memory => SKEWED,
            Path::OneLevel | Path::TwoLevels => SKEWED_IN_FILES,
        };
        let nanoseconds = build + times * growth * skew * sum.nanoseconds;
        // The records are read twice.
        let records = 16.0 * m as f64;
        let built = building as f64;
        Some(Costs {
            plan,
            memory: limit,
            beside,
            outside,
            files: building.max(lists.saturating_add(packed).saturating_add(plan.files(n, entries))),
            read: (records + built + times * sum.read) as u64,
            written: (built + lists as f64 + times * sum.written) as u64,
            seconds: nanoseconds * 1e-9 / (1.0 + THREAD * (run.threads() - 1) as f64),
        })
    }

    /// The costs after the adjacency is built.
    fn sum(
        &self,
        &Choice { n, entries, each, hubs, .. }: &Choice,
        plan: Plan,
        outside: bool,
        available: f64,
    ) -> Totals {
        let k = f64::from(self.goal.k);
        let bounds = match self.goal.bounds.iter().all(Bound::is_loose) {
            true if hubs.breaks => 1.0 + BREAKS / k.sqrt(),
            true => 1.0,
            false => BOUNDS,
        };
        let parts = 1.0 + DOUBLING * libm::log2((k / FEW_PARTS).max(1.0));
        let in_memory = |n: f64, entries: f64| parts * (MEMORY * entries + VERTEX * n) + PART * k;
        let refining = self.effort.tuning().refining_passes;
        let all = Effort::Default.tuning().refining_passes;
        let attempts = 1.0 + self.effort.rounds() as f64;
        let mut sum = Totals::default();
        let mut here = entries as f64;
        let packed = if each > 4 { PACKED } else { expected(n, entries) };
        let mut lists = if outside { [each as f64, packed] } else { [0.0; 2] };
        if plan.path == Path::Memory {
            sum.nanoseconds = bounds * attempts * in_memory(n as f64, here);
            sum.pass(ListSize { entries: here, each: lists, available }, (PASSES + refining) * attempts);
            return sum;
        }
        for (level, share) in LEVEL.iter().enumerate().take(plan.path.levels()) {
            sum.nanoseconds += (CLUSTER + CONTRACT + REFINE * bounds * refining / all) * here;
            let spilled = 12.0 * SUMS * here;
            let coarse = share * here;
            sum.pass(ListSize { entries: here, each: lists, available }, PASSES + refining);
            sum.read += spilled;
            sum.written += spilled + 8.0 * coarse;
            let kept = coarse.min(plan.sample * entries as f64);
            (here, lists) = (coarse, [8.0, PACKED]);
            if level + 1 == plan.path.levels() && kept < coarse {
                sum.read += 8.0 * coarse;
                sum.written += 8.0 * kept;
                here = kept;
            }
        }
        // The top has far fewer vertices than it may have.
        let vertices = (plan.path.vertices(n, self.goal.k.into()) / 8) as f64;
        sum.nanoseconds += bounds * attempts * in_memory(vertices.min(here), here);
        sum.pass(ListSize { entries: here, each: lists, available }, TOP * attempts);
        sum
    }
}
