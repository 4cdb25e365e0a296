//! SIGMA's edge mode: an edge partition that keeps clusters whole and balances records and replicas at once.
//!
//! **Requirements.** Any graph, as a stream and as adjacency ([`Csr`], for the clusters).
//!
//! **Memory.** 20 bytes per vertex for the clusters, adjacency not counted; then 8 bytes (preferred part, degree) and k
//! bits per vertex, 40 bytes per part. The result comes on top of the latter.
//!
//! **Algorithm.** Every vertex prefers the part of its cluster ([`super::preference`]). *Preassignment*: a record whose
//! ends prefer the same part goes there, up to the cap of `ceil(balance * m / k)` records. *Streaming*: the others follow,
//! each to the part of the largest score `g_u + g_v + lambda * (b_e / 2 + b_r / 2)` among those below the limit.
//! `g_u = 2 - d(u) / (d(u) + d(v))` if u is in the part already, else 0; `b = (max - load) / max` for records and for
//! replicas, 0 while max is 0. The limit is `ceil(cap * (s + (1 - s) * sqrt(t)))` with
//! `s = max(0.9, largest load after the preassignment / cap)` and the fraction t of the streamed records that are placed;
//! where no part is below it, the one with the fewest records is taken. (Rounded down, it would leave no part open where
//! `m / k` is small.)
//!
//! **Order.** The paper streams in the order of the file. Records of low degree first, in a few [`bands`], make 2 to 20 %
//! fewer replicas on every graph tried; one band is the paper's order.
//!
//! **Complexity.** See [`crate::algorithms::edge_streams`]; one pass over the records, and one per band.
//!
//! **Source.** SIGMA, sections 3.2 and 3.3. The paper preassigns records within a cluster, the authors' program those
//! within a part: so does this.

mod bands;

use std::ops::Range;
use std::path::Path;

use super::preference;
use super::preference::{Weight, preferred_parts};
use crate::algorithms::edge_streams::loads::Balance;
use crate::algorithms::edge_streams::{EdgeStreamer, Limit, Slice, by_degree, loops, validate_lambda};
use crate::base::NONE;
use crate::base::buffer::Buffer;
use crate::base::error::{Error, Result};
use crate::base::prefetch::prefetch_ends;
use crate::base::run::Run;
use crate::capacity;
use crate::capacity::{validate_balance, validate_parts};
use crate::edges::{EdgeStream, Record};
use crate::exec::pipeline::pipeline;
use crate::exec::scan::for_each;
use crate::graph::csr::Csr;
use crate::graph::identity::Graph;
use crate::partition::{EdgePartition, EdgeParts};
use bands::Bands;

/// Clusters have at most this share of `n / k` vertices: 1 + the epsilon of the paper.
const VERTICES_OF_CLUSTER: f64 = 1.03;
/// The least share of the cap that is open in the beginning of the stream.
const LEAST_OPEN: f64 = 0.9;
/// How many records ahead memory is asked for.
const AHEAD: usize = 16;

/// Every band is a pass over the records.
const MAX_BANDS: u32 = 64;

/// Parameters of SIGMA's edge mode.
#[derive(Debug, Clone)]
pub struct SigmaEdge {
    /// Number of parts.
    pub k: u32,
    /// A part gets at most `ceil(balance * m / k)` records.
    pub balance: f64,
    /// Weight of the balance of loads in the score.
    pub lambda: f64,
    /// Bands of ascending lower degree that records are streamed in; 1 is the order of the stream, the paper's.
    pub bands: u32,
}

impl SigmaEdge {
    /// The defaults.
    pub fn new(k: u32) -> Self {
        Self { k, balance: 1.10, lambda: 1.0, bands: 8 }
    }

    /// Refuses parameters that cannot be.
    pub fn validate(&self) -> Result<()> {
        validate_parts(self.k)?;
        validate_balance("balance", self.balance)?;
        validate_lambda(self.lambda)?;
        if !(1..=MAX_BANDS).contains(&self.bands) {
            return Err(Error::parameter("bands", format!("{}; use 1 to {MAX_BANDS}", self.bands)));
        }
        Ok(())
    }

    /// Bytes that a graph of `n` vertices and `m` records takes, adjacency and the clustering's scratch space not counted.
    pub fn needed(&self, n: u64, m: u64, out: Option<&Path>) -> u64 {
        (preference::BYTES_PER_VERTEX * n).max(self.memory_of_stream(n, m, out))
    }

    fn memory_of_stream(&self, n: u64, m: u64, out: Option<&Path>) -> u64 {
        EdgeStreamer::memory(n, m, self.k) + 4 * n + EdgeParts::memory(m, self.k, out)
    }

    /// Partitions `edges`, whose adjacency is `csr`; the parts go to the `.npy` file `out`, or into memory.
    pub fn partition(
        &self,
        edges: &dyn EdgeStream,
        csr: &Csr,
        out: Option<&Path>,
        run: &Run,
    ) -> Result<EdgePartition> {
        self.validate()?;
        let graph = csr.graph();
        let what = format!("SIGMA's edge mode, {} vertices, {} records, {} parts", graph.n, graph.m, self.k);
        run.require(self.needed(graph.n, graph.m, out), what)?;
        let volume = csr.num_entries() + graph.n;
        let caps = [
            capacity::cap(VERTICES_OF_CLUSTER, graph.n, self.k),
            capacity::cap(self.balance, volume, self.k),
        ];
        let preferred = preferred_parts(csr, self.k, caps, Weight::Degrees, run)?;
        let mut degrees: Buffer<u32> = Buffer::zeroed(csr.num_vertices(), "degrees")?;
        run.begin("degrees", graph.n);
        for_each(&mut degrees, run, |v, degree| *degree = csr.degree(v as u32))?;
        self.place(edges, &preferred, degrees, graph.clone(), out, run)
    }

    /// Gives each record a part, from the part that each vertex prefers and the degrees.
    pub fn place(
        &self,
        edges: &dyn EdgeStream,
        preferred: &[u32],
        degrees: Buffer<u32>,
        graph: Graph,
        out: Option<&Path>,
        run: &Run,
    ) -> Result<EdgePartition> {
        self.validate()?;
        let what = format!("SIGMA's edge mode, {} vertices, {} records, {} parts", graph.n, graph.m, self.k);
        run.require(self.memory_of_stream(graph.n, graph.m, out), what)?;
        let cap = capacity::cap(self.balance, graph.m, self.k);
        let bands = Bands::new(&degrees, self.bands, self.k, run)?;
        let balance = Balance::RecordsAndReplicas(self.lambda);
        let mut streamer = EdgeStreamer::new(degrees.len(), self.k, cap, balance)?;
        let mut parts = EdgeParts::new(graph.m, self.k, out)?;
        let preassigned =
            preassign(edges, preferred, &degrees, (cap, &bands), &mut streamer, &mut parts, run)?;
        let fullest = streamer.loads.records().into_iter().max().unwrap_or(0);
        let start = if cap > 0 { LEAST_OPEN.max(fullest as f64 / cap as f64) } else { 1.0 };
        streamer.begin((graph.m - graph.loops).saturating_sub(preassigned), Limit { cap, start });
        run.begin("streaming", edges.num_edges() * u64::from(bands.count()));
        for band in 0..bands.count() {
            let members = |records: &[Record], marks: &[u32], chosen: &mut Vec<u32>| {
                bands.members(band, records, marks, &degrees, chosen);
            };
            let worth = |records: &[Record], gains: &mut _| {
                by_degree(&degrees, |&degree| degree, records, gains);
            };
            streamer.stream_all(edges, &mut parts, run, Some(&members), worth)?;
        }
        let EdgeStreamer { mut present, loads, .. } = streamer;
        let mut loads = loads.records();
        if graph.loops > 0 {
            loops::place(edges, &mut parts, &mut loads, Some(cap), Some(&mut present), run)?;
        }
        Ok(EdgePartition { parts, k: self.k, loads, cap: Some(cap), graph })
    }
}

/// Places the records whose ends prefer the same part, and returns how many there are.
fn preassign(
    edges: &dyn EdgeStream,
    preferred: &[u32],
    degrees: &[u32],
    (cap, bands): (u64, &Bands),
    streamer: &mut EdgeStreamer,
    parts: &mut EdgeParts,
    run: &Run,
) -> Result<u64> {
    let mark = |ends: Record| bands.mark(ends.map(|id| degrees[id as usize]));
    let gather = |parts: &EdgeParts, range: Range<u64>, slice: &mut Slice| {
        slice.read(edges, parts, range)?;
        let Slice { records, parts, chosen, .. } = slice;
        chosen.clear();
        for (index, &[u, v]) in records.iter().enumerate() {
            prefetch_ends(preferred, records, index + AHEAD);
            prefetch_ends(degrees, records, index + AHEAD);
            let part = preferred[u as usize];
            parts[index] = match part == preferred[v as usize] {
                _ if u == v => NONE,
                true => part,
                false => mark([u, v]),
            };
            if u != v && part == preferred[v as usize] {
                chosen.push(index as u32);
            }
        }
        Ok(())
    };
    let mut preassigned = 0;
    let place = |slice: &mut Slice| {
        for (place, &index) in slice.chosen.iter().enumerate() {
            if let Some(&ahead) = slice.chosen.get(place + AHEAD) {
                slice.records[ahead as usize].iter().for_each(|&id| streamer.present.prefetch(id));
            }
            let (record, part) = (slice.records[index as usize], slice.parts[index as usize]);
            if streamer.loads.of(part) < cap {
                streamer.preassign(record, part);
                preassigned += 1;
            } else {
                slice.parts[index as usize] = mark(record);
            }
        }
        run.check()
    };
    run.begin("preassignment", edges.num_edges());
    pipeline(edges, parts, run, gather, place, Slice::write)?;
    Ok(preassigned)
}
