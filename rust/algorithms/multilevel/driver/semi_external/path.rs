//! The plans for a partition, the memory that each needs, and the choice of one.
//!
//! The list of plans depends only on the size of the graph, the parts and the bounds. The first plan that
//! fits the memory budget is taken. A plan gives the same result on every machine.

use crate::algorithms::multilevel::coarsening::{LEAST_DEGREE, in_files};
use crate::algorithms::multilevel::driver::Multilevel;
use crate::algorithms::multilevel::driver::scheme::GIVEN;
use crate::algorithms::multilevel::model::Size;
use crate::algorithms::multilevel::refinement;
use crate::base::{Error, Result, Run};
use crate::partition::Need;
use crate::partition::parameters::words;

words! {
    /// Where the levels of a partition lie.
    pub enum Path {
        /// All of them in memory.
        Memory = "memory",
        /// One level in files, beside the given graph.
        OneLevel = "one_level",
        /// Two levels in files.
        TwoLevels = "two_levels",
    }
}

impl Path {
    /// Levels whose lists lie in files.
    pub fn levels(self) -> usize {
        self as usize
    }

    /// The largest number of vertices of the last level in files.
    pub fn vertices(self, n: u64, k: u64) -> u64 {
        (n >> (1 + self.levels())).max(VERTICES_PER_PART * k).min(n)
    }
}

/// The last level in files may have up to this many vertices per part on any path.
const VERTICES_PER_PART: u64 = 64;
/// Bytes per vertex of the clusters of a graph.
pub(crate) const CLUSTERS: u64 = 4;
/// Paths and samples to choose from, those with the lowest cuts first.
const PLANS: [Plan; 7] = [
    Plan { path: Path::Memory, sample: 1.0 },
    Plan { path: Path::OneLevel, sample: 0.5 },
    Plan { path: Path::OneLevel, sample: 0.35 },
    Plan { path: Path::TwoLevels, sample: 0.25 },
    Plan { path: Path::TwoLevels, sample: 0.1 },
    Plan { path: Path::TwoLevels, sample: 0.04 },
    Plan { path: Path::TwoLevels, sample: 0.016 },
];

/// A path, and the share of the entries of the graph that its last level may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The path.
    pub path: Path,
    /// The share, above 0 and at most 1.
    pub sample: f64,
}

impl Default for Plan {
    fn default() -> Self {
        PLANS[0]
    }
}

/// Bytes that are available for lists in files if `left` bytes of memory are left. Longer lists are packed,
/// since every pass reads them from the disk. Temporary files in memory are counted elsewhere, so they have
/// no limit here.
pub(crate) fn available(left: u64, run: &Run) -> u64 {
    if run.temporary(run.tmp_dir(), 1, "").0 == 0 { left } else { u64::MAX }
}

impl Plan {
    /// The largest number of entries of the last level, given those of the graph.
    pub fn entries(self, entries: u64) -> u64 {
        (entries as f64 * self.sample) as u64
    }

    /// Bytes of memory that the plan needs beside an adjacency of `n` vertices and `entries` entries, with
    /// `threads` threads.
    pub fn memory(self, multilevel: &Multilevel, n: u64, entries: u64, threads: usize) -> u64 {
        if self.path == Path::Memory {
            return multilevel.needed(n, entries, threads);
        }
        let size = multilevel.goal.size(n, entries, threads as u64);
        let vertices = self.path.vertices(n, size.k);
        // A sample has the size that is asked for in expectation.
        let sample = self.entries(entries).max(LEAST_DEGREE * vertices).min(entries);
        let top = Size { n: vertices, entries: sample + sample / 32, ..size };
        let scheme = multilevel.scheme();
        let steps = [
            in_files::memory(&size).saturating_add(CLUSTERS * n),
            scheme.memory(&top).saturating_add(levels(&size)),
            refinement::memory(&scheme.in_files().refiners::<1>(0), &size).saturating_add(GIVEN * n),
            refinement::memory(&multilevel.goal.objective.refiners::<1>(), &size),
        ];
        steps.into_iter().max().unwrap_or(0).saturating_add(multilevel.goal.memory(&size))
    }
}

/// Bytes that the levels below a graph of this size take while the last of them is partitioned: clusters of
/// the graph, and of a level of half as many vertices.
pub(crate) fn levels(size: &Size) -> u64 {
    size.n.saturating_mul(10 + 4 * size.bounds)
}

impl Multilevel {
    /// The plans to choose from and the bytes of memory that each needs with one thread, in order of
    /// preference. Each needs less than the one before. So the choice, and with it the result, does not
    /// depend on the threads: where the rest of the memory is too short for all, fewer work.
    pub fn plans(&self, n: u64, entries: u64) -> Vec<(Plan, u64)> {
        let asked = |plan: &Plan| self.path.is_none_or(|path| plan.path == path);
        let mut plans: Vec<(Plan, u64)> = Vec::new();
        let all: Vec<Plan> = match (self.path, self.sample) {
            _ if self.goal.machines.is_some() => vec![PLANS[0]],
            (Some(path), Some(sample)) => vec![Plan { path, sample }],
            _ => PLANS.into_iter().filter(asked).collect(),
        };
        for plan in all {
            let memory = plan.memory(self, n, entries, 1);
            if plans.last().is_none_or(|&(_, least)| memory < least) {
                plans.push((plan, memory));
            }
        }
        plans
    }

    /// The memory that each plan needs, files in memory included.
    fn needs(&self, n: u64, entries: u64, run: &Run) -> impl Iterator<Item = (Plan, Need)> {
        self.plans(n, entries).into_iter().map(move |(plan, memory)| {
            let (path, sample) = (plan.path.name(), plan.sample);
            let how = match plan.path {
                Path::Memory => String::new(),
                _ => format!(", with path=\"{path}\" and sample={sample}"),
            };
            let what = format!("multilevel on {n} vertices, {entries} entries{how}");
            let (files, what) = run.temporary(run.tmp_dir(), plan.files(n, entries), what);
            (plan, Need::new(memory.saturating_add(files), what))
        })
    }

    /// The least memory that any plan needs.
    pub(crate) fn least(&self, n: u64, entries: u64, run: &Run) -> Need {
        let needs = self.needs(n, entries, run).map(|(_, need)| need);
        needs.min_by_key(|need| need.least).unwrap_or_else(|| Need::new(0, "multilevel"))
    }

    /// The first plan that fits into the budget. An error if none does.
    pub fn plan(&self, n: u64, entries: u64, run: &Run) -> Result<Plan> {
        if let Some((plan, _)) = self.needs(n, entries, run).find(|(_, need)| need.least <= run.budget()) {
            return Ok(plan);
        }
        self.least(n, entries, run).require(run)?;
        Err(Error::Internal("multilevel: a plan fits, and none was found".into()))
    }

    /// Refuses a path and a sample that contradict each other.
    pub(crate) fn validate_plan(&self) -> Result<()> {
        let is_out_of_memory = self.path.is_some_and(|path| path != Path::Memory);
        if self.goal.machines.is_some() && is_out_of_memory {
            let what =
                "the graph of each machine must fit into memory. Use \"memory\", or leave machines out";
            return Err(Error::parameter("path", what));
        }
        let Some(sample) = self.sample else { return Ok(()) };
        if !is_out_of_memory {
            let what = "it needs path=\"one_level\" or path=\"two_levels\"";
            return Err(Error::parameter("sample", what));
        }
        if sample > 0.0 && sample <= 1.0 {
            return Ok(());
        }
        Err(Error::parameter("sample", format!("{sample} is not a share above 0 and at most 1")))
    }
}
