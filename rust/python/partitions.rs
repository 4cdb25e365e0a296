//! Partitions as Python takes them: dictionaries of arrays and numbers.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::results::array;
use crate::graph::identity::Graph;
use crate::partition::edge_parts::Words;
use crate::partition::{EdgePartition, VertexPartition, Volume};

/// The fields of a vertex partition.
pub fn vertex_partition(py: Python<'_>, partition: VertexPartition) -> PyResult<Bound<'_, PyDict>> {
    let VertexPartition { assignment, loads, cap, weight_loads, weight_cap, volume, dealt, graph, .. } =
        partition;
    let fields = PyDict::new(py);
    fields.set_item("assignment", array(py, assignment)?)?;
    fields.set_item("loads", loads)?;
    fields.set_item("cap", cap)?;
    fields.set_item("weight_loads", weight_loads)?;
    fields.set_item("weight_cap", weight_cap)?;
    fields.set_item("dealt", dealt)?;
    if let Some(Volume { loads, nominal, cap }) = volume {
        fields.set_item("volume_loads", loads)?;
        fields.set_item("volume_nominal", nominal)?;
        fields.set_item("volume_cap", cap)?;
    }
    identify(&fields, graph)?;
    Ok(fields)
}

/// The fields of an edge partition; `assignment` is absent if the parts went to a file.
pub fn edge_partition(py: Python<'_>, partition: EdgePartition) -> PyResult<Bound<'_, PyDict>> {
    let EdgePartition { parts, loads, cap, graph, .. } = partition;
    let fields = PyDict::new(py);
    match parts.in_memory() {
        Some(Words::U8(parts)) => fields.set_item("assignment", array(py, parts)?)?,
        Some(Words::I16(parts)) => fields.set_item("assignment", array(py, parts)?)?,
        Some(Words::I32(parts)) => fields.set_item("assignment", array(py, parts)?)?,
        None => {}
    }
    fields.set_item("loads", loads)?;
    fields.set_item("cap", cap)?;
    identify(&fields, graph)?;
    Ok(fields)
}

/// What identifies the graph.
pub fn identify(fields: &Bound<'_, PyDict>, graph: Graph) -> PyResult<()> {
    fields.set_item("n", graph.n)?;
    fields.set_item("m", graph.m)?;
    fields.set_item("loops", graph.loops)?;
    fields.set_item("checksum", graph.checksum)
}
