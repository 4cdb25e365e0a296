//! The bounds on the parts beside the bound on vertices, and the treatment of bounds that cannot be met.
//!
//! **Number of bounds.** The scheme is compiled for 1, 2, 4 and 8 bounds. If there are fewer, all vertices
//! weigh 0 under the others, and the caps of these are 0: every load keeps such a cap, and no excess or share
//! of it counts.
//!
//! Where the cap on vertices lets a part have all of them and the only other bound is on volume, the scheme
//! works with the volumes alone. Edge partitions are made of such partitions.
//!
//! **Loose bounds** are ignored at first where that pays ([`relaxed_bounds`](super::relaxed_bounds)).
//!
//! **Order.** The scheme treats all bounds alike. It may leave loads above their caps. The cap on vertices is
//! then enforced first: vertices leave the parts above it, whatever the other bounds say ([`fill`]). Then one
//! bound after the other is rebalanced, together with those before it. If that does not bring the loads
//! within the cap, the cap is raised to the largest load. The cap of the first further bound is raised to at
//! most `ceil(W / k) + w`, where W is the weight of all vertices and w the largest weight. Dealing the
//! vertices by their weight keeps this cap ([`BalanceOn`]). If there is a single further bound, it is
//! repaired as in SIGMA, or kept by dealing. Parts of different sizes, or with fixed vertices, are always
//! treated bound after bound, and dealt if that lowers the excess over the first ([`deal`]).
//!
//! **Sizes.** Each part has caps of its own, by its share ([`Shares`]). Without sizes all have the same.
//!
//! **Least number of vertices.** In the end parts with too few vertices take some from parts that can spare
//! them ([`fill`]). Each part has at least `min_balance` times its share of the vertices, rounded down, and
//! one where this is 0 but the ratio is not. If parts are to be connected, fragments move then ([`connect`]).

use super::start::{Machines, Start};
use crate::algorithms::multilevel::model::graph::WeightOf;
use crate::algorithms::multilevel::model::{Assignment, Bound, Goal, Graph, MOST_BOUNDS, Problem, copied};
use crate::algorithms::multilevel::refinement::{Rebalance, Refiner, connect, deal, fill};
use crate::base::{Buffer, Result, Run, reserved};
use crate::capacity::{BalanceOn, Load, RepairOutcome, Shares, excess, repair};
use crate::graph::Csr;
use crate::partition::{Capacity, VertexPartition};

impl Goal {
    /// Partitions the graph of `csr` under all bounds at once.
    pub(crate) fn bounded(&self, start: Start, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        match self.size(0, 0, 1).bounds {
            1 => self.under::<1>(start, csr, run),
            2 => self.under::<2>(start, csr, run),
            4 => self.under::<4>(start, csr, run),
            _ => self.under::<MOST_BOUNDS>(start, csr, run),
        }
    }

    /// Partitions the graph of `csr` under D bounds, padded.
    fn under<const D: usize>(&self, start: Start, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        let &Goal { ref bounds, objective, seed, .. } = self;
        let bound = |index: usize| index.checked_sub(1).and_then(|index| bounds.get(index));
        let weigh = |v: u32| -> Load<D> {
            std::array::from_fn(|index| match bound(index) {
                Some(bound) => bound.weight(csr, v),
                None => u64::from(index == 0),
            })
        };
        let shares = self.shares()?;
        let alone = self.volume_alone(start, &shares, csr.graph().n);
        let graph = match alone {
            Some(_) => Graph::finest(csr, &weigh, run)?.with_fixed(self.labels()),
            None => self.graph(start, csr, &weigh, run)?,
        };
        let n = graph.len() as u64;
        let asked_of = |shares: &Shares| -> Vec<Load<D>> {
            let mut caps: Vec<Load<D>> = shares.caps(self.balance, n).map(first).collect();
            for (index, bound) in (1..).zip(bounds) {
                let of_parts = bound.caps(csr, shares);
                caps.iter_mut().zip(of_parts).for_each(|(cap, of_part)| cap[index] = of_part);
            }
            caps
        };
        let gives_way = |index: usize| bound(index).is_some_and(Bound::is_loose);
        let caps_of = |shares: &Shares| attainable(&graph, shares, asked_of(shares), gives_way);
        let (asked, least) = (asked_of(&shares), self.least(n)?);
        let caps = with_fixed_loads(&graph, caps_of(&shares), run)?;
        let problem = Problem { least: &least, objective, ..Problem::new(&graph, &caps, seed, run) };
        let (part_of, rounds) = match alone {
            Some(bound) => self.under_one(bound, start, &shares, csr, run)?,
            None => self.parts(start, &problem, 1 + bounds.len(), &shares, caps_of)?,
        };
        let mut assignment = problem.assignment(part_of)?;
        let caps = if start.is_in_order() { raised(&assignment.loads, &caps, gives_way) } else { caps };
        let problem = Problem { least: &least, objective, ..Problem::new(&graph, &caps, seed, run) };
        let (caps, dealt) = Limits { problem, csr, bounds, shares: &shares }.keep(&mut assignment)?;
        fill(&graph, &mut assignment, &least, &caps, run)?;
        let mut warnings = Vec::new();
        if self.connected {
            let fragments = connect(&Problem { caps: &caps, ..problem }, &mut assignment)?;
            warnings.extend(fragments.warning());
        }
        let partition = self.result(assignment, &asked, &shares, csr);
        Ok((VertexPartition { dealt, warnings, ..partition }, rounds))
    }

    /// The bound on volume, if a new partition has no other: each part may have all `n` vertices.
    pub(crate) fn volume_alone(&self, start: Start, shares: &Shares, n: u64) -> Option<&Bound> {
        match (start, &self.bounds[..]) {
            (Start::Anew(..), [bound @ Bound::Volume(_)]) => {
                shares.caps(self.balance, n).all(|cap| cap >= n).then_some(bound)
            }
            _ => None,
        }
    }

    /// Parts of the vertices under a bound that is the only one, and the number of rounds.
    fn under_one(
        &self,
        bound: &Bound,
        start: Start,
        shares: &Shares,
        csr: &Csr,
        run: &Run,
    ) -> Result<(Buffer<u32>, u64)> {
        let &Goal { objective, seed, .. } = self;
        let weigh = |v| [bound.weight(csr, v)];
        let graph = self.graph(start, csr, &weigh, run)?;
        let caps_of =
            |shares: &Shares| bound.caps(csr, shares).into_iter().map(|cap| [cap]).collect::<Vec<_>>();
        let caps = with_fixed_loads(&graph, caps_of(shares), run)?;
        let problem = Problem { objective, ..Problem::new(&graph, &caps, seed, run) };
        self.parts(start, &problem, 0, shares, caps_of)
    }

    /// The graph of `csr`, packed if its lists lie in files and do not fit into the memory that is left.
    fn graph<'a, const D: usize>(
        &'a self,
        start: Start,
        csr: &'a Csr,
        weigh: &'a WeightOf<'a, D>,
        run: &Run,
    ) -> Result<Graph<'a, D>> {
        let size = self.size(csr.graph().n, csr.most_entries(), run.threads() as u64);
        let available = start.available(&size, self.objective, run);
        Graph::finest(csr, weigh, run)?.with_fixed(self.labels()).packed(available, run)
    }

    /// Parts of the vertices of a problem, and the number of rounds. `caps_of` gives the caps of other
    /// shares: of machines.
    fn parts<const D: usize>(
        &self,
        start: Start,
        problem: &Problem<D>,
        bounds: usize,
        shares: &Shares,
        caps_of: impl Fn(&Shares) -> Vec<Load<D>>,
    ) -> Result<(Buffer<u32>, u64)> {
        let machines = self.several_machines();
        let plain = machines.and_then(|parts| shares.of_groups(parts)).map(|shares| caps_of(&shares));
        let machines = machines.map(|parts| Machines { parts, plain: plain.as_deref() });
        start.parts(problem, bounds, machines)
    }

    /// The partition, with the loads under all bounds.
    fn result<const D: usize>(
        &self,
        assignment: Assignment<D>,
        asked: &[Load<D>],
        shares: &Shares,
        csr: &Csr,
    ) -> VertexPartition {
        let loads = |index: usize| assignment.loads.iter().map(|load| load[index]).collect();
        let kept = reached(&assignment.loads, asked);
        let capacity = |index: usize| {
            let of_parts: Vec<[u64; 2]> =
                asked.iter().zip(&kept).map(|(asked, kept)| [asked[index], kept[index]]).collect();
            let mut capacity = Capacity::of_parts(loads(index), of_parts);
            if shares.are_equal() {
                capacity.of_parts.clear();
            }
            capacity
        };
        let capacities: Vec<Capacity> = (0..=self.bounds.len()).map(capacity).collect();
        let (part_of, graph) = (assignment.part_of.reinterpret(), csr.graph().clone());
        let mut capacities = capacities.into_iter();
        let of_vertices = capacities.next().unwrap_or_else(|| Capacity::new(Vec::new(), 0, 0));
        let cap = Some(of_vertices.nominal);
        let mut partition = VertexPartition::new(part_of, self.k, of_vertices.loads, cap, graph);
        partition.caps = of_vertices.of_parts.iter().map(|&[asked, _]| asked).collect();
        for (bound, capacity) in self.bounds.iter().zip(capacities) {
            match bound {
                Bound::Volume(_) => partition.volume = Some(capacity),
                Bound::Weights(_) => partition.weights.push(capacity),
            }
        }
        partition
    }
}

/// A cap on vertices, and none of the other bounds.
fn first<const D: usize>(cap: u64) -> Load<D> {
    std::array::from_fn(|index| if index == 0 { cap } else { 0 })
}

/// The caps, where those that some vertex exceeds by itself are raised. A single bound is left to its repair,
/// unless it gives way.
fn attainable<const D: usize>(
    graph: &Graph<D>,
    shares: &Shares,
    mut caps: Vec<Load<D>>,
    gives_way: impl Fn(usize) -> bool,
) -> Vec<Load<D>> {
    for index in 1..D {
        let too_heavy = caps.iter().all(|cap| graph.heaviest()[index] > cap[index]);
        if too_heavy && (D > 2 || gives_way(index)) {
            let always = always(graph, shares, index);
            caps.iter_mut().zip(always).for_each(|(cap, always)| cap[index] = always);
        }
    }
    caps
}

/// The caps, where those that fixed vertices exceed are raised.
fn with_fixed_loads<const D: usize>(graph: &Graph<D>, caps: Vec<Load<D>>, run: &Run) -> Result<Vec<Load<D>>> {
    if !graph.has_fixed() {
        return Ok(caps);
    }
    let mut loads = vec![[0; D]; caps.len()];
    graph.add_weights(&mut loads, |v| graph.fixed(v), run)?;
    Ok(reached(&loads, &caps))
}

/// The cap of each part that dealing always keeps, if this is the only bound beside that on vertices.
fn always<const D: usize>(graph: &Graph<D>, shares: &Shares, index: usize) -> impl Iterator<Item = u64> {
    shares.least_caps(graph.total()[index]).map(move |cap| cap + graph.heaviest()[index])
}

/// The caps, where those of bounds that give way are raised to what was reached.
fn raised<const D: usize>(
    loads: &[Load<D>],
    caps: &[Load<D>],
    gives_way: impl Fn(usize) -> bool,
) -> Vec<Load<D>> {
    let all = reached(loads, caps).into_iter().zip(caps);
    all.map(|(reached, cap)| {
        std::array::from_fn(|index| if gives_way(index) { reached[index] } else { cap[index] })
    })
    .collect()
}

/// The caps, each raised in the proportion in which some load exceeds its cap most.
fn reached<const D: usize>(loads: &[Load<D>], caps: &[Load<D>]) -> Vec<Load<D>> {
    let mut raised = caps.to_vec();
    for bound in 0..D {
        let both = loads.iter().zip(caps).map(|(load, cap)| [load, cap].map(|load| load[bound]));
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
    shares: &'a Shares,
}

impl<const D: usize> Limits<'_, D> {
    /// Brings loads within their caps as far as possible. Returns the caps that they keep, and whether all
    /// vertices were dealt.
    fn keep(&self, assignment: &mut Assignment<D>) -> Result<(Vec<Load<D>>, bool)> {
        let caps = self.problem.caps;
        if assignment.is_within(caps) {
            return Ok((caps.to_vec(), false));
        }
        self.problem.graph.require_undivided()?;
        let dealt = match self.bounds {
            [Bound::Volume(_)] if self.is_plain() => self.repair(assignment)?,
            [bound] if self.is_plain() => self.deal(assignment, bound)?,
            _ => self.enforce_in_order(assignment)?,
        };
        Ok((reached(&assignment.loads, caps), dealt))
    }

    /// Whether all parts have the same size, and all vertices are free.
    fn is_plain(&self) -> bool {
        self.shares.are_equal() && !self.problem.graph.has_fixed()
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
        self.problem.graph.add_weights(loads, |v| part_of[v as usize], self.problem.run)
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
            if index == 1 && self.is_out_of_reach(&reached(&assignment.loads, caps)) {
                dealt =
                    if self.is_plain() { self.deal(assignment, bound)? } else { self.deal_free(assignment)? };
            }
            let most = reached(&assignment.loads, caps);
            kept.iter_mut().zip(most).for_each(|(kept, most)| kept[index] = most[index]);
        }
        Ok(dealt)
    }

    /// Whether the first bound was raised further than dealing would.
    fn is_out_of_reach(&self, raised: &[Load<D>]) -> bool {
        let Problem { graph, caps, .. } = self.problem;
        let always = always(graph, self.shares, 1);
        // Dealing keeps the cap on weights of 0 and 1. With several bounds it is left to their order.
        let is_exact = self.bounds.len() == 1 && graph.heaviest()[1] <= 1;
        let limits = always.zip(caps).map(|(always, cap)| if is_exact { cap[1] } else { always.max(cap[1]) });
        raised.iter().zip(limits).any(|(raised, limit)| raised[1] > limit)
    }

    /// The last resort for parts of different sizes, or with fixed vertices. Returns whether it helps.
    fn deal_free(&self, assignment: &mut Assignment<D>) -> Result<bool> {
        let Problem { caps, .. } = self.problem;
        let over = |loads: &[Load<D>]| -> f64 {
            loads.iter().zip(caps).map(|(load, cap)| excess([load[1]], [cap[1]])).sum()
        };
        let dealt = deal(&self.problem, assignment, 1)?;
        let helps = over(&dealt.loads) < over(&assignment.loads);
        if helps {
            *assignment = dealt;
        }
        Ok(helps)
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
        for (aim, most) in aim.iter_mut().zip(reached(&before.loads, caps)) {
            aim[index] = aim[index].max(most[index].saturating_sub(1));
        }
        if !assignment.is_within(&aim) {
            *assignment = before;
        }
        Ok(())
    }
}
