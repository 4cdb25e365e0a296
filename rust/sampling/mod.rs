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
//! **Types.** A graph without types is one of one type and one relation. With types, the vertices of a type
//! are a range of ids, so the inner vertices of a part also hold it as a range ([`Types`]), and the in-edges
//! of a vertex are ordered by relation. The in-edges of one relation are a list of their own, with a fanout
//! of its own (`levels::relation_runs`). In the end the batch is ordered by type and by relation, each a CSR
//! with the names of PyG's `HeteroData` (`batches::by_type`).
//!
//! **Algorithm.** The draws for a vertex are a function of (seed, epoch, step, hop, vertex) and, with types,
//! the relation. A vertex counts by its original id (`random`). The draws pick positions in its list of
//! in-edges, which every partition has in the order of records. So neighbours are the same for any partition,
//! number of parts, threads and processes. A list is picked from by one of the `methods`, or among the
//! in-edges before the time of a seed (`temporal`). The picks are looked up in blocks, one array after the
//! other, and each loop brings into the cache what the next one reads (`levels`). Features of the nodes and
//! of the in-edges are copied from the files of the parts, or read past the page cache, and decoded on the
//! way if they are coded (`rows`). [`walks()`] and [`subgraph()`] make the batches of other methods.
//!
//! **Memory.** The parts are mapped, 4 bytes per directed edge and 1 or 2 for its relation, and not copied.
//! The rows of the halos take 4 bytes per vertex. A worker takes 4 bytes per vertex, from 2^27 vertices on up
//! to 32 bytes per node of its largest batch (`levels::node_places`). LABOR takes 4 to 5 bytes per in-edge of
//! the long lists that were asked for, in at most a tenth of the free memory (`topology::lists_by_place`). A
//! batch takes the size of its arrays. With types a worker also keeps a batch level by level. Memory of
//! batches is used again.
//!
//! **Parallelism.** Over the batches of an epoch, which are made ahead ([`Ahead`]). The bytes under a map may
//! change at any time: every index is checked when it is read, so that a damaged part leads to
//! an error.
//!
//! **Complexity.** Per vertex and hop O(fanout) for uniform samples, O(degree) for weighted ones. LABOR:
//! O(degree) for short lists, O(fanout) for long ones, and O(degree) once for each long list. With types,
//! this holds for each relation of a vertex, and O(log degree) to find the end of its list.
//!
//! Source: Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
//! Samples as a function of the vertex follow the random numbers of Salmon et al., "Parallel Random Numbers:
//! As Easy as 1, 2, 3", SC 2011.

mod batches;
mod levels;
mod methods;
mod random;
mod reused_memory;
mod rows;
mod temporal;
mod topology;

pub use batches::{Ahead, Batch, Maker, Pools, Sampler, Settings, Spent, Steps, Workers, subgraph, walks};
pub use levels::sample::{EdgeColumns, Place, Sample, Seeds};
pub use methods::Method;
pub use methods::weighted::RecordWeights;
pub use reused_memory::Pooled;
pub use rows::{
    AdamStep, DiskRates, FeatureRows, Features, Io, LearnedRows, Number, Pack, PackStep, Target, disk_rates,
};
pub use temporal::{Strategy, Temporal, Times};
pub use topology::{Part, RowId, RowSpace, Topology, TopologyEdges, Types, append_degrees, append_ids};
