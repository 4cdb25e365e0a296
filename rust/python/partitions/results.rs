//! Partitions as Python takes them: classes of arrays and numbers.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::edges::Identity;
use crate::results::array;
use crate::values::to_python;
use fastpart::internals::base::Usage;
use fastpart::internals::partition::Words;
use fastpart::internals::partition::{Capacity, EdgePartition, Outcome, Partition};

/// A cap: the same for all parts, or one of each.
#[derive(Clone, FromPyObject, IntoPyObject)]
pub enum PartCaps {
    Same(u64),
    Each(Vec<u64>),
}

impl PartCaps {
    /// The cap of all parts, unless each has its own.
    fn of(same: u64, each: Vec<u64>) -> PartCaps {
        if each.is_empty() { PartCaps::Same(same) } else { PartCaps::Each(each) }
    }

    /// The requested cap, and the one that was kept.
    fn both(capacity: &Capacity) -> [PartCaps; 2] {
        let of = |same, index: usize| {
            PartCaps::of(same, capacity.of_parts.iter().map(|caps| caps[index]).collect())
        };
        [of(capacity.nominal, 0), of(capacity.cap, 1)]
    }
}

/// A vertex partition of the core, or one that another process has found.
#[pyclass(frozen, get_all, new = "from_fields", module = "fastpart._core")]
pub struct VertexResult {
    assignment: Py<PyArray1<i32>>,
    loads: Vec<u64>,
    cap: Option<PartCaps>,
    /// The loads under each array of weights.
    weight_loads: Vec<Vec<u64>>,
    weight_caps: Vec<PartCaps>,
    /// The requested caps on weights.
    weight_nominals: Vec<PartCaps>,
    volume_loads: Option<Vec<u64>>,
    volume_cap: Option<PartCaps>,
    /// The requested cap on volume.
    volume_nominal: Option<PartCaps>,
    dealt: bool,
    graph: Identity,
    chosen: Py<PyDict>,
    warnings: Vec<String>,
    /// Time, bytes read and written, and temporary files of the call.
    costs: Py<PyDict>,
}

/// An edge partition of the core. Its assignment is `None` if the parts went to a file.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct EdgeResult {
    assignment: Option<Py<PyAny>>,
    loads: Vec<u64>,
    cap: Option<u64>,
    graph: Identity,
    chosen: Py<PyDict>,
    warnings: Vec<String>,
    /// Time, bytes read and written, and temporary files of the call.
    costs: Py<PyDict>,
}

/// The result of a partitioner, and what it took.
pub fn result(py: Python<'_>, outcome: Outcome, usage: Usage) -> PyResult<Bound<'_, PyAny>> {
    let costs = PyDict::new(py);
    costs.set_item("seconds", usage.seconds)?;
    costs.set_item("read", usage.io.map(|[read, _]| read))?;
    costs.set_item("written", usage.io.map(|[_, written]| written))?;
    costs.set_item("files", usage.files)?;
    let costs = costs.unbind();
    let Outcome { partition, chosen, warnings } = outcome;
    let values = PyDict::new(py);
    for (name, value) in chosen {
        values.set_item(name, to_python(py, value)?)?;
    }
    let chosen = values.unbind();
    Ok(match partition {
        Partition::Vertices(partition) => {
            let volume_caps = partition.volume.as_ref().map(PartCaps::both);
            let weight_caps: Vec<_> = partition.weights.iter().map(PartCaps::both).collect();
            let each = |index: usize| weight_caps.iter().map(|caps| caps[index].clone()).collect();
            let of_volume = |index: usize| volume_caps.as_ref().map(|caps| caps[index].clone());
            let result = VertexResult {
                weight_nominals: each(0),
                weight_caps: each(1),
                weight_loads: partition.weights.into_iter().map(|weight| weight.loads).collect(),
                assignment: array(py, partition.assignment)?.unbind(),
                loads: partition.loads,
                cap: partition.cap.map(|cap| PartCaps::of(cap, partition.caps)),
                volume_nominal: of_volume(0),
                volume_cap: of_volume(1),
                volume_loads: partition.volume.map(|volume| volume.loads),
                dealt: partition.dealt,
                graph: partition.graph.into(),
                chosen,
                warnings,
                costs,
            };
            Bound::new(py, result)?.into_any()
        }
        Partition::Edges(EdgePartition { parts, loads, cap, graph, .. }) => {
            let assignment = match parts.in_memory() {
                Some(Words::U8(parts)) => Some(array(py, parts)?.into_any().unbind()),
                Some(Words::I16(parts)) => Some(array(py, parts)?.into_any().unbind()),
                Some(Words::I32(parts)) => Some(array(py, parts)?.into_any().unbind()),
                None => None,
            };
            let result = EdgeResult { assignment, loads, cap, graph: graph.into(), chosen, warnings, costs };
            Bound::new(py, result)?.into_any()
        }
    })
}
