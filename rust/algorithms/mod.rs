//! The partitioners, one module each.

pub mod bytegnn;
pub mod dbh;
pub mod edge_streams;
pub mod edges_of;
pub mod grem;
pub mod hep;
pub mod multilevel;
pub(crate) mod random;
pub mod sigma;
pub mod spring;
pub mod two_phase;
pub mod vertex_streams;

use crate::partition::Entry;

/// Lists the partitioners, for users of the registry and for those who name them.
macro_rules! registry {
    ($($(#[$doc:meta])* $list:ident: [$($($name:ident)::+),* $(,)?];)*) => {
        $($(#[$doc])* pub const $list: &[Entry] = &[$(Entry::of::<$($name)::+>()),*];)*

        /// The partitioners. Each is a struct of its parameters: `Sigma { balance: 1.1, ..Sigma::new(8) }`.
        pub mod partitioners {
            $($(pub use super::$($name)::+;)*)*
        }
    };
}

registry! {
    /// Algorithms that begin with a vertex partition of any partitioner.
    SUCCESSORS: [multilevel::refining::Refine, multilevel::updating::Update, edges_of::EdgesOf];
    /// Every partitioner, in the order in which users see them.
    PARTITIONERS: [
        spring::Spring,
        sigma::Sigma,
        grem::Grem,
        multilevel::Multilevel,
        random::Random,
        random::HashVertices,
        vertex_streams::Ldg,
        vertex_streams::Fennel,
        vertex_streams::Reldg,
        vertex_streams::Refennel,
        bytegnn::ByteGnn,
        dbh::Dbh,
        two_phase::TwoPhase,
        edge_streams::greedy::Greedy,
        edge_streams::hdrf::Hdrf,
        hep::Hep,
    ];
}
