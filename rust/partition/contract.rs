//! The contract of a partitioner, the same for all: its input, its promises, its output.
//!
//! [`partition`] is the one way to run any of them. It checks the parameters, requires the memory that a
//! partitioner states, builds the adjacency for those that read it, and requires the memory again, since the
//! adjacency is in memory by then. So no partitioner can forget a check: it gets a [`Prepared`] graph.

use std::convert::Infallible;

use super::input::{Input, Prepared, Reads, Shape};
use super::parameters::{Field, Given, Parameters, Ranges, Value};
use super::{EdgePartition, Of, VertexPartition};
use crate::base::system::trim_heaps;
use crate::base::{Error, Result, Run};

impl<R> Prepared<'_, R> {
    /// The partition of the same graph by another partitioner, which is checked in the same way.
    pub fn partition<P: Partitioner>(&self, other: &P) -> Result<Outcome> {
        partition(other, self.input, self.run)
    }
}

/// The memory that a partitioner needs, adjacency not counted, result included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Bytes needed to keep everything in memory.
    pub beside: u64,
    /// The least memory the partitioner can run with.
    pub least: u64,
    /// The partitioner and the purpose, for the text of a refusal.
    pub what: String,
}

impl Need {
    /// A need for exactly `bytes`.
    pub fn new(bytes: u64, what: impl Into<String>) -> Need {
        Need { beside: bytes, least: bytes, what: what.into() }
    }

    /// The larger need of two steps that follow each other.
    pub fn or(self, other: Need) -> Need {
        let beside = self.beside.max(other.beside);
        Need { beside, ..if other.least > self.least { other } else { self } }
    }

    /// Refuses a run with less memory than the least.
    pub fn require(&self, run: &Run) -> Result<()> {
        run.require(self.least, self.what.as_str())
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

impl Partition {
    /// The partition of vertices, if it is one.
    pub fn vertices(self) -> Result<VertexPartition> {
        match self {
            Partition::Vertices(partition) => Ok(partition),
            Partition::Edges(_) => Err(Error::Internal("records got parts, and not vertices".into())),
        }
    }

    /// The partition of records, if it is one.
    pub fn edges(self) -> Result<EdgePartition> {
        match self {
            Partition::Edges(partition) => Ok(partition),
            Partition::Vertices(_) => Err(Error::Internal("vertices got parts, and not records".into())),
        }
    }
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
    fn from(mut partition: VertexPartition) -> Outcome {
        let warnings = std::mem::take(&mut partition.warnings);
        Outcome { partition: Partition::Vertices(partition), chosen: Vec::new(), warnings }
    }
}

impl From<EdgePartition> for Outcome {
    fn from(partition: EdgePartition) -> Outcome {
        Outcome { partition: Partition::Edges(partition), chosen: Vec::new(), warnings: Vec::new() }
    }
}

/// An algorithm that partitions the vertices or the records of a graph. Its value is made of its parameters.
/// In most cases it is its parameters.
pub trait Partitioner: Ranges + TryFrom<Self::Parameters, Error: Refusal> {
    /// Its parameters for callers.
    type Parameters: Parameters;
    /// `Arc<Csr>` if it reads the adjacency, else `()`.
    type Reads: Reads;
    /// Parameters that make it another algorithm, which a comparison of all includes.
    const VARIANTS: &'static [(&'static str, &'static str)] = &[];

    /// Refuses parameters that do not go together, or that cannot be for a graph of this size. Each alone is
    /// in its range.
    fn check(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// The memory that a graph of this size takes beside its adjacency.
    fn memory(&self, shape: &Shape, run: &Run) -> Need;

    /// Announces the costs of the run, before the adjacency is built. Returns the bytes that are to be left
    /// free beside that, if they are more than the least.
    fn announce(&self, _input: &Input, _run: &Run) -> Option<u64> {
        None
    }

    /// Partitions the graph.
    fn solve(&self, graph: &Prepared<Self::Reads>) -> Result<Outcome>;
}

/// Partitions a graph: the one way into every partitioner.
pub fn partition<P: Partitioner>(partitioner: &P, input: &Input, run: &Run) -> Result<Outcome> {
    let shape = input.shape();
    partitioner.ranges()?;
    partitioner.check(&shape)?;
    let need = partitioner.memory(&shape, run);
    need.require(run)?;
    // An adjacency that leaves less than `beside` lies in a file. The reservation of an outer partitioner
    // counts again afterwards.
    let beside = partitioner.announce(input, run).unwrap_or(need.least);
    let _reservation = run.reserve(beside);
    let csr = P::Reads::prepare(input, run)?;
    trim_heaps();
    need.require(run)?;
    partitioner.solve(&Prepared { csr, run, input })
}

/// How the parameters may refuse to become a partitioner: with an error, or never.
/// (`From<Infallible> for Error` would make `?` ambiguous in closures.)
pub trait Refusal {
    /// The error.
    fn error(self) -> Error;
}

impl Refusal for Error {
    fn error(self) -> Error {
        self
    }
}

impl Refusal for Infallible {
    fn error(self) -> Error {
        match self {}
    }
}

/// A partitioner in the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// See [`Parameters::NAME`].
    pub name: &'static str,
    /// See [`Parameters::OF`].
    pub of: &'static [Of],
    /// See [`Parameters::DOC`].
    pub doc: &'static str,
    /// See [`Parameters::READS_WEIGHTS`].
    pub reads_weights: bool,
    /// See [`Partitioner::VARIANTS`].
    pub variants: &'static [(&'static str, &'static str)],
    /// See [`Parameters::fields`].
    pub fields: fn() -> Vec<Field>,
    /// See [`Partitioner::memory`].
    pub memory: fn(Given, &Shape, &Run) -> Result<Need>,
    /// See [`partition`].
    pub partition: fn(Given, &Input, &Run) -> Result<Outcome>,
}

impl Entry {
    /// The entry of `P`.
    pub const fn of<P: Partitioner>() -> Entry {
        Entry {
            name: P::Parameters::NAME,
            of: P::Parameters::OF,
            doc: P::Parameters::DOC,
            reads_weights: P::Parameters::READS_WEIGHTS,
            variants: P::VARIANTS,
            fields: P::Parameters::fields,
            memory: |given, shape, run| Ok(read::<P>(given)?.memory(shape, run)),
            partition: |given, input, run| partition(&read::<P>(given)?, input, run),
        }
    }
}

fn read<P: Partitioner>(given: Given) -> Result<P> {
    P::try_from(given.read()?).map_err(Refusal::error)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::base::Buffer;
    use crate::edges::{EdgeStream, Record};
    use crate::graph::Csr;
    use crate::partition::parameters::{Flag, NonNegative, Ratio, parameters, words};

    /// A path of vertices. Its first reader takes some memory off the budget of a run.
    struct Path<'a>(u32, Option<(&'a Run, AtomicU64)>);

    // SAFETY: no id is as large as the number of vertices.
    unsafe impl EdgeStream for Path<'_> {
        fn num_vertices(&self) -> u64 {
            self.0.into()
        }

        fn num_edges(&self) -> u64 {
            u64::from(self.0) - 1
        }

        fn block<'a>(
            &'a self,
            range: std::ops::Range<u64>,
            buf: &'a mut Vec<Record>,
        ) -> Result<&'a [Record]> {
            if let Some((run, bytes)) = &self.1 {
                run.hold(bytes.swap(0, Ordering::Relaxed));
            }
            buf.clear();
            buf.extend(range.map(|v| [v as u32, v as u32 + 1]));
            Ok(buf)
        }
    }

    words! {
        /// How vertices follow each other.
        pub enum Order {
            /// From the first on.
            Forwards = "forwards",
            /// From the last on.
            Backwards = "backwards",
        }
    }

    // This is all that a partitioner takes beside its line of the registry.
    parameters! {
        /// Deal the vertices to the parts.
        pub struct Dealing => "dealing", [Vertices, Edges] of;
        /// A ratio.
        balance: Ratio = 1.5;
        /// An order.
        order: Order, only Vertices;
        /// A number.
        weight: Option<NonNegative>;
        /// A flag.
        reads: Flag = true;
    }

    impl Partitioner for Dealing {
        type Parameters = Self;
        type Reads = Arc<Csr>;

        fn check(&self, shape: &Shape) -> Result<()> {
            if shape.n > 0 { Ok(()) } else { Err(Error::parameter("k", "nothing to deal")) }
        }

        fn memory(&self, shape: &Shape, _run: &Run) -> Need {
            Need::new(1000 * shape.n, format!("dealing {} vertices", shape.n))
        }

        fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
            let n = graph.csr.num_vertices();
            let mut parts: Buffer<i32> = Buffer::zeroed(n, "parts")?;
            parts.iter_mut().enumerate().for_each(|(v, part)| {
                let place = if self.order == Order::Forwards { v } else { n - 1 - v };
                *part = (place % self.k as usize) as i32;
            });
            Ok(VertexPartition::new(parts, self.k, Vec::new(), None, graph.csr.graph().clone()).into())
        }
    }

    const DEALING: Entry = Entry::of::<Dealing>();

    fn given(k: u32, of: Of, values: &[(&str, Value)]) -> Given {
        Given {
            k,
            of,
            values: values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        }
    }

    fn refused(given: Given) -> String {
        let run = Run::new(Some(1), Some(1 << 30)).unwrap();
        (DEALING.partition)(given, &Input::new(&Path(4, None)), &run).unwrap_err().to_string()
    }

    #[test]
    fn an_entry_knows_and_runs_a_partitioner() {
        let fields = (DEALING.fields)();
        let known: Vec<_> = fields.iter().map(|field| (field.name, field.kind, &field.default)).collect();
        let word = Value::Text("forwards".into());
        assert_eq!(known[0], ("balance", "ratio", &Value::Number(1.5)));
        assert_eq!(known[1], ("order", "choice", &word));
        assert_eq!(known[2], ("weight", "number", &Value::None));
        assert_eq!(known[3], ("reads", "flag", &Value::Flag(true)));
        assert_eq!((fields[1].words, fields[1].only), (&["forwards", "backwards"][..], Some(Of::Vertices)));
        let run = Run::new(Some(1), Some(1 << 30)).unwrap();
        let backwards = [("order", Value::Text("backwards".into()))];
        for (values, expected) in [(&backwards[..0], [0, 1, 2, 0]), (&backwards[..], [0, 2, 1, 0])] {
            let outcome =
                (DEALING.partition)(given(3, Of::Vertices, values), &Input::new(&Path(4, None)), &run)
                    .unwrap();
            assert_eq!(outcome.partition.vertices().unwrap().assignment[..], expected);
        }
        let need =
            (DEALING.memory)(given(3, Of::Vertices, &[]), &Input::new(&Path(4, None)).shape(), &run).unwrap();
        assert_eq!((need.beside, need.least), (4000, 4000));
    }

    #[test]
    fn what_is_given_is_checked_before_it_is_used() {
        for (k, of, name, value, expected) in [
            (0, Of::Vertices, "reads", Value::Flag(true), "k: 0 is not between 1 and"),
            (2, Of::Vertices, "balance", Value::Number(0.5), "balance: 0.5 is not a ratio"),
            (2, Of::Vertices, "balance", Value::Flag(true), "balance: expected ratio"),
            (2, Of::Vertices, "order", Value::Text("sideways".into()), "order: expected choice"),
            (2, Of::Vertices, "weight", Value::Number(f64::NAN), "weight: NaN. Use a number of at least 0"),
            (2, Of::Vertices, "wieght", Value::None, "dealing has no parameter \"wieght\""),
            (2, Of::Edges, "order", Value::Text("backwards".into()), "order: it belongs to of=\"vertices\""),
        ] {
            let text = refused(given(k, of, &[(name, value)]));
            assert!(text.contains(expected), "{text}");
        }
        let run = Run::new(Some(1), None).unwrap();
        let twice = Given {
            k: 2,
            of: Of::Edges,
            values: HashMap::from([("order".into(), Value::Text("forwards".into()))]),
        };
        assert!(
            (DEALING.partition)(twice, &Input::new(&Path(4, None)), &run).is_ok(),
            "a default belongs to both"
        );
    }

    /// Memory is required before the adjacency is built, and again when that is off the budget.
    #[test]
    fn no_partitioner_can_forget_its_memory() {
        let text = |budget, adjacency: u64| {
            let run = Run::new(Some(1), Some(budget)).unwrap();
            let path = Path(1000, Some((&run, adjacency.into())));
            let made = (DEALING.partition)(given(2, Of::Vertices, &[]), &Input::new(&path), &run);
            (made.map_err(|error| error.to_string()).err(), run.budget())
        };
        let (refusal, left) = text(999_999, 1);
        assert!(refusal.unwrap().contains("dealing 1000 vertices") && left == 999_999, "nothing was built");
        let (refusal, left) = text(2_000_000, 1_500_000);
        assert!(refusal.unwrap().contains("dealing 1000 vertices") && left <= 500_000, "the adjacency was");
        assert_eq!(text(2_000_000, 900_000).0, None);
    }
}
