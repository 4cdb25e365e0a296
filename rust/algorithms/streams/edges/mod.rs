//! Edge streaming: gives records parts one after the other, each the part of the largest score.
//!
//! **Requirements.** The degrees of all vertices, and, for caps that hold, `k * cap >= m`.
//!
//! **Memory.** k bits ([`Incidence`]) and 4 bytes of degree per vertex, 40 bytes per part, and up to 9 MB of
//! buffers.
//!
//! **Algorithm.** The score of part p for the record (u, v) is an [`Affinity`] for the ends that p has
//! already, plus a term of the loads ([`loads::Balance`]). Parts at their limit are excluded. If all are, the
//! part with the fewest records takes the record. [`search`] finds the exact maximum. It scores all of up to
//! 512 parts. If there are more, it scores the parts of u and v, and the best balanced one. HDRF,
//! PowerGraph's greedy rule and SIGMA of edges differ only in affinity and balance.
//!
//! **Parallelism.** One thread places the records: each sees the state that the one before left, so the
//! result is that of the sequential rule for any number of threads. The others read the next records, choose
//! those that are open and look up or count what their ends are worth ([`mod@pipeline`]). Rows are fetched
//! some records ahead. The placing thread waits for the record before rather than for memory: every record
//! needs the term of the part that it took.
//!
//! **Complexity.** O(k) per record up to 512 parts: on one machine 45 ns for 8 parts, 55 for 32, 120 for 128.
//! Beyond, O(k/64 + replicas of u and v + log k).

pub mod loads;
pub(crate) mod loops;
pub(crate) mod partition;
pub mod refining;
mod search;

use std::ops::Range;

use crate::base::{Buffer, NONE, Result, Run, ahead, prefetch_ends};
use crate::capacity::open_share;
use crate::edges::temporary::check_ids;
use crate::edges::{EdgeStream, Record};
use crate::exec::pipeline;
use crate::exec::spill::{Entry, PIECE, SpillReader};
use crate::partition::EdgeParts;
use crate::sets::Incidence;
use loads::{Balance, EdgeLoads, SCANNED};
use search::{All, Dense, Search, Sparse};
#[cfg(target_arch = "x86_64")]
use search::{Avx2, Wide};

/// Records that are scored between two polls of the cancel flag. A hub may be in thousands of parts.
const STRIDE: usize = 4096;
const SPARSE_STRIDE: usize = 128;

/// The score of an end that is present in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// `2 - d(u) / (d(u) + d(v))` for u: an end of low degree is worth more.
    Degree,
    /// 2 for the end with more records still to come (u, if equal), 1 for the other: PowerGraph's cases.
    Remaining,
}

/// The scores of a part for holding the first and the second end of a record.
pub(crate) type Gains = [f64; 2];

/// The gains of `records` under [`Affinity::Degree`]. Their ends are numbers of `vertices` with a `degree`.
pub fn by_degree<V>(vertices: &[V], degree: impl Fn(&V) -> u32, records: &[Record], gains: &mut Vec<Gains>) {
    gains.clear();
    gains.extend(records.iter().enumerate().map(|(index, &ends)| {
        prefetch_ends(vertices, records, index + ahead::ENTRIES);
        let [u, v] = ends.map(|id| f64::from(degree(&vertices[id as usize])));
        [2.0 - u / (u + v), 2.0 - v / (u + v)]
    }));
}

/// How the limit of records per part rises from the beginning of the stream to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The limit in the end.
    pub cap: u64,
    /// Share of it in the beginning, up to 1.
    pub start: f64,
}

impl Limit {
    /// A limit that stays the same from beginning to end.
    pub fn constant(cap: u64) -> Self {
        Self { cap, start: 1.0 }
    }

    /// `ceil(cap * (s + (1 - s) * sqrt(t)))` for the share `s` in the beginning and the fraction `t`
    /// streamed.
    #[inline(always)]
    fn at(&self, t: f64) -> f64 {
        let cap = self.cap as f64;
        (cap * open_share(self.start, t)).ceil().min(cap)
    }
}

/// The state of a stream: where the vertices are present, and the loads.
#[derive(Debug)]
pub struct EdgeStreamer {
    /// The parts that each vertex is in.
    pub present: Incidence,
    /// Loads of the parts.
    pub loads: EdgeLoads,
    /// Under [`Affinity::Remaining`]: records still to come of each vertex.
    remaining: Option<Buffer<u32>>,
    k: u32,
    limit: Limit,
    /// Records streamed, and how many there will be.
    streamed: u64,
    expected: u64,
}

impl EdgeStreamer {
    /// Bytes for `n` vertices, `m` records and `k` parts, degrees and buffers included.
    pub fn memory(n: u64, m: u64, k: u32) -> u64 {
        Incidence::memory(n, k) + 4 * n + EdgeLoads::memory(k) + pipeline::memory(m, BYTES_PER_RECORD)
    }

    /// Continues a stream: vertices are present in parts, and parts have records.
    pub fn resume((present, records): (Incidence, &[u64]), cap: u64, balance: Balance) -> Result<Self> {
        let k = records.len() as u32;
        let mut loads = EdgeLoads::new(k, balance, cap)?;
        loads.resume(records, &[]);
        let limit = Limit::constant(cap);
        Ok(Self { present, loads, remaining: None, k, limit, streamed: 0, expected: 0 })
    }

    /// An empty stream of `n` vertices into `k` parts of at most `cap` records.
    pub fn new(n: usize, k: u32, cap: u64, balance: Balance) -> Result<Self> {
        Self::resume((Incidence::new(n, k)?, &vec![0; k as usize]), cap, balance)
    }

    /// Follows [`Affinity::Remaining`], from the records that each vertex has.
    pub fn counting(self, records: Buffer<u32>) -> Self {
        Self { remaining: Some(records), ..self }
    }

    /// Places a record in a given part, before [`Self::begin`].
    #[inline(always)]
    pub fn preassign(&mut self, [u, v]: Record, part: u32) {
        let replicas = u32::from(self.present.insert(u, part)) + u32::from(self.present.insert(v, part));
        self.loads.count(part, replicas);
    }

    /// Begins to stream `expected` records under `limit`.
    pub fn begin(&mut self, expected: u64, limit: Limit) {
        (self.streamed, self.expected, self.limit) = (0, expected, limit);
        self.loads.settle(limit.at(0.0) as u64);
    }

    /// Places all records in stream order, or those without a part but the loops. `worth` finds the gains,
    /// unless [`Affinity::Remaining`] is followed.
    pub fn stream_all(
        &mut self,
        edges: &dyn EdgeStream,
        parts: &mut EdgeParts,
        run: &Run,
        all: bool,
        worth: impl Fn(&[Record], &mut Vec<Gains>) + Sync,
    ) -> Result<()> {
        let gather = |parts: &EdgeParts, range: Range<u64>, slice: &mut Slice| {
            if all {
                slice.first = range.start;
                edges.block(range, &mut slice.open)?;
            } else {
                slice.read(edges, parts, range)?;
                choose_open(&slice.records, &slice.parts, &mut slice.chosen);
                slice.open.clear();
                slice.open.extend(slice.chosen.iter().map(|&index| slice.records[index as usize]));
            }
            worth(&slice.open, &mut slice.gains);
            Ok(())
        };
        // The counts of later records depend on no placing.
        let mut remaining = self.remaining.take();
        let arrange = |slice: &mut Slice| {
            if let Some(remaining) = &mut remaining {
                count_down(remaining, &slice.open, &mut slice.gains);
            }
        };
        let place = |slice: &mut Slice| {
            self.stream_open(slice, run)?;
            if all {
                std::mem::swap(&mut slice.parts, &mut slice.found);
                return Ok(());
            }
            for (&index, &part) in slice.chosen.iter().zip(&slice.found) {
                slice.parts[index as usize] = part;
            }
            Ok(())
        };
        pipeline::arranged(edges, parts, run, gather, arrange, place, Slice::write)
    }

    /// Places the records of `n` vertices that `spilled` holds, bucket by bucket.
    pub fn stream_spilled(
        &mut self,
        spilled: &SpillReader,
        n: u64,
        parts: &mut EdgeParts,
        run: &Run,
        worth: impl Fn(&[Record], &mut Vec<Gains>) + Sync,
    ) -> Result<()> {
        let gather = |_: &EdgeParts, piece: u64, slice: &mut Slice| {
            let Slice { entries, open, gains, .. } = slice;
            spilled.read_piece(piece as usize, entries)?;
            open.clear();
            open.extend(entries.iter().map(|entry| [entry.source, entry.target]));
            check_ids(open, n, run.tmp_dir())?;
            worth(open, gains);
            run.advance(open.len() as u64)
        };
        let place = |slice: &mut Slice| self.stream_open(slice, run);
        let finish = |parts: &mut EdgeParts, slice: &Slice| {
            parts.set(slice.entries.iter().map(Entry::id).zip(slice.found.iter().copied()));
        };
        pipeline::slices(spilled.num_pieces() as u64, parts, run, gather, |_| {}, place, finish)
    }

    /// Finds the parts of the open records of a slice.
    fn stream_open(&mut self, Slice { open, gains, found, .. }: &mut Slice, run: &Run) -> Result<()> {
        found.clear();
        found.resize(open.len(), NONE);
        self.stream(open, gains, found, run)
    }

    /// Gives each of the records, whose gains are known, a part. A loop gets [`NONE`].
    fn stream(&mut self, records: &[Record], gains: &[Gains], parts: &mut [u32], run: &Run) -> Result<()> {
        let stride = if self.k as usize <= SCANNED { STRIDE } else { SPARSE_STRIDE };
        for (first, parts) in (0..).step_by(stride).zip(parts.chunks_mut(stride)) {
            let range = first..first + parts.len();
            run.check()?;
            #[cfg(target_arch = "x86_64")]
            if self.k as usize <= SCANNED
                && let Some(avx2) = Avx2::detected()
            {
                // SAFETY: as `Avx2` says, the processor has the instructions.
                unsafe { self.stride_avx2(avx2, records, gains, range, parts) };
                continue;
            }
            self.stride(records, gains, range, parts);
        }
        Ok(())
    }

    /// [`stride`](Self::stride) in wider registers.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn stride_avx2(
        &mut self,
        avx2: Avx2,
        records: &[Record],
        gains: &[Gains],
        range: Range<usize>,
        parts: &mut [u32],
    ) {
        match self.k as usize {
            0..=8 => self.search(Wide::<2>(avx2), records, gains, range, parts),
            9..=16 => self.search(Wide::<4>(avx2), records, gains, range, parts),
            17..=32 => self.search(Wide::<8>(avx2), records, gains, range, parts),
            33..=64 => self.search(Wide::<16>(avx2), records, gains, range, parts),
            _ => self.search(All(Wide::<16>(avx2)), records, gains, range, parts),
        }
    }

    #[inline(always)]
    fn stride(&mut self, records: &[Record], gains: &[Gains], range: Range<usize>, parts: &mut [u32]) {
        match self.k as usize {
            0..=8 => self.search(Dense::<2>, records, gains, range, parts),
            9..=16 => self.search(Dense::<4>, records, gains, range, parts),
            17..=32 => self.search(Dense::<8>, records, gains, range, parts),
            33..=64 => self.search(Dense::<16>, records, gains, range, parts),
            65..=SCANNED => self.search(All(Dense::<16>), records, gains, range, parts),
            _ => self.search(Sparse, records, gains, range, parts),
        }
    }

    #[inline(always)]
    fn search(
        &mut self,
        how: impl Search,
        records: &[Record],
        gains: &[Gains],
        range: Range<usize>,
        parts: &mut [u32],
    ) {
        for (index, part) in range.zip(parts) {
            if let Some(&record) = records.get(index + ahead::ENTRIES) {
                record.iter().for_each(|&id| self.present.prefetch(id));
            }
            *part = self.place(how, records[index], gains[index]);
        }
    }

    #[inline(always)]
    fn place(&mut self, how: impl Search, [u, v]: Record, gains: Gains) -> u32 {
        if u == v {
            return NONE;
        }
        if self.loads.any_closed() {
            self.loads.raise(self.limit.at(self.streamed as f64 / self.expected as f64));
        }
        let rows = [self.present.row(u), self.present.row(v)];
        let part = how.best(&self.loads, rows, gains).unwrap_or_else(|| self.loads.least_loaded());
        let replicas = u32::from(self.present.insert(u, part)) + u32::from(self.present.insert(v, part));
        self.loads.add(part, replicas);
        self.streamed += 1;
        part
    }
}

/// Lists the numbers below `count` that are `open`, without a branch: whether one is cannot be predicted.
pub(crate) fn choose(count: usize, chosen: &mut Vec<u32>, open: impl Fn(usize) -> bool) {
    chosen.resize(count, 0);
    let mut kept = 0;
    for index in 0..count {
        chosen[kept] = index as u32;
        kept += usize::from(open(index));
    }
    chosen.truncate(kept);
}

/// Lists the records that have [`NONE`] instead of a part, but not the loops.
pub(crate) fn choose_open(records: &[Record], parts: &[u32], chosen: &mut Vec<u32>) {
    choose(records.len(), chosen, |index| parts[index] == NONE && records[index][0] != records[index][1]);
}

/// The gains of `records` under [`Affinity::Remaining`]. Each takes one from the records that its ends have
/// to come.
fn count_down(remaining: &mut [u32], records: &[Record], gains: &mut Vec<Gains>) {
    gains.clear();
    gains.extend(records.iter().enumerate().map(|(index, &[u, v])| {
        prefetch_ends(remaining, records, index + ahead::ENTRIES);
        let first = remaining[u as usize] >= remaining[v as usize];
        if u != v {
            remaining[u as usize] -= 1;
            remaining[v as usize] -= 1;
        }
        if first { [2.0, 1.0] } else { [1.0, 2.0] }
    }));
}

/// Records that one thread gathers at a time, with what placing them needs, and their parts.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    /// The number of the first record.
    pub first: u64,
    /// The records.
    pub records: Vec<Record>,
    /// Their parts.
    pub parts: Vec<u32>,
    /// Indices of the records to place.
    pub chosen: Vec<u32>,
    open: Vec<Record>,
    gains: Vec<Gains>,
    found: Vec<u32>,
    /// Spilled records with their parts, instead of the first three fields.
    entries: Vec<Entry>,
}

/// Bytes of a slice, per record.
const BYTES_PER_RECORD: u64 =
    2 * size_of::<Record>() as u64 + 3 * size_of::<u32>() as u64 + size_of::<Gains>() as u64;

// A spilled record takes no more bytes.
const _: () = assert!(
    size_of::<Entry>() == size_of::<Record>() + 2 * size_of::<u32>() && PIECE <= pipeline::SLICE as usize
);

impl Slice {
    /// Reads the records `range`, and their parts as they are.
    pub(crate) fn read(
        &mut self,
        edges: &dyn EdgeStream,
        parts: &EdgeParts,
        range: Range<u64>,
    ) -> Result<()> {
        self.first = range.start;
        edges.block(range.clone(), &mut self.records)?;
        parts.read(range, &mut self.parts);
        Ok(())
    }

    /// Writes the parts.
    pub(crate) fn write(parts: &mut EdgeParts, slice: &Slice) {
        parts.write(slice.first, &slice.parts);
    }
}
