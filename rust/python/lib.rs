//! The boundary to Python: `fastpart._core`. Nothing else in the crate knows Python, and nothing here decides
//! anything about graphs. The public functions, their checks and docs live in `python/fastpart`.

// A function of Python has one argument for each parameter, and a result of one array for each column.
#![allow(clippy::too_many_arguments, clippy::type_complexity)]

mod errors;
mod files;
mod graphs;
mod machines;
mod measures;
mod partitions;
mod results;
mod run;
mod sampling;
mod store;
mod values;

use fastpart::internals::base::Allocator;
use graphs::edges;
use measures::traffic;
use pyo3::pymodule;

/// A refused allocation ends a call with MemoryError, and not the interpreter.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::files::{
        PyAtomicDir, PyMappedFile, hash_bytes, hash_files, refuse_foreign, write_file, write_lines, write_npy,
    };
    #[pymodule_export]
    use super::graphs::convert::{Converted, convert, format_of, tabulate, text_holds_names, write_edges};
    #[pymodule_export]
    use super::graphs::edges::{EdgeSource, Identity};
    #[pymodule_export]
    use super::graphs::generate::{Planted, generate_ba, generate_grid, generate_rmat};
    #[pymodule_export]
    use super::graphs::ingest::{EndLookup, EndSpill, IdSorter, Ids, Numbering, join_ends, resolve_ends};
    #[pymodule_export]
    use super::machines::{
        count_shard, cut_shards, entries_of_piece, gather_shard, partition_replica, replica_memory,
        scatter_shard, shards_of_records,
    };
    #[pymodule_export]
    use super::measures::counts::{
        CutCounts, EdgeCounts, component_counts, count_edge_partition, cut_counts, halo_counts, label_skew,
        relation_cuts, sparse_cut_matrix, split_counts, weighted_cut,
    };
    #[pymodule_export]
    use super::measures::traffic::{PartTraffic, predict_traffic, sampling_weights};
    #[pymodule_export]
    use super::partitions::clustering::{ClusterResult, cluster_hollocou, cluster_modularity};
    #[pymodule_export]
    use super::partitions::homes::home_parts;
    #[pymodule_export]
    use super::partitions::ordering::{Ordered, order};
    #[pymodule_export]
    use super::partitions::partitioners::{
        Algorithm, Field, PlanCosts, algorithms, memory_estimates, multilevel_plans, partition, successors,
    };
    #[pymodule_export]
    use super::partitions::results::{EdgeResult, VertexResult};
    #[pymodule_export]
    use super::run::{default_threads, memory_budget};
    #[pymodule_export]
    use super::sampling::{
        Batches, Coding, Features, Pack, SampledBatch, Sampler, Times, Topology, TypedSampledBatch, Types,
        disk_rates, sampler_memory, sparse_adam,
    };
    #[pymodule_export]
    use super::store::{RowGatherer, write_edge_parts, write_vertex_parts};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MAX_PARTS", fastpart::internals::capacity::MAX_PARTS)?;
        // The package decides what is public.
        module.delattr("__all__")
    }
}
