//! Edge streaming: gives records parts one after the other, each the part of the largest score.
//!
//! **Requirements.** The degrees of all vertices, and, for caps that hold, `k * cap >= m`.
//!
//! **Memory.** k bits ([`Incidence`]) and 4 bytes of degree per vertex, 40 bytes per part.
//!
//! **Algorithm.** The score of part p for the record (u, v) is what it is worth that u and v are in p already
//! ([`Affinity`]), plus a term of the loads ([`loads::Balance`]); parts at their limit are out, and if all are, the part
//! with the fewest records takes it. [`search`] finds the exact maximum: of up to 512 parts by scoring all, of more
//! by scoring those of u and v and the best balanced one. HDRF, PowerGraph's greedy rule and SIGMA's edge mode differ in
//! affinity and balance only.
//!
//! **Parallelism.** None: each record meets the state that the one before left, so the result is that of the sequential
//! rule for any number of threads. Rows and degrees are fetched some records ahead.
//!
//! **Complexity.** O(k) per record, 64 parts in about 20 ns, up to 512 parts; beyond, O(k/64 + replicas of u and v +
//! log k).

pub mod greedy;
pub mod hdrf;
pub mod loads;
pub mod loops;
pub mod partition;
mod search;

use std::ops::Range;

use crate::base::NONE;
use crate::base::buffer::Buffer;
use crate::base::error::{Error, Result};
use crate::base::prefetch::prefetch;
use crate::base::run::Run;
use crate::edges::Record;
use crate::sets::incidence::Incidence;
use loads::{Balance, Loads, SCANNED};
#[cfg(target_arch = "x86_64")]
use search::Wide;
use search::{All, Dense, Search, Sparse};

/// Records that are scored between two looks at the cancel flag; and where a hub may be in thousands of parts.
const STRIDE: usize = 4096;
const SPARSE_STRIDE: usize = 128;
/// How many records ahead rows and degrees are fetched.
const AHEAD: usize = 16;

/// What the presence of an end in a part is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// `2 - d(u) / (d(u) + d(v))` for u: an end of low degree is worth more.
    Degree,
    /// 2 for the end with more records still to come (u, if equal), 1 for the other: PowerGraph's cases.
    Remaining,
}

/// How the limit of records per part rises from the beginning of the stream to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The limit in the end.
    pub cap: u64,
    /// Share of it in the beginning, up to 1.
    pub start: f64,
}

/// Refuses a weight that is negative, infinite or NaN.
pub fn validate_lambda(lambda: f64) -> Result<()> {
    if lambda.is_finite() && lambda >= 0.0 {
        return Ok(());
    }
    Err(Error::parameter(
        "balance_weight",
        format!("{lambda}; the weight of the balance is a number of at least 0"),
    ))
}

impl Limit {
    /// The same from beginning to end.
    pub fn constant(cap: u64) -> Self {
        Self { cap, start: 1.0 }
    }

    /// `ceil(cap * (s + (1 - s) * sqrt(t)))` for the share `s` in the beginning and the fraction `t` streamed.
    #[inline(always)]
    fn at(&self, t: f64) -> f64 {
        let cap = self.cap as f64;
        (cap * (self.start + (1.0 - self.start) * t.sqrt())).ceil().min(cap)
    }
}

/// The state of a stream: who is where, and the loads.
#[derive(Debug)]
pub struct EdgeStreamer {
    /// Which parts each vertex is in.
    pub present: Incidence,
    /// Loads of the parts.
    pub loads: Loads,
    /// Degrees; under [`Affinity::Remaining`] records still to come.
    degrees: Buffer<u32>,
    affinity: Affinity,
    k: u32,
    limit: Limit,
    /// Records streamed, and how many there will be.
    streamed: u64,
    expected: u64,
}

impl EdgeStreamer {
    /// Bytes for `n` vertices and `k` parts, degrees included.
    pub fn memory(n: u64, k: u32) -> u64 {
        Incidence::memory(n, k) + 4 * n + Loads::memory(k)
    }

    /// Goes on where others stopped: vertices are present in parts, which have records.
    pub fn resume(
        degrees: Buffer<u32>,
        (present, records): (Incidence, &[u64]),
        cap: u64,
        affinity: Affinity,
        balance: Balance,
    ) -> Result<Self> {
        let k = records.len() as u32;
        let mut loads = Loads::new(k, balance, cap)?;
        loads.resume(records);
        let limit = Limit::constant(cap);
        Ok(Self { present, loads, degrees, affinity, k, limit, streamed: 0, expected: 0 })
    }

    /// Nothing placed yet, in `k` parts of at most `cap` records.
    pub fn new(degrees: Buffer<u32>, k: u32, cap: u64, affinity: Affinity, balance: Balance) -> Result<Self> {
        let present = Incidence::new(degrees.len(), k)?;
        Self::resume(degrees, (present, &vec![0; k as usize]), cap, affinity, balance)
    }

    /// Places a record by somebody else's decision, before [`Self::begin`].
    #[inline(always)]
    pub fn preassign(&mut self, [u, v]: Record, part: u32) {
        let replicas = u32::from(self.present.insert(u, part)) + u32::from(self.present.insert(v, part));
        self.loads.count(part, replicas);
    }

    /// Degrees of the ends of a record.
    #[inline(always)]
    pub fn degrees(&self, record: Record) -> [u32; 2] {
        record.map(|id| self.degrees[id as usize])
    }

    /// Degrees of all vertices.
    pub fn all_degrees(&self) -> &[u32] {
        &self.degrees
    }

    /// Brings what is known of both ends into the cache.
    #[inline(always)]
    pub fn prefetch(&self, record: Record) {
        for id in record {
            self.present.prefetch(id);
            prefetch(&self.degrees, id as usize);
        }
    }

    /// Begins to stream `expected` records under `limit`.
    pub fn begin(&mut self, expected: u64, limit: Limit) {
        (self.streamed, self.expected, self.limit) = (0, expected, limit);
        self.loads.settle(limit.at(0.0) as u64);
    }

    /// Gives each of the records a part; a loop gets [`NONE`].
    pub fn stream(&mut self, records: &[Record], parts: &mut [u32], run: &Run) -> Result<()> {
        let stride = if self.k as usize <= SCANNED { STRIDE } else { SPARSE_STRIDE };
        for (first, parts) in (0..).step_by(stride).zip(parts.chunks_mut(stride)) {
            let range = first..first + parts.len();
            #[cfg(target_arch = "x86_64")]
            if self.k as usize <= SCANNED && std::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the instructions. See `Wide`.
                unsafe { self.stride_avx2(records, range.clone(), parts) };
                run.advance(range.len() as u64)?;
                continue;
            }
            self.stride(records, range.clone(), parts);
            run.advance(range.len() as u64)?;
        }
        Ok(())
    }

    /// The same in wider registers.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn stride_avx2(&mut self, records: &[Record], range: Range<usize>, parts: &mut [u32]) {
        match self.k as usize {
            0..=8 => self.search::<Wide<2>>(records, range, parts),
            9..=16 => self.search::<Wide<4>>(records, range, parts),
            17..=32 => self.search::<Wide<8>>(records, range, parts),
            33..=64 => self.search::<Wide<16>>(records, range, parts),
            _ => self.search::<All<Wide<16>>>(records, range, parts),
        }
    }

    #[inline(always)]
    fn stride(&mut self, records: &[Record], range: Range<usize>, parts: &mut [u32]) {
        match self.k as usize {
            0..=8 => self.search::<Dense<2>>(records, range, parts),
            9..=16 => self.search::<Dense<4>>(records, range, parts),
            17..=32 => self.search::<Dense<8>>(records, range, parts),
            33..=64 => self.search::<Dense<16>>(records, range, parts),
            65..=SCANNED => self.search::<All<Dense<16>>>(records, range, parts),
            _ => self.search::<Sparse>(records, range, parts),
        }
    }

    #[inline(always)]
    fn search<S: Search>(&mut self, records: &[Record], range: Range<usize>, parts: &mut [u32]) {
        for (index, part) in range.zip(parts) {
            if let Some(&record) = records.get(index + AHEAD) {
                self.prefetch(record);
            }
            *part = self.place::<S>(records[index]);
        }
    }

    #[inline(always)]
    fn place<S: Search>(&mut self, [u, v]: Record) -> u32 {
        if u == v {
            return NONE;
        }
        if self.loads.any_closed() {
            self.loads.raise(self.limit.at(self.streamed as f64 / self.expected as f64));
        }
        let gains = self.gains(u, v);
        let rows = [self.present.row(u), self.present.row(v)];
        let part = S::best(&self.loads, rows, gains).unwrap_or_else(|| self.loads.least_loaded());
        let replicas = u32::from(self.present.insert(u, part)) + u32::from(self.present.insert(v, part));
        self.loads.add(part, replicas);
        self.streamed += 1;
        part
    }

    #[inline(always)]
    fn gains(&mut self, u: u32, v: u32) -> [f64; 2] {
        let degrees = [self.degrees[u as usize], self.degrees[v as usize]];
        match self.affinity {
            Affinity::Degree => {
                let [u, v] = degrees.map(f64::from);
                [2.0 - u / (u + v), 2.0 - v / (u + v)]
            }
            Affinity::Remaining => {
                self.degrees[u as usize] -= 1;
                self.degrees[v as usize] -= 1;
                if degrees[0] >= degrees[1] { [2.0, 1.0] } else { [1.0, 2.0] }
            }
        }
    }
}
