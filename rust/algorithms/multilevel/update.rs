//! The parameters of an update of a partition to a changed graph or another number of parts, and the choice
//! of the parts that go on. [`repartitioning`](super::driver::repartitioning) does the rest.

use std::sync::Arc;

use super::driver::repartitioning::{OldParts, count};
use super::driver::{check_symmetry, rounds, start};
use super::model::{Goal, Objective, Size, WEIGHT_BALANCE, goal, parameters_with_goal};
use crate::base::{Buffer, Error, NONE, Result, Run};
use crate::capacity::MAX_PARTS;
use crate::graph::Csr;
use crate::partition::parameters::{
    Fixed, Flag, Integers, Number, Ranges, Ratio, Seed, Sizes, Start, Weighings,
};
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape, Value, VertexPartition};

/// Parts that are larger than the smallest ones by this factor are not dissolved.
const LARGER: f64 = 1.1;

/// A partition to be updated.
#[derive(Debug, Clone)]
pub struct Update {
    /// The part of each vertex, or [`NONE`] if it had none.
    pub start: Vec<u32>,
    /// The share of the vertices that had a part which may get another.
    pub moves: f64,
    /// The constraints of the partition, which is to have few cut edges.
    pub goal: Goal,
}

/// The changes of the parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Vertices that had a part and got another.
    pub moved: u64,
    /// Parts that lost vertices or got some.
    pub parts: Vec<u32>,
    /// The old part that each part goes on, if there is one.
    pub old: Vec<Option<u32>>,
}

impl Update {
    /// Few moves, from the parts `start`.
    pub fn new(goal: Goal, start: Vec<u32>) -> Self {
        Self { start, moves: 0.05, goal }
    }

    fn validate(&self, n: u64) -> Result<()> {
        let Update { start, moves, goal } = self;
        goal.validate(n)?;
        if goal.objective != Objective::Cut {
            return Err(Error::parameter("objective", "an update lowers the cut. Leave it at \"cut\""));
        }
        if !(0.0..=1.0).contains(moves) {
            let what = format!("{moves} is not a share from 0 to 1, as 0.05 for 5 % of the vertices");
            return Err(Error::parameter("moves", what));
        }
        if start.len() as u64 != n {
            let what = format!("{} parts for {n} vertices. Give one per vertex", start.len());
            return Err(Error::parameter("partition", what));
        }
        // Arrays are indexed by the numbers of the old parts.
        let is_part = |part: u32| part == NONE || u64::from(part) < MAX_PARTS;
        let Some(v) = start.iter().position(|&part| !is_part(part)) else { return Ok(()) };
        let what = format!("vertex {v} has part {}. There may be at most {MAX_PARTS} parts", start[v]);
        Err(Error::parameter("partition", what))
    }

    /// Bytes beside the adjacency.
    fn needed(&self, size: &Size) -> u64 {
        let rounds = rounds::memory(self.goal.objective, size);
        rounds.saturating_add(16 * size.n).saturating_add(self.goal.memory(size))
    }

    /// Updates the partition for the graph of `csr`. Also returns the changes of the parts.
    pub fn partition(&self, csr: &Csr, run: &Run) -> Result<(VertexPartition, Changes)> {
        self.validate(csr.graph().n)?;
        let size = self.goal.size(csr.graph().n, csr.most_entries(), 1);
        size.limit_threads(run, "update", |size| self.needed(size));
        check_symmetry(csr, run)?;
        let names = self.names(csr, run)?;
        let mut old: Buffer<u32> = Buffer::zeroed(self.start.len(), "old parts")?;
        run.each(old.len(), |v| {
            let part = self.start[v as usize];
            old[v as usize] = if part == NONE { NONE } else { names[part as usize] };
        })?;
        let (old, allowed) = (Arc::new(old), (self.moves * count(&self.start) as f64).ceil() as u64);
        let old_parts = OldParts { part_of: &old, gone: count(&self.start) - count(&old), allowed };
        let (partition, _) = self.goal.partition(start::Start::Keeping(old_parts), csr, run)?;
        let changes = self.changes(&names, &old, &partition, run)?;
        if changes.moved > allowed {
            run.note(format!(
                "update: {} of {} vertices moved to another part, because the number of parts, the bounds and fixed \
                 vertices need more than the {allowed} of moves={}",
                changes.moved,
                count(&self.start),
                self.moves
            ));
        }
        Ok((partition, changes))
    }

    /// The number that each old part has now, or [`NONE`] if it is dissolved.
    fn names(&self, csr: &Csr, run: &Run) -> Result<Vec<u32>> {
        let most = self.start.iter().filter(|&&part| part != NONE).max();
        let old_k = most.map_or(0, |&part| part as usize + 1);
        let k = self.goal.k as usize;
        let mut names: Vec<u32> = (0..old_k as u32).collect();
        if old_k <= k {
            return Ok(names);
        }
        let (mut sizes, mut inside) = (vec![0_u64; old_k], vec![0_u64; old_k]);
        run.each(self.start.len(), |v| {
            let own = self.start[v as usize];
            if own != NONE {
                sizes[own as usize] += 1;
                let near = csr.neighbours(v).iter().filter(|&&u| self.start[u as usize] == own);
                inside[own as usize] += near.count() as u64;
            }
        })?;
        let mut by_size = names.clone();
        by_size.sort_by_key(|&part| (sizes[part as usize], part));
        let limit = sizes[by_size[old_k - k - 1] as usize] as f64 * LARGER;
        by_size.retain(|&part| sizes[part as usize] as f64 <= limit);
        by_size.sort_by_key(|&part| (inside[part as usize], part));
        by_size[..old_k - k].iter().for_each(|&part| names[part as usize] = NONE);
        let holes: Vec<u32> = (0..k as u32).filter(|&part| names[part as usize] == NONE).collect();
        let last = names[k..].iter_mut().filter(|name| **name != NONE);
        last.zip(holes).for_each(|(name, hole)| *name = hole);
        Ok(names)
    }

    /// The changes of the parts.
    fn changes(&self, names: &[u32], old: &[u32], partition: &VertexPartition, run: &Run) -> Result<Changes> {
        let mut changed = vec![false; self.goal.k as usize];
        let mut moved = 0;
        run.each(partition.assignment.len(), |v| {
            let (before, new) = (old[v as usize], partition.assignment[v as usize] as u32);
            if before != new {
                moved += u64::from(self.start[v as usize] != NONE);
                [before, new]
                    .into_iter()
                    .filter(|&part| part != NONE)
                    .for_each(|part| changed[part as usize] = true);
            }
        })?;
        let mut old = vec![None; changed.len()];
        (0..)
            .zip(names)
            .filter(|(_, name)| **name != NONE)
            .for_each(|(part, &name)| old[name as usize] = Some(part));
        let parts = (0..).zip(changed).filter_map(|(part, changed)| changed.then_some(part)).collect();
        Ok(Changes { moved, parts, old })
    }
}

parameters_with_goal! {
    {
        /// Update a partition of the vertices: for a graph that has changed, for more parts or fewer, or for
        /// other bounds. Most vertices keep their parts.
        ///
        /// New vertices go where their neighbours are. Then vertices move as long as that pays, at most a
        /// share ``moves`` of those that had a part. Moves that the number of parts and the bounds need are
        /// made in any case, and a note says so if these are more. With more parts than before, the new ones
        /// come last. With fewer, parts with few vertices and edges are dissolved, and the last parts take
        /// their numbers.
        ///
        /// Needs 88 bytes per vertex beside the adjacency (8 bytes per edge), and 8 more for a second bound,
        /// 24 for a third or fourth. If a memory limit is too low for the adjacency, it lies in a temporary
        /// file.
        ///
        /// Where the partition is an array, or tells no bound of its own, the defaults are those of
        /// :func:`multilevel`.
        ///
        /// See Also
        /// --------
        /// refine : Fewer cut edges, however many vertices move.
        /// multilevel : Partition from scratch.
        ///
        /// Notes
        /// -----
        /// Source: Schloegel, Karypis and Kumar, "A Unified Algorithm for Load-balancing Adaptive Scientific
        /// Simulations", SC 2000: moves have a price. The result is the same for any number of threads.
        ///
        /// ``parameters`` of the result hold ``moved``, the number of vertices of the graph that had another
        /// part, ``changed_parts``, the parts that lost or got vertices, and ``old_parts``: for each part the
        /// old one that it goes on, or None.
        ///
        /// Examples
        /// --------
        /// >>> import numpy as np, fastpart as fp
        /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
        /// >>> start = fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2)
        /// >>> grown = np.vstack([two_triangles, [[6, 0], [6, 1], [7, 4], [7, 5]]])
        /// >>> p = fp.update(grown, start)
        /// >>> p.assignment, p.parameters["moved"]
        /// (array([0, 0, 0, 1, 1, 1, 0, 1], dtype=int32), 0)
        pub struct Parameters => "update", [Vertices], reads weights;
        /// The partition to begin with: a vertex partition, a path that :func:`open_partition` accepts, or
        /// the part of each vertex. Where vertices have ids, as those of tables do, parts follow the ids. New
        /// vertices may then have any place, and old ones may be gone. The ids are in a partition directory,
        /// or with the graph of the partition. Without ids new vertices come behind the others.
        partition: Start;
        /// A share from 0 to 1: at most ``ceil(moves * n)`` of the n vertices that had a part get another
        /// one, unless the number of parts or a bound needs more.
        moves: Number = 0.05;
    }
    /// A partition that was made with some needs them again, one per vertex of the graph.
    balance_on;
    /// Default: those of the partition, if the number of parts is the same.
    sizes;
    /// A vertex that moves to where it is fixed counts as one that a bound needs. A partition that was made
    /// with some needs them again, one per vertex of the graph.
    fixed;
    {
        /// Number of parts on each machine, as in :func:`multilevel`. An edge between machines then counts
        /// eight times. Default: that of the partition, if the number of parts is the same.
        machines: Option<Integers>;
        /// Seed of the groups and the ties: 0 to 2**64 - 1.
        seed: Seed;
    }
}

impl TryFrom<Parameters> for Update {
    type Error = Error;

    fn try_from(given: Parameters) -> Result<Self> {
        Ok(Update { start: given.partition, moves: given.moves, goal: goal!(given) })
    }
}

impl Ranges for Update {
    fn ranges(&self) -> Result<()> {
        self.goal.ranges()
    }
}

impl Partitioner for Update {
    type Parameters = Parameters;
    type Reads = Arc<Csr>;

    fn check(&self, shape: &Shape) -> Result<()> {
        self.validate(shape.n)
    }

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        let what = format!("update on {} vertices, {} parts", shape.n, self.goal.k);
        let size = |threads| self.goal.size(shape.n, shape.entries(), threads);
        Need { beside: self.needed(&size(run.threads() as u64)), least: self.needed(&size(1)), what }
    }

    fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
        let (partition, Changes { moved, parts, old }) = self.partition(&graph.csr, graph.run)?;
        let integer = |part: u32| Value::Integer(part.into());
        let old = old.into_iter().map(|part| part.map_or(Value::None, integer));
        let chosen = vec![
            ("moved", Value::Integer(moved)),
            ("changed_parts", Value::List(parts.into_iter().map(integer).collect())),
            ("old_parts", Value::List(old.collect())),
        ];
        Ok(Outcome { chosen, ..partition.into() })
    }
}
