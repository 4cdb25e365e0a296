//! The bounds on the parts beside the bound on vertices, and what becomes of bounds that cannot be met.
//!
//! **Number of bounds.** The scheme is compiled for 1, 2, 4 and 8 bounds. If there are fewer, all vertices
//! weigh 0 under the others, and the caps of these are 0: every load keeps such a cap, and no excess or share
//! of it counts.
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

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::assignment::Assignment;
use super::filling::fill;
use super::graph::Graph;
use super::rebalancing::rebalance;
use super::semi_external::Placement;
use super::{Multilevel, Scheme};
use crate::base::{Buffer, Error, Result, Run, reserved};
use crate::capacity::{BalanceOn, Load, RepairOutcome, Weights, cap, plus, repair, share, validate_balance};
use crate::graph::Csr;
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

/// The padded number of bounds, if there are `bounds` beside the bound on vertices.
pub(super) fn padded(bounds: usize) -> usize {
    (1 + bounds).next_power_of_two()
}

/// What a partition begins with.
#[derive(Clone, Copy)]
pub(super) enum Start<'a> {
    /// Nothing: the graph is coarsened.
    Anew(&'a Scheme, &'a Placement),
    /// Given parts, which are refined. Lists in files of more than this many bytes are packed.
    From(&'a [u32], u64),
    /// Old parts, which most vertices keep.
    Keeping(OldParts<'a>),
}

impl Start<'_> {
    /// Bytes that are available for lists in files. Larger lists are packed. An update makes too few passes
    /// for that to pay.
    fn available(self) -> u64 {
        match self {
            Start::Anew(_, placement) => placement.available,
            Start::From(_, available) => available,
            Start::Keeping(_) => u64::MAX,
        }
    }
}

/// The old parts of an update, which most vertices keep.
#[derive(Clone, Copy)]
pub(super) struct OldParts<'a> {
    /// The part that each vertex had, or `NONE`. Vertices of dissolved parts have none.
    pub part_of: &'a Arc<Buffer<u32>>,
    /// Vertices of dissolved parts.
    pub gone: u64,
    /// How many vertices may move, if the bounds do not need more.
    pub allowed: u64,
}

/// Partitions the graph of `csr` under all bounds. Returns the number of rounds, too.
pub(super) fn partition(
    multilevel: &Multilevel,
    start: Start,
    csr: &Csr,
    run: &Run,
) -> Result<(VertexPartition, u64)> {
    match padded(multilevel.bounds.len()) {
        1 => under::<1>(multilevel, start, csr, run),
        2 => under::<2>(multilevel, start, csr, run),
        4 => under::<4>(multilevel, start, csr, run),
        _ => under::<MOST_BOUNDS>(multilevel, start, csr, run),
    }
}

/// Partitions the graph of `csr` under D bounds, padded.
fn under<const D: usize>(
    multilevel: &Multilevel,
    start: Start,
    csr: &Csr,
    run: &Run,
) -> Result<(VertexPartition, u64)> {
    let Multilevel { k, bounds, .. } = multilevel;
    let bound = |index: usize| index.checked_sub(1).and_then(|index| bounds.get(index));
    let weigh = |v: u32| -> Load<D> {
        std::array::from_fn(|index| match bound(index) {
            Some(bound) => bound.weight(csr, v),
            None => u64::from(index == 0),
        })
    };
    let graph = Graph::finest(csr, &weigh, run)?.packed(start.available(), run)?;
    let n = graph.len() as u64;
    let asked_of = |k: u32| -> Load<D> {
        std::array::from_fn(|index| match bound(index) {
            Some(bound) => bound.cap(csr, k),
            None if index == 0 => cap(multilevel.balance, n, k),
            None => 0,
        })
    };
    let limits_of = |k: u32| Limits { graph: &graph, csr, bounds, k, seed: multilevel.seed, run };
    let cap_of = |k: u32| limits_of(k).attainable(asked_of(k));
    let (asked, caps, limits) = (asked_of(*k), cap_of(*k), limits_of(*k));
    let least = least(multilevel.min_balance, n, *k)?;
    let (part_of, rounds) = match start {
        Start::Anew(scheme, placement) => multilevel.solution(scheme, placement, &graph, cap_of, run)?,
        Start::From(start, _) => multilevel.refinement(&graph, start, (caps, least), run)?,
        Start::Keeping(old_parts) => multilevel.updated(&graph, old_parts, (caps, least), run)?,
    };
    let mut assignment = Assignment::new(&graph, part_of, *k as usize, run)?;
    let (caps, dealt) = limits.keep(&mut assignment, caps)?;
    fill(&graph, &mut assignment, least, caps, run)?;
    let loads = |index: usize| assignment.loads.iter().map(|load| load[index]).collect();
    let (vertices, kept) = (loads(0), reached(&assignment, asked));
    let capacities: Vec<Capacity> = (1..=bounds.len())
        .map(|index| Capacity { loads: loads(index), nominal: asked[index], cap: kept[index] })
        .collect();
    let assignment = assignment.part_of.reinterpret();
    let mut partition = VertexPartition::new(assignment, *k, vertices, Some(asked[0]), csr.graph().clone());
    partition.dealt = dealt;
    for (bound, capacity) in bounds.iter().zip(capacities) {
        match bound {
            Bound::Volume(_) => partition.volume = Some(capacity),
            Bound::Weights(_) => partition.weights.push(capacity),
        }
    }
    Ok((partition, rounds))
}

/// The caps, each raised to the largest load if that is above it.
fn reached<const D: usize>(assignment: &Assignment<D>, caps: Load<D>) -> Load<D> {
    assignment.loads.iter().fold(caps, |most, load| std::array::from_fn(|index| most[index].max(load[index])))
}

/// Enforces the bounds on parts that may exceed them.
struct Limits<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    csr: &'a Csr,
    bounds: &'a [Bound],
    k: u32,
    seed: u64,
    run: &'a Run,
}

impl<const D: usize> Limits<'_, D> {
    /// The cap that dealing always keeps, if this is the only bound beside that on vertices.
    fn always(&self, index: usize) -> u64 {
        self.graph.total()[index].div_ceil(self.k.into()) + self.graph.heaviest()[index]
    }

    /// The caps, where those that some vertex exceeds by itself are raised. A single bound is left to its
    /// repair.
    fn attainable(&self, asked: Load<D>) -> Load<D> {
        std::array::from_fn(|index| {
            let too_heavy = D > 2 && self.graph.heaviest()[index] > asked[index];
            if too_heavy { self.always(index) } else { asked[index] }
        })
    }

    /// Brings loads within their caps as far as possible. Returns the caps that they keep, and whether all
    /// vertices were dealt.
    fn keep(&self, assignment: &mut Assignment<D>, caps: Load<D>) -> Result<(Load<D>, bool)> {
        if self.is_within(assignment, caps) {
            return Ok((caps, false));
        }
        let dealt = match self.bounds {
            [Bound::Volume(_)] => self.repair(assignment, caps)?,
            [bound] => self.deal(assignment, bound)?,
            _ => self.enforce_in_order(assignment, caps)?,
        };
        Ok((reached(assignment, caps), dealt))
    }

    fn is_within(&self, assignment: &Assignment<D>, caps: Load<D>) -> bool {
        assignment.is_within(&vec![caps; assignment.loads.len()])
    }

    /// Repairs the only bound, which is on volume. Returns whether all vertices were dealt.
    fn repair(&self, assignment: &mut Assignment<D>, caps: Load<D>) -> Result<bool> {
        let loads: Vec<Load> = assignment.loads.iter().map(|load| [load[0], load[1]]).collect();
        let RepairOutcome { dealt, .. } =
            repair(self.csr, &mut assignment.part_of, &loads, [caps[0], caps[1]], self.run)?;
        self.recount(assignment)?;
        Ok(dealt)
    }

    /// The last resort for one bound.
    fn deal(&self, assignment: &mut Assignment<D>, bound: &Bound) -> Result<bool> {
        let dealt = match bound {
            Bound::Weights(on) => on.deal(self.k, self.run)?,
            Bound::Volume(_) => {
                let n = self.graph.len();
                let mut degrees = reserved(n, "degrees")?;
                degrees.extend((0..n as u32).map(|v| self.csr.degree(v)));
                BalanceOn::new(degrees, 1.0)?.deal(self.k, self.run)?
            }
        };
        assignment.part_of = dealt.assignment.reinterpret();
        self.recount(assignment)?;
        Ok(true)
    }

    fn recount(&self, assignment: &mut Assignment<D>) -> Result<()> {
        let Assignment { part_of, loads, .. } = assignment;
        loads.fill([0; D]);
        self.run.each(part_of.len(), |v| {
            let load = &mut loads[part_of[v as usize] as usize];
            *load = plus(*load, self.graph.weight(v));
        })
    }

    /// Enforces the bounds in their order. Returns whether all vertices were dealt.
    fn enforce_in_order(&self, assignment: &mut Assignment<D>, caps: Load<D>) -> Result<bool> {
        fill(self.graph, assignment, caps[0], caps, self.run)?;
        // The later bounds do not count yet.
        let mut kept = [u64::MAX; D];
        kept[0] = caps[0];
        let mut dealt = false;
        for (index, bound) in (1..).zip(self.bounds) {
            kept[index] = caps[index];
            self.lower(assignment, index, kept)?;
            let most = reached(assignment, caps)[index];
            if index == 1 && most > self.always(1).max(caps[1]) {
                dealt = self.deal(assignment, bound)?;
            }
            kept[index] = reached(assignment, caps)[index];
        }
        Ok(dealt)
    }

    /// Brings the loads under the bound `index` nearer to their cap, if the bounds before it stay kept.
    fn lower(&self, assignment: &mut Assignment<D>, index: usize, caps: Load<D>) -> Result<()> {
        if self.is_within(assignment, caps) {
            return Ok(());
        }
        let mut part_of: Buffer<u32> = Buffer::zeroed(self.graph.len(), "parts")?;
        part_of.copy_from_slice(&assignment.part_of);
        let before = Assignment { part_of, loads: assignment.loads.clone(), prices: None, migration: None };
        rebalance(self.graph, assignment, &vec![caps; self.k as usize], self.seed, self.run)?;
        let mut aim = caps;
        aim[index] = aim[index].max(reached(&before, caps)[index].saturating_sub(1));
        if !self.is_within(assignment, aim) {
            *assignment = before;
        }
        Ok(())
    }
}
