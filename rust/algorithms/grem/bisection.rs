//! One sub-problem: the seed from its first chunk, decisions about its other chunks, and the sub-problems of
//! its sides.

use super::entries::Entries;
use super::problem::Problem;
use super::seed::Stage;
use super::sides::Sides;
use super::{Grem, seed};
use crate::base::{NONE, Result, Run, splitmix64};
use crate::capacity::place_last;
use crate::edges::{EdgeStream, TempRecords};

/// Where a level reads its records, and where it writes those of the next.
pub(crate) struct Level<'a> {
    pub edges: &'a dyn EdgeStream,
    pub target: &'a TempRecords,
    pub chunk: u64,
    /// The cap of a part.
    pub cap: u64,
    pub run: &'a Run,
}

impl Grem {
    /// Solves `problem`: `offset` becomes, for each vertex, its part or the first of its side's parts,
    /// counted from the problem's first. Returns the sub-problems that are left.
    pub(super) fn solve(&self, level: &Level, problem: &Problem, offset: &mut [u32]) -> Result<Vec<Problem>> {
        let chunk = self.chunk_of(level, problem);
        let seed =
            splitmix64(self.seed ^ splitmix64(u64::from(problem.first) << 32 | u64::from(problem.parts)));
        if !self.faithful && problem.len() <= chunk {
            let entries = problem.entries(level.edges, problem.records.clone(), level.run)?;
            whole(level, problem, entries, offset, seed)?;
            return Ok(Vec::new());
        }
        let side_of = self.bisect(level, problem, chunk, offset, seed)?.finish(level.run)?;
        let side = |v: u32| usize::from(side_of[v as usize]);
        let halves = problem.split(side, offset, level.edges, level.target, level.run)?;
        let shift = problem.shares()[0];
        level.run.each(side_of.len(), |v| offset[v as usize] = u32::from(side_of[v as usize]) * shift)?;
        Ok(halves.into_iter().filter(|half| half.parts > 1).collect())
    }

    /// Number of records that `problem` reads: the first chunk twice, and all records twice more to split
    /// them.
    pub(super) fn reads(&self, level: &Level, problem: &Problem) -> u64 {
        let (len, chunk) = (problem.len(), self.chunk_of(level, problem));
        if !self.faithful && len <= chunk {
            return len;
        }
        let split = if problem.parts > 2 { 2 * len } else { 0 };
        u64::from(self.passes) * len + chunk.min(len) + split
    }

    /// Records per chunk: of all, or of each set of records where the paper is followed.
    fn chunk_of(&self, level: &Level, problem: &Problem) -> u64 {
        if self.faithful { self.chunk.records(problem.len()) } else { level.chunk }
    }

    fn bisect(
        &self,
        level: &Level,
        problem: &Problem,
        chunk: u64,
        place: &mut [u32],
        seed: u64,
    ) -> Result<Sides> {
        let Level { edges, run, .. } = *level;
        let caps = problem.shares().map(|share| u64::from(share) * level.cap);
        let mut chunks = (0..self.passes).flat_map(|_| problem.chunks(chunk));
        let Some(first) = chunks.next() else {
            let mut sides = Sides::new(problem.n, caps, self.rule())?;
            sides.place_rest(run)?;
            return Ok(sides);
        };
        // The entries are made twice, so that they need not be held while the seed partitioner works.
        let entries = problem.entries(edges, first.clone(), run)?;
        let seeded = seed::partition(entries, place, &caps, Stage::First, seed, run)?;
        let mut sides = Sides::new(problem.n, caps, self.rule())?;
        let entries = problem.entries(edges, first, run)?;
        sides.seed(&entries, |v| seeded[place[v as usize] as usize], run)?;
        drop((entries, seeded));
        sides.keep_caps(run)?;
        for range in chunks {
            sides.follow(&problem.entries(edges, range, run)?, run)?;
            sides.keep_caps(run)?;
        }
        sides.place_rest(run)?;
        Ok(sides)
    }
}

/// Gives the vertices of a problem that fits one chunk all their parts. Vertices without a record come last.
fn whole(level: &Level, problem: &Problem, entries: Entries, offset: &mut [u32], seed: u64) -> Result<()> {
    let caps = vec![level.cap; problem.parts as usize];
    let part_of = seed::partition(entries, offset, &caps, Stage::Whole, seed, level.run)?;
    let mut loads = vec![0; caps.len()];
    level.run.each(offset.len(), |v| {
        let offset = &mut offset[v as usize];
        if *offset != NONE {
            *offset = part_of[*offset as usize];
            loads[*offset as usize] += 1;
        }
    })?;
    place_last(offset, loads, level.run).map(drop)
}
