//! ByteGNN's partitioner: the neighbourhoods that training samples stay whole, and the parts share the
//! training, validation and test vertices evenly.
//!
//! **Requirements.** The adjacency ([`Csr`]), the records once per hop, and the splits of the vertices.
//!
//! **Memory.** Beside the adjacency [`BYTES_PER_VERTEX`]: the splits, the block and the distance of each
//! vertex, the vertices by block, and the result.
//!
//! **Algorithm.** Every vertex of a split is the *centre* of a block. A vertex within `hops` of a centre
//! joins the block that reaches it first ([`blocks`]). The blocks then go to parts, one after the other
//! ([`assignment`]). LDG streams the vertices that no block reaches into the slack that is left
//! ([`place_rest`]).
//!
//! The paper places blocks in descending order of their largest number of vertices of one split. But centres
//! keep their own block, so a block has one vertex of any split, its centre. The largest number is 1 in all
//! blocks, and the order is that of the centres' ids.
//!
//! In a directed graph a vertex samples its in-edges, so blocks grow against the direction of the edges.
//! Edges between parts count in both directions, as in every partitioner here: one end or the other samples
//! each of them.
//!
//! The paper bounds nothing. Here no part exceeds its cap on vertices, nor those on training, validation and
//! test vertices ([`slack`]).
//!
//! **Parallelism.** The search by records, with the result of a sequential one. Blocks are placed by one
//! thread, since each depends on all before it.
//!
//! **Complexity.** O(hops * (n + m) + b * k) for b blocks.
//!
//! **Source.** Zheng et al., "ByteGNN: Efficient Graph Neural Network Training at Large Scale", PVLDB 15(6),
//! 2022, section 5.

pub(crate) mod assignment;
pub mod blocks;
pub mod slack;

use std::sync::Arc;

use crate::algorithms::streams::vertices::place_rest;
use crate::base::{Error, Result, Run, bytes};
use crate::capacity::cap;
use crate::graph::Csr;
use crate::partition::parameters::{Domain, Number, Ratio, Seed, Splits, Whole, parameters, words};
use crate::partition::{Capacity, Need, Outcome, Partitioner, Prepared, Shape, Value, VertexPartition};
use assignment::BlockAssignment;
use blocks::Blocks;
use slack::Slack;

/// Bytes per vertex at the peak, splits and result included, adjacency not.
pub(crate) const BYTES_PER_VERTEX: u64 = 25;

/// Training, validation and test vertices.
pub(crate) const SPLITS: usize = 3;

words! {
    /// How parts are scored.
    pub enum Rule {
        /// Empty parts are worth something.
        Balanced = "balanced",
        /// As in the paper.
        Paper = "paper",
    }
}

parameters! {
    /// Partition the vertices around those of the splits, as ByteGNN does: few rows fetched in sampled
    /// training.
    ///
    /// A breadth-first search from every training, validation and test vertex makes blocks: a vertex joins
    /// the one that reaches it first. Each block goes to a part with many edges to it and few vertices of the
    /// splits. Every part gets its share of each split. :func:`predict_traffic`, or :func:`compare` with
    /// ``fanouts``, says how many rows training then fetches. Takes 25 bytes per vertex beside the adjacency.
    ///
    /// Warns
    /// -----
    /// CapacityWarning
    ///     The caps on the splits could not be kept, because some vertices are in several splits. They are
    ///     raised to what was reached.
    ///
    /// See Also
    /// --------
    /// partition : With ``objective="traffic"``, a multilevel partition for the same measure.
    ///
    /// Notes
    /// -----
    /// Source: Zheng et al., "ByteGNN: Efficient Graph Neural Network Training at Large Scale", PVLDB 15(6),
    /// 2022, section 5. Block B goes to the part P with the highest ``(CE + 1 / n) * BS``. Here CE is the
    /// number of edges between P and B, divided by the vertices of P (0 if P is empty), and
    /// ``BS = 1 - a * train / C_train - b * val / C_val - c * test / C_test``, with the numbers of such
    /// vertices in P, their means over the parts, and ``a, b, c = weights``. Ties go to the part with the
    /// larger BS, then the fewest vertices, then the lowest number. Blocks come in the order of their
    /// centres' ids. If several blocks reach a vertex at once, it joins the block of the lowest id.
    ///
    /// The paper has no caps. Here a block fits into a part only if all caps are kept and all later training,
    /// validation and test vertices still fit somewhere. A block that fits nowhere is split in breadth-first
    /// order: the best part that can take its first vertex takes as many as it can, and the rest is placed as
    /// a block. Vertices that no block reaches are placed in the end as by LDG.
    ///
    /// In a directed graph a vertex samples its in-edges, so blocks hold what reaches their centre.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]], dtype=np.uint32)
    /// >>> p = fp.algorithms.bytegnn(two_triangles, k=2, splits={"train": [0, 5]})
    /// >>> p.assignment
    /// array([0, 0, 0, 1, 1, 1], dtype=int32)
    /// >>> p.weight_loads  # of training, validation and test vertices
    /// array([[1, 1],
    ///        [0, 0],
    ///        [0, 0]])
    pub struct ByteGnn => "bytegnn", [Vertices];
    /// ``train``, and if there are any ``val`` and ``test``: vertex ids, or bool masks of length n, or a
    /// table. It needs ``train``.
    splits: Option<Splits>;
    /// The row of ``train_masks`` (and so on) of shape (s, n) to use.
    split: Option<Whole<0, { 1 << 31 }>>;
    /// Radius of the blocks: the number of layers of the model.
    hops: Whole<0, 255> = 2;
    /// ``a, b, c`` of the score, from 0 to 1: how much training, validation and test vertices count.
    weights: Shares = vec![1.0 / 3.0; SPLITS];
    /// "balanced": the score is ``(CE + 1 / n) * BS``. "paper": it is ``CE * BS``, as published. An empty
    /// part then scores 0, so the first part takes every block with an edge to it until its caps are reached.
    rule: Rule;
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance: Ratio = 1.03;
    /// A ratio >= 1: no part gets more than ``ceil(split_balance * s / k)`` of the s vertices of a split.
    split_balance: Ratio = 1.05;
    /// Has no effect. There is no random choice.
    seed: Seed;
}

/// A share for training, validation and test vertices.
pub enum Shares {}

impl Domain for Shares {
    type Value = Vec<f64>;
    const KIND: &'static str = "numbers";

    fn read(value: Value) -> Option<Vec<f64>> {
        if let Value::List(shares) = value { shares.into_iter().map(Number::read).collect() } else { None }
    }

    fn shown(value: &Vec<f64>) -> Value {
        Value::List(value.iter().map(Number::shown).collect())
    }

    fn check(name: &'static str, value: &Vec<f64>) -> Result<()> {
        if value.len() == SPLITS && value.iter().all(|share| (0.0..=1.0).contains(share)) {
            return Ok(());
        }
        let what =
            format!("{value:?}. Use three numbers from 0 to 1, for training, validation and test vertices");
        Err(Error::parameter(name, what))
    }
}

impl ByteGnn {
    fn splits(&self) -> Result<&[u32]> {
        let missing = "bytegnn partitions around the vertices of the splits. Pass splits= with train";
        self.splits.as_deref().ok_or_else(|| Error::parameter("splits", missing))
    }

    /// Assigns the blocks, then the vertices that are in none.
    fn assign(&self, csr: &Csr, splits: &[u32], blocks: &Blocks, run: &Run) -> Result<VertexPartition> {
        let total = slack::total(splits, run)?;
        let nominal = std::array::from_fn(|bound| {
            cap(if bound == 0 { self.balance } else { self.split_balance }, total.load[bound], self.k)
        });
        let slack = Slack::new(self.k, nominal, &total)?;
        let mut assignment = BlockAssignment::new(self, csr, blocks, slack, &total, run)?;
        assignment.place_all(splits)?;
        let (mut part_of, slack) = assignment.finish();
        let loads = slack.loads().iter().map(|load| load[0]).collect();
        let loads = place_rest(csr, &mut part_of, loads, nominal[0], run)?;
        let of_split = |bound: usize| {
            let loads: Vec<u64> = slack.loads().iter().map(|load| load[bound]).collect();
            let most = loads.iter().copied().max().unwrap_or(0);
            Capacity::new(loads, nominal[bound], nominal[bound].max(most))
        };
        let (parts, graph) = (part_of.reinterpret(), csr.graph().clone());
        Ok(VertexPartition {
            weights: (1..=SPLITS).map(of_split).collect(),
            ..VertexPartition::new(parts, self.k, loads, Some(nominal[0]), graph)
        })
    }
}

impl Partitioner for ByteGnn {
    type Parameters = Self;
    type Reads = Arc<Csr>;

    fn check(&self, &Shape { n, .. }: &Shape) -> Result<()> {
        let splits = self.splits()?.len();
        if splits as u64 == n {
            return Ok(());
        }
        Err(Error::parameter("splits", format!("of {splits} vertices, but the graph has {n}")))
    }

    fn memory(&self, &Shape { n, .. }: &Shape, _run: &Run) -> Need {
        let (per_part, each) = (56, bytes(BYTES_PER_VERTEX));
        let needed = n * BYTES_PER_VERTEX + per_part * u64::from(self.k);
        Need::new(needed, format!("blocks of {n} vertices ({each} each)"))
    }

    fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
        let (splits, run) = (self.splits()?, graph.run);
        let blocks = Blocks::new(graph.edges(), graph.is_directed(), splits, self.hops, run)?;
        Ok(self.assign(&graph.csr, splits, &blocks, run)?.into())
    }
}
