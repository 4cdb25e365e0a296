//! The parts of the blocks.
//!
//! Block B goes to the part P with the highest score `(CE + e) * BS`. CE is the number of edges between B and
//! P over the number of vertices of P, or 0 if P is empty. BS is
//! `1 - sum over the splits of weight * (vertices in P / mean over the parts)`. The paper has e = 0: as long
//! as only one part has vertices, no other part scores above 0, and it takes all blocks with an edge to it.
//! With `e = 1 / n`, which no CE above 0 is below, balance decides where edges do not.
//!
//! A block that fits nowhere is split in breadth-first order. The best part with slack for its first vertex
//! takes as many vertices as fit. The rest is placed as a block, until nothing is left.

use super::blocks::Blocks;
use super::slack::{Piece, Slack, Total};
use super::{ByteGnn, SPLITS};
use crate::base::{Buffer, CancelCheck, NONE, Result, Run, reserved};
use crate::graph::Csr;
use crate::sets::SparseSums;

/// The assignment of blocks to parts.
pub(crate) struct BlockAssignment<'a> {
    csr: &'a Csr,
    blocks: &'a Blocks,
    slack: Slack,
    part_of: Buffer<u32>,
    /// Edges between a piece and each part.
    edges: SparseSums<u64>,
    k: u32,
    /// e of the score.
    least: f64,
    /// For each split its weight, and the mean number of its vertices in a part.
    splits: [(f64, f64); SPLITS],
    run: &'a Run,
}

/// A part with its score, its BS and its vertices: what it is chosen by.
type Rating = (f64, f64, u64, u32);

impl<'a> BlockAssignment<'a> {
    /// Nothing is assigned yet.
    pub(crate) fn new(
        parameters: &ByteGnn,
        csr: &'a Csr,
        blocks: &'a Blocks,
        slack: Slack,
        total: &Total,
        run: &'a Run,
    ) -> Result<Self> {
        let (n, k) = (csr.num_vertices(), parameters.k);
        let mut part_of: Buffer<u32> = Buffer::zeroed(n, "part of each vertex")?;
        part_of.fill(NONE);
        let mean = |split: usize| total.load[1 + split] as f64 / f64::from(k);
        Ok(Self {
            csr,
            blocks,
            slack,
            part_of,
            edges: SparseSums::new(k)?,
            k,
            least: if parameters.rule == super::Rule::Paper { 0.0 } else { 1.0 / n as f64 },
            splits: std::array::from_fn(|split| (parameters.weights[split], mean(split))),
            run,
        })
    }

    /// Places all blocks in their order, given the splits of each vertex.
    pub(crate) fn place_all(&mut self, splits: &[u32]) -> Result<()> {
        let blocks = self.blocks;
        self.run.begin("assignment", blocks.all_members().len() as u64);
        for (&centre, block) in blocks.centres().iter().zip(0..) {
            self.place(blocks.members(block), splits[centre as usize])?;
            self.run.advance(blocks.members(block).len() as u64)?;
        }
        Ok(())
    }

    /// The part of each vertex, and how full the parts are.
    pub(crate) fn finish(self) -> (Buffer<u32>, Slack) {
        (self.part_of, self.slack)
    }

    /// Places a block, whose centre is in these splits.
    fn place(&mut self, members: &[u32], splits: u32) -> Result<()> {
        self.count(members)?;
        let piece = Piece { vertices: members.len() as u64, splits };
        match self.best(piece) {
            Some(part) => self.put(members, part, piece),
            None => self.split(members, splits)?,
        }
        Ok(())
    }

    /// Places a block that fits nowhere.
    fn split(&mut self, members: &[u32], mut splits: u32) -> Result<()> {
        let mut ordered = reserved(members.len(), "a block in breadth-first order")?;
        ordered.extend_from_slice(members);
        self.blocks.sort(&mut ordered);
        let mut rest = &ordered[..];
        while !rest.is_empty() {
            self.count(rest)?;
            let whole = Piece { vertices: rest.len() as u64, splits };
            let part = match self.best(whole) {
                Some(part) => part,
                None => self.best_for_first(splits),
            };
            let most = self.slack.most(part, whole);
            let (taken, later) = rest.split_at(most as usize);
            self.put(taken, part, Piece { vertices: most, splits });
            (rest, splits) = (later, 0);
        }
        Ok(())
    }

    /// The best part for a single vertex. Caps on splits are raised until there is one.
    fn best_for_first(&mut self, splits: u32) -> u32 {
        loop {
            match self.best(Piece { vertices: 1, splits }) {
                Some(part) => return part,
                None => self.slack.raise(),
            }
        }
    }

    fn put(&mut self, members: &[u32], part: u32, piece: Piece) {
        members.iter().for_each(|&v| self.part_of[v as usize] = part);
        self.slack.add(part, piece);
    }

    /// Counts the edges between `members` and each part.
    fn count(&mut self, members: &[u32]) -> Result<()> {
        let Self { csr, part_of, edges, run, .. } = self;
        edges.clear();
        let mut check = CancelCheck::new(run);
        for &v in members {
            let neighbours = csr.neighbours(v);
            neighbours.iter().for_each(|&u| edges.add_if_any(part_of[u as usize], 1));
            check.count(neighbours.len())?;
        }
        Ok(())
    }

    /// The best of the parts with slack for `piece`, whose edges were counted.
    fn best(&self, piece: Piece) -> Option<u32> {
        let mut best: Option<Rating> = None;
        for part in 0..self.k {
            let rating = self.rate(part);
            if best.is_none_or(|best| is_better(rating, best)) && self.slack.fits(part, piece) {
                best = Some(rating);
            }
        }
        best.map(|(.., part)| part)
    }

    fn rate(&self, part: u32) -> Rating {
        let [vertices, of_splits @ ..] = self.slack.load(part);
        let connection = match vertices {
            0 => 0.0,
            _ => self.edges.of(part) as f64 / vertices as f64,
        };
        let mut balance = 1.0;
        for ((weight, mean), count) in self.splits.into_iter().zip(of_splits).filter(|&(_, count)| count > 0)
        {
            balance -= weight * (count as f64 / mean);
        }
        ((connection + self.least) * balance, balance, vertices, part)
    }
}

/// Whether a part comes before another: by score, by BS, by fewest vertices, then by the lowest number.
fn is_better(one: Rating, other: Rating) -> bool {
    let (score, balance, vertices, part) = one;
    (score, balance, other.2, other.3) > (other.0, other.1, vertices, part)
}
