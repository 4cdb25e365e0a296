//! The methods by which in-edges are picked from a list.
//!
//! A method is a file of this folder, with a type that implements [`Sampling`], and a line of the list below.
//! Its name is what users pass. `Sampling` in `python/fastpart/partitions/loader_options.py` has all names.

mod labor_numbers;

use std::fmt::Debug;
use std::ops::Range;

use crate::base::{Error, Result};
use crate::sampling::levels::expansion::{Expansion, Picker, Tables};
use crate::sampling::levels::relation_runs::Runs;
use crate::sampling::levels::sample::Sample;
use crate::sampling::random::HopKey;
use crate::sampling::topology::Topology;
use weighted::RecordWeights;

/// A method.
trait Sampling {
    /// Scratch space of a thread, kept from batch to batch.
    type Scratch: Debug + Default + Send;

    /// Picks the in-edges of a hop.
    type Picker<'a>: Picker;

    /// Whether it needs weights of records. Other methods refuse them.
    const TAKES_WEIGHTS: bool = false;

    /// Begins a hop.
    fn begin<'a>(hop: Hop<'a>, scratch: &'a mut Self::Scratch) -> Result<Self::Picker<'a>>;
}

/// The data of a hop that a method may read.
pub(crate) struct Hop<'a> {
    /// The parts that hold the in-edges.
    pub topology: &'a Topology,
    /// Key of its draws. A list has a key of its own
    /// ([`Asked`](crate::sampling::levels::relation_runs::Asked)).
    pub key: HopKey,
    /// Weights of records, if the method takes them.
    pub weights: Option<&'a RecordWeights>,
}

/// Declares the methods: their names and types.
macro_rules! methods {
    ($($(#[$about:meta])* $name:literal => $module:ident::$Method:ident),* $(,)?) => {
        $(pub(crate) mod $module;)*

        /// How in-edges are picked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Method {
            $($(#[$about])* $Method),*
        }

        impl Method {
            /// All methods, each with its name.
            pub const NAMED: &[(&str, Self)] = &[$(($name, Self::$Method)),*];

            /// Whether it needs weights of records.
            fn takes_weights(self) -> bool {
                match self {
                    $(Self::$Method => $module::$Method::TAKES_WEIGHTS),*
                }
            }

            /// Appends in-edges of the nodes `level` to a batch.
            pub(crate) fn expand<R: Runs>(
                self,
                hop: Hop<'_>,
                scratch: &mut Scratch,
                expansion: &Expansion<'_, R>,
                level: Range<usize>,
                tables: &mut Tables,
                into: &mut Sample,
            ) -> Result<()> {
                match self {
                    $(Self::$Method => {
                        let picker = $module::$Method::begin(hop, &mut scratch.$module)?;
                        expansion.expand(level, tables, into, picker)
                    })*
                }
            }
        }

        /// Scratch space of a thread for all methods.
        #[derive(Debug, Default)]
        pub(crate) struct Scratch {
            $($module: <$module::$Method as Sampling>::Scratch),*
        }
    };
}

methods! {
    /// All subsets with the same probability.
    "uniform" => uniform::Uniform,
    /// With probabilities in proportion to weights.
    "weighted" => weighted::Weighted,
    /// Fewer distinct sources.
    "labor" => labor::Labor,
}

impl Method {
    /// Refuses weights that it does not take, and none if it needs some.
    pub(crate) fn check_weights(self, weights: Option<&RecordWeights>) -> Result<()> {
        let named = |wanted: &dyn Fn(Self) -> bool| {
            let name = Self::NAMED.iter().find(|&&(_, method)| wanted(method));
            name.map_or("", |&(name, _)| name)
        };
        let own = named(&|method| method == self);
        match (self.takes_weights(), weights.is_some()) {
            (true, false) => Err(Error::parameter("weights", format!("kind={own:?} needs them"))),
            (false, true) => {
                let other = named(&Self::takes_weights);
                Err(Error::parameter("weights", format!("only kind={other:?} takes them, not {own:?}")))
            }
            _ => Ok(()),
        }
    }
}
