//! The in-edges between given vertices, for batches of clusters (Cluster-GCN) or of walks (GraphSAINT).

use super::sampler::add_distinct;
use super::workers::Worker;
use crate::base::Result;
use crate::sampling::levels::expansion::{All, Expansion};
use crate::sampling::levels::picked_edges::Places;
use crate::sampling::levels::relation_runs::{Asked, OneRun};
use crate::sampling::levels::sample::{EdgeColumns, Sample};
use crate::sampling::random::HopKey;
use crate::sampling::topology::Topology;

/// Makes a batch of one level, whose nodes are `rows`, with all in-edges between them. `check` is asked now
/// and then and ends the work by an error.
pub fn subgraph(
    topology: &Topology,
    rows: &[u32],
    edges: EdgeColumns,
    Worker { tables, .. }: &mut Worker,
    check: &dyn Fn() -> Result<()>,
    into: &mut Sample,
) -> Result<()> {
    into.clear();
    tables.begin();
    add_distinct("rows", rows, topology, &mut tables.ids, into)?;
    let runs = OneRun(Asked::new(None, HopKey::default()));
    let expansion = Expansion { topology, runs, places: Places::Known, edges, check };
    expansion.expand(0..rows.len(), tables, into, All)?;
    into.num_nodes.push(rows.len() as u64);
    into.num_edges.push(into.indices.len() as u64);
    into.end();
    Ok(())
}
