//! The partitioners, one module each, and in [`streams`] what those that read a graph once or a few times
//! share.

pub mod bytegnn;
pub mod dbh;
pub mod edges_of;
pub mod fennel;
pub mod greedy;
pub mod grem;
pub mod hdrf;
pub mod hep;
pub mod ldg;
pub mod multilevel;
pub(crate) mod random;
pub mod sigma;
pub mod spring;
pub mod streams;
pub mod two_phase;

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
        ldg::Ldg,
        fennel::Fennel,
        ldg::Reldg,
        fennel::Refennel,
        bytegnn::ByteGnn,
        dbh::Dbh,
        two_phase::TwoPhase,
        greedy::Greedy,
        hdrf::Hdrf,
        hep::Hep,
    ];
}
