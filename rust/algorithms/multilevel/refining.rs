//! Refinement of any given partition of the vertices.
//!
//! **Requirements.** The neighbours of every vertex, in memory or mapped, and a part for each vertex.
//!
//! **Memory.** [`memory`]: beside the adjacency 72 bytes per vertex, and 8 more per further bound, however
//! many edges there are. This holds the parts, the best parts so far, and the memory of [`jet`] and
//! [`rebalance`]. With the communication volume as objective, the memory of [`halo`] is needed instead.
//!
//! **Algorithm.** A start that breaks a bound is rebalanced first. If it is far from balanced, its surplus is
//! dealt out before. Then come rounds. Each begins with the best partition so far and has two steps.
//! 1. Bounded Jet. Slack and lenience alternate between a small and a large one. Where a small slack finds
//!    nothing more, a large one often does: whole groups of vertices change places.
//! 2. *Greedy passes*: vertices that gain move, the largest gain first, if the target part keeps its caps.
//!    Each gain is computed again before the move. So a start always changes if a single move within the caps
//!    improves it, whatever the bounds are.
//!
//! If the objective is the communication volume, the halo is refined ([`halo`]): in even rounds directly, in
//! odd rounds after Jet. If parts are on machines, an edge between machines costs more than others
//! ([`Prices`]).
//!
//! The result of a round is kept if it exceeds the caps less, or exceeds them as much and is better by the
//! objective. So a start within its bounds never gets worse. Rounds end by the same rules as in
//! [`effort`](super::scheme::effort).
//!
//! **Parallelism.** Jet and rebalancing run in parallel, and so does the search for vertices that gain. Moves
//! are made one by one, in an order that does not depend on the threads.
//!
//! **Complexity.** O(n + m) per iteration of Jet, at most eight of them in a round.
//!
//! **Figures.** On 17 real graphs and 4, 8 and 32 parts, the cut is 0.33, 0.41 and 0.60 of SPRING's in the
//! geometric mean, 0.71, 0.74 and 0.83 of GREM's, 0.66, 0.73 and 0.81 of SIGMA's under both its bounds, and
//! 0.93, 0.93 and 0.96 of METIS's (16 graphs). Where all rounds have the same slack and lenience, the cut is
//! 2 to 6 % larger. It took at most 47 bytes per vertex beside the parts to start with (n = 2^21, 8 parts,
//! all vertices in one of them at first).
//!
//! **Source.** The source of [`jet`].

use std::cmp::Reverse;
use std::sync::Arc;

use rayon::prelude::*;

use super::assignment::{Assignment, Connections, Quality};
use super::bounds;
use super::connectivity::Connectivity;
use super::filling::fill;
use super::graph::Graph;
use super::jet::{self, Jet};
use super::migration::Migration;
use super::prices::Prices;
use super::rebalancing::{deal_surplus, rebalance};
use super::scheme::Solution;
use super::scheme::effort::{Patience, Progress};
use super::semi_external::path;
use super::symmetry::check_symmetry;
use super::{Bound, Effort, MOST_ROUNDS, Multilevel, Objective, halo, in_rounds, topology};
use crate::base::{Buffer, Error, NONE, Result, Run, splitmix64};
use crate::capacity::{Load, fits, plus};
use crate::exec::{propose, scratches};
use crate::graph::{Csr, Identity};
use crate::partition::parameters::{
    Integers, Number, Ranges, Ratio, Seed, Start, Weighings, Whole, parameters,
};
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape, Value, VertexPartition, validate_start};

/// Iterations of Jet in a round.
const ITERATIONS: u32 = 8;
/// See [`Jet::patience`].
const PATIENCE: u32 = 2;
/// See [`Jet::slack`] and [`Jet::lenience`]: in rounds of even and odd numbers.
const SLACK: [f64; 2] = [0.1, 0.3];
const LENIENCE: [f64; 2] = [0.25, 0.75];
/// What an edge between machines costs.
const PRICE: u32 = 8;
/// Greedy passes in a round, at most. Another pass pays if at least one vertex in `FEW` moves.
const PASSES: u32 = 8;
const FEW: u64 = 1000;

/// The memory of a refinement beside the adjacency. It includes the given parts and the result.
pub fn memory(goal: &Multilevel, shape: &Shape) -> Need {
    let (n, k) = (shape.n, u64::from(goal.k));
    let of_cut = n.saturating_mul(64 + 8 * goal.num_bounds());
    let of_goal = goal.objective.memory(n, shape.entries(), k).saturating_add(12 * n);
    let needed = of_cut.max(of_goal).saturating_add(128 * k);
    Need::new(needed, format!("refine on {n} vertices, {k} parts"))
}

/// The goal of refining the partition of another partitioner: its own bounds.
pub fn goal(k: u32, balance: f64, bounds: Vec<Bound>, seed: u64) -> Multilevel {
    let effort = Effort::Best { rounds: None, time_limit: None };
    Multilevel { balance, bounds, effort, seed, ..Multilevel::new(k) }
}

/// The partition that another partitioner made, refined if there is a goal.
pub(crate) fn refined<R>(
    partition: VertexPartition,
    goal: Option<Multilevel>,
    graph: &Prepared<R>,
) -> Result<VertexPartition> {
    let Some(goal) = goal else { return Ok(partition) };
    let start = partition.assignment.iter().map(|&part| part as u32).collect();
    drop(partition);
    graph.partition(&Refinement { start, goal })?.partition.vertices()
}

/// A partition to be refined, and under what.
#[derive(Debug, Clone)]
pub struct Refinement {
    /// Part of each vertex.
    pub start: Vec<u32>,
    /// Number of parts, bounds, objective, machines, rounds and seed. Its other fields have no effect.
    pub goal: Multilevel,
}

impl Refinement {
    fn validate(&self, n: u64) -> Result<()> {
        let Refinement { start, goal } = self;
        goal.validate(n)?;
        let machines = goal.machines.as_ref().map_or(1, Vec::len);
        if machines > 1 && goal.objective == Objective::Halo {
            let what =
                format!("\"halo\" does not know machines. Use \"cut\", or machines=[{}] for none", goal.k);
            return Err(Error::parameter("objective", what));
        }
        validate_start(start, goal.k, n)
    }

    /// Refines the partition on the graph of `csr`. Returns the number of rounds, too.
    pub fn partition(&self, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        self.validate(csr.graph().n)?;
        check_symmetry(csr, run)?;
        let &Identity { n, m, .. } = csr.graph();
        let shape = Shape { n, m, symmetric: csr.is_symmetric(), in_file: false };
        let used = memory(&self.goal, &shape).least;
        let available = path::available(run.budget().saturating_sub(used), run);
        bounds::partition(&self.goal, bounds::Start::From(&self.start, available), csr, run)
    }
}

impl Multilevel {
    /// Parts of the vertices of `graph`, refined from `start`, and the number of rounds. Every part gets at
    /// least `least` vertices.
    pub(super) fn refinement<const D: usize>(
        &self,
        graph: &Graph<D>,
        start: &[u32],
        (cap, least): (Load<D>, u64),
        run: &Run,
    ) -> Result<(Buffer<u32>, u64)> {
        let caps = vec![cap; self.k as usize];
        let refiner = self.refiner(graph, &caps, least, run);
        let ((part_of, _), rounds) = refiner.improve(refiner.begin(start)?, self.effort)?;
        Ok((part_of, rounds))
    }

    /// What improves parts of the vertices of `graph` under `caps`.
    pub(super) fn refiner<'a, const D: usize>(
        &self,
        graph: &'a Graph<'a, D>,
        caps: &'a [Load<D>],
        least: u64,
        run: &'a Run,
    ) -> Refiner<'a, D> {
        let machines = self.machines.as_ref().filter(|machines| machines.len() > 1);
        Refiner {
            graph,
            caps,
            least,
            objective: self.objective,
            prices: machines.map(|machines| topology::prices(graph, machines, PRICE)),
            migration: None,
            seed: self.seed,
            run,
        }
    }
}

/// A possible move: the gain, the vertex, and the target part. The largest gain comes first.
type QueueEntry = (Reverse<u32>, u32, u32);

/// The state that all rounds of refinement use.
pub(super) struct Refiner<'a, const D: usize> {
    pub graph: &'a Graph<'a, D>,
    pub caps: &'a [Load<D>],
    /// Vertices that each part has at least.
    least: u64,
    objective: Objective,
    prices: Option<Arc<Prices>>,
    /// What it costs that vertices leave the parts they had.
    pub migration: Option<Migration>,
    pub seed: u64,
    pub run: &'a Run,
}

impl<const D: usize> Refiner<'_, D> {
    /// An assignment with these parts.
    pub(crate) fn assignment(&self, parts: &[u32]) -> Result<Assignment<D>> {
        let mut part_of: Buffer<u32> = Buffer::zeroed(parts.len(), "parts")?;
        part_of.copy_from_slice(parts);
        let assignment = Assignment::new(self.graph, part_of, self.caps.len(), self.run)?;
        Ok(Assignment { prices: self.prices.clone(), migration: self.migration.clone(), ..assignment })
    }

    /// The start, brought within its bounds as far as this can be.
    pub(crate) fn begin(&self, start: &[u32]) -> Result<Solution> {
        let mut assignment = self.assignment(start)?;
        deal_surplus(self.graph, &mut assignment, self.caps, self.run)?;
        rebalance(self.graph, &mut assignment, self.caps, self.seed, self.run)?;
        self.fill(&mut assignment)?;
        self.judged(assignment)
    }

    /// The parts after as many rounds as pay, and the number of rounds.
    pub(crate) fn improve(&self, start: Solution, effort: Effort) -> Result<(Solution, u64)> {
        let ends = effort.ends();
        let mut progress = Progress::new(self.caps, start, Patience::LONG);
        while effort.goes_on(progress.rounds, ends) && progress.goes_on() {
            let next = self.round(&progress.best.0, progress.rounds)?;
            progress.take(next);
        }
        Ok((progress.best, progress.rounds))
    }

    /// One round, from the parts that are best so far.
    fn round(&self, best: &[u32], round: u64) -> Result<Solution> {
        let Refiner { graph, caps, run, .. } = *self;
        let (odd, seed) = ((round % 2) as usize, splitmix64(self.seed ^ splitmix64(round + 1)));
        let each = graph.num_entries() + graph.len() as u64;
        run.begin("refine", each);
        let mut assignment = self.assignment(best)?;
        if self.objective == Objective::Cut || odd == 1 {
            // Slack for one vertex more, however small the parts.
            let one = 1.5 / caps[0][0].max(1) as f64;
            let (slack, lenience) = (SLACK[odd].max(one), LENIENCE[odd]);
            let how = Jet { iterations: ITERATIONS, slack, lenience, patience: PATIENCE, seed };
            jet::refine(graph, &mut assignment, caps, &how, run)?;
            self.improve_greedily(&mut assignment)?;
        }
        run.advance(each)?;
        if self.objective == Objective::Halo {
            halo::refine(graph, &mut assignment, caps, seed, run)?;
        }
        self.fill(&mut assignment)?;
        self.judged(assignment)
    }

    /// Gives every part its least number of vertices.
    fn fill(&self, assignment: &mut Assignment<D>) -> Result<()> {
        fill(self.graph, assignment, self.least, self.caps[0], self.run)
    }

    /// The parts of an assignment, and their quality by the objective.
    pub(crate) fn judged(&self, assignment: Assignment<D>) -> Result<Solution> {
        let Refiner { graph, caps, run, .. } = *self;
        let quality = match self.objective {
            Objective::Cut => assignment.quality(graph, caps, run)?,
            Objective::Halo => {
                let cut = Connectivity::new(graph, &assignment.part_of, caps.len(), run)?.halo();
                Quality { excess: assignment.excess(caps), cut }
            }
        };
        Ok((assignment.part_of, quality))
    }

    /// Moves vertices that gain into parts that keep their caps.
    fn improve_greedily(&self, assignment: &mut Assignment<D>) -> Result<()> {
        let Refiner { graph, caps, run, .. } = *self;
        let scratch = || Ok((Connections::new(caps.len()), Vec::new()));
        let mut scratches = scratches(run, graph.num_entries(), scratch)?;
        let (mut nothing, mut connections) = (vec![(); graph.len()], Connections::new(caps.len()));
        for _ in 0..PASSES {
            let all = graph.ranges(0..graph.len() as u32);
            propose(
                &mut scratches,
                all,
                &mut nothing,
                run,
                |(connections, moves): &mut (_, Vec<QueueEntry>), v, ()| {
                    if let Some((gain, to)) = self.gain(assignment, connections, v) {
                        moves.push((Reverse(gain), v, to));
                    }
                },
            )?;
            let mut moves: Vec<QueueEntry> =
                scratches.iter_mut().flat_map(|(_, moves)| moves.drain(..)).collect();
            run.install(|| moves.par_sort_unstable());
            let mut moved = 0_u64;
            for (index, &(_, v, _)) in moves.iter().enumerate() {
                if let Some((_, to)) = self.gain(assignment, &mut connections, v) {
                    assignment.shift(v, graph.weight(v), to);
                    moved += 1;
                }
                if index % 256 == 0 {
                    run.check()?;
                }
            }
            if moved == 0 || moved * FEW < graph.len() as u64 {
                break;
            }
        }
        Ok(())
    }

    /// The part with slack to which `v` has the strongest connection, and the gain of moving there.
    #[inline(always)]
    fn gain(&self, assignment: &Assignment<D>, connections: &mut Connections, v: u32) -> Option<(u32, u32)> {
        connections.count(self.graph, assignment, v);
        let (own, weight) = (assignment.part(v), self.graph.weight(v));
        let home = connections.to(own);
        let (mut best, mut most) = (NONE, home);
        for (part, w) in connections.iter() {
            let has_slack = || fits(plus(assignment.loads[part as usize], weight), self.caps[part as usize]);
            if w > most && has_slack() {
                (best, most) = (part, w);
            }
        }
        (best != NONE).then_some((most - home, best))
    }
}

parameters! {
    /// Refine a partition of the vertices, whoever made it: fewer cut edges within the same bounds.
    ///
    /// Vertices move between the parts in rounds, as long as that pays. A partition within its bounds never gets worse. One
    /// that breaks a bound is brought back within it first, even if that cuts more edges. Needs 72 bytes per vertex beside
    /// the adjacency (8 bytes per edge), and 8 more for a second bound, 24 for a third or fourth. If a memory
    /// limit is too low for the adjacency, it lies in a temporary file. ``objective="halo"`` needs 68 bytes per vertex and up to 16
    /// per edge.
    ///
    /// Where the partition is an array, or tells no bound of its own, the defaults are those of :func:`multilevel`.
    ///
    /// See Also
    /// --------
    /// multilevel : Partition from scratch, usually with a lower cut.
    ///
    /// Notes
    /// -----
    /// Source: Gilbert et al., "Jet: Multilevel Graph Partitioning on Graphics Processing Units", SISC 2024, with a bound on
    /// how far parts may exceed their caps on the way. The result is the same for any number of threads.
    ///
    /// ``parameters`` of the result hold ``origin``, the algorithm and the parameters of the partition that was refined,
    /// and ``rounds``.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> start = fp.hash(two_triangles, k=2)
    /// >>> p = fp.refine(start)
    /// >>> p.cut_ratio < start.cut_ratio, p.parameters["origin"]["algorithm"]
    /// (True, 'hash')
    pub struct Parameters => "refine", [Vertices], reads weights;
    /// The partition to begin with: a vertex partition, a path that :func:`open_partition` accepts, or the part of each
    /// vertex.
    partition: Start;
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices. Default: that of the partition, if it has a
    /// cap, else 1.03.
    balance: Option<Ratio>;
    /// A ratio from 0 to 1: every part gets at least ``floor(min_balance * n / k)`` vertices, and one if it is above 0.
    /// Default: that of the partition.
    min_balance: Option<Number>;
    /// A ratio >= 1: no part gets a volume, the sum of its degrees + 1, above ``ceil(volume_balance * (2 m + n) / k)``,
    /// where m counts edges without loops. Default: that of the partition, if it bounds its volumes. A ratio of k bounds
    /// nothing.
    volume_balance: Option<Ratio>;
    /// Weights, or masks, that the parts share evenly, too, or a list of them, as in :func:`multilevel`. A partition that
    /// was made with some needs them again, because it does not keep them.
    balance_on: Weighings;
    /// A ratio >= 1: no part gets more than ``ceil(balance_on_ratio * W / k)`` of a total weight W. Default: that of the
    /// partition, else 1.05.
    balance_on_ratio: Option<Ratio>;
    /// What there should be few of. "cut": edges between parts. "halo": copies of vertices in the parts of their
    /// neighbours. The other of the two may grow. Default: "halo" if the partition was made for that, else "cut".
    objective: Option<Objective>;
    /// How many parts each machine has, as in :func:`multilevel`. An edge between machines then counts eight times.
    /// Default: that of the partition.
    machines: Option<Integers>;
    /// Seconds after which no further round begins. By default time does not matter.
    time_limit: Option<Number>;
    /// Most rounds, 16 by default. They end earlier if two in a row gain less than 0.5 %. With 0 the partition is only
    /// brought within its bounds. The number of rounds stands in ``parameters`` of the result. With that as ``rounds`` the
    /// result is the same anywhere.
    rounds: Option<Whole<0, MOST_ROUNDS>>;
    /// Seed of the ties: 0 to 2**64 - 1. None is 0.
    seed: Seed;
}

impl TryFrom<Parameters> for Refinement {
    type Error = Error;

    fn try_from(given: Parameters) -> Result<Self> {
        let known = super::Parameters::new(given.k);
        let goal = Multilevel {
            balance: given.balance.unwrap_or(known.balance),
            min_balance: given.min_balance,
            bounds: bounds::of(
                given.volume_balance,
                &given.balance_on,
                given.balance_on_ratio.unwrap_or(known.balance_on_ratio),
            ),
            objective: given.objective.unwrap_or_default(),
            machines: given.machines,
            effort: in_rounds(given.rounds, given.time_limit)?,
            seed: given.seed,
            ..Multilevel::new(given.k)
        };
        Ok(Refinement { start: given.partition, goal })
    }
}

impl Ranges for Refinement {
    fn ranges(&self) -> Result<()> {
        self.goal.ranges()
    }
}

impl Partitioner for Refinement {
    type Parameters = Parameters;
    type Reads = Arc<Csr>;

    fn check(&self, shape: &Shape) -> Result<()> {
        self.validate(shape.n)
    }

    fn memory(&self, shape: &Shape, _run: &Run) -> Need {
        memory(&self.goal, shape)
    }

    fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
        let (partition, rounds) = self.partition(&graph.csr, graph.run)?;
        Ok(Outcome { chosen: vec![("rounds", Value::Integer(rounds))], ..partition.into() })
    }
}
