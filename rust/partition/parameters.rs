//! Parameters of partitioners: typed fields in Rust, data for Python, the command line, the stubs and the
//! docs.
//!
//! [`parameters!`](parameters) declares them once, in the file of the algorithm, each with its docs, its
//! [`Domain`] and its default. That makes a struct, whose fields the algorithm reads, and the list of
//! [`Field`]s that callers see. A caller passes [`Given`] values by name. They are read in one place, which
//! refuses unknown names, other types and values outside the range of a domain. The algorithm checks only
//! whether values go together.
//!
//! A new kind of values is a type that implements [`Domain`]. If only one algorithm has it, it stands in its
//! file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use super::Of;
use crate::base::{Error, Result};
use crate::capacity::{Weights, validate_balance};

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not given, or left to the algorithm.
    None,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(u64),
    /// Any number.
    Number(f64),
    /// A word.
    Text(Cow<'static, str>),
    /// A number for each vertex.
    PerVertex(Vec<u32>),
    /// Several values.
    List(Vec<Value>),
}

/// The values that a parameter may have.
pub trait Domain {
    /// The type of a value in Rust.
    type Value;
    /// The name by which Python checks and documents the values.
    const KIND: &'static str;
    /// Words that are valid.
    const WORDS: &'static [&'static str] = &[];
    /// Bounds of a whole number, both included.
    const RANGE: Option<(u64, u64)> = None;

    /// The value in Rust, unless it is of another type.
    fn read(value: Value) -> Option<Self::Value>;

    /// The value for callers. Callers see only defaults, and most domains have the default `None`.
    fn shown(_: &Self::Value) -> Value {
        Value::None
    }

    /// Refuses a value outside the range. Where a type has no such values there is nothing to do.
    fn check(_name: &'static str, _: &Self::Value) -> Result<()> {
        Ok(())
    }
}

/// A parameter of a partitioner.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name everywhere.
    pub name: &'static str,
    /// The description for users. Each line begins with a blank.
    pub doc: &'static str,
    /// See [`Domain::KIND`].
    pub kind: &'static str,
    /// See [`Domain::WORDS`].
    pub words: &'static [&'static str],
    /// See [`Domain::RANGE`].
    pub range: Option<(u64, u64)>,
    /// The value that is taken if none is given.
    pub default: Value,
    /// The only value of `of` it belongs to, if the partitioner has both.
    pub only: Option<Of>,
}

/// The arguments of a call.
#[derive(Debug)]
pub struct Given {
    /// Number of parts.
    pub k: u32,
    /// Whether vertices or records get parts, if the partitioner can do both.
    pub of: Of,
    /// Values by name. All other fields have their defaults.
    pub values: HashMap<String, Value>,
}

impl Given {
    /// The parameters. Refuses unknown names, values of another type or out of range, and values that belong
    /// to the other `of` than the one asked for, unless they are the defaults.
    pub fn read<P: Parameters>(mut self) -> Result<P> {
        for Field { name, only, default, .. } in P::fields() {
            if let Some(of) = only.filter(|&only| only != self.of)
                && self.values.remove(name).is_some_and(|value| value != default)
            {
                return Err(Error::parameter(name, format!("it belongs to of=\"{}\"", of.name())));
            }
        }
        let parameters = P::take(&mut self)?;
        if let Some(name) = self.values.keys().min() {
            return Err(Error::parameter("algorithm", format!("{} has no parameter {name:?}", P::NAME)));
        }
        parameters.ranges()?;
        Ok(parameters)
    }

    /// Sets a field, if a value is given.
    pub fn take<D: Domain>(&mut self, name: &'static str, field: &mut D::Value) -> Result<()> {
        if let Some(value) = self.values.remove(name) {
            let read = D::read(value);
            *field = read.ok_or_else(|| Error::parameter(name, format!("expected {}", D::KIND)))?;
        }
        Ok(())
    }
}

/// Whether each parameter is in its range.
pub trait Ranges {
    /// Refuses the first that is not.
    fn ranges(&self) -> Result<()>;
}

/// The parameters of a partitioner and its docs for users, as [`parameters!`](parameters) declares them.
pub trait Parameters: Ranges + Sized {
    /// Its name everywhere.
    const NAME: &'static str;
    /// Whether it partitions vertices or records. If both, its parameter `of` decides.
    const OF: &'static [Of];
    /// Its docs for users, without those of its parameters.
    const DOC: &'static str;
    /// Whether weights of records count. If not, every record counts once, and users are told so.
    const READS_WEIGHTS: bool;

    /// Its parameters, without `k` and `of`.
    fn fields() -> Vec<Field>;

    /// Takes the values of its fields from those given.
    fn take(given: &mut Given) -> Result<Self>;
}

/// Declares the parameters of a partitioner, its name, what it partitions, whether it `reads weights` of
/// records, and its docs for users.
///
/// The struct has `k`, and `of` where this follows what is partitioned. A field without a default has that of
/// its type: none, the first word, 0. `only Vertices` says that a field has no meaning for records.
///
/// The docs are those of the Python function: a summary, a description, then sections in numpydoc's form. The
/// sections on parameters, result and common errors are generated.
macro_rules! parameters {
    (
        $(#[doc = $doc:literal])*
        pub struct $type:ident => $name:literal, [$first:ident $(, $other:ident)?] $($of:ident)? $(, reads $weights:ident)?;
        $($(#[doc = $about:literal])* $field:ident: $domain:ty $(= $default:expr)? $(, only $only:ident)?;)*
    ) => {
        #[doc = concat!("Parameters of `", $name, "`.")]
        #[derive(Debug, Clone)]
        pub struct $type {
            /// Number of parts.
            pub k: u32,
            $(
                /// Whether vertices or records get parts.
                pub $of: $crate::partition::Of,
            )?
            $(
                #[doc = concat!($($about, "\n"),*)]
                pub $field: <$domain as $crate::partition::parameters::Domain>::Value,
            )*
        }

        impl $type {
            /// The defaults for `k` parts.
            pub fn new(k: u32) -> Self {
                Self {
                    k,
                    $($of: $crate::partition::Of::$first,)?
                    $($field: $crate::partition::parameters::parameters!(@default $($default)?),)*
                }
            }
        }

        impl $crate::partition::parameters::Ranges for $type {
            fn ranges(&self) -> $crate::base::Result<()> {
                use $crate::partition::parameters::Domain;
                $crate::capacity::validate_parts(self.k)?;
                $(<$domain as Domain>::check(stringify!($field), &self.$field)?;)*
                Ok(())
            }
        }

        impl $crate::partition::Parameters for $type {
            const NAME: &'static str = $name;
            const OF: &'static [$crate::partition::Of] =
                &[$crate::partition::Of::$first $(, $crate::partition::Of::$other)?];
            const DOC: &'static str = concat!($($doc, "\n"),*);
            const READS_WEIGHTS: bool = !stringify!($($weights)?).is_empty();

            fn fields() -> Vec<$crate::partition::parameters::Field> {
                use $crate::partition::parameters::{Domain, Field};
                let defaults = Self::new(1);
                vec![$(Field {
                    name: stringify!($field),
                    doc: concat!($($about, "\n"),*),
                    kind: <$domain as Domain>::KIND,
                    words: <$domain as Domain>::WORDS,
                    range: <$domain as Domain>::RANGE,
                    default: <$domain as Domain>::shown(&defaults.$field),
                    only: $crate::partition::parameters::parameters!(@only $($only)?),
                }),*]
            }

            fn take(given: &mut $crate::partition::parameters::Given) -> $crate::base::Result<Self> {
                let mut taken = Self::new(given.k);
                $(taken.$of = given.of;)?
                $(given.take::<$domain>(stringify!($field), &mut taken.$field)?;)*
                Ok(taken)
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@only) => { None };
    (@only $of:ident) => { Some($crate::partition::Of::$of) };
}
pub(crate) use parameters;

/// Declares an enum whose values users name by words. The first is the default.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $(#[$about:meta])* $first:ident = $word:literal,
            $($(#[$others:meta])* $other:ident = $text:literal),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $type {
            $(#[$about])* #[default] $first,
            $($(#[$others])* $other),*
        }

        impl $type {
            /// Its word.
            pub fn name(self) -> &'static str {
                match self {
                    Self::$first => $word,
                    $(Self::$other => $text),*
                }
            }

            /// The one of this word.
            pub fn named(word: &str) -> Option<Self> {
                [Self::$first $(, Self::$other)*].into_iter().find(|each| each.name() == word)
            }
        }

        impl $crate::partition::parameters::Domain for $type {
            type Value = Self;
            const KIND: &'static str = "choice";
            const WORDS: &'static [&'static str] = &[$word $(, $text)*];

            fn read(value: $crate::partition::Value) -> Option<Self> {
                match value {
                    $crate::partition::Value::Text(text) => Self::named(&text),
                    _ => None,
                }
            }

            fn shown(value: &Self) -> $crate::partition::Value {
                $crate::partition::Value::Text(value.name().into())
            }
        }
    };
}
pub(crate) use words;

/// A value, or none.
impl<D: Domain> Domain for Option<D> {
    type Value = Option<D::Value>;
    const KIND: &'static str = D::KIND;
    const WORDS: &'static [&'static str] = D::WORDS;
    const RANGE: Option<(u64, u64)> = D::RANGE;

    fn read(value: Value) -> Option<Self::Value> {
        if value == Value::None { Some(None) } else { D::read(value).map(Some) }
    }

    fn shown(value: &Self::Value) -> Value {
        value.as_ref().map_or(Value::None, D::shown)
    }

    fn check(name: &'static str, value: &Self::Value) -> Result<()> {
        value.as_ref().map_or(Ok(()), |value| D::check(name, value))
    }
}

/// A whole number between two bounds, both included.
pub enum Whole<const LOW: u32, const HIGH: u32> {}

impl<const LOW: u32, const HIGH: u32> Domain for Whole<LOW, HIGH> {
    type Value = u32;
    const KIND: &'static str = "integer";
    const RANGE: Option<(u64, u64)> = Some((LOW as u64, HIGH as u64));

    fn read(value: Value) -> Option<u32> {
        if let Value::Integer(integer) = value { integer.try_into().ok() } else { None }
    }

    fn shown(&value: &u32) -> Value {
        Value::Integer(value.into())
    }

    fn check(name: &'static str, value: &u32) -> Result<()> {
        if (LOW..=HIGH).contains(value) {
            return Ok(());
        }
        Err(Error::parameter(name, format!("{value}. Use {LOW} to {HIGH}")))
    }
}

/// Number of passes over a graph.
pub(crate) type Passes = Whole<1, { 1 << 31 }>;

/// Declares domains: the type in Rust, the kind, and which values are read how. `shown` and `check` are there
/// if there is a default to be shown, and something to be refused.
macro_rules! domains {
    ($(
        $(#[$about:meta])*
        enum $domain:ident: $type:ty, $kind:literal $(in $range:expr)?;
        $($pattern:pat => $read:expr),+;
        $(shown $shown:expr;)?
        $(check $check:expr;)?
    )*) => {$(
        $(#[$about])*
        pub enum $domain {}

        impl Domain for $domain {
            type Value = $type;
            const KIND: &'static str = $kind;
            $(const RANGE: Option<(u64, u64)> = Some($range);)?

            fn read(value: Value) -> Option<$type> {
                match value {
                    $($pattern => $read,)+
                    #[allow(unreachable_patterns, reason = "the last arm of some domains reads all")]
                    _ => None,
                }
            }

            $(fn shown(value: &$type) -> Value {
                $shown(*value)
            })?

            $(fn check(name: &'static str, value: &$type) -> Result<()> {
                $check(name, value)
            })?
        }
    )*};
}

domains! {
    /// Yes or no.
    enum Flag: bool, "flag";
    Value::Flag(flag) => Some(flag);
    shown Value::Flag;

    /// Any number. The algorithm checks its range.
    enum Number: f64, "number";
    Value::Number(number) => Some(number), Value::Integer(integer) => Some(integer as f64);
    shown Value::Number;

    /// A finite number of at least 0.
    enum NonNegative: f64, "number";
    number => Number::read(number);
    shown Value::Number;
    check validate_non_negative;

    /// A ratio of at least 1.
    enum Ratio: f64, "ratio";
    number => Number::read(number);
    shown Value::Number;
    check |name, &ratio: &f64| validate_balance(name, ratio);

    /// A seed.
    enum Seed: u64, "seed";
    Value::Integer(integer) => Some(integer);
    shown Value::Integer;

    /// Number of vertices or records that are decided against the same state.
    enum Batch: NonZeroU64, "integer" in (1, 1 << 63);
    Value::Integer(integer) => NonZeroU64::new(integer);

    /// Whole numbers of at least 1. The largest of 32 bits stands for what is too large for any parameter.
    enum Integers: Vec<u32>, "integers";
    Value::List(items) => items.into_iter().map(|item| Seed::read(item).map(capped)).collect();

    /// A weight for each vertex: integers or a mask.
    enum Weighing: Weights, "weights";
    Value::PerVertex(weights) => Some(Weights::new(weights));
    check |name, weights: &Weights| weights.check(name);

    /// No weights, one for each vertex, or several.
    enum Weighings: Vec<Weights>, "several_weights";
    Value::None => Some(Vec::new()),
    Value::List(arrays) => arrays.into_iter().map(Weighing::read).collect(),
    one => Weighing::read(one).map(|weights| vec![weights]);
    check |name, several: &Vec<Weights>| several.iter().try_for_each(|weights| weights.check(name));

    /// How large each part is to be, relative to the others.
    enum Sizes: Vec<f64>, "numbers";
    Value::List(items) => items.into_iter().map(Number::read).collect();

    /// The part that each vertex must be in, or [`NONE`](crate::base::NONE).
    enum Fixed: Arc<Vec<u32>>, "fixed";
    Value::PerVertex(parts) => Some(Arc::new(parts));

    /// Training, validation and test vertices: for each vertex the sum of 1, 2 and 4 for the sets that it is
    /// in.
    enum Splits: Vec<u32>, "splits";
    Value::PerVertex(splits) => Some(splits);

    /// The degree of each vertex.
    enum Degrees: Vec<u32>, "degrees";
    Value::PerVertex(degrees) => Some(degrees);

    /// A partition of the vertices, to begin with. There is none where memory is estimated.
    enum Start: Vec<u32>, "partition";
    Value::PerVertex(parts) => Some(parts);

    /// The path of a folder. It does not change the result.
    enum Folder: PathBuf, "folder";
    Value::Text(text) => Some(text.into_owned().into());
}

fn capped(number: u64) -> u32 {
    number.min(u32::MAX.into()) as u32
}

fn validate_non_negative(name: &'static str, value: &f64) -> Result<()> {
    if value.is_finite() && *value >= 0.0 {
        return Ok(());
    }
    Err(Error::parameter(name, format!("{value}. Use a number of at least 0")))
}
