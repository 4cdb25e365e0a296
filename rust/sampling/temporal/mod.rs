//! Samples that do not look ahead: only in-edges that were there before the time of a seed.
//!
//! **Rule.** For a seed with time t an in-edge may be sampled, in every hop, if its time and that of its
//! source are strictly before t. Vertices and edges without a time were always there. `fanout` of them are
//! picked: all subsets with the same probability, or the latest ones by their times, or those of their
//! sources if edges have none.
//!
//! **Algorithm.** A node is a vertex and the time of the seeds that it belongs to ([`Nodes`]). Draws are a
//! function of (seed, epoch, step, hop, vertex, time). In-edges do not lie in the order of their times
//! (`in_edges`).
//!
//! In a graph with types each relation of a vertex is a list of its own, with its fanout, and its times lie
//! in a file of the relation (`ranks`).
//!
//! **Memory.** 16 bytes for each in-edge of a target, and 17 to 34 for each node of a level.
//!
//! **Complexity.** Per vertex and hop O(fanout) for uniform samples if many in-edges are early, else
//! O(degree).

mod in_edges;
mod nodes;
mod ranks;
mod times;

use std::ops::Range;
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::sampling::levels::relation_runs::{Asked, Runs};
use crate::sampling::levels::sample::{EdgeColumns, Sample, Seeds};
use crate::sampling::levels::targets::Targets;
use crate::sampling::topology::{Part, Topology};

pub use times::Times;

use in_edges::{CHUNK, Candidate, InEdges};
use nodes::Nodes;
use times::NO_TIME;

/// The choice among the in-edges that were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// All subsets with the same probability.
    Uniform,
    /// The latest ones.
    Last,
}

/// Picks in-edges that were there before the time of a seed.
#[derive(Debug)]
pub struct Temporal {
    /// When in-edges and vertices came to be.
    pub times: Arc<Times>,
    /// The choice among them.
    pub strategy: Strategy,
}

/// Scratch space of one thread.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    nodes: Nodes,
    /// In-edges of a list that are picked.
    picked: Vec<Candidate>,
    /// In-edges that were drawn.
    tried: Vec<usize>,
    /// The sources of those that are picked.
    sources: Vec<u32>,
}

impl Scratch {
    /// Begins a batch, whose first nodes are the seeds. A vertex may occur once for each time.
    pub(crate) fn begin(&mut self, topology: &Topology, seeds: Seeds<'_>, into: &mut Sample) -> Result<()> {
        self.nodes.begin();
        topology.check_rows("seeds", seeds.rows)?;
        if seeds.times.len() != seeds.rows.len() {
            let what = format!("{} times for {} seeds", seeds.times.len(), seeds.rows.len());
            return Err(Error::parameter("times", what));
        }
        for (&row, &time) in seeds.rows.iter().zip(seeds.times) {
            let part = &topology.parts()[topology.part_of(row)];
            let group = self.nodes.group_of(time);
            let problem = if time == NO_TIME {
                "has no time. Give each seed one".to_owned()
            } else if !self.nodes.place(row, group).1 {
                format!("occurs twice in a batch with the time {time}. Pass it once")
            } else {
                continue;
            };
            let vertex = part.id(row - part.start)?;
            return Err(Error::parameter("seeds", format!("vertex {vertex} {problem}")));
        }
        into.rows.extend_from_slice(seeds.rows);
        Ok(())
    }

    /// Begins a level whose nodes are new, whatever the batch holds.
    pub(crate) fn begin_level(&mut self) {
        self.nodes.begin_scope();
    }

    /// Ends a batch.
    pub(crate) fn end(&self, into: &mut Sample) {
        into.temporal = true;
        into.seed_times.extend(self.nodes.all_times());
    }
}

/// One hop of a batch.
pub(crate) struct TemporalHop<'a, R> {
    /// The rule by which in-edges are picked.
    pub temporal: &'a Temporal,
    /// The parts that hold the in-edges.
    pub topology: &'a Topology,
    /// How the in-edges of a vertex are divided.
    pub runs: R,
    /// Columns of in-edges.
    pub edges: EdgeColumns,
    /// The first node that places count from.
    pub first: usize,
}

impl<R: Runs> TemporalHop<'_, R> {
    /// Appends in-edges of the nodes `level`. `check` is asked now and then and ends the work by an error.
    pub(crate) fn expand(
        &self,
        level: Range<usize>,
        scratch: &mut Scratch,
        relations: &mut Vec<u16>,
        check: &dyn Fn() -> Result<()>,
        into: &mut Sample,
    ) -> Result<()> {
        let (topology, times) = (self.topology, &self.temporal.times);
        let (mut targets, mut next) = (Targets::none(), Targets::none());
        let mut done = level.start;
        next.locate(topology, &into.rows[done..level.end]);
        while done < level.end {
            std::mem::swap(&mut targets, &mut next);
            let begin = done;
            done += targets.len();
            next.locate(topology, &into.rows[done..level.end]);
            targets.look_up(topology, CHUNK, &mut into.ids)?;
            for (target, _) in targets.iter(topology) {
                match self.runs.whole() {
                    Some(_) => times.of_edges(target.part, 0, target.first).prefetch(target.first),
                    None => self.runs.prefetch(target),
                }
            }
            for (node, (target, part)) in (begin..).zip(targets.iter(topology)) {
                let (group, before) = scratch.nodes.group(node);
                self.runs.each(target, |relation, asked, list| {
                    let of_edges = times.of_edges(list.part, relation, list.first);
                    let edges = InEdges { of_edges, times, target: list, part, before };
                    self.pick(asked, &edges, scratch)?;
                    R::note(relations, relation, scratch.picked.len());
                    self.append((list.part, part), group, scratch, into)
                })?;
                into.indptr.push(into.indices.len() as i32);
            }
            check()?;
        }
        Ok(())
    }

    /// Picks some of the in-edges of a list, and brings them into the order of records.
    fn pick(&self, asked: Asked, edges: &InEdges<'_>, scratch: &mut Scratch) -> Result<()> {
        let Asked { fanout, key } = asked;
        let Scratch { picked, tried, .. } = scratch;
        picked.clear();
        match self.temporal.strategy {
            _ if fanout == 0 => {}
            _ if edges.target.degree <= fanout => edges.append_early(picked)?,
            Strategy::Uniform => {
                let draws = key.draws_at(edges.target.id, edges.before);
                edges.pick_uniform(fanout, draws, picked, tried)?;
            }
            Strategy::Last => edges.pick_last(fanout, picked)?,
        }
        picked.sort_unstable_by_key(|&(_, edge)| edge);
        Ok(())
    }

    /// Appends the in-edges that were picked, and nodes that are new.
    fn append(
        &self,
        (number, part): (u32, &Part),
        group: u32,
        scratch: &mut Scratch,
        into: &mut Sample,
    ) -> Result<()> {
        let Scratch { nodes, picked, sources, .. } = scratch;
        into.check_size(picked.len())?;
        sources.clear();
        for &(_, edge) in &*picked {
            let source = part.source(edge)?;
            part.prefetch_row(source, |_| std::ptr::null());
            sources.push(source);
        }
        for &source in &*sources {
            let row = part.row_of(source)?;
            let (place, new) = nodes.place(row, group);
            if new {
                into.rows.push(row);
            }
            into.indices.push((self.first as u32).wrapping_add(place) as i32);
        }
        if self.edges.ids {
            for &(_, edge) in &*picked {
                into.edge_ids.push(part.edge_id(edge)?);
            }
        }
        if self.edges.rows {
            let start = self.topology.edge_rows().starts()[number as usize];
            into.edge_rows.extend(picked.iter().map(|&(_, edge)| start as i64 + edge as i64));
        }
        into.check_size(0)
    }
}
