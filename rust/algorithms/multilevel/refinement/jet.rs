//! Bounded Jet: many vertices move at once, some of them at a loss, and come back if that was not good.
//!
//! An iteration has four steps.
//! 1. For every vertex that did not move in the iteration before: the part to which it has the strongest
//!    connection, among those that stay below the cap plus some *slack*. It is a candidate if it gains, or if
//!    it loses less than a share of the connection to its own part.
//! 2. The gain of each candidate is computed again. Candidates among its neighbours that come before it, by
//!    gain and then id, are taken as moved. It stays a candidate unless that is a loss.
//! 3. Candidates move by descending gain, as long as parts stay below the cap plus the slack.
//! 4. Loads are brought back within the caps ([`rebalance`]).
//!
//! The best state found is the result. The slack is what helps: full parts can exchange groups of vertices.
//!
//! A vertex whose neighbours are all in its own part is not looked at again until one of them moves.
//!
//! **Parallelism.** The first two steps, which read all edges; the connections of a vertex are summed on the
//! fly. In the third one thread decides, on what the others have gathered, and these make the moves.
//!
//! **Memory.** 12 bytes per vertex, and 28 and 8 for each bound per vertex that gains.
//!
//! **Source.** Gilbert, Madduri, Boman and Rajamanickam, "Jet: Multilevel Graph Partitioning on Graphics
//! Processing Units", SISC 2024; deterministic: Langerman et al. and Maas et al., arXiv 2504.12013.

use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

use bytemuck::{Pod, Zeroable, cast_slice_mut};

use super::Refiner;
use super::balance::{rebalance, rebalance_knowing};
use crate::algorithms::multilevel::model::{
    Assignment, Connections, Graph, Migration, Problem, Quality, Size, with_slack,
};
use crate::base::{Buffer, NONE, Result, Run, reserved, shared, splitmix64};
use crate::capacity::{Load, fits, minus, plus};
use crate::exec::{fill, fold, most_threads, scan, scratches, sort_by_key};
use crate::sets::Bits;

/// The lists around vertices that moved are read instead of all lists if they have at most 1/FAR of all
/// entries.
const FAR: u64 = 4;
/// Vertices that moved around which a thread looks at a time.
const TRAIL_AT_A_TIME: usize = 1 << 8;
/// Moves between two polls of the cancel flag.
const STRIDE: usize = 1 << 14;

/// Purpose of the memory, for errors.
const MOVES: &str = "vertices that may move";

/// The least gain of an iteration that pays, as a share of the cut.
const LEAST_GAIN: f64 = 0.001;

/// How to refine.
#[derive(Debug, Clone, Copy)]
pub struct Jet {
    /// Most iterations.
    pub iterations: u32,
    /// The share by which parts may exceed their caps during an iteration.
    pub slack: f64,
    /// The share of its connection to its own part that a vertex may lose in the first iteration. It falls to
    /// 0 in the last.
    pub lenience: f64,
    /// Iterations in a row that may gain less than [`LEAST_GAIN`].
    pub patience: u32,
}

/// The part to which a vertex would move, and its gain.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
struct Proposal {
    /// The part, or [`NONE`].
    to: u32,
    gain: i32,
}

const STAYS: Proposal = Proposal { to: NONE, gain: 0 };
/// The part in the proposal of a vertex whose neighbours are all in its own part. Its gain is their weight.
const INSIDE: u32 = NONE - 1;

impl Proposal {
    /// The weight of all edges of the vertex, if it is known that they lead to its own part.
    #[inline(always)]
    fn inside(self) -> Option<u32> {
        (self.to == INSIDE).then_some(self.gain as u32)
    }

    /// Whether the vertex `v` with this proposal moves before `u` with the other one.
    #[inline(always)]
    fn precedes(self, v: u32, other: Proposal, u: u32) -> bool {
        // All conditions are looked at. They cannot be foreseen, so that leaving some out takes longer.
        (self.to < INSIDE) & ((self.gain > other.gain) | (self.gain == other.gain) & (v < u))
    }
}

/// A vertex that still gains, and where it would go.
#[derive(Clone)]
struct Move<const D: usize> {
    /// Its gain, a hash for ties, and the vertex. The least comes first.
    key: (Reverse<i32>, u32, u32),
    from: u32,
    /// The part, or [`NONE`] once it is known that this has no slack.
    to: u32,
    weight: Load<D>,
}

/// Scratch space of a thread that proposes.
struct Scratch {
    connections: Connections,
    /// Connections of vertices to their own parts, and the migration penalties of leaving these once more.
    homes: u64,
}

impl<const D: usize> Refiner<D> for Jet {
    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        let &Problem { graph, caps, seed, run, .. } = problem;
        let mut search = JetSearch::new(problem, assignment, self.slack)?;
        let mut best_parts: Buffer<u32> = Buffer::zeroed(graph.len(), "best parts")?;
        let mut best: Option<(Quality, Vec<Load<D>>)> = None;
        let (mut impatience, mut last) = (0, f64::INFINITY);
        rebalance(graph, assignment, caps, seed, run)?;
        assignment.trail = graph.division().is_none().then(Vec::new);
        for iteration in 0..=self.iterations {
            let left = 1.0 - f64::from(iteration) / f64::from(self.iterations.max(1));
            let cut = search.propose(assignment, self.lenience * left, run)?;
            let quality = Quality { excess: assignment.excess(caps), cut };
            if best.as_ref().is_none_or(|(best, _)| quality.beats(*best)) {
                fill(&mut best_parts, run, |v, part| *part = assignment.part_of[v])?;
                best = Some((quality, assignment.loads.clone()));
            }
            let most = best.as_ref().map_or(0, |(best, _)| best.cut) as f64;
            impatience = if most < last * (1.0 - LEAST_GAIN) { 0 } else { impatience + 1 };
            last = last.min(most);
            if iteration == self.iterations || impatience > self.patience {
                break;
            }
            search.approve(assignment, run)?;
            if search.moved == 0 {
                break;
            }
            search.forget(assignment, run)?;
            let known = |v: u32| search.proposals[v as usize].inside();
            rebalance_knowing(graph, assignment, caps, seed ^ u64::from(iteration), &known, run)?;
        }
        assignment.trail = None;
        let Some((quality, loads)) = best else { return Ok(None) };
        assignment.part_of = best_parts;
        assignment.loads = loads;
        Ok(Some(quality))
    }

    /// Proposals, the best parts, and the memory of [`rebalance`].
    fn memory(&self, size: &Size) -> u64 {
        size.n.saturating_mul(52 + 8 * size.bounds)
    }
}

struct JetSearch<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    caps: &'a [Load<D>],
    /// Caps and slack.
    slack: Vec<Load<D>>,
    /// Seed of the tie-breaks.
    seed: u64,
    proposals: Buffer<Proposal>,
    /// Vertices that moved in the last iteration.
    locked: Bits,
    moved: usize,
    /// Twice the cost if all edges are cut and all vertices have left their old parts.
    volume: u64,
}

impl<'a, const D: usize> JetSearch<'a, D> {
    fn new(problem: &Problem<'a, D>, assignment: &Assignment<D>, slack: f64) -> Result<Self> {
        let &Problem { graph, caps, seed, .. } = problem;
        let n = graph.len();
        Ok(Self {
            graph,
            caps,
            slack: with_slack(caps, slack),
            seed,
            proposals: Buffer::zeroed(n, "proposals of vertices")?,
            locked: Bits::new(n as u64, "vertices that moved")?,
            moved: 0,
            volume: graph.edge_weight() * u64::from(assignment.highest_price())
                + 2 * assignment.migration.as_ref().map_or(0, Migration::highest),
        })
    }

    /// Forgets which vertices have all neighbours in their own part, around those that moved.
    fn forget(&mut self, assignment: &mut Assignment<D>, run: &Run) -> Result<()> {
        let Some(trail) = &mut assignment.trail else { return Ok(()) };
        let Self { graph, proposals, .. } = self;
        let degree = |sum: u64, index: usize| sum + graph.degree(trail[index]) as u64;
        let around = fold(run, trail.len(), 0, degree, |one, other| one + other)?;
        // Looking at every list around costs more than finding it out again.
        if around.saturating_mul(FAR) > graph.num_entries() {
            trail.clear();
            return fill(proposals, run, |_, proposal| *proposal = STAYS);
        }
        // The part of each vertex and its gain. Whichever thread is first, the part is the same in the end.
        let cells = shared::<u32>(cast_slice_mut(proposals));
        let part = |v: u32| &cells[2 * v as usize];
        let around_each = |(): &mut (), vertices: &[u32]| {
            for &v in vertices {
                part(v).store(NONE, Relaxed);
                graph.each(v, |u, _| {
                    if part(u).load(Relaxed) == INSIDE {
                        part(u).store(NONE, Relaxed);
                    }
                });
            }
            Ok(())
        };
        let threads = most_threads(around, run.threads() as u64) as usize;
        scan(run, threads, trail.chunks(TRAIL_AT_A_TIME), || Ok(()), around_each)?;
        trail.clear();
        Ok(())
    }

    /// Finds the target part of every vertex. Returns the cut.
    fn propose(&mut self, assignment: &mut Assignment<D>, lenience: f64, run: &Run) -> Result<u64> {
        self.forget(assignment, run)?;
        let assignment = &*assignment;
        let is_plain =
            assignment.trail.is_some() && assignment.prices.is_none() && assignment.migration.is_none();
        let JetSearch { graph, slack, locked, proposals, .. } = self;
        let fullness = assignment.fullness(self.caps);
        let scratch = || Ok(Scratch { connections: Connections::new(assignment)?, homes: 0 });
        let mut scratches = scratches(run, graph.num_entries(), scratch)?;
        let choose = |scratch: &mut Scratch, v: u32, proposal: &mut Proposal| {
            let Scratch { connections, homes } = scratch;
            if let Some(home) = proposal.inside() {
                *homes += u64::from(home);
                return;
            }
            connections.count(graph, assignment, v);
            let own = assignment.part(v);
            let home = connections.to(own);
            // A price depends on more than the neighbours.
            if is_plain && connections.iter().all(|(part, _)| part == own) {
                *homes += u64::from(home);
                *proposal = Proposal { to: INSIDE, gain: home as i32 };
                return;
            }
            let (mut best, mut most) = (NONE, 0);
            let weight = graph.weight(v);
            for (part, w) in connections.iter() {
                let emptier = || best == NONE || fullness[part as usize] < fullness[best as usize];
                if part != own
                    && (w > most || w == most && emptier())
                    && fits(plus(assignment.loads[part as usize], weight), slack[part as usize])
                {
                    (best, most) = (part, w);
                }
            }
            *homes += u64::from(home) + u64::from(assignment.migration_penalty(v, own));
            *proposal = STAYS;
            if best != NONE && !locked.contains(v) && graph.may_move(v) {
                let gain = i64::from(most) - i64::from(home);
                if gain > 0 || (-gain as f64) < (lenience * f64::from(home)).floor() {
                    *proposal =
                        Proposal { to: best, gain: gain.clamp(i32::MIN.into(), i32::MAX.into()) as i32 };
                }
            }
        };
        graph.propose(&mut scratches, std::iter::once(0..graph.len() as u32), proposals, run, choose)?;
        let homes = graph.sum(scratches.iter().map(|scratch| scratch.homes).sum())?;
        Ok((self.volume - homes) / 2)
    }

    /// Moves the vertices that still gain once the moves before them are made.
    fn approve(&mut self, assignment: &mut Assignment<D>, run: &Run) -> Result<()> {
        let JetSearch { graph, proposals, .. } = self;
        let still_gains = |(): &mut (), v: u32| {
            let proposal = proposals[v as usize];
            if proposal.to >= INSIDE {
                return false;
            }
            let own = assignment.part(v);
            let mut gain = i64::from(assignment.migration_penalty(v, proposal.to))
                - i64::from(assignment.migration_penalty(v, own));
            let part_of = |u: u32| {
                let (its, before) = (proposals[u as usize], assignment.part(u));
                if its.precedes(u, proposal, v) { its.to } else { before }
            };
            match &assignment.prices {
                None => graph.each(v, |u, w| {
                    let part = part_of(u);
                    gain += i64::from(w) * (i64::from(part == proposal.to) - i64::from(part == own));
                }),
                Some(prices) => {
                    graph.each(v, |u, w| gain += i64::from(w) * prices.gain(part_of(u), [own, proposal.to]))
                }
            }
            gain >= 0
        };
        let gaining = graph.those(run, || Ok(()), still_gains)?;
        let mut moves = reserved(gaining.len(), MOVES)?;
        moves.resize(gaining.len(), Move { key: (Reverse(0), 0, 0), from: 0, to: NONE, weight: [0; D] });
        fill(&mut moves, run, |index, one| {
            let v = gaining[index];
            let (Proposal { to, gain }, tie_break) =
                (proposals[v as usize], splitmix64(self.seed ^ u64::from(v)));
            let key = (Reverse(gain), tie_break as u32, v);
            *one = Move { key, from: assignment.part(v), to, weight: graph.weight(v) };
        })?;
        sort_by_key(&mut moves, run, |one| one.key);
        self.moved = 0;
        for (one, index) in moves.iter_mut().zip(1_usize..) {
            let Move { from, to, weight, .. } = *one;
            let load = plus(assignment.loads[to as usize], weight);
            if fits(load, self.slack[to as usize]) {
                assignment.loads[from as usize] = minus(assignment.loads[from as usize], weight);
                assignment.loads[to as usize] = load;
                self.moved += 1;
            } else {
                one.to = NONE;
            }
            if index % STRIDE == 0 {
                run.check()?;
            }
        }
        self.locked.clear();
        let (parts, locked) = (shared(&mut assignment.part_of), self.locked.shared());
        fill(&mut moves, run, |_, one| {
            if one.to != NONE {
                parts[one.key.2 as usize].store(one.to, Relaxed);
                locked.insert(one.key.2);
            }
        })?;
        if let Some(trail) = &mut assignment.trail {
            trail.extend(moves.iter().filter(|one| one.to != NONE).map(|one| one.key.2));
        }
        Ok(())
    }
}
