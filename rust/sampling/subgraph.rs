//! The in-edges between given vertices, for batches of clusters (Cluster-GCN) or of walks (GraphSAINT).

use super::expansion::{Expansion, add_distinct};
use super::picker::All;
use super::picks::Places;
use super::sample::{EdgeColumns, Sample};
use super::topology::Topology;
use super::workers::Worker;
use crate::base::Result;

/// Makes a batch of one level, whose nodes are `rows`, with all in-edges between them. `check` is asked now
/// and then and ends the work by an error.
pub fn subgraph(
    topology: &Topology,
    rows: &[u32],
    edges: EdgeColumns,
    worker: &mut Worker,
    check: &dyn Fn() -> Result<()>,
    into: &mut Sample,
) -> Result<()> {
    into.clear();
    worker.begin();
    add_distinct("rows", rows, topology, &mut worker.ids, into)?;
    let expansion = Expansion { topology, places: Places::Known, edges, check };
    expansion.expand(0..rows.len(), (&mut worker.ids, &mut worker.picks), into, All)?;
    into.num_nodes.push(rows.len() as u64);
    into.num_edges.push(into.indices.len() as u64);
    Ok(())
}
