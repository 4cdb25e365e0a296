//! The contract of a partitioner, the same for all: its input, its promises, its output.

use std::path::Path;
use std::sync::Arc;

use super::parameters::{Field, Value, Values};
use super::{EdgePartition, Of, VertexPartition};
use crate::base::{Result, Run};
use crate::edges::EdgeStream;
use crate::graph::Csr;

/// The size of a graph, which is all that estimates of memory know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of vertices.
    pub n: u64,
    /// Number of records.
    pub m: u64,
    /// Whether the records list both directions of every edge.
    pub symmetric: bool,
}

impl Shape {
    /// Most entries of the adjacency.
    pub fn entries(&self) -> u64 {
        self.m.saturating_mul(if self.symmetric { 1 } else { 2 })
    }
}

/// The graph of a call, and where a result that does not fit into memory goes.
pub trait Input: Sync {
    /// The records.
    fn edges(&self) -> &dyn EdgeStream;
    /// Whether they list both directions of every edge.
    fn is_symmetric(&self) -> bool;
    /// Whether a record has a direction. Only what depends on sampling, which draws in-edges, looks at it.
    fn is_directed(&self) -> bool {
        false
    }
    /// Whether the adjacency has the weights of the records.
    fn is_weighted(&self) -> bool {
        false
    }
    /// The adjacency, built on first use, with the weights of the records if the partitioner reads them.
    fn adjacency(&self, run: &Run) -> Result<Arc<Csr>>;
    /// The `.npy` file for the parts of records.
    fn out(&self) -> Option<&Path>;

    /// The size of the graph.
    fn shape(&self) -> Shape {
        let edges = self.edges();
        Shape { n: edges.num_vertices(), m: edges.num_edges(), symmetric: self.is_symmetric() }
    }
}

/// The result of a partitioner.
#[derive(Debug)]
pub enum Partition {
    /// A part for each vertex.
    Vertices(VertexPartition),
    /// A part for each record.
    Edges(EdgePartition),
}

/// A partition, with the choices and warnings of its partitioner.
#[derive(Debug)]
pub struct Outcome {
    /// The partition.
    pub partition: Partition,
    /// Parameters that the partitioner chose. With these the result is the same on every machine.
    pub chosen: Vec<(&'static str, Value)>,
    /// Warnings for users.
    pub warnings: Vec<String>,
}

impl From<VertexPartition> for Outcome {
    fn from(partition: VertexPartition) -> Outcome {
        Outcome { partition: Partition::Vertices(partition), chosen: Vec::new(), warnings: Vec::new() }
    }
}

impl From<EdgePartition> for Outcome {
    fn from(partition: EdgePartition) -> Outcome {
        Outcome { partition: Partition::Edges(partition), chosen: Vec::new(), warnings: Vec::new() }
    }
}

/// The name, docs and parameters of a partitioner, as [`describe!`](describe) declares them.
pub trait Description {
    /// Its name everywhere.
    const NAME: &'static str;
    /// Whether it partitions vertices or records. If both, its parameter `of` decides.
    const OF: &'static [Of];
    /// Its docs for users, without those of its parameters.
    const DOC: &'static str;
    /// Whether weights of records count. If not, every record counts once, and users are told so.
    const READS_WEIGHTS: bool;

    /// Its parameters, without `k` and `of`.
    fn fields() -> Vec<Field>;
}

/// An algorithm that partitions the vertices or the records of a graph. Its value holds its parameters.
pub trait Partitioner: Description + Sized {
    /// Parameters that make it another algorithm, which a comparison of all includes.
    const VARIANTS: &'static [(&'static str, &'static str)] = &[];

    /// Reads its parameters.
    fn new(values: &mut Values) -> Result<Self>;

    /// Bytes that a graph of this size takes beside its adjacency, result included.
    fn memory(&self, shape: &Shape, threads: usize) -> u64;

    /// Checks the parameters and the memory, then partitions the graph.
    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome>;
}

/// A partitioner in the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// See [`Description::NAME`].
    pub name: &'static str,
    /// See [`Description::OF`].
    pub of: &'static [Of],
    /// See [`Description::DOC`].
    pub doc: &'static str,
    /// See [`Description::READS_WEIGHTS`].
    pub reads_weights: bool,
    /// See [`Partitioner::VARIANTS`].
    pub variants: &'static [(&'static str, &'static str)],
    /// See [`Description::fields`].
    pub fields: fn() -> Vec<Field>,
    /// See [`Partitioner::memory`].
    pub memory: fn(Values, &Shape, usize) -> Result<u64>,
    /// See [`Partitioner::solve`].
    pub solve: fn(Values, &dyn Input, &Run) -> Result<Outcome>,
}

impl Entry {
    /// The entry of `P`.
    pub const fn of<P: Partitioner>() -> Entry {
        Entry {
            name: P::NAME,
            of: P::OF,
            doc: P::DOC,
            reads_weights: P::READS_WEIGHTS,
            variants: P::VARIANTS,
            fields: P::fields,
            memory: |mut values, shape, threads| P::new(&mut values).map(|p| p.memory(shape, threads)),
            solve: |mut values, input, run| P::new(&mut values)?.solve(input, run),
        }
    }
}

/// Declares the name of a partitioner, what it partitions, whether it `reads weights` of records, its docs for users,
/// and its parameters but `k`.
///
/// The docs are those of the Python function: a summary, a description, then sections in numpydoc's form. The sections
/// on parameters, result and common errors are generated.
macro_rules! describe {
    ($(#[doc = $doc:literal])* $type:ty => $name:literal, $of:expr $(, reads $weights:ident)?; $($(#[doc = $about:literal])* $field:ident: $spec:expr;)*) => {
        impl crate::partition::contract::Description for $type {
            const NAME: &'static str = $name;
            const OF: &'static [crate::partition::Of] = $of;
            const DOC: &'static str = concat!($($doc, "\n"),*);
            const READS_WEIGHTS: bool = !stringify!($($weights)?).is_empty();
            fn fields() -> Vec<crate::partition::parameters::Field> {
                #[allow(unused_imports)]
                use crate::partition::parameters::*;
                vec![$({
                    let (kind, default, only) = $spec;
                    Field { name: stringify!($field), doc: concat!($($about, "\n"),*), kind, default, only }
                }),*]
            }
        }
    };
}
pub(crate) use describe;
