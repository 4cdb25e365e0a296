//! Decisions about vertices in a fixed order, in batches.
//!
//! All threads decide about the vertices of a *batch* against the state after the batch before. Then one
//! thread commits the decisions in order. It checks each against the current state. With a batch of 1 every
//! vertex is decided in the state that the vertex before left, which is the sequential rule. So the result
//! depends on the size of the batches and never on the threads.

use super::rounds::share;
use crate::base::{Result, Run};

/// Vertices that a thread decides about at a time.
const SLICE: usize = 64;
/// Vertices by which data is prefetched ahead.
const AHEAD: usize = 4;

/// Decides about vertices, and stores the decisions.
pub(crate) trait Decider: Send + Sync {
    /// Scratch space of a thread.
    type Scratch: Send;
    /// A decision.
    type Decision: Send;

    /// Is told which vertices are decided next against one state. Not called for batches of 1.
    fn begin(&mut self, _batch: &[u32], _run: &Run) -> Result<()> {
        Ok(())
    }
    /// Prefetches the data for the decision about `v`. Called some vertices ahead.
    fn prepare(&self, _v: u32) {}
    /// Makes the scratch space of a thread.
    fn scratch(&self) -> Result<Self::Scratch>;
    /// Decides about `v` in the current state.
    fn decide(&self, scratch: &mut Self::Scratch, v: u32) -> Self::Decision;
    /// Commits the decision, or another one if it no longer holds.
    fn commit(&mut self, scratch: &mut Self::Scratch, v: u32, decision: Self::Decision);
    /// Cost of the decision about `v` in units of progress, at least 1.
    fn work(&self, v: u32) -> u64;
}

/// `decider` decides about `vertices` in their order, in batches of `batch` (1 or more).
pub(crate) fn decide_all<D: Decider>(
    decider: &mut D,
    mut vertices: impl Iterator<Item = u32> + Send,
    batch: usize,
    run: &Run,
) -> Result<()> {
    if batch <= 1 {
        one_by_one(decider, &mut vertices, run)
    } else {
        run.install(|| in_batches(decider, &mut vertices, batch, run))
    }
}

fn one_by_one<D: Decider>(
    decider: &mut D,
    vertices: &mut (impl Iterator<Item = u32> + Send),
    run: &Run,
) -> Result<()> {
    let mut scratch = decider.scratch()?;
    let mut members: Vec<u32> = Vec::new();
    loop {
        members.clear();
        members.extend(vertices.take(SLICE));
        if members.is_empty() {
            return Ok(());
        }
        for (index, &v) in members.iter().enumerate() {
            if let Some(&later) = members.get(index + AHEAD) {
                decider.prepare(later);
            }
            let decision = decider.decide(&mut scratch, v);
            decider.commit(&mut scratch, v, decision);
        }
        run.advance(members.iter().map(|&v| decider.work(v)).sum())?;
    }
}

fn in_batches<D: Decider>(
    decider: &mut D,
    vertices: &mut (impl Iterator<Item = u32> + Send),
    batch: usize,
    run: &Run,
) -> Result<()> {
    let mut live = decider.scratch()?;
    let mut scratches = (0..run.threads()).map(|_| decider.scratch()).collect::<Result<Vec<_>>>()?;
    let mut members: Vec<u32> = Vec::new();
    let mut decisions: Vec<Option<D::Decision>> = Vec::new();
    loop {
        members.clear();
        members.extend(vertices.take(batch));
        if members.is_empty() {
            return Ok(());
        }
        decider.begin(&members, run)?;
        decisions.clear();
        decisions.resize_with(members.len(), || None);
        let frozen = &*decider;
        let slices = members.chunks(SLICE).zip(decisions.chunks_mut(SLICE));
        share(&mut scratches, slices, run, |scratch, (members, decisions)| {
            for (index, (&v, decision)) in members.iter().zip(decisions).enumerate() {
                if let Some(&later) = members.get(index + AHEAD) {
                    frozen.prepare(later);
                }
                *decision = Some(frozen.decide(scratch, v));
            }
            run.advance(members.iter().map(|&v| frozen.work(v)).sum())
        })?;
        for (&v, decision) in members.iter().zip(&mut decisions) {
            if let Some(decision) = decision.take() {
                decider.commit(&mut live, v, decision);
            }
        }
        run.check()?;
    }
}
