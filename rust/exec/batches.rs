//! Decisions about vertices in a fixed order, in batches.
//!
//! A *batch* is decided by all threads against the state that the batch before left; then the decisions are committed
//! in order, by one thread, which checks each against the state as it has become. With a batch of 1 every vertex meets
//! the state that the one before left: the sequential rule. So the result depends on the size of the batches, never
//! on the threads.

use std::sync::Mutex;

use rayon::prelude::*;

use crate::base::{Result, Run};

/// Vertices that a thread decides about at a time.
const SLICE: usize = 64;
/// How many vertices ahead memory is asked for.
const AHEAD: usize = 4;

/// What decides about vertices, and keeps what was decided.
pub trait Decider: Send + Sync {
    /// What a thread needs to come to a decision.
    type Scratch: Send;
    /// What is decided.
    type Decision: Send;

    /// Hears which vertices are decided next against one state; not called for batches of 1.
    fn begin(&mut self, _batch: &[u32]) {}
    /// Asks the memory for what deciding about `v` will need; called some vertices ahead.
    fn prepare(&self, _v: u32) {}
    /// A thread's scratch space.
    fn scratch(&self) -> Result<Self::Scratch>;
    /// Decides about `v` in the state as it is.
    fn decide(&self, scratch: &mut Self::Scratch, v: u32) -> Self::Decision;
    /// Carries the decision out, or another one if it no longer holds.
    fn commit(&mut self, scratch: &mut Self::Scratch, v: u32, decision: Self::Decision);
    /// What deciding about `v` costs, in units of progress; 1 or more.
    fn work(&self, v: u32) -> u64;
}

/// Has `decider` decide about `vertices` in their order, in batches of `batch` (1 or more).
pub fn decide_all<D: Decider>(
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
        decider.begin(&members);
        decisions.clear();
        decisions.resize_with(members.len(), || None);
        let frozen = &*decider;
        let slices = Mutex::new(members.chunks(SLICE).zip(decisions.chunks_mut(SLICE)));
        let next = || slices.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
        scratches.par_iter_mut().try_for_each(|scratch| {
            while let Some((members, decisions)) = next() {
                for (index, (&v, decision)) in members.iter().zip(decisions).enumerate() {
                    if let Some(&later) = members.get(index + AHEAD) {
                        frozen.prepare(later);
                    }
                    *decision = Some(frozen.decide(scratch, v));
                }
                run.advance(members.iter().map(|&v| frozen.work(v)).sum())?;
            }
            Ok(())
        })?;
        for (&v, decision) in members.iter().zip(&mut decisions) {
            if let Some(decision) = decision.take() {
                decider.commit(&mut live, v, decision);
            }
        }
        run.check()?;
    }
}
