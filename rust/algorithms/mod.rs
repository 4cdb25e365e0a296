//! The partitioners, one module each.

pub(crate) mod bytegnn;
pub(crate) mod dbh;
pub(crate) mod edge_streams;
pub(crate) mod edges_of;
pub(crate) mod grem;
pub(crate) mod hep;
pub(crate) mod multilevel;
pub(crate) mod random;
pub(crate) mod sigma;
pub(crate) mod spring;
pub(crate) mod two_phase;
pub(crate) mod vertex_streams;

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
    SUCCESSORS: [multilevel::refine::Refine, multilevel::update::Update, edges_of::EdgesOf];
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
