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
mod runs;
mod times;

use std::ops::Range;
use std::sync::Arc;

use super::part::Part;
use super::random::HopKey;
use super::sample::{EdgeColumns, Sample, Seeds};
use super::targets::{Target, Targets};
use super::topology::Topology;
use super::vertices::append_ids;
use crate::base::{Error, Result};

pub use runs::RelationRuns;
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
    /// In-edges of a target that are picked.
    picked: Vec<Candidate>,
    /// In-edges that were drawn.
    tried: Vec<usize>,
    /// The sources of those that are picked.
    sources: Vec<u32>,
    /// Relations of the in-edges of the batch, if the graph has types.
    pub(super) relations: Vec<u16>,
}

/// The graph that is sampled.
#[derive(Clone, Copy)]
pub(super) struct Graph<'a> {
    pub temporal: &'a Temporal,
    pub topology: &'a Topology,
    /// None: it has none.
    pub types: Option<&'a dyn RelationRuns>,
}

/// The request for a batch.
pub(super) struct Hops<'a> {
    /// For each hop the key of its draws, and in-edges per vertex, a number for each relation if there are
    /// types.
    pub each: Vec<(HopKey, &'a [Option<usize>])>,
    /// Whether a vertex occurs once in the batch for a time, instead of once in a level.
    pub merged: bool,
    /// The columns of in-edges that are wanted.
    pub edges: EdgeColumns,
}

/// One hop of a batch.
struct Hop<'a> {
    graph: Graph<'a>,
    /// In-edges of a vertex, or of each relation.
    fanouts: &'a [Option<usize>],
    key: HopKey,
    edges: EdgeColumns,
    /// The first node that places count from.
    first: usize,
}

/// Samples the batch of the `seeds`, which have times. `check` is asked now and then and ends the work by an
/// error.
pub(super) fn sample(
    graph: Graph<'_>,
    hops: &Hops<'_>,
    seeds: Seeds<'_>,
    scratch: &mut Scratch,
    check: &dyn Fn() -> Result<()>,
    into: &mut Sample,
) -> Result<()> {
    into.clear();
    scratch.nodes.begin();
    scratch.relations.clear();
    add_seeds(graph.topology, seeds, &mut scratch.nodes, into)?;
    let mut level = 0..into.rows.len();
    for &(key, fanouts) in &hops.each {
        if !hops.merged {
            scratch.nodes.begin_scope();
        }
        let (edges, nodes) = (into.indices.len(), level.len());
        let first = if hops.merged { 0 } else { level.end };
        let hop = Hop { graph, fanouts, key, edges: hops.edges, first };
        hop.expand(level.clone(), scratch, check, into)?;
        into.num_nodes.push(nodes as u64);
        into.num_edges.push((into.indices.len() - edges) as u64);
        level = level.end..into.rows.len();
    }
    into.num_nodes.push(level.len() as u64);
    into.temporal = true;
    into.seed_times.extend(scratch.nodes.all_times());
    append_ids(graph.topology, &into.rows[level], &mut into.ids)
}

/// Appends the seeds to the nodes of an empty batch. A vertex may occur once for each time.
fn add_seeds(topology: &Topology, seeds: Seeds<'_>, nodes: &mut Nodes, into: &mut Sample) -> Result<()> {
    topology.check_rows("seeds", seeds.rows)?;
    if seeds.times.len() != seeds.rows.len() {
        let what = format!("{} times for {} seeds", seeds.times.len(), seeds.rows.len());
        return Err(Error::parameter("times", what));
    }
    for (&row, &time) in seeds.rows.iter().zip(seeds.times) {
        let part = &topology.parts()[topology.part_of(row)];
        let group = nodes.group_of(time);
        let problem = if time == NO_TIME {
            "has no time. Give each seed one".to_owned()
        } else if !nodes.place(row, group).1 {
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

impl Hop<'_> {
    /// Appends in-edges of the nodes `level`.
    fn expand(
        &self,
        level: Range<usize>,
        scratch: &mut Scratch,
        check: &dyn Fn() -> Result<()>,
        into: &mut Sample,
    ) -> Result<()> {
        let Graph { temporal, topology, types } = self.graph;
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
                match types {
                    Some(types) => types.prefetch(target.part as usize, target.first),
                    None => temporal.times.of_edges(target.part, 0, target.first).prefetch(target.first),
                }
            }
            for (node, (target, part)) in (begin..).zip(targets.iter(topology)) {
                match types {
                    Some(types) => self.append_relations(types, target, part, node, scratch, into)?,
                    None => self.append_run(0, target, part, node, scratch, into)?,
                }
                into.indptr.push(into.indices.len() as i32);
            }
            check()?;
        }
        Ok(())
    }

    /// Appends in-edges of a target, relation by relation.
    fn append_relations(
        &self,
        types: &dyn RelationRuns,
        target: &Target,
        part: &Part,
        node: usize,
        scratch: &mut Scratch,
        into: &mut Sample,
    ) -> Result<()> {
        let (mut first, end, mut before) = (target.first, target.first + target.degree, None);
        while first < end {
            let (relation, run_end) = types.run(target.part as usize, first, end, before)?;
            let run = Target { first, degree: run_end - first, ..*target };
            (first, before) = (run_end, Some(relation));
            self.append_run(relation, &run, part, node, scratch, into)?;
            scratch.relations.resize(into.indices.len(), relation);
        }
        Ok(())
    }

    /// Appends in-edges of a target, all of them or those of a relation, in the order of records.
    fn append_run(
        &self,
        relation: u16,
        target: &Target,
        part: &Part,
        node: usize,
        scratch: &mut Scratch,
        into: &mut Sample,
    ) -> Result<()> {
        let Graph { temporal: Temporal { times, strategy }, types, .. } = self.graph;
        let fanout = self.fanouts[usize::from(relation)].unwrap_or(usize::MAX);
        let Scratch { nodes, picked, tried, .. } = &mut *scratch;
        picked.clear();
        if fanout == 0 {
            return Ok(());
        }
        let (group, time) = nodes.group(node);
        let of_edges = times.of_edges(target.part, relation, target.first);
        let edges = InEdges { of_edges, times, target, part, before: time };
        match strategy {
            _ if target.degree <= fanout => edges.append_early(picked)?,
            Strategy::Uniform => {
                let key = if types.is_some() { self.key.of_relation(relation) } else { self.key };
                edges.pick_uniform(fanout, key.draws_at(target.id, time), picked, tried)?;
            }
            Strategy::Last => edges.pick_last(fanout, picked)?,
        }
        picked.sort_unstable_by_key(|&(_, edge)| edge);
        self.append((target.part, part), group, scratch, into)
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
        if into.indices.len() + picked.len() > i32::MAX as usize {
            let what = "a batch of more than 2^31 edges. Use fewer seeds or fanouts";
            return Err(Error::Capacity(what.into()));
        }
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
            let start = self.graph.topology.edge_rows().starts()[number as usize];
            into.edge_rows.extend(picked.iter().map(|&(_, edge)| start as i64 + edge as i64));
        }
        if into.rows.len() <= i32::MAX as usize {
            return Ok(());
        }
        Err(Error::Capacity("a batch of more than 2^31 nodes. Use fewer seeds or fanouts".into()))
    }
}
