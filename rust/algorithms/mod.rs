//! The partitioners, one module each.

pub mod bytegnn;
pub mod dbh;
pub mod edge_streams;
pub mod edges_of;
pub mod grem;
pub mod hep;
pub mod multilevel;
pub mod random;
pub mod sigma;
pub mod spring;
pub mod two_phase;
pub mod vertex_streams;

use crate::partition::Entry;

/// What begins with a vertex partition of any partitioner.
pub const SUCCESSORS: &[Entry] = &[
    Entry::of::<multilevel::refining::Refinement>(),
    Entry::of::<multilevel::updating::Update>(),
    Entry::of::<edges_of::EdgesOf>(),
];

/// Every partitioner, in the order in which users see them.
pub const PARTITIONERS: &[Entry] = &[
    Entry::of::<spring::Spring>(),
    Entry::of::<sigma::Sigma>(),
    Entry::of::<grem::Grem>(),
    Entry::of::<multilevel::Multilevel>(),
    Entry::of::<random::Random>(),
    Entry::of::<random::HashVertices>(),
    Entry::of::<vertex_streams::Ldg>(),
    Entry::of::<vertex_streams::Fennel>(),
    Entry::of::<vertex_streams::Reldg>(),
    Entry::of::<vertex_streams::Refennel>(),
    Entry::of::<bytegnn::ByteGnn>(),
    Entry::of::<dbh::Dbh>(),
    Entry::of::<two_phase::TwoPhase>(),
    Entry::of::<edge_streams::greedy::Greedy>(),
    Entry::of::<edge_streams::hdrf::Hdrf>(),
    Entry::of::<hep::Hep>(),
];
