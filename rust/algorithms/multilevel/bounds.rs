//! The bounds on the parts beside the bound on vertices, and what becomes of bounds that cannot be met.
//!
//! **Number of bounds.** The scheme is compiled for 1, 2, 4 and 8 bounds. If there are fewer, all vertices
//! weigh 0 under the others, and the caps of these are 0: every load keeps such a cap, and no excess or share
//! of it counts.
//!
//! Where the cap on vertices lets a part have all of them and the only other bound is on volume, the scheme
//! works with the volumes alone. Edge partitions are made of such partitions.
//!
//! **Order.** The scheme treats all bounds alike. It may leave loads above their caps. The cap on vertices is
//! then enforced first: vertices leave the parts above it, whatever the other bounds say ([`fill`]). Then one
//! bound after the other is rebalanced, together with those before it. If that does not bring the loads
//! within the cap, the cap is raised to the largest load. The cap of the first of these bounds is raised to
//! `ceil(W / k) + w` at most, where W is the weight of all vertices and w the largest weight. Dealing the
//! vertices by their weight keeps this cap ([`BalanceOn`]). If there is a single further bound, it is
//! repaired as in SIGMA, or kept by dealing.
//!
//! **Least number of vertices.** In the end parts with too few vertices take some from parts that can spare
//! them ([`fill`]). Each part has at least `floor(min_balance * n / k)`, and one where this is 0 but the
//! ratio is not.

use xxhash_rust::xxh3::Xxh3;

use super::assignment::Assignment;
use super::filling::fill;
use super::graph::Graph;
use super::objective::Machines;
use super::problem::{Objective, Problem, copied};
use super::rebalancing::Rebalance;
use super::refiner::{Refiner, Size};
use super::start::Start;
use super::topology;
use crate::base::{Buffer, Error, Result, Run, reserved};
use crate::capacity::{
    BalanceOn, Load, RepairOutcome, Weights, cap, plus, repair, share, validate_balance, validate_parts,
};
use crate::graph::Csr;
use crate::partition::parameters::Ranges;
use crate::partition::{Capacity, VertexPartition};

/// Bounds at most, that on vertices included.
pub(crate) const MOST_BOUNDS: usize = 8;

/// A bound on the parts beside the bound on vertices.
#[derive(Debug, Clone)]
pub enum Bound {
    /// No volume, the sum of `d(v) + 1`, above this ratio to the mean.
    Volume(f64),
    /// Weights that the parts share evenly.
    Weights(BalanceOn),
}

impl Bound {
    /// A text that identifies the bound on a graph of `n` vertices.
    pub(super) fn identity(&self, n: u64, k: u32) -> String {
        match self {
            Bound::Volume(ratio) => format!("volume_balance={ratio}"),
            Bound::Weights(on) => {
                let mut hash = Xxh3::new();
                (0..n as u32).for_each(|v| hash.update(&on.weight(v).to_le_bytes()));
                format!("balance_on={:032x} at most {}", hash.digest128(), on.cap(k))
            }
        }
    }

    /// What `v` weighs.
    fn weight(&self, csr: &Csr, v: u32) -> u64 {
        match self {
            Bound::Volume(_) => u64::from(csr.degree(v)) + 1,
            Bound::Weights(on) => on.weight(v),
        }
    }

    /// The requested cap.
    fn cap(&self, csr: &Csr, k: u32) -> u64 {
        match self {
            Bound::Volume(ratio) => cap(*ratio, csr.num_vertices() as u64 + csr.num_entries(), k),
            Bound::Weights(on) => on.cap(k),
        }
    }
}

/// The bounds that the parameters ask for.
pub(super) fn of(volume_balance: Option<f64>, balance_on: &[Weights], ratio: f64) -> Vec<Bound> {
    let weights = balance_on.iter().filter_map(|weights| BalanceOn::of(Some(weights), ratio));
    volume_balance.map(Bound::Volume).into_iter().chain(weights.map(Bound::Weights)).collect()
}

/// Refuses bounds that are invalid for a graph of `n` vertices.
pub(super) fn validate(bounds: &[Bound], n: u64) -> Result<()> {
    let (mut volumes, mut arrays) = (Vec::new(), Vec::new());
    for bound in bounds {
        match bound {
            Bound::Volume(ratio) => volumes.push(*ratio),
            Bound::Weights(on) => arrays.push(on),
        }
    }
    volumes.iter().try_for_each(|&ratio| validate_balance("volume_balance", ratio))?;
    if volumes.len() > 1 {
        return Err(Error::parameter("volume_balance", "volume can have one bound only"));
    }
    for (index, on) in arrays.iter().enumerate() {
        on.validate(n).map_err(|error| match error {
            Error::Parameter { name, what } if arrays.len() > 1 => {
                Error::parameter(name, format!("array {index}: {what}"))
            }
            alone => alone,
        })?;
    }
    if bounds.len() < MOST_BOUNDS {
        return Ok(());
    }
    let what = format!(
        "{} bounds with that on vertices; there may be {MOST_BOUNDS} in all. Leave some out, or add up weights",
        bounds.len() + 1
    );
    Err(Error::parameter("balance_on", what))
}

/// Vertices that each of `k` parts gets at least.
pub(super) fn least(min_balance: Option<f64>, n: u64, k: u32) -> Result<u64> {
    let Some(ratio) = min_balance.filter(|&ratio| ratio != 0.0) else { return Ok(0) };
    if !(0.0..=1.0).contains(&ratio) {
        let what = format!("{ratio} is not a ratio from 0 to 1, as 0.9 for 10 % below the mean");
        return Err(Error::parameter("min_balance", what));
    }
    if n < u64::from(k) {
        let what = format!(
            "min_balance: {k} parts cannot have a vertex each, since there are {n}. Lower k, or leave min_balance out"
        );
        return Err(Error::Capacity(what));
    }
    Ok((share(ratio, n, k) as u64).max(1))
}

/// What a partition has to keep, and should have little of.
#[derive(Clone, Copy)]
pub(super) struct Goal<'a> {
    /// Number of parts.
    pub k: u32,
    /// No part exceeds `ceil(balance * n / k)` vertices.
    pub balance: f64,
    /// See [`least`].
    pub min_balance: Option<f64>,
    /// Further bounds, in the order in which they are enforced.
    pub bounds: &'a [Bound],
    /// What is minimized.
    pub objective: Objective,
    /// Parts on each machine, if the cut between machines comes first.
    pub machines: Option<&'a [u32]>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Ranges for Goal<'_> {
    fn ranges(&self) -> Result<()> {
        validate_parts(self.k)?;
        validate_balance("balance", self.balance)
    }
}

impl Goal<'_> {
    /// Refuses what is invalid for a graph of `n` vertices.
    pub(super) fn validate(&self, n: u64) -> Result<()> {
        self.ranges()?;
        self.machines.map_or(Ok(()), |machines| topology::validate(machines, self.k))?;
        validate(self.bounds, n)?;
        least(self.min_balance, n, self.k).map(|_| ())
    }

    /// The size of a graph of `n` vertices and `entries` entries under this goal.
    pub(super) fn size(&self, n: u64, entries: u64) -> Size {
        let bounds = (1 + self.bounds.len()).next_power_of_two() as u64;
        Size { n, entries, k: self.k.into(), bounds }
    }

    /// Partitions the graph of `csr`. Returns the number of rounds, too.
    pub(super) fn partition(&self, start: Start, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        match self.size(0, 0).bounds {
            1 => self.under::<1>(start, csr, run),
            2 => self.under::<2>(start, csr, run),
            4 => self.under::<4>(start, csr, run),
            _ => self.under::<MOST_BOUNDS>(start, csr, run),
        }
    }

    /// Partitions the graph of `csr` under D bounds, padded.
    fn under<const D: usize>(&self, start: Start, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        let &Goal { k, bounds, objective, seed, .. } = self;
        let bound = |index: usize| index.checked_sub(1).and_then(|index| bounds.get(index));
        let weigh = |v: u32| -> Load<D> {
            std::array::from_fn(|index| match bound(index) {
                Some(bound) => bound.weight(csr, v),
                None => u64::from(index == 0),
            })
        };
        let available = start.available(&self.size(csr.graph().n, csr.most_entries()), objective, run);
        let alone = self.volume_alone(start, csr.graph().n);
        let available = if alone.is_some() { u64::MAX } else { available };
        let graph = Graph::finest(csr, &weigh, run)?.packed(available, run)?;
        let n = graph.len() as u64;
        let asked_of = |k: u32| -> Load<D> {
            std::array::from_fn(|index| match bound(index) {
                Some(bound) => bound.cap(csr, k),
                None if index == 0 => cap(self.balance, n, k),
                None => 0,
            })
        };
        let cap_of = |k: u32| attainable(&graph, k, asked_of(k));
        let (asked, caps) = (vec![asked_of(k); k as usize], vec![cap_of(k); k as usize]);
        let least = vec![least(self.min_balance, n, k)?; k as usize];
        let problem = Problem { least: &least, objective, ..Problem::new(&graph, &caps, seed, run) };
        let machines = self.machines.filter(|machines| machines.len() > 1);
        let machines = machines.map(|parts| Machines { parts, plain: cap_of(parts.len() as u32) });
        let (part_of, rounds) = match alone {
            Some(bound) => self.under_one(bound, start, csr, run)?,
            None => start.parts(&problem, 1 + bounds.len(), machines)?,
        };
        let mut assignment = problem.assignment(part_of)?;
        let (caps, dealt) = Limits { problem, csr, bounds }.keep(&mut assignment)?;
        fill(&graph, &mut assignment, &least, &caps, run)?;
        let mut partition = self.result(assignment, &asked, csr);
        partition.dealt = dealt;
        Ok((partition, rounds))
    }

    /// The bound on volume, if a new partition has no other: a part may have all `n` vertices.
    fn volume_alone(&self, start: Start, n: u64) -> Option<&Bound> {
        match (start, self.bounds) {
            (Start::Anew(..), [bound @ Bound::Volume(_)]) if cap(self.balance, n, self.k) >= n => Some(bound),
            _ => None,
        }
    }

    /// Parts of the vertices under a bound that is the only one, and the number of rounds.
    fn under_one(&self, bound: &Bound, start: Start, csr: &Csr, run: &Run) -> Result<(Buffer<u32>, u64)> {
        let &Goal { k, objective, seed, .. } = self;
        let available = start.available(&self.size(csr.graph().n, csr.most_entries()), objective, run);
        let weigh = |v| [bound.weight(csr, v)];
        let graph = Graph::finest(csr, &weigh, run)?.packed(available, run)?;
        let cap_of = |k: u32| [bound.cap(csr, k)];
        let caps = vec![cap_of(k); k as usize];
        let problem = Problem { objective, ..Problem::new(&graph, &caps, seed, run) };
        let machines = self.machines.filter(|machines| machines.len() > 1);
        let machines = machines.map(|parts| Machines { parts, plain: cap_of(parts.len() as u32) });
        start.parts(&problem, 0, machines)
    }

    /// The partition, with the loads under all bounds.
    fn result<const D: usize>(
        &self,
        assignment: Assignment<D>,
        asked: &[Load<D>],
        csr: &Csr,
    ) -> VertexPartition {
        let loads = |index: usize| assignment.loads.iter().map(|load| load[index]).collect();
        let kept = reached(&assignment, asked);
        let most = |caps: &[Load<D>], index: usize| caps.iter().map(|cap| cap[index]).max().unwrap_or(0);
        let capacities: Vec<Capacity> = (1..=self.bounds.len())
            .map(|index| Capacity {
                loads: loads(index),
                nominal: most(asked, index),
                cap: most(&kept, index),
            })
            .collect();
        let (vertices, nominal) = (loads(0), Some(most(asked, 0)));
        let assignment = assignment.part_of.reinterpret();
        let mut partition = VertexPartition::new(assignment, self.k, vertices, nominal, csr.graph().clone());
        for (bound, capacity) in self.bounds.iter().zip(capacities) {
            match bound {
                Bound::Volume(_) => partition.volume = Some(capacity),
                Bound::Weights(_) => partition.weights.push(capacity),
            }
        }
        partition
    }
}

/// The caps, where those that some vertex exceeds by itself are raised. A single bound is left to its repair.
fn attainable<const D: usize>(graph: &Graph<D>, k: u32, asked: Load<D>) -> Load<D> {
    std::array::from_fn(|index| {
        let too_heavy = D > 2 && graph.heaviest()[index] > asked[index];
        if too_heavy { always(graph, k, index) } else { asked[index] }
    })
}

/// The cap that dealing always keeps, if this is the only bound beside that on vertices.
fn always<const D: usize>(graph: &Graph<D>, k: u32, index: usize) -> u64 {
    graph.total()[index].div_ceil(k.into()) + graph.heaviest()[index]
}

/// The caps, each raised in the proportion in which some load exceeds its cap most.
fn reached<const D: usize>(assignment: &Assignment<D>, caps: &[Load<D>]) -> Vec<Load<D>> {
    let mut raised = caps.to_vec();
    for bound in 0..D {
        let both = assignment.loads.iter().zip(caps).map(|(load, cap)| [load, cap].map(|load| load[bound]));
        let product = |[load, _]: [u64; 2], [_, cap]: [u64; 2]| u128::from(load) * u128::from(cap);
        let most = |a: &[u64; 2], b: &[u64; 2]| product(*a, *b).cmp(&product(*b, *a)).then(a[0].cmp(&b[0]));
        let Some([load, cap]) = both.filter(|[load, cap]| load > cap).max_by(most) else { continue };
        for raised in &mut raised {
            let raise = (u128::from(raised[bound]) * u128::from(load)).div_ceil(u128::from(cap.max(1)));
            raised[bound] = if cap == 0 { load } else { raise.try_into().unwrap_or(u64::MAX) };
        }
    }
    raised
}

/// Enforces the bounds on parts that may exceed them.
struct Limits<'a, const D: usize> {
    problem: Problem<'a, D>,
    csr: &'a Csr,
    bounds: &'a [Bound],
}

impl<const D: usize> Limits<'_, D> {
    /// Brings loads within their caps as far as possible. Returns the caps that they keep, and whether all
    /// vertices were dealt.
    fn keep(&self, assignment: &mut Assignment<D>) -> Result<(Vec<Load<D>>, bool)> {
        let caps = self.problem.caps;
        if assignment.is_within(caps) {
            return Ok((caps.to_vec(), false));
        }
        let dealt = match self.bounds {
            [Bound::Volume(_)] => self.repair(assignment)?,
            [bound] => self.deal(assignment, bound)?,
            _ => self.enforce_in_order(assignment)?,
        };
        Ok((reached(assignment, caps), dealt))
    }

    /// Repairs the only bound, which is on volume. Returns whether all vertices were dealt.
    fn repair(&self, assignment: &mut Assignment<D>) -> Result<bool> {
        let Problem { caps, run, .. } = self.problem;
        let two = |load: &Load<D>| [load[0], load[1]];
        let loads: Vec<Load> = assignment.loads.iter().map(two).collect();
        let RepairOutcome { dealt, .. } =
            repair(self.csr, &mut assignment.part_of, &loads, two(&caps[0]), run)?;
        self.recount(assignment)?;
        Ok(dealt)
    }

    /// The last resort for one bound.
    fn deal(&self, assignment: &mut Assignment<D>, bound: &Bound) -> Result<bool> {
        let (k, run) = (self.problem.caps.len() as u32, self.problem.run);
        let dealt = match bound {
            Bound::Weights(on) => on.deal(k, run)?,
            Bound::Volume(_) => {
                let n = self.problem.graph.len();
                let mut degrees = reserved(n, "degrees")?;
                degrees.extend((0..n as u32).map(|v| self.csr.degree(v)));
                BalanceOn::new(degrees, 1.0)?.deal(k, run)?
            }
        };
        assignment.part_of = dealt.assignment.reinterpret();
        self.recount(assignment)?;
        Ok(true)
    }

    fn recount(&self, assignment: &mut Assignment<D>) -> Result<()> {
        let Assignment { part_of, loads, .. } = assignment;
        loads.fill([0; D]);
        self.problem.run.each(part_of.len(), |v| {
            let load = &mut loads[part_of[v as usize] as usize];
            *load = plus(*load, self.problem.graph.weight(v));
        })
    }

    /// Enforces the bounds in their order. Returns whether all vertices were dealt.
    fn enforce_in_order(&self, assignment: &mut Assignment<D>) -> Result<bool> {
        let Problem { graph, caps, run, .. } = self.problem;
        let marks: Vec<u64> = caps.iter().map(|cap| cap[0]).collect();
        fill(graph, assignment, &marks, caps, run)?;
        // The later bounds do not count yet.
        let first = |cap: &Load<D>| std::array::from_fn(|index| if index == 0 { cap[0] } else { u64::MAX });
        let mut kept: Vec<Load<D>> = caps.iter().map(first).collect();
        let mut dealt = false;
        for (index, bound) in (1..).zip(self.bounds) {
            kept.iter_mut().zip(caps).for_each(|(kept, cap)| kept[index] = cap[index]);
            self.lower(assignment, index, &kept)?;
            let always = always(graph, caps.len() as u32, index);
            let is_above = |(most, cap): (Load<D>, &Load<D>)| most[index] > always.max(cap[index]);
            if index == 1 && reached(assignment, caps).into_iter().zip(caps).any(is_above) {
                dealt = self.deal(assignment, bound)?;
            }
            let most = reached(assignment, caps);
            kept.iter_mut().zip(most).for_each(|(kept, most)| kept[index] = most[index]);
        }
        Ok(dealt)
    }

    /// Brings the loads under the bound `index` nearer to their caps, if the bounds before it stay kept.
    fn lower(&self, assignment: &mut Assignment<D>, index: usize, caps: &[Load<D>]) -> Result<()> {
        if assignment.is_within(caps) {
            return Ok(());
        }
        let part_of = copied(&assignment.part_of)?;
        let loads = assignment.loads.clone();
        let before = Assignment { part_of, loads, prices: None, migration: None, trail: None };
        Rebalance.refine(&Problem { caps, ..self.problem }, assignment)?;
        let mut aim = caps.to_vec();
        for (aim, most) in aim.iter_mut().zip(reached(&before, caps)) {
            aim[index] = aim[index].max(most[index].saturating_sub(1));
        }
        if !assignment.is_within(&aim) {
            *assignment = before;
        }
        Ok(())
    }
}
