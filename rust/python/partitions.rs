//! Partitions as Python takes them: classes of arrays and numbers.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::results::array;
use super::values::to_python;
use crate::graph::identity::Graph;
use crate::partition::contract::{Outcome, Partition};
use crate::partition::edge_parts::Words;
use crate::partition::{EdgePartition, VertexPartition, Volume};

/// What identifies a graph.
#[pyclass(frozen, get_all, module = "fastpart._core")]
#[derive(Clone)]
pub struct Identity {
    pub n: u64,
    pub m: u64,
    pub loops: u64,
    pub checksum: String,
}

impl From<Graph> for Identity {
    fn from(Graph { n, m, loops, checksum }: Graph) -> Identity {
        Identity { n, m, loops, checksum }
    }
}

/// A vertex partition of the core.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct VertexResult {
    assignment: Py<PyArray1<i32>>,
    loads: Vec<u64>,
    cap: Option<u64>,
    weight_loads: Option<Vec<u64>>,
    weight_cap: Option<u64>,
    volume_loads: Option<Vec<u64>>,
    volume_cap: Option<u64>,
    /// The requested cap on volume.
    volume_nominal: Option<u64>,
    dealt: bool,
    graph: Identity,
    chosen: Py<PyDict>,
    warnings: Vec<String>,
}

/// An edge partition of the core; its assignment is `None` if the parts went to a file.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct EdgeResult {
    assignment: Option<Py<PyAny>>,
    loads: Vec<u64>,
    cap: Option<u64>,
    graph: Identity,
    chosen: Py<PyDict>,
    warnings: Vec<String>,
}

/// What a partitioner made.
pub fn result(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyAny>> {
    let Outcome { partition, chosen, warnings } = outcome;
    let values = PyDict::new(py);
    for (name, value) in chosen {
        values.set_item(name, to_python(py, value)?)?;
    }
    let chosen = values.unbind();
    Ok(match partition {
        Partition::Vertices(partition) => {
            Bound::new(py, vertex_result(py, partition, chosen, warnings)?)?.into_any()
        }
        Partition::Edges(partition) => {
            Bound::new(py, edge_result(py, partition, chosen, warnings)?)?.into_any()
        }
    })
}

fn vertex_result(
    py: Python<'_>,
    partition: VertexPartition,
    chosen: Py<PyDict>,
    warnings: Vec<String>,
) -> PyResult<VertexResult> {
    let VertexPartition { assignment, loads, cap, weight_loads, weight_cap, volume, dealt, graph, .. } =
        partition;
    let (volume_loads, volume_nominal, volume_cap) = match volume {
        Some(Volume { loads, nominal, cap }) => (Some(loads), Some(nominal), Some(cap)),
        None => (None, None, None),
    };
    let (assignment, graph) = (array(py, assignment)?.unbind(), graph.into());
    Ok(VertexResult {
        assignment,
        loads,
        cap,
        weight_loads,
        weight_cap,
        volume_loads,
        volume_cap,
        volume_nominal,
        dealt,
        graph,
        chosen,
        warnings,
    })
}

fn edge_result(
    py: Python<'_>,
    partition: EdgePartition,
    chosen: Py<PyDict>,
    warnings: Vec<String>,
) -> PyResult<EdgeResult> {
    let EdgePartition { parts, loads, cap, graph, .. } = partition;
    let assignment = match parts.in_memory() {
        Some(Words::U8(parts)) => Some(array(py, parts)?.into_any().unbind()),
        Some(Words::I16(parts)) => Some(array(py, parts)?.into_any().unbind()),
        Some(Words::I32(parts)) => Some(array(py, parts)?.into_any().unbind()),
        None => None,
    };
    Ok(EdgeResult { assignment, loads, cap, graph: graph.into(), chosen, warnings })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Identity>()?;
    module.add_class::<VertexResult>()?;
    module.add_class::<EdgeResult>()
}
