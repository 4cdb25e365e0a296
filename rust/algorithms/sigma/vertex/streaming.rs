//! The vertices that were deferred, in id order, each to the feasible part of the highest score.

use std::ops::Range;

use super::columns::Columns;
use crate::base::{NONE, Result, Run};
use crate::capacity::{CHECK_EVERY, Load, PartLoads, open_share};
use crate::exec::{Decider, decide_all, scan, scan_ranges};
use crate::graph::Csr;
use crate::sets::SparseSums;
use crate::sets::incidence::{Incidence, Shared};

/// The least share of a cap that the stream may use from its beginning on.
const LEAST_SCALE: f64 = 0.9;
/// Vertices that a thread makes present at a time.
const SLICE: usize = 16;

/// The part with the highest score so far. Ties go to the lowest.
struct Best {
    score: f64,
    part: u32,
}

impl Best {
    #[inline(always)]
    fn offer(&mut self, score: f64, part: u32) {
        if score > self.score || (score == self.score && part < self.part) {
            *self = Best { score, part };
        }
    }
}

/// Where vertices are present, and the weight of that in the score.
pub(super) struct Replicas {
    presence: Incidence,
    tau: f64,
}

impl Replicas {
    /// The presence of the vertices that have a part already.
    pub(crate) fn new(csr: &Csr, parts: &[u32], k: u32, tau: f64, run: &Run) -> Result<Self> {
        let mut presence = Incidence::new(csr.num_vertices(), k)?;
        let shared = presence.shared();
        let see = |(): &mut (), vertices: Range<usize>| {
            for v in vertices.filter(|&v| parts[v] != NONE) {
                place(shared, csr, v as u32, parts[v]);
            }
            Ok(())
        };
        scan_ranges(run, usize::MAX, csr.num_vertices(), CHECK_EVERY, || Ok(()), see)?;
        Ok(Self { presence, tau })
    }
}

/// Makes `v` present in `part`: there, and its neighbours with it.
#[inline(always)]
fn place(present: Shared<'_>, csr: &Csr, v: u32, part: u32) {
    present.insert(v, part);
    csr.neighbours(v).iter().for_each(|&u| present.insert(u, part));
}

/// The state of the stream.
struct Streaming<'a> {
    csr: &'a Csr,
    parts: &'a mut [u32],
    loads: &'a mut PartLoads,
    /// The replicas, if the objective counts them.
    replicas: Option<Replicas>,
    /// The share of a cap that is open in the beginning.
    start: f64,
    streamed: u64,
    /// Number of vertices that are streamed in all.
    total: u64,
    /// Members of the batch before, which the penalties and the presence do not know yet. None with batches
    /// of 1.
    batch: Option<Vec<u32>>,
}

struct Scratch {
    placed: SparseSums<u32>,
    present: Columns,
}

/// Places the `deferred` vertices in their order.
pub(super) fn stream(
    csr: &Csr,
    parts: &mut [u32],
    loads: &mut PartLoads,
    replicas: Option<Replicas>,
    deferred: &[u32],
    batch: usize,
    run: &Run,
) -> Result<()> {
    let (start, total) = (loads.fullest().max(LEAST_SCALE), deferred.len() as u64);
    let mut state = Streaming { csr, parts, loads, replicas, start, streamed: 0, total, batch: None };
    run.begin("streaming", deferred.iter().map(|&v| state.work(v)).sum());
    decide_all(&mut state, deferred.iter().copied(), batch, run)
}

impl Streaming<'_> {
    fn item(&self, v: u32) -> Load {
        [1, 1 + u64::from(self.csr.degree(v))]
    }

    fn limit(&self, v: u32) -> Option<Load> {
        let scale = open_share(self.start, self.streamed as f64 / self.total as f64);
        self.loads.limit(scale, self.item(v))
    }

    /// The best part by neighbours and load: one that has neighbours, or that with the least penalty of all.
    fn by_cut(&self, placed: &SparseSums<u32>, degree: f64, limit: Load) -> Option<u32> {
        let part = self.loads.least(limit)?;
        let score = |part: u32| f64::from(placed.of(part)) / degree - self.loads.penalty(part);
        let mut best = Best { score: score(part), part };
        for part in placed.parts().filter(|&part| self.loads.is_within(part, limit)) {
            best.offer(score(part), part);
        }
        Some(best.part)
    }

    /// The best of all parts, if replicas also count.
    fn by_replicas(
        &self,
        replicas: &Replicas,
        scratch: &mut Scratch,
        neighbours: &[u32],
        limit: Load,
    ) -> Option<u32> {
        let Scratch { placed, present } = scratch;
        neighbours.iter().for_each(|&u| present.add(replicas.presence.row(u).iter().copied()));
        let degree = neighbours.len() as f64;
        let most = degree + f64::from(self.loads.k());
        let mut best = Best { score: f64::NEG_INFINITY, part: NONE };
        for (part, &present) in (0..self.loads.k()).zip(present.sums()) {
            if self.loads.is_within(part, limit) {
                let score = f64::from(placed.of(part)) / degree - self.loads.penalty(part);
                // v is present wherever it has a neighbour: only its neighbours may be new to the part.
                best.offer(score - replicas.tau * (degree - f64::from(present)) / most, part);
            }
        }
        present.clear();
        (best.part != NONE).then_some(best.part)
    }
}

impl Decider for Streaming<'_> {
    type Scratch = Scratch;
    type Decision = u32;

    fn begin(&mut self, batch: &[u32], run: &Run) -> Result<()> {
        self.loads.refresh();
        let before = self.batch.get_or_insert_default();
        if let Some(replicas) = &mut self.replicas {
            let (csr, parts, shared) = (self.csr, &*self.parts, replicas.presence.shared());
            let see = |(): &mut (), vertices: &[u32]| {
                vertices.iter().for_each(|&v| place(shared, csr, v, parts[v as usize]));
                Ok(())
            };
            scan(run, usize::MAX, before.chunks(SLICE), || Ok(()), see)?;
        }
        before.clear();
        before.extend_from_slice(batch);
        Ok(())
    }

    fn scratch(&self) -> Result<Scratch> {
        let k = self.loads.k();
        let words = if self.replicas.is_some() { k.div_ceil(64) } else { 0 };
        Ok(Scratch { placed: SparseSums::new(k)?, present: Columns::new(words as usize) })
    }

    fn decide(&self, scratch: &mut Scratch, v: u32) -> u32 {
        let neighbours = self.csr.neighbours(v);
        let decided = self.limit(v).and_then(|limit| {
            scratch.placed.count(neighbours, self.parts);
            match &self.replicas {
                None => self.by_cut(&scratch.placed, neighbours.len() as f64, limit),
                Some(replicas) => self.by_replicas(replicas, scratch, neighbours, limit),
            }
        });
        decided.unwrap_or_else(|| self.loads.least_overloaded(self.item(v)))
    }

    fn commit(&mut self, scratch: &mut Scratch, v: u32, decided: u32) {
        let holds = self.limit(v).is_some_and(|limit| self.loads.is_within(decided, limit));
        let part = if holds {
            decided
        } else {
            self.loads.refresh();
            self.decide(scratch, v)
        };
        self.parts[v as usize] = part;
        self.loads.add(part, self.item(v));
        self.streamed += 1;
        if self.batch.is_none() {
            self.loads.refresh();
            if let Some(replicas) = &mut self.replicas {
                place(replicas.presence.shared(), self.csr, v, part);
            }
        }
    }

    fn work(&self, v: u32) -> u64 {
        1 + u64::from(self.csr.degree(v))
    }
}
