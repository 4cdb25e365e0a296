//! GREM: a vertex partition by recursive bisection, each by greedy decisions that every chunk of the stream
//! refines.
//!
//! **Requirements.** Any graph. Space on the disk, unless the graph fits one chunk.
//!
//! **Algorithm.** k parts are bisected into `ceil(k/2)` and `floor(k/2)`. The vertices of each side and the
//! records inside it become a sub-problem, and so on. For a bisection the records pass in chunks, in random
//! order. The first chunk is partitioned in memory ([`seed`]). In every later chunk each vertex, in ascending
//! order, counts its neighbours on either side. It adds four fifths of what it counted before and goes to the
//! side with more of them. So the noise of thin chunks averages out, and decisions made with little
//! information are made again. During a chunk either side may hold any number of vertices. After it, what
//! exceeds a cap goes to the other side, the vertices with the smallest lead first ([`sides`]). So a full
//! side exchanges vertices with a small lead for vertices that belong there, and a dense core gathers where
//! the cap allows it. Vertices without a record come last. A sub-problem that fits one chunk is partitioned
//! whole. A sub-problem for s parts takes s times the cap of a part at every level, so that the imbalance
//! does not compound.
//!
//! The paper halves the old counts and never exceeds a cap in between. `faithful` does that. Measured, k = 8,
//! chunks of 10 %, median of 5 seeds (`benches/guides.py grem`): amazon-computers 0.228 (`faithful` 0.352),
//! ego-facebook 0.042 (0.109), fb100-cornell5 0.430 (0.623). R-MAT of 2^18 vertices and 4 M records, k = 32,
//! 0.545 (0.896). On R-MAT the parts with the core hold most of the edges, since only vertices are bounded.
//!
//! **Memory.** [`Grem::needed`]: 16 bytes per vertex, result included, and 4 MB. Each worker takes 36 bytes
//! per record of a chunk, and 104 bytes for each vertex that the multilevel partitioner sees. From a first
//! chunk of half a million records or more it gets clusters, at most one for four vertices. A sub-problem
//! that fits one chunk has at most two vertices per record, each with 4 bytes more for each part beyond two,
//! up to 64.
//!
//! **Disk.** The shuffled records and those of the sub-problems, 8 bytes each, in two files at a time. 24
//! bytes per record while the order is made. If the folder is in memory, this is memory. The files have no
//! names, so that nothing is left of them, however the process ends.
//!
//! **Parallelism.** Sub-problems of a level run in parallel if the memory allows. All threads sort a chunk.
//! Decisions are sequential, and the result is the same for any number of threads.
//!
//! **Complexity.** O(m) time per level beside that of the multilevel partitioner. O(m log m) for ranges with
//! hubs.
//!
//! **Source.** Waleffe et al., "Armada: Memory-Efficient Distributed Training of Large-Scale Graph Neural
//! Networks", section 4.

mod bisection;
mod clusters;
mod entries;
mod problem;
mod seed;
mod sides;

use std::sync::Mutex;

use crate::algorithms::multilevel::Goal;
use crate::algorithms::multilevel::refine::{self, Refine};
use crate::base::{Buffer, Error, Result, Run};
use crate::capacity::cap;
use crate::edges::{EdgeStream, TempRecords};
use crate::exec::{blocks, map, shuffle};
use crate::graph::{Identity, degrees};
use crate::partition::parameters::{Domain, Flag, Number, Passes, Ratio, Seed, parameters, words};
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape, Value, VertexPartition};
use bisection::Level;
use problem::Problem;
use sides::Rule;

/// Bytes per vertex, result included.
pub(crate) const BYTES_PER_VERTEX: u64 = 16;
/// Bytes per record of a chunk: twice two entries of 8 bytes, and an eighth for what the estimate cannot
/// know.
pub(crate) const BYTES_PER_RECORD: u64 = 36;
/// Bytes per vertex that the multilevel partitioner sees.
const BYTES_PER_MEMBER: u64 = 112;
/// A large chunk is clustered before it is partitioned. It has at most one cluster for `CLUSTERED` vertices.
const CLUSTERED: u64 = 4;
/// Bytes that sorting and a table of gains hold besides.
const FIXED_BYTES: u64 = 8 << 20;

/// The size of a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Chunk {
    /// This share of the records, above 0 and at most 1.
    Share(f64),
    /// This number of records.
    Records(u64),
}

impl Chunk {
    /// Records per chunk, of `m`. At least 1.
    pub fn records(self, m: u64) -> u64 {
        match self {
            Chunk::Share(share) => (share * m as f64).ceil() as u64,
            Chunk::Records(records) => records,
        }
        .max(1)
    }
}

/// Neighbours of a vertex in a chunk, on average, below which the counts are noise.
const THIN: f64 = 2.0;
/// Neighbours of a vertex in a chunk, on average, that bring the cut within a few percent of an offline
/// partitioner's.
const ENOUGH: f64 = 4.0;

impl Domain for Chunk {
    type Value = Self;
    const KIND: &'static str = "chunk";

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Integer(records) => Some(Chunk::Records(records)),
            number => Number::read(number).map(Chunk::Share),
        }
    }

    fn shown(value: &Self) -> Value {
        match *value {
            Chunk::Share(share) => Value::Number(share),
            Chunk::Records(records) => Value::Integer(records),
        }
    }

    fn check(name: &'static str, value: &Self) -> Result<()> {
        let valid = match *value {
            Chunk::Share(share) => share > 0.0 && share <= 1.0,
            Chunk::Records(records) => records > 0,
        };
        if valid {
            return Ok(());
        }
        let what =
            "a share of the records above 0 and at most 1, or a number of records from 1 on, is needed";
        Err(Error::parameter(name, what))
    }
}

words! {
    /// In which order the records are taken.
    pub enum Order {
        /// Shuffled.
        Random = "random",
        /// As they come, which may be random already.
        File = "file",
    }
}

impl Grem {
    /// How the partition is refined, if it is.
    fn refinement(&self) -> Option<Refine> {
        let Self { balance, seed, .. } = *self;
        self.refine.then(|| Refine::new(Goal { balance, seed, ..Goal::new(self.k) }, Vec::new()))
    }

    fn rule(&self) -> Rule {
        match (self.revise, self.faithful) {
            (false, _) => Rule::Frozen,
            (true, true) => Rule::Faithful,
            (true, false) => Rule::Refined,
        }
    }

    /// Bytes per vertex together, and of a worker, for `n` vertices and `m` records.
    pub fn needed(&self, n: u64, m: u64) -> (u64, u64) {
        (self.of_vertices(n), self.of_worker(n, m, self.chunk.records(m)))
    }

    fn of_vertices(&self, n: u64) -> u64 {
        n * BYTES_PER_VERTEX + 16 * u64::from(self.k) + FIXED_BYTES
    }

    /// Bytes of a worker that holds `chunk` records at once: they, and the graph that the multilevel
    /// partitioner gets.
    fn of_worker(&self, n: u64, m: u64, chunk: u64) -> u64 {
        let chunk = chunk.min(m);
        // Most vertices of what is partitioned as a whole.
        let half = self.k.div_ceil(2);
        let whole = match m <= chunk {
            true => n,
            false if half > 1 => (cap(self.balance, n, self.k) * u64::from(half)).min(n),
            false => 0,
        };
        let seeded = if chunk < seed::LARGE as u64 / 2 { n } else { n / CLUSTERED };
        let members = whole.max(seeded).min(2 * chunk);
        chunk * BYTES_PER_RECORD + members * BYTES_PER_MEMBER
    }

    /// The largest chunk, in records, whose worker takes at most `available` bytes.
    fn largest_chunk(&self, n: u64, m: u64, available: u64) -> Option<u64> {
        // A worker takes more for a larger chunk, with two exceptions: a large chunk is clustered, and one of
        // all records is partitioned whole.
        let (all, clustered) = (m.max(1), (seed::LARGE as u64 / 2).clamp(1, m.max(1)));
        let fits = |chunk: u64| self.of_worker(n, m, chunk) <= available;
        [all..all + 1, clustered..all, 1..clustered].into_iter().find_map(|mut range| {
            if range.is_empty() || !fits(range.start) {
                return None;
            }
            while range.end - range.start > 1 {
                let middle = range.start + (range.end - range.start) / 2;
                *(if fits(middle) { &mut range.start } else { &mut range.end }) = middle;
            }
            Some(range.start)
        })
    }

    /// The memory that one worker needs. If that exceeds the budget, the text names the largest chunk that
    /// fits.
    fn need(&self, n: u64, m: u64, run: &Run) -> Need {
        let ((fixed, each), chunk) = (self.needed(n, m), self.chunk.records(m));
        let (files, what) = run.temporary(run.tmp_dir(), self.disk(m), format!("grem on {n} vertices"));
        let needed = fixed + each + files;
        if needed <= run.budget() {
            return Need::new(needed, what);
        }
        let remedy = match self.largest_chunk(n, m, run.budget().saturating_sub(fixed + files)) {
            Some(chunk) => format!("chunk={chunk} is the largest that fits"),
            None => "no chunk is small enough".into(),
        };
        Need::new(needed, format!("{what} with {} records at a time ({remedy})", chunk.min(m)))
    }

    /// Bytes of temporary files for `m` records: two files of records, or one and what is being shuffled.
    fn disk(&self, m: u64) -> u64 {
        match () {
            () if self.k == 1 || self.is_whole(m) => 0,
            () if self.order == Order::Random => 24 * m,
            () => 16 * m,
        }
    }

    /// Whether all `m` records are partitioned at once.
    fn is_whole(&self, m: u64) -> bool {
        !self.faithful && m <= self.chunk.records(m)
    }

    /// A warning if the chunks show too little of the graph.
    fn warning_of_thin_chunks(&self, graph: &Identity) -> Option<String> {
        let share = self.chunk.records(graph.m) as f64 / graph.m.max(1) as f64;
        let degree = 2.0 * (graph.m - graph.loops) as f64 / graph.n.max(1) as f64;
        if self.k == 1 || share >= 1.0 || degree * share >= THIN {
            return None;
        }
        let enough = if degree > 0.0 { (ENOUGH / degree).clamp(0.01, 1.0) } else { 1.0 };
        Some(format!(
            "chunk: with a mean degree of {degree:.2}, a chunk of {share:.3} of the records shows {:.2} neighbours of a \
             vertex, and its counts are noise. Use chunk={enough:.2} or more",
            degree * share
        ))
    }

    /// All records in random order.
    fn shuffled(&self, edges: &dyn EdgeStream, run: &Run) -> Result<TempRecords> {
        let mut shuffled = TempRecords::of_size(run.tmp_dir(), edges.num_vertices(), 0)?;
        shuffle(edges, self.seed, run.tmp_dir(), run, |records| shuffled.append(records))?;
        Ok(shuffled)
    }

    /// The part of each vertex.
    fn assign(&self, edges: &dyn EdgeStream, run: &Run) -> Result<Buffer<i32>> {
        let (n, m) = (edges.num_vertices(), edges.num_edges());
        let mut assignment: Buffer<i32> = Buffer::zeroed(n as usize, "parts")?;
        let chunk = self.chunk.records(m);
        let stays = self.is_whole(m) || self.order == Order::File || self.k == 1;
        let ordered = if stays { None } else { Some(self.shuffled(edges, run)?) };
        let mut problems = vec![Problem { first: 0, parts: self.k, n, records: 0..m }];
        problems.retain(|problem| problem.parts > 1);
        let mut source = ordered;
        while !problems.is_empty() {
            // Each sub-problem's records lie within the range that its parent's had: two files do for any
            // number of parts.
            let target = TempRecords::of_size(run.tmp_dir(), n, m)?;
            let level = Level {
                edges: source.as_ref().map_or(edges, |source| source),
                target: &target,
                chunk,
                cap: cap(self.balance, n, self.k),
                run,
            };
            problems = self.next_level(&level, &problems, &mut assignment)?;
            source = Some(target);
        }
        Ok(assignment)
    }

    /// Solves all problems of a level and returns those of the next.
    fn next_level(
        &self,
        level: &Level,
        problems: &[Problem],
        assignment: &mut [i32],
    ) -> Result<Vec<Problem>> {
        let run = level.run;
        let (fixed, each) = self.needed(level.edges.num_vertices(), level.edges.num_edges());
        let (files, what) = run.temporary(run.tmp_dir(), self.disk(level.edges.num_edges()), "grem");
        let workers = run.workers(problems.len(), fixed + files, each, &what)?;
        run.begin("bisection", problems.iter().map(|problem| self.reads(level, problem)).sum());
        let vertices = problems.iter().map(|problem| problem.n as usize);
        let mut offsets: Buffer<u32> = Buffer::zeroed(vertices.clone().sum(), "sides")?;
        let mut next = Vec::new();
        {
            let mut rest = &mut offsets[..];
            let slices: Vec<Mutex<&mut [u32]>> = vertices
                .map(|len| {
                    let (slice, others) = std::mem::take(&mut rest).split_at_mut(len);
                    rest = others;
                    Mutex::new(slice)
                })
                .collect();
            let solve = |(): &mut (), index: usize| {
                let mut slice = slices[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                self.solve(level, &problems[index], &mut slice)
            };
            next.extend(map(run, workers, problems.len(), || Ok(()), solve)?.into_iter().flatten());
        }
        self.apply(problems, &offsets, assignment, run)?;
        Ok(next)
    }

    /// Adds the result of its problem to the number of every vertex.
    fn apply(&self, problems: &[Problem], offsets: &[u32], assignment: &mut [i32], run: &Run) -> Result<()> {
        const NONE: usize = usize::MAX;
        let mut next = vec![NONE; self.k as usize];
        let mut start = 0;
        for problem in problems {
            next[problem.first as usize] = start;
            start += problem.n as usize;
        }
        for block in blocks(0..assignment.len() as u64) {
            for part in &mut assignment[block.start as usize..block.end as usize] {
                let place = &mut next[*part as usize];
                if *place != NONE {
                    *part += offsets[*place] as i32;
                    *place += 1;
                }
            }
            run.check()?;
        }
        Ok(())
    }
}

parameters! {
    /// Partition the vertices with GREM: recursive bisection of a stream that every chunk refines.
    ///
    /// The first chunk of each bisection is partitioned in memory. In every later one each vertex counts its
    /// neighbours on either side, adds four fifths of what it counted before, and goes to the side with more
    /// of them. After each chunk the vertices that lose least by it leave a side that exceeds its cap. Takes
    /// 16 bytes per vertex and 4 MB. Each of the at most ``threads`` sub-problems at work takes 36 bytes per
    /// record of a chunk and 104 bytes per vertex that is partitioned in memory. These are a fourth of the
    /// vertices of a chunk, or all if the chunk is small.
    ///
    /// Warns
    /// -----
    /// UserWarning
    ///     If a vertex has fewer than 2 neighbours in a chunk on average. The counts are noise then. The text
    ///     names a size that is large enough.
    ///
    /// See Also
    /// --------
    /// expected_cut : Estimate what the size of the chunks costs.
    ///
    /// Notes
    /// -----
    /// Source: Armada (Waleffe et al.), section 4. k parts are bisected into ``ceil(k / 2)`` and
    /// ``floor(k / 2)``. A sub-problem for s parts takes s times the cap of a part, so that the imbalance
    /// does not compound. On equal counts a vertex stays where it is, and a new one goes to the side with the
    /// larger free share of its capacity (of equal ones, the first). Vertices without a record in a
    /// sub-problem are placed at its end. With ``revise=False`` the first decision is the last, and no vertex
    /// may enter a full side.
    ///
    /// Only vertices are bounded. On graphs with a dense core (R-MAT, k = 32) the smallest cut puts the core
    /// into few parts, which then hold most of the edges. :func:`multilevel` and :func:`sigma` also bound the
    /// edges of a part.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    /// >>> part = fp.grem(two_triangles, k=2, chunk=1.0)
    /// >>> float(fp.evaluate(two_triangles, part).summary["cut_ratio"][0])
    /// 0.14285714285714285
    pub struct Grem => "grem", [Vertices];
    /// Size of a chunk. A float, above 0 and at most 1, is its share of the records. An int is its number of
    /// records. The size changes the result, so it never depends on the memory. A chunk that does not fit
    /// raises an error that names the largest one that fits. A graph or sub-problem that fits one chunk is
    /// partitioned in memory as a whole.
    chunk: Chunk = Chunk::Share(0.1);
    /// Rounds over the records of each bisection. The paper makes one.
    passes: Passes = 1;
    /// Decide again when a vertex comes again. False freezes the first decision. This is streaming greedy
    /// partitioning, for comparison.
    revise: Flag = true;
    /// Follow the paper's Algorithm 2 to the letter. Old counts are halved. No vertex may enter a full side.
    /// A vertex still counts on its side when the capacity there is checked. Equal counts send it to the
    /// emptier side. A chunk is a share of the records of its sub-problem, and no sub-problem is partitioned
    /// whole. The cap may be exceeded, so the result has none.
    faithful: Flag = false;
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance: Ratio = 1.0;
    /// Refine the partition at the end, as :func:`refine` does. That needs the adjacency (8 bytes per edge,
    /// in a temporary file where memory is short) and 72 bytes per vertex, and keeps ``balance``.
    refine: Flag = false;
    /// "random" puts the records in random order first, as the paper does. "file" takes them in their order.
    order: Order;
    /// Seed of the order and of the partitioner in memory.
    seed: Seed;
}

impl Partitioner for Grem {
    type Parameters = Self;
    type Reads = ();

    fn check(&self, _shape: &Shape) -> Result<()> {
        if self.faithful && !self.revise {
            return Err(Error::parameter("faithful", "the paper's rule revises. Leave out revise=False"));
        }
        Ok(())
    }

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        let need = self.need(shape.n, shape.m, run);
        self.refinement().map_or(need.clone(), |refine| Refine::memory(&refine, shape, run).or(need))
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (edges, run) = (graph.edges(), graph.run);
        let identity = degrees::identify(edges, run)?;
        let assignment = self.assign(edges, run)?;
        let mut loads = vec![0; self.k as usize];
        run.each(assignment.len(), |v| loads[assignment[v as usize] as usize] += 1)?;
        edges.check_unchanged()?;
        let cap = (!self.faithful).then(|| cap(self.balance, identity.n, self.k));
        let warning = self.warning_of_thin_chunks(&identity);
        let partition = VertexPartition::new(assignment, self.k, loads, cap, identity);
        let partition = refine::refined(partition, self.refinement(), graph)?;
        Ok(Outcome { warnings: warning.into_iter().collect(), ..partition.into() })
    }
}
