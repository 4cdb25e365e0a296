//! Names that the binding to Python, the tests and the benchmarks of this repository use beside the facade.
//! It may change with any version.

pub mod algorithms {
    pub use crate::algorithms::{PARTITIONERS, SUCCESSORS};
    pub mod bytegnn {
        pub use crate::algorithms::bytegnn::{ByteGnn, Rule};
        pub mod blocks {
            pub use crate::algorithms::bytegnn::blocks::Blocks;
        }
        pub mod slack {
            pub use crate::algorithms::bytegnn::slack::{Piece, Slack, total};
        }
    }
    pub mod dbh {
        pub use crate::algorithms::dbh::Dbh;
    }
    pub mod edge_streams {
        pub use crate::algorithms::edge_streams::{Affinity, EdgeStreamer, Limit, by_degree};
        pub mod greedy {
            pub use crate::algorithms::edge_streams::greedy::Greedy;
        }
        pub mod hdrf {
            pub use crate::algorithms::edge_streams::hdrf::Hdrf;
        }
        pub mod loads {
            pub use crate::algorithms::edge_streams::loads::Balance;
        }
        pub mod refining {
            pub use crate::algorithms::edge_streams::refining::Refining;
        }
    }
    pub mod edges_of {
        pub use crate::algorithms::edges_of::EdgesOf;
    }
    pub mod grem {
        pub use crate::algorithms::grem::{Chunk, Grem, Order};
    }
    pub mod hep {
        pub use crate::algorithms::hep::{Hep, Tau};
    }
    pub mod multilevel {
        pub use crate::algorithms::multilevel::{
            Bound, Costs, Effort, Goal, Multilevel, Objective, Path, Plan, Rating, Scheme, replicate,
        };
        pub mod assignment {
            pub use crate::algorithms::multilevel::assignment::{Assignment, Connections};
        }
        pub mod clustering {
            pub use crate::algorithms::multilevel::clustering::{Clusterer, Clustering};
        }
        pub mod contraction {
            pub use crate::algorithms::multilevel::contraction::contract;
        }
        pub mod gain_table {
            pub use crate::algorithms::multilevel::gain_table::GainTable;
        }
        pub mod graph {
            pub use crate::algorithms::multilevel::graph::Graph;
        }
        pub mod jet {
            pub use crate::algorithms::multilevel::jet::Jet;
        }
        pub mod ordering {
            pub use crate::algorithms::multilevel::ordering::{order, places};
        }
        pub mod problem {
            pub use crate::algorithms::multilevel::problem::Problem;
        }
        pub mod prices {
            pub use crate::algorithms::multilevel::prices::Prices;
        }
        pub mod rebalancing {
            pub use crate::algorithms::multilevel::rebalancing::Rebalance;
        }
        pub mod refiner {
            pub use crate::algorithms::multilevel::refiner::Refiner;
        }
        pub mod refining {
            pub use crate::algorithms::multilevel::refining::Refine;
        }
        pub mod relief {
            pub use crate::algorithms::multilevel::relief::{Histogram, Offer, Relief};
        }
        pub mod semi_external {
            pub mod contraction {
                pub use crate::algorithms::multilevel::semi_external::contraction::contract;
            }
            pub mod sampling {
                pub use crate::algorithms::multilevel::semi_external::sampling::{LEAST_DEGREE, Sample};
            }
        }
        pub mod connectivity {
            pub use crate::algorithms::multilevel::connectivity::Connectivity;
        }
        pub mod updating {
            pub use crate::algorithms::multilevel::updating::Update;
        }
    }
    pub mod sigma {
        pub use crate::algorithms::sigma::Sigma;
        pub mod edge {
            pub use crate::algorithms::sigma::edge::SigmaEdge;
        }
        pub mod preference {
            pub use crate::algorithms::sigma::preference::{Weight, preferred_parts};
        }
        pub mod vertex {
            pub use crate::algorithms::sigma::vertex::Objective;
        }
    }
    pub mod spring {
        pub use crate::algorithms::spring::Spring;
    }
    pub mod two_phase {
        pub use crate::algorithms::two_phase::{Scoring, TwoPhase};
    }
    pub mod vertex_streams {
        pub use crate::algorithms::vertex_streams::{Fennel, Ldg, Refennel, Rule, VertexStream};
    }
}
pub mod base {
    pub use crate::base::budget::available;
    pub use crate::base::file_hash::{of_bytes, of_files};
    pub use crate::base::output::{AtomicDir, AtomicFile, Entries, write_file};
    pub use crate::base::run::{MAX_THREADS, Step, default_threads};
    pub use crate::base::spare::Allocator;
    pub use crate::base::{
        Buffer, Error, Meter, NONE, Permutation, Random, Result, Run, Usage, locked, named, reserved, shown,
        splitmix64,
    };
}
pub mod capacity {
    pub use crate::capacity::{BalanceOn, MAX_PARTS, Placing, cap};
}
pub mod clustering {
    pub use crate::clustering::bounded::BoundedClustering;
    pub use crate::clustering::{Clusters, Hollocou, Modularity, modularity, modularity_of_stream};
}
pub mod convert {
    pub use crate::convert::dedup::dedup;
    pub use crate::convert::renumber::renumber;
    pub use crate::convert::write::write;
    pub use crate::convert::{
        Column, Conversion, Convert, Format, WeightsFrom, convert, convert_all, format_of, holds_names,
        tabulate,
    };
    pub mod metis {
        pub use crate::convert::metis::read;
    }
    pub mod text {
        pub use crate::convert::text::{Asked, Column, Cut, LONGEST_LINE, Names, names, read};
    }
}
pub mod edges {
    pub use crate::edges::decode::Column;
    pub use crate::edges::{
        BLOCK, Directedness, Directions, EdgeFile, EdgeShards, EdgeStream, IdType, Io, Layout, MAX_VERTICES,
        MappedFile, MemoryEdges, Record, Relations, TempRecords, Weights, WideRecord,
    };
    pub mod npy {
        pub use crate::base::npy::{header, header_of};
    }
}
pub mod exec {
    pub use crate::exec::division::{Division, Peers};
    pub use crate::exec::pass::{blocks, pass};
    pub use crate::exec::shuffle::{key, shuffle};
}
pub mod generate {
    pub use crate::generate::{BarabasiAlbert, FeatureDtype, Generator, Grid, Planted, Rmat, records, write};
}
pub mod graph {
    pub use crate::graph::csr::{AdjacencyCache, Packed, packed_len};
    pub use crate::graph::identity::{find_num_vertices, largest_id};
    pub use crate::graph::pieces::{Piece, entries};
    pub mod shards {
        pub use crate::graph::shards::{Counts, count, cut, gather, key, records, scatter};
    }
    pub use crate::graph::weights::extent;
    pub use crate::graph::{Csr, Degrees, Identity};
    pub mod checksum {
        pub use crate::graph::checksum::{Hasher, UNIT, combine};
    }
    pub mod degrees {
        pub use crate::graph::degrees::{Degrees, PRIVATE, identify, memory, scan, scan_sources};
    }
}
pub mod ingest {
    pub use crate::ingest::{
        ArrowStream, Bucket, Declared, IdBatch, Joined, Kind, Lookup, Numbering, Side, Sorter, Spill, Table,
        Unit, join_all, resolve_all,
    };
}
pub mod measure {
    pub use crate::measure::homes::home_parts;
    pub use crate::measure::{
        Cut, RelationCut, Replicas, SparseMatrix, TypeReplicas, WeightedCut, components, cut, halo_sizes,
        halo_sizes_of_types, label_skew, part_sizes, relation_cuts, replicas, replicas_of_types,
        sparse_matrix, split_counts, validate, weighted_cut,
    };
}
pub mod partition {
    pub use crate::partition::edge_parts::Words;
    pub use crate::partition::parameters::Field;
    pub use crate::partition::{
        Capacity, EdgePartition, EdgeParts, Entry, Given, Graph, Input, Of, Outcome, Partition, Partitioner,
        Shape, Value, VertexPartition, partition,
    };
}
pub mod parts {
    pub use crate::parts::{
        Coding, Gather, PartSizes, Portion, RowGatherer, Rows, write_edge_parts, write_vertex_parts,
    };
}
pub mod sampling {
    pub use crate::sampling::{
        Ahead, Batch, BatchMaker, DiskRates, EdgeColumns, FeatureRows, Features, Io, Kind, Maker, Pack,
        PackStep, Part, Place, Pooled, Pools, RecordWeights, RelationRuns, RowId, RowSpace, Sample, Sampler,
        Seeds, Settings, Spent, Steps, Strategy, Target, Temporal, Times, Topology, TypedBatch, TypedInEdges,
        TypedMaker, TypedSample, TypedSampler, TypedSamples, Types, Workers, append_degrees, append_ids,
        disk_rates, subgraph, walks,
    };
}
pub mod sets {
    pub use crate::sets::SparseSums;
}
pub mod traffic {
    pub use crate::traffic::{
        Cache, Epoch, GraphEdges, InEdges, PartTraffic, TypedEdges, expected_steps, sampling_weights, traffic,
    };
}
