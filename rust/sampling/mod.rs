//! Neighbour samples of the vertices of a partition directory, for training on mini-batches.
//!
//! **Requirements.** The parts of a vertex partition with a halo of at least one hop, all of them, on disks
//! of this machine. Or a graph in memory ([`Part::in_memory`]). A batch has seeds, given as rows
//! ([`Topology`]), and a number of in-edges to sample per vertex and hop.
//!
//! **Batches.** Level 0 of a batch are the seeds. Hop h samples in-edges of every vertex of level h, and
//! their sources form level h + 1. A vertex occurs once in a level, or once in the batch if levels are
//! merged. Then hop h samples only vertices that are new. A batch is one CSR whose rows are the nodes of all
//! levels but the last, in the order of levels. So a layer of a network reads a prefix of it.
//!
//! **Algorithm.** What is drawn for a vertex is a function of (seed, epoch, step, hop, vertex), where the
//! vertex is its original id ([`HopKey`]), and picks positions in its list of in-edges, which every partition
//! has in the order of records. So neighbours are the same for any partition, number of parts, threads and
//! processes. They are picked uniformly (`neighbours`), by weights (`weighted`), by LABOR (`labor`), or among
//! those before the time of a seed (`temporal`). The picks are looked up in blocks, one array after the
//! other, and each loop brings into the cache what the next one reads (`picks`). Features of the nodes and of
//! the in-edges are copied from the files of the parts ([`Features`]), or read past the page cache
//! (`direct`), and decoded on the way if they are coded ([`Coding`]). [`walks()`] and [`subgraph()`] make the
//! batches of other methods.
//!
//! **Memory.** The parts are mapped, 4 bytes per directed edge, and not copied. The rows of the halos take 4
//! bytes per vertex. A worker takes 4 bytes per vertex, and LABOR 4 to 5 bytes per in-edge of the long lists
//! that were asked for, in at most a tenth of the free memory (`orders`). Batches come on top. Memory of
//! batches is used again.
//!
//! **Parallelism.** Over the batches of an epoch, which are made ahead ([`Ahead`]). The bytes under a map may
//! change at any time: whatever indexes something is checked when it is read, so that a damaged part leads to
//! an error.
//!
//! **Complexity.** Per vertex and hop O(fanout) for uniform samples, O(degree) for weighted ones. LABOR:
//! O(degree) for short lists, O(fanout) for long ones, and O(degree) once for each long list.
//!
//! Source: Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
//! Samples as a function of the vertex follow the random numbers of Salmon et al., "Parallel Random Numbers:
//! As Easy as 1, 2, 3", SC 2011.

mod ahead;
mod array;
mod batch;
mod cache;
mod direct;
mod expansion;
mod gather;
mod halo;
mod ids;
mod in_edges;
mod labor;
mod means;
mod neighbours;
mod numbers;
mod orders;
mod pack;
mod packing;
mod part;
mod picker;
mod picks;
mod pool;
mod random;
mod rates;
mod row_space;
mod sample;
mod sampler;
mod subgraph;
mod targets;
mod temporal;
mod topology;
mod typed;
mod vertices;
mod walks;
mod weighted;
mod workers;

use crate::parts::coding;

pub use ahead::{Ahead, Steps};
pub use batch::{Batch, BatchMaker, Maker, Pools, Spent};
pub use gather::{FeatureRows, Features, Io, PackStep};
pub use pack::Pack;
pub use packing::Target;
pub use part::Part;
pub use pool::Pooled;
pub use rates::{DiskRates, disk_rates};
pub use row_space::{RowId, RowSpace};
pub use sample::{EdgeColumns, Sample, Seeds};
pub use sampler::{Kind, Place, Sampler, Settings};
pub use subgraph::subgraph;
pub use temporal::{RelationRuns, Strategy, Temporal, Times};
pub use topology::Topology;
pub use typed::{TypedBatch, TypedInEdges, TypedMaker, TypedSample, TypedSampler, TypedSamples, Types};
pub use vertices::{append_degrees, append_ids};
pub use walks::walks;
pub use weighted::RecordWeights;
pub use workers::Workers;
