//! SIGMA of edges: an edge partition that keeps clusters whole and balances records and replicas at once.
//!
//! **Requirements.** Any graph, as a stream and as adjacency ([`Csr`], for the clusters).
//!
//! **Memory.** 20 bytes per vertex for the clusters, adjacency not counted. Then 8 bytes (preferred part,
//! degree) and k bits per vertex, 40 bytes per part, 64 KiB per band, up to 9 MB of other buffers, and the
//! result.
//!
//! **Disk.** With two bands or more, 16 bytes per record that is streamed, in a temporary file
//! ([`crate::exec::spill`]).
//!
//! **Algorithm.** Every vertex prefers the part of its cluster ([`super::preference`]). *Preassignment*: a
//! record whose ends prefer the same part goes there, up to the cap of `ceil(balance * m / k)` records.
//! *Streaming*: the others follow, each to the part of the largest score
//! `g_u + g_v + lambda * (b_e / 2 + b_r / 2)` among those below the limit. `g_u = 2 - d(u) / (d(u) + d(v))`
//! if u is in the part already, else 0. `b = (max - load) / max` for records and for replicas, 0 while max is
//! 0. The limit is `ceil(cap * (s + (1 - s) * sqrt(t)))` with
//! `s = max(0.9, largest load after the preassignment / cap)` and the fraction t of the streamed records that
//! are placed. Where no part is below it, the one with the fewest records is taken. (Rounded down, it would
//! leave no part open where `m / k` is small.)
//!
//! **Order.** The paper streams in the order of the file. Records of low degree first, in a few [`bands`],
//! make 2 to 20 % fewer replicas on every graph tried. One band is the paper's order. The preassignment sends
//! what it leaves open to its band in a temporary file, from which the bands are read one after the other.
//! One band is a second pass instead.
//!
//! **Refinement**, where it is asked for: [`refining`].
//!
//! **Complexity.** See [`crate::algorithms::streams::edges`]. One pass over the records, and one over those
//! left open, for any number of bands.
//!
//! **Source.** SIGMA, sections 3.2 and 3.3. The paper preassigns records within a cluster. The authors'
//! program and this one preassign those within a part.

mod bands;

use std::ops::Range;
use std::path::Path;

use super::Sigma;
use super::preference::{Weight, preferred_parts};
use crate::algorithms::streams::edges::loads::Balance;
use crate::algorithms::streams::edges::refining::{self, Refining};
use crate::algorithms::streams::edges::{EdgeStreamer, Limit, Slice, by_degree, choose, choose_open, loops};
use crate::base::{Buffer, NONE, Result, Run, ahead, prefetch_ends};
use crate::capacity;
use crate::edges::{EdgeStream, Record};
use crate::exec::pipeline::pipeline;
use crate::exec::scan::for_each;
use crate::exec::spill;
use crate::exec::spill::{Entry, Spill, Writer};
use crate::graph::csr::Csr;
use crate::graph::identity::Identity;
use crate::partition::parameters::Whole;
use crate::partition::{EdgePartition, EdgeParts, Need, Shape};
use bands::Bands;

/// Clusters have at most this share of `n / k` vertices: 1 + the epsilon of the paper.
const VERTICES_OF_CLUSTER: f64 = 1.03;
/// The least share of the cap that is open in the beginning of the stream.
const LEAST_OPEN: f64 = 0.9;

/// Each band has a buffer while records are sent to it.
const MAX_BANDS: u32 = 64;

/// The number of bands.
pub(crate) type BandCount = Whole<1, MAX_BANDS>;

/// Parameters of SIGMA of edges.
#[derive(Debug, Clone)]
pub struct SigmaEdge {
    /// Number of parts.
    pub k: u32,
    /// A part gets at most `ceil(balance * m / k)` records.
    pub balance: f64,
    /// Weight of the balance of loads in the score.
    pub lambda: f64,
    /// Bands of ascending lower degree that records are streamed in. 1 is the order of the stream, the
    /// paper's.
    pub bands: u32,
    /// Most passes of the refinement in the end, 0 for none.
    pub passes: u32,
}

impl SigmaEdge {
    /// The defaults.
    pub fn new(k: u32) -> Self {
        Sigma::new(k).edges()
    }

    /// Memory for a graph, adjacency and the clustering's scratch space not counted. `least` is the memory of
    /// the steps before and after the stream, and `name` the partitioner's.
    pub fn memory(&self, name: &str, shape: &Shape, least: u64, run: &Run) -> Need {
        let &Shape { n, m, in_file, .. } = shape;
        let (directory, buffers) =
            if self.reorders() { spill::memory_of::<Entry>(m, self.bands.into(), 1) } else { (0, 0) };
        let parts = EdgeParts::memory(m, self.k, in_file);
        let streaming = EdgeStreamer::memory(n, m, self.k) + 4 * n + parts + directory + buffers;
        let refining = if self.passes > 0 { 4 * n + refining::memory(n, m, self.k, in_file) } else { 0 };
        let what = format!("{name} on {n} vertices and {m} records, {} parts", self.k);
        let (files, what) = run.temporary(run.tmp_dir(), self.disk(m), what);
        Need::new(least.max(files + streaming.max(refining)), what)
    }

    /// Most bytes of temporary files for `m` records.
    fn disk(&self, m: u64) -> u64 {
        if self.reorders() { size_of::<Entry>() as u64 * m } else { 0 }
    }

    /// Whether records are streamed in another order than that of the stream.
    fn reorders(&self) -> bool {
        self.bands > 1
    }

    /// Partitions `edges`, whose adjacency is `csr`. The parts go to the `.npy` file `out` or stay in memory.
    pub fn partition(
        &self,
        edges: &dyn EdgeStream,
        csr: &Csr,
        out: Option<&Path>,
        run: &Run,
    ) -> Result<EdgePartition> {
        let graph = csr.graph();
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
        graph: Identity,
        out: Option<&Path>,
        run: &Run,
    ) -> Result<EdgePartition> {
        let cap = capacity::cap(self.balance, graph.m, self.k);
        let bands = Bands::new(&degrees, self.bands, run)?;
        let balance = Balance::RecordsAndReplicas(self.lambda);
        let mut streamer = EdgeStreamer::new(degrees.len(), self.k, cap, balance)?;
        let mut parts = EdgeParts::new(graph.m, self.k, out)?;
        let spill = self.reorders().then(|| Spill::create(run.tmp_dir(), self.bands as usize)).transpose()?;
        let mut open = spill.as_ref().map(Spill::writer).transpose()?;
        let sinks = (&mut streamer, &mut parts, &mut open);
        let preassigned = preassign(edges, preferred, &degrees, (cap, &bands), sinks, run)?;
        let fullest = streamer.loads.records().into_iter().max().unwrap_or(0);
        let start = if cap > 0 { LEAST_OPEN.max(fullest as f64 / cap as f64) } else { 1.0 };
        let expected = (graph.m - graph.loops).saturating_sub(preassigned);
        streamer.begin(expected, Limit { cap, start });
        let worth = |records: &[Record], gains: &mut _| by_degree(&degrees, |&degree| degree, records, gains);
        if let Some(spill) = spill {
            run.begin("streaming", expected);
            streamer.stream_spilled(
                &spill.seal(open.into_iter().collect())?,
                graph.n,
                &mut parts,
                run,
                worth,
            )?;
        } else {
            run.begin("streaming", graph.m);
            streamer.stream_all(edges, &mut parts, run, false, worth)?;
        }
        let EdgeStreamer { present, loads, .. } = streamer;
        let (loads, cap) = (loads.records(), Some(cap));
        let partition = EdgePartition { parts, k: self.k, loads, cap, graph };
        let mut partition = loops::place(edges, partition, Some(present), run)?;
        drop(degrees);
        Refining { passes: self.passes, lambda: self.lambda }.refine(edges, &mut partition, run)?;
        Ok(partition)
    }
}

/// Some records, their parts, and the band of each.
#[derive(Default)]
struct BandSlice {
    slice: Slice,
    bands: Vec<u8>,
}

/// Places the records whose ends prefer the same part, sends all others but loops to the `open` ones of their
/// band, if these are kept, and returns how many are placed.
fn preassign(
    edges: &dyn EdgeStream,
    preferred: &[u32],
    degrees: &[u32],
    (cap, bands): (u64, &Bands),
    (streamer, parts, open): (&mut EdgeStreamer, &mut EdgeParts, &mut Option<Writer>),
    run: &Run,
) -> Result<u64> {
    let gather = |_: &EdgeParts, range: Range<u64>, BandSlice { slice, bands: found }: &mut BandSlice| {
        let Slice { first, records, parts, chosen, .. } = slice;
        *first = range.start;
        edges.block(range, records)?;
        parts.resize(records.len(), NONE);
        found.resize(records.len(), 0);
        for (index, (part, band)) in parts.iter_mut().zip(found).enumerate() {
            prefetch_ends(preferred, records, index + ahead::ENTRIES);
            prefetch_ends(degrees, records, index + ahead::ENTRIES);
            let ends = records[index];
            let [first, second] = ends.map(|id| preferred[id as usize]);
            *part = if first == second && ends[0] != ends[1] { first } else { NONE };
            *band = bands.of(ends.map(|id| degrees[id as usize]));
        }
        choose(records.len(), chosen, |index| parts[index] != NONE);
        Ok(())
    };
    let mut preassigned = 0;
    let place = |BandSlice { slice, bands }: &mut BandSlice| {
        let Slice { first, records, parts, chosen, .. } = slice;
        for (place, &index) in chosen.iter().enumerate() {
            if let Some(&ahead) = chosen.get(place + ahead::ENTRIES) {
                records[ahead as usize].iter().for_each(|&id| streamer.present.prefetch(id));
            }
            let part = &mut parts[index as usize];
            if streamer.loads.of(*part) < cap {
                streamer.preassign(records[index as usize], *part);
                preassigned += 1;
            } else {
                *part = NONE;
            }
        }
        if let Some(open) = open {
            choose_open(records, parts, chosen);
            for index in chosen.iter().map(|&index| index as usize) {
                let [u, v] = records[index];
                open.push(bands[index].into(), Entry::new(u, v, *first + index as u64, 0, false))?;
            }
        }
        run.check()
    };
    run.begin("preassignment", edges.num_edges());
    pipeline(edges, parts, run, gather, place, |parts, banded| Slice::write(parts, &banded.slice))?;
    Ok(preassigned)
}
