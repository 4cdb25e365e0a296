//! The goal of a partition: bounds, sizes and fixed vertices to keep, and the objective to minimize.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::problem::Objective;
use crate::algorithms::multilevel::model::Size;
use crate::base::{Error, NONE, Result};
use crate::capacity::{BalanceOn, Shares, Weights, validate_balance, validate_parts};
use crate::graph::Csr;
use crate::partition::parameters::Ranges;

/// Most bounds, including the bound on vertices.
pub(crate) const MOST_BOUNDS: usize = 8;

/// Default ratio of the cap on vertices to the mean.
pub(crate) const BALANCE: f64 = 1.03;
/// Default ratio of the cap on a weight to the mean.
pub(crate) const WEIGHT_BALANCE: f64 = 1.05;

/// See [`Bound::is_loose`].
const LOOSE: f64 = 1.25;

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
    fn identity(&self, n: u64, k: u32) -> String {
        match self {
            Bound::Volume(ratio) => format!("volume_balance={ratio}"),
            Bound::Weights(on) => {
                let mut hash = Xxh3::new();
                (0..n as u32).for_each(|v| hash.update(&on.weight(v).to_le_bytes()));
                format!("balance_on={:032x} at most {}", hash.digest128(), on.cap(k))
            }
        }
    }

    /// Weight of `v` under the bound.
    pub(crate) fn weight(&self, csr: &Csr, v: u32) -> u64 {
        match self {
            Bound::Volume(_) => u64::from(csr.degree(v)) + 1,
            Bound::Weights(on) => on.weight(v),
        }
    }

    /// Whether parts that ignore the bound may be a better start than none. See
    /// [`relaxed_bounds`](super::super::driver::relaxed_bounds).
    pub(crate) fn is_loose(&self) -> bool {
        matches!(self, Bound::Volume(ratio) if *ratio >= LOOSE)
    }

    /// The requested cap of each part.
    pub(crate) fn caps(&self, csr: &Csr, shares: &Shares) -> Vec<u64> {
        match self {
            Bound::Volume(ratio) => {
                shares.caps(*ratio, csr.num_vertices() as u64 + csr.num_entries()).collect()
            }
            Bound::Weights(on) => on.caps(shares),
        }
    }
}

/// Declares the parameters of an algorithm that begins with a partition: fields of its own, then the goal,
/// whose defaults are the bounds of that partition, then fields of its own again. Between them stand
/// sentences on fields of the goal that hold for this algorithm only.
macro_rules! parameters_with_goal {
    (
        { $($before:tt)* }
        $(#[doc = $balance_on:literal])* balance_on;
        $(#[doc = $sizes:literal])* sizes;
        $(#[doc = $fixed:literal])* fixed;
        { $($behind:tt)* }
    ) => {
        $crate::partition::parameters::parameters! {
            $($before)*
            /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices. Default: that of the
            /// partition, if it has a cap, else 1.03.
            balance: Option<Ratio>;
            /// A ratio from 0 to 1: every part gets at least ``floor(min_balance * n / k)`` vertices, and one
            /// if it is above 0. Default: that of the partition.
            min_balance: Option<Number>;
            /// A ratio >= 1: no part gets a volume, the sum of its degrees + 1, above
            /// ``ceil(volume_balance * (2 m + n) / k)``, where m counts edges without loops. Default: that of
            /// the partition, if it bounds its volumes. A ratio of k bounds nothing.
            volume_balance: Option<Ratio>;
            /// Weights, or masks, that the parts also share evenly, or a list of them, as in
            /// :func:`multilevel`.
            $(#[doc = $balance_on])*
            balance_on: Weighings;
            /// A ratio >= 1: no part gets more than ``ceil(balance_on_ratio * W / k)`` of a total weight W.
            /// Default: that of the partition, else 1.05.
            balance_on_ratio: Option<Ratio>;
            /// How large each part is to be relative to the others, as ``[2, 1, 1]``: k finite numbers
            /// above 0. Every bound follows them: a part of share s has at most ``ceil(balance * n * s / S)``
            /// vertices, where S is the sum of ``sizes``, and at least ``floor(min_balance * n * s / S)``.
            $(#[doc = $sizes])*
            sizes: Option<Sizes>;
            /// The part that each vertex must be in, or -1 where it is free. All bounds count fixed vertices.
            /// More of them than the cap of their part are refused (``CapacityError``). If they break another
            /// bound, its cap is raised.
            $(#[doc = $fixed])*
            fixed: Option<Fixed>;
            /// Whether fragments of parts, which are all connected components of a part but the largest, move
            /// to the parts around them, as far as the bounds allow. The cut falls with every move. A warning
            /// says how many fragments stay, and ``components`` of :func:`evaluate` counts them. Default: as
            /// the partition.
            connected: Option<Flag>;
            $($behind)*
        }
    };
}
pub(crate) use parameters_with_goal;

/// The goal that parameters ask for. Their fields are moved into it. A field may have a default of its own,
/// or be an `Option`. A value that is not given is that of [`Goal::new`].
macro_rules! goal {
    ($given:ident) => {{
        let default = $crate::algorithms::multilevel::model::Goal::new($given.k);
        let ratio = Option::from($given.balance_on_ratio).unwrap_or(WEIGHT_BALANCE);
        $crate::algorithms::multilevel::model::Goal {
            balance: Option::from($given.balance).unwrap_or(default.balance),
            min_balance: $given.min_balance,
            bounds: $crate::algorithms::multilevel::model::bounds_of(
                $given.volume_balance,
                &$given.balance_on,
                ratio,
            ),
            machines: $given.machines,
            sizes: $given.sizes,
            fixed: $given.fixed,
            connected: Option::from($given.connected).unwrap_or(default.connected),
            seed: $given.seed,
            ..default
        }
    }};
}
pub(crate) use goal;

/// The bounds that the parameters ask for.
pub(crate) fn bounds_of(volume_balance: Option<f64>, balance_on: &[Weights], ratio: f64) -> Vec<Bound> {
    let weights = balance_on.iter().filter_map(|weights| BalanceOn::of(Some(weights), ratio));
    volume_balance.map(Bound::Volume).into_iter().chain(weights.map(Bound::Weights)).collect()
}

/// Refuses bounds that are invalid for a graph of `n` vertices.
fn validate(bounds: &[Bound], n: u64) -> Result<()> {
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

/// The constraints and the objective of a partition.
#[derive(Debug, Clone)]
pub struct Goal {
    /// Number of parts.
    pub k: u32,
    /// No part exceeds `ceil(balance * n / k)` vertices.
    pub balance: f64,
    /// Every part gets at least `floor(min_balance * n / k)` vertices, and one if that is 0 but the ratio is
    /// not.
    pub min_balance: Option<f64>,
    /// Further bounds, in the order in which they are enforced.
    pub bounds: Vec<Bound>,
    /// The quantity to minimize.
    pub objective: Objective,
    /// Parts on each machine, if an edge between machines costs more than others.
    pub machines: Option<Vec<u32>>,
    /// How large each part is to be, relative to the others. All are equal if it is `None`.
    pub sizes: Option<Vec<f64>>,
    /// The part that each vertex must be in, or [`NONE`]. All are free if it is `None`.
    pub fixed: Option<Arc<Vec<u32>>>,
    /// Whether fragments of parts move to the parts around them. See
    /// [`fragments`](super::super::refinement::fragments).
    pub connected: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl Ranges for Goal {
    fn ranges(&self) -> Result<()> {
        validate_parts(self.k)?;
        validate_balance("balance", self.balance)
    }
}

impl Goal {
    /// The defaults for `k` parts.
    pub fn new(k: u32) -> Self {
        Self {
            k,
            balance: BALANCE,
            min_balance: None,
            bounds: Vec::new(),
            objective: Objective::default(),
            machines: None,
            sizes: None,
            fixed: None,
            connected: false,
            seed: 0,
        }
    }

    /// Refuses what is invalid for a graph of `n` vertices.
    pub(crate) fn validate(&self, n: u64) -> Result<()> {
        self.ranges()?;
        self.machines.as_ref().map_or(Ok(()), |machines| super::machines::validate(machines, self.k))?;
        validate(&self.bounds, n)?;
        self.least(n).map(|_| ())
    }

    /// The size of a graph of `n` vertices and `entries` entries under this goal, for `threads` threads.
    pub(crate) fn size(&self, n: u64, entries: u64, threads: u64) -> Size {
        let bounds = (1 + self.bounds.len()).next_power_of_two() as u64;
        Size { n, entries, k: self.k.into(), bounds, threads }
    }

    /// Parts on each machine, if there are several machines.
    pub(crate) fn several_machines(&self) -> Option<&[u32]> {
        self.machines.as_deref().filter(|machines| machines.len() > 1)
    }

    /// The shares of the parts.
    pub(crate) fn shares(&self) -> Result<Shares> {
        Shares::new("sizes", self.sizes.as_deref(), self.k)
    }

    /// The labels of fixed vertices, if there are any.
    pub(crate) fn labels(&self) -> Option<&[u32]> {
        self.fixed.as_ref().map(|fixed| &fixed[..]).filter(|fixed| fixed.iter().any(|&part| part != NONE))
    }

    /// Bytes of all threads except the first, and of the labels of fixed vertices: of the graph, of its
    /// levels, and of one problem of groups of parts.
    pub(crate) fn memory(&self, size: &Size) -> u64 {
        let labels = if self.fixed.is_some() { size.n.saturating_mul(12) } else { 0 };
        labels.saturating_add(size.of_threads())
    }

    /// Lines that identify it for a graph of `n` vertices.
    pub(crate) fn identity(&self, n: u64) -> Vec<String> {
        let labels = self.labels().map(|labels| {
            let mut hash = Xxh3::new();
            labels.iter().for_each(|part| hash.update(&part.to_le_bytes()));
            format!("{:032x}", hash.digest128())
        });
        let mut lines = vec![
            format!("k={}", self.k),
            format!("balance={}", self.balance),
            format!("min_balance={:?}", self.min_balance),
            format!("objective={:?}", self.objective),
            format!("machines={:?}", self.machines),
            format!("seed={}", self.seed),
            format!("bounds={}", self.bounds.len()),
        ];
        lines.extend(self.bounds.iter().map(|bound| bound.identity(n, self.k)));
        lines.extend([
            format!("sizes={:?}", self.sizes),
            format!("fixed={}", labels.as_deref().unwrap_or("none")),
            format!("connected={}", self.connected),
        ]);
        lines
    }

    /// The least number of vertices of each part. Refuses fixed vertices that cannot be on a graph of `n`
    /// vertices, where no part may have more vertices than its cap.
    pub(crate) fn least(&self, n: u64) -> Result<Vec<u64>> {
        let shares = self.shares()?;
        let fixed = self.count_fixed(n)?;
        for (part, (&count, cap)) in fixed.iter().zip(shares.caps(self.balance, n)).enumerate() {
            if count > cap {
                let what = format!(
                    "fixed: {count} vertices are fixed to part {part}, but its cap is {cap}. Fix fewer vertices to it, or \
                     raise balance or its share of sizes"
                );
                return Err(Error::Capacity(what));
            }
        }
        let least = least(self.min_balance, n, &shares)?;
        let needed: u64 = least.iter().zip(&fixed).map(|(&least, &fixed)| least.max(fixed)).sum();
        if needed > n {
            let included = if fixed.iter().any(|&count| count > 0) { ", fixed ones included" } else { "" };
            let what = format!(
                "min_balance: the parts need {needed} vertices together{included}, but there are {n}. Lower min_balance, or \
                 leave it out"
            );
            return Err(Error::Capacity(what));
        }
        Ok(least)
    }

    /// Number of vertices fixed to each part.
    fn count_fixed(&self, n: u64) -> Result<Vec<u64>> {
        let k = self.k;
        let mut counts = vec![0; k as usize];
        let Some(fixed) = &self.fixed else { return Ok(counts) };
        if fixed.len() as u64 != n {
            let what = format!(
                "{} parts for {n} vertices. Give one per vertex, and -1 for those that are free",
                fixed.len()
            );
            return Err(Error::parameter("fixed", what));
        }
        for (v, &part) in fixed.iter().enumerate().filter(|&(_, &part)| part != NONE) {
            let Some(count) = counts.get_mut(part as usize) else {
                let what = format!("vertex {v} has part {part}, outside 0..{} (k={k}). -1 is free", k - 1);
                return Err(Error::parameter("fixed", what));
            };
            *count += 1;
        }
        Ok(counts)
    }
}

/// The least number of vertices of each part.
fn least(min_balance: Option<f64>, n: u64, shares: &Shares) -> Result<Vec<u64>> {
    let k = shares.k();
    let Some(ratio) = min_balance.filter(|&ratio| ratio != 0.0) else { return Ok(vec![0; k as usize]) };
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
    Ok((0..k as usize).map(|part| (shares.of(ratio, n, part) as u64).max(1)).collect())
}
