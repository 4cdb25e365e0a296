//! The declaration of a vertex stream.

/// A partitioner that is a [`VertexStream`](super::VertexStream) of this rule and balance, in one pass unless
/// it has a parameter for that.
macro_rules! named {
    (
        $(#[doc = $doc:literal])* $name:ident => $named:literal, $rule:ident, $balance:literal;
        $($(#[doc = $about:literal])* $passes:ident: $domain:ty = $default:literal;)?
    ) => {
        $crate::partition::parameters::parameters! {
            $(#[doc = $doc])*
            pub struct $name => $named, [Vertices];
            /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
            balance: $crate::partition::parameters::Ratio = $balance;
            /// A second cap, as in :func:`spring`: a vertex must fit under both. Takes 12 bytes more per
            /// vertex.
            balance_on: Option<$crate::partition::parameters::Weighing>;
            /// A ratio >= 1, as in :func:`spring`: the cap on the weight of a part, relative to the mean.
            balance_on_ratio: $crate::partition::parameters::Ratio = 1.05;
            $($(#[doc = $about])* $passes: $domain = $default;)?
            /// Number of vertices that are decided against the same state. 1 is the sequential rule of the
            /// paper. Default: 1 below 2**16 vertices, else 1,024. It changes the result slightly. The number
            /// of threads never does.
            batch: Option<$crate::partition::parameters::Batch>;
            /// Has no effect. There is no random choice.
            seed: $crate::partition::parameters::Seed;
        }

        impl $name {
            /// The stream.
            pub fn stream(&self) -> VertexStream {
                let one = VertexStream {
                    rule: $crate::algorithms::streams::vertices::Rule::$rule,
                    k: self.k,
                    balance: self.balance,
                    passes: 1,
                    batch: self.batch,
                    balance_on: $crate::capacity::BalanceOn::of(self.balance_on.as_ref(), self.balance_on_ratio),
                };
                VertexStream { $($passes: self.$passes,)? ..one }
            }
        }

        impl Partitioner for $name {
            type Parameters = Self;
            type Reads = Arc<Csr>;

            fn check(&self, shape: &Shape) -> Result<()> {
                self.stream().balance_on.map_or(Ok(()), |on| on.validate(shape.n))
            }

            fn memory(&self, shape: &Shape, run: &Run) -> Need {
                self.stream().memory(shape.n, run.threads())
            }

            fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
                Ok(self.stream().partition(&graph.csr, graph.run)?.into())
            }
        }
    };
}
pub(crate) use named;
