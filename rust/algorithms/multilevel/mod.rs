//! A multilevel partitioner under one bound on the parts or several.
//!
//! **Requirements.** The neighbours of every vertex, in memory or mapped. A symmetric stream must list both
//! directions of every edge.
//!
//! **Memory.** Beside the adjacency, [`Multilevel::needed`]: 12 bytes per entry, or 24 for more than 64
//! parts, and 80 per vertex and 24 more per vertex and bound. Each thread beyond the first takes 1 MB and 16
//! bytes per part, and no more for long lists. The plan is chosen for one thread, so that it does not depend
//! on the threads, and as many threads work as the rest of the memory allows ([`model::memory`]). The finest
//! graph is the adjacency itself. Coarser graphs take 8 bytes per entry, and a level that has nearly the
//! entries of the one above it is not kept. Connections to parts are summed on the fly. Only small graphs
//! have a table of them. Where that is too much, the largest graphs lie in files ([`driver::semi_external`]).
//!
//! **Algorithm.** [`coarsening`] clusters the vertices and contracts the clusters, again and again, until the
//! graph is small. Recursive bisection partitions that graph ([`driver::scheme::initial`]). During
//! uncoarsening ([`driver::uncoarsening`]) every level is balanced and refined by a list of [`refinement`]
//! steps. [`driver::scheme`] says how often each is done, and [`driver::scheme::effort`] how many rounds of
//! improvement follow. The caps on vertices always hold. [`driver::bounds`] treats other loads that are still
//! above a cap in the end, and gives every part its least number of vertices. A loose bound on volume is left
//! out at first ([`driver::relaxed_bounds`]).
//!
//! If the objective is the communication volume, the partition is refined for it at the end
//! ([`refinement::halo`]). If parts are on machines, an edge between machines costs more than others
//! ([`driver::process_mapping`]).
//!
//! [`refine`] improves a given partition, and [`update`] keeps most of one where the graph, the bounds or
//! the number of parts have changed. [`order`] numbers the vertices so that clusters stay together.
//!
//! **Folders**, lowest first. [`model`]: the graph, the problem and the assignment, and the memory that each
//! step takes. [`refinement`]: the steps that improve an assignment. [`coarsening`]: clusters and levels.
//! [`driver`]: the way from the parameters to a partition.
//!
//! Parts may have different sizes, and vertices may be fixed to parts ([`model::graph`]). In the end parts
//! may be made connected ([`refinement::fragments`]).
//!
//! Weights of records multiply cut and gains. Volumes stay sums of degrees.
//!
//! **Parallelism.** Clustering, contraction, Jet and rebalancing by vertices in rounds
//! ([`crate::exec::propose`]), the attempts on the small graphs each by itself, and the halves of a
//! bisection. The result does not depend on the threads.
//!
//! **Complexity.** O((n + m) log n) if coarsening halves the graph, whatever k.
//!
//! **Source.** Karypis and Kumar, "Multilevel k-way Partitioning Scheme for Irregular Graphs", 1998;
//! Meyerhenke, Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA 2014;
//! Gilbert et al., "Jet: Multilevel Graph Partitioning on Graphics Processing Units", SISC 2024.

pub mod coarsening;
pub(crate) mod driver;
pub mod model;
pub mod order;
pub mod refine;
pub mod refinement;
pub mod update;

use std::sync::Arc;

use crate::base::{Error, Result, Run};
use crate::graph::Csr;
use crate::partition::parameters::{
    Fixed, Flag, Folder, Integers, Number, Ranges, Ratio, Seed, Sizes, Weighings, Whole, parameters, words,
};
use crate::partition::{Given, Input, Need, Outcome, Partitioner, Prepared, Shape, Value};
pub use coarsening::Rating;
use driver::scheme::effort::MOST_ROUNDS;
pub use driver::{Costs, Effort, Hubs, Multilevel, Path, Plan, Scheme};
use model::{BALANCE, WEIGHT_BALANCE, goal};
pub use model::{Bound, Goal, Objective};

/// Seconds from which on the expected time is announced.
const LONG: f64 = 10.0;

words! {
    /// The amount of work, by its name.
    pub enum Work {
        /// See [`Effort::Default`].
        Default = "default",
        /// See [`Effort::Quick`].
        Quick = "quick",
        /// See [`Effort::Fast`].
        Fast = "fast",
        /// See [`Effort::Best`].
        Best = "best",
    }
}

parameters! {
    /// Partition the vertices with a multilevel scheme: few cut edges, for graphs of any size.
    ///
    /// Contracts clusters of vertices until the graph is small, partitions that, and improves the parts on
    /// the way back. Needs, beside the adjacency (8 bytes per edge), 24 bytes per edge (48 for more than 64
    /// parts) and 104 per vertex (128 with a second bound). Weighted records add 8 bytes per edge. If a
    /// memory limit is too low for that, the adjacency and the largest of the contracted graphs lie in
    /// temporary files (see ``path``). About 80 bytes per vertex are then enough, or 2 to 15 per edge if
    /// those are more, and the cut grows by about 1 %. The files take about 40 bytes per edge beside the
    /// adjacency, at most 80. :func:`fastpart.info` says which path each memory limit leads to and how long
    /// it should take. ``checkpoints`` lets a killed run go on.
    ///
    /// Notes
    /// -----
    /// Sources: Karypis and Kumar, "Multilevel k-way Partitioning Scheme for Irregular Graphs", 1998;
    /// Meyerhenke, Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA
    /// 2014; Gilbert et al., "Jet: Multilevel Graph Partitioning on Graphics Processing Units", SISC 2024.
    /// The result is the same for any number of threads.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.evaluate(two_triangles, fp.multilevel(two_triangles, k=2)).cut_matrix
    /// array([[3, 1],
    ///        [1, 3]])
    pub struct Parameters => "multilevel", [Vertices], reads weights;
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance: Ratio = BALANCE;
    /// A ratio from 0 to 1: every part gets at least ``floor(min_balance * n / k)`` vertices. Above 0 it is
    /// at least one, which more parts than vertices cannot have (``CapacityError``). By default parts may be
    /// empty.
    min_balance: Option<Number>;
    /// A ratio >= 1: no part gets a volume, the sum of its degrees + 1, above
    /// ``ceil(volume_balance * (2 m + n) / k)``, where m counts edges without loops. By default volumes are
    /// not bounded.
    volume_balance: Option<Ratio>;
    /// Weights, or masks, that the parts also share evenly, as in :func:`spring`. A list of arrays bounds
    /// each of them, such as the training, validation and test masks. Up to 8 bounds in all are met in this
    /// order: vertices, volume, then the arrays. If one of them cannot be met, only its cap is raised.
    balance_on: Weighings;
    /// A ratio >= 1: no part gets more than ``ceil(balance_on_ratio * W / k)`` of a total weight W, as in
    /// :func:`spring`.
    balance_on_ratio: Ratio = WEIGHT_BALANCE;
    /// How large each part is to be relative to the others, as ``[2, 1, 1]``: k finite numbers above 0. Every
    /// bound follows them: a part of share s has at most ``ceil(balance * n * s / S)`` vertices, where S is
    /// the sum of ``sizes``, and at least ``floor(min_balance * n * s / S)``. By default all are equal.
    sizes: Option<Sizes>;
    /// The part that each vertex must be in, or -1 where it is free. Or a table with ids and parts, which
    /// leaves all other vertices free. All bounds count fixed vertices. More of them than the cap of their
    /// part are refused (``CapacityError``). If they break another bound, its cap is raised.
    fixed: Option<Fixed>;
    /// Whether fragments of parts, which are all connected components of a part but the largest, move to the
    /// parts around them, as far as the bounds allow. The cut falls with every move. A warning says how many
    /// fragments stay, and ``components`` of :func:`evaluate` counts them. By default they stay.
    connected: Flag;
    /// The quantity to minimize. "cut": edges between parts. "halo": copies of vertices in the parts of their
    /// neighbours, which is what workers store and send. That takes longer, and cuts more edges.
    objective: Objective;
    /// Number of parts on each machine, as ``[8, 8]``: parts 0 to 7 are on the first, 8 to 15 on the second.
    /// The sum is k. Few edges between machines then come first, and few between the parts of a machine
    /// second. That takes four to five times as long, but with ``effort="quick"`` hardly longer.
    machines: Option<Integers>;
    /// "fast": a single attempt with hardly any refinement. "quick": two attempts with little refinement.
    /// "default": several attempts. "best": the same, then rounds of improvement, in each of which another
    /// partition is made or the best is coarsened again. They end with the first that gains less than 1.5 %,
    /// or with ``rounds`` or ``time_limit`` when two in a row gain less than 0.5 %.
    effort: Work;
    /// Seconds after which no further round begins. Only with ``effort="best"``. By default time does not
    /// matter. The number of rounds stands in ``parameters`` of the result. With that as ``rounds`` the
    /// result is the same anywhere.
    time_limit: Option<Number>;
    /// Most rounds of improvement. Only with ``effort="best"``, which makes at most 16 by default.
    rounds: Option<Whole<1, MOST_ROUNDS>>;
    /// Where the graphs on the way lie. "memory": all in memory. "one_level", "two_levels": the largest one
    /// or two of them in temporary files, and the rest in memory. By default the first of these that fits the
    /// memory limit. It stands in ``parameters`` of the result. With that as ``path``, and with ``sample``,
    /// the result is the same anywhere.
    path: Option<Path>;
    /// A share above 0 and at most 1. Only with ``path="one_level"`` or ``path="two_levels"``: of the edges
    /// of the last graph in files a sample is kept if they are more than this share of those of the given
    /// graph, but at least 10 per vertex. By default the largest of a few shares that fits the memory limit.
    /// It stands in ``parameters``.
    sample: Option<Number>;
    /// A folder for what has been found so far, if levels lie in temporary files. It is made if it is
    /// missing. A run that was killed goes on from there when it is called with the same graph and
    /// parameters, and gives the same partition. Other parameters are refused (``ParameterError``). When the
    /// partition is done its files are removed. Other files in the folder are left alone. Its own take as
    /// much as the temporary files.
    checkpoints: Option<Folder>;
    /// Seed of the orders, the attempts and the ties: 0 to 2**64 - 1.
    seed: Seed;
}

impl TryFrom<Parameters> for Multilevel {
    type Error = Error;

    fn try_from(given: Parameters) -> Result<Self> {
        let effort = match given.effort {
            Work::Best => Effort::best(given.rounds, given.time_limit)?,
            work => {
                let limits = [("time_limit", given.time_limit.is_some()), ("rounds", given.rounds.is_some())];
                if let Some((name, _)) = limits.into_iter().find(|&(_, is_given)| is_given) {
                    return Err(Error::parameter(name, "it needs effort=\"best\", which works in rounds"));
                }
                match work {
                    Work::Fast => Effort::Fast,
                    Work::Quick => Effort::Quick,
                    _ => Effort::Default,
                }
            }
        };
        Ok(Multilevel {
            goal: Goal { objective: given.objective, ..goal!(given) },
            effort,
            path: given.path,
            sample: given.sample,
            checkpoints: given.checkpoints,
        })
    }
}

impl Ranges for Multilevel {
    fn ranges(&self) -> Result<()> {
        self.goal.ranges()
    }
}

impl Partitioner for Multilevel {
    type Parameters = Parameters;
    type Reads = Arc<Csr>;

    fn check(&self, shape: &Shape) -> Result<()> {
        self.validate(shape.n)
    }

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        let (n, entries) = (shape.n, shape.entries());
        let need = self.least(n, entries, run);
        // Checkpoints have a plan of their own, whose memory is required where they are read.
        let least = if self.checkpoints.is_some() { 0 } else { need.least };
        Need { beside: self.needed(n, entries, run.threads()), least, ..need }
    }

    /// Says what a partition that takes long, or files, should cost. The memory of its plan is left free. If
    /// the adjacency is there already, more memory is left, and perhaps another path is taken.
    fn announce(&self, input: &Input, run: &Run) -> Option<u64> {
        let costs = self.costs_within(run.budget(), input, run)?;
        if costs.files > 0 || costs.seconds >= LONG {
            run.note(costs.note());
        }
        Some(costs.beside)
    }

    fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
        self.outcome(&graph.csr, graph.run)
    }
}

/// The partition that all replicas of a divided run find together. Each has its share of the lists in `csr`.
pub fn replicate(given: Given, csr: &Csr, run: &Run) -> Result<Outcome> {
    let multilevel = Multilevel::try_from(given.read::<Parameters>()?)?;
    let here = [
        ("path", multilevel.path.is_none_or(|path| path == Path::Memory)),
        ("sample", multilevel.sample.is_none()),
        ("objective", multilevel.goal.objective != Objective::Cut),
        ("machines", multilevel.goal.machines.is_some()),
        ("connected", multilevel.goal.connected),
        ("effort", matches!(multilevel.effort, Effort::Best { .. })),
    ];
    if let Some((name, _)) = here.into_iter().find(|&(_, is_for_one)| is_for_one) {
        return Err(Error::parameter(name, "this is for one machine, and not for a cluster. Leave it out"));
    }
    multilevel.validate(csr.graph().n)?;
    multilevel.outcome(csr, run)
}

impl Multilevel {
    /// The partition, and the parameters that were chosen.
    fn outcome(&self, csr: &Csr, run: &Run) -> Result<Outcome> {
        let (partition, rounds, plan) = self.partition_planned(csr, run)?;
        let mut chosen = vec![("path", Value::Text(plan.path.name().into()))];
        if plan.path != Path::Memory {
            chosen.push(("sample", Value::Number(plan.sample)));
        }
        // With none it is what "default" makes.
        if matches!(self.effort, Effort::Best { .. }) && rounds > 0 {
            chosen.push(("rounds", Value::Integer(rounds)));
        }
        Ok(Outcome { chosen, ..partition.into() })
    }
}
