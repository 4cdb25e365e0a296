//! Parameters of partitioners as data, for Python, the command line, the stubs and the docs.
//!
//! [`describe!`](super::contract::describe) declares them once, in the file of the algorithm, with their docs and
//! defaults. A caller gets a list of [`Field`]s and passes [`Values`]. The algorithm takes its parameters from
//! these by name. Types and ranges are checked where values come from. The algorithm checks whether they go
//! together.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Of;
use crate::base::{Error, Result};
use crate::capacity::BalanceOn;

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

/// What values a parameter has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A ratio of at least 1.
    Ratio,
    /// Any number. The algorithm checks its range.
    Number,
    /// A whole number between two bounds, both included.
    Integer(u64, u64),
    /// Yes or no.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Whole numbers of at least 1.
    Integers,
    /// Several numbers. The algorithm checks how many, and their range.
    Numbers,
    /// A seed: any u64. None is 0.
    Seed,
    /// A weight for each vertex: integers or a mask.
    Weights,
    /// The same, or a list of them.
    SeveralWeights,
    /// Training, validation and test vertices: of each vertex the sum of 1, 2 and 4, if it is in these.
    Splits,
    /// The degree of each vertex.
    Degrees,
    /// A partition of the vertices, to begin with.
    Partition,
    /// A share above 0 and at most 1, or a whole number of records.
    Chunk,
    /// A number above 0, or this word.
    NumberOr(&'static str),
    /// The path of a folder. It does not change the result.
    Folder,
}

/// A parameter of a partitioner.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name everywhere.
    pub name: &'static str,
    /// What it means, for users. Each line begins with a blank.
    pub doc: &'static str,
    /// What values it has.
    pub kind: Kind,
    /// The value that is taken if none is given.
    pub default: Value,
    /// The only value of `of` it belongs to, if the partitioner has both.
    pub only: Option<Of>,
}

/// Kind, default and `of` of a field. See the functions that make one.
pub type Spec = (Kind, Value, Option<Of>);

/// A ratio of at least 1.
pub fn ratio(default: f64) -> Spec {
    (Kind::Ratio, Value::Number(default), None)
}

/// A ratio of at least 1, or none.
pub fn optional_ratio() -> Spec {
    (Kind::Ratio, Value::None, None)
}

/// Any number.
pub fn number(default: f64) -> Spec {
    (Kind::Number, Value::Number(default), None)
}

/// Any number, or none.
pub fn optional_number() -> Spec {
    (Kind::Number, Value::None, None)
}

/// A whole number from `low` to `high`, or none.
pub fn optional_integer(low: u64, high: u64) -> Spec {
    (Kind::Integer(low, high), Value::None, None)
}

/// A whole number from `low` to `high`.
pub fn integer(default: u64, low: u64, high: u64) -> Spec {
    (Kind::Integer(low, high), Value::Integer(default), None)
}

/// The size of a batch, 1 or more, or none.
pub fn batch() -> Spec {
    optional_integer(1, 1 << 63)
}

/// Whole numbers of at least 1, or none.
pub fn integers() -> Spec {
    (Kind::Integers, Value::None, None)
}

/// Several numbers.
pub fn numbers(default: &[f64]) -> Spec {
    (Kind::Numbers, Value::List(default.iter().copied().map(Value::Number).collect()), None)
}

/// Yes or no.
pub fn flag(default: bool) -> Spec {
    (Kind::Flag, Value::Flag(default), None)
}

/// One of `words`, by default the first.
pub fn choice(words: &'static [&'static str]) -> Spec {
    (Kind::Choice(words), Value::Text(Cow::Borrowed(words[0])), None)
}

/// One of `words`, or none.
pub fn optional_choice(words: &'static [&'static str]) -> Spec {
    (Kind::Choice(words), Value::None, None)
}

/// A seed.
pub fn seed() -> Spec {
    (Kind::Seed, Value::Integer(0), None)
}

/// Weights of the vertices, or none.
pub fn weights() -> Spec {
    (Kind::Weights, Value::None, None)
}

/// Weights of the vertices, one or several for each, or none.
pub fn several_weights() -> Spec {
    (Kind::SeveralWeights, Value::None, None)
}

/// Training, validation and test vertices. They have no default, but there is none where memory is estimated.
pub fn splits() -> Spec {
    (Kind::Splits, Value::None, None)
}

/// Degrees of the vertices, or none.
pub fn degrees() -> Spec {
    (Kind::Degrees, Value::None, None)
}

/// A partition of the vertices.
pub fn partition() -> Spec {
    (Kind::Partition, Value::None, None)
}

/// A share of the records, or a number of them.
pub fn chunk(default: f64) -> Spec {
    (Kind::Chunk, Value::Number(default), None)
}

/// A number above 0, or `word`.
pub fn number_or(default: f64, word: &'static str) -> Spec {
    (Kind::NumberOr(word), Value::Number(default), None)
}

/// A folder, or none.
pub fn folder() -> Spec {
    (Kind::Folder, Value::None, None)
}

/// The same for one value of `of` only.
pub fn only(of: Of, (kind, default, _): Spec) -> Spec {
    (kind, default, Some(of))
}

/// What a call gives a partitioner: parts, and a value for each of its fields.
#[derive(Debug, Default)]
pub struct Values {
    /// Number of parts.
    pub k: u32,
    /// Whether vertices or records get parts, if the partitioner can do both.
    pub of: Option<Of>,
    given: HashMap<String, Value>,
}

impl Values {
    /// `k` parts, and the defaults of `fields`.
    pub fn new(k: u32, of: Of, fields: &[Field]) -> Values {
        let given = fields.iter().map(|field| (field.name.to_owned(), field.default.clone())).collect();
        Values { k, of: Some(of), given }
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: Value) {
        self.given.insert(name.to_owned(), value);
    }

    fn get(&self, name: &str) -> &Value {
        self.given.get(name).unwrap_or(&Value::None)
    }

    /// The number called `name`. NaN if there is none, which every algorithm refuses.
    pub fn number(&self, name: &str) -> f64 {
        self.ratio(name).unwrap_or(f64::NAN)
    }

    /// The number called `name`, if there is one.
    pub fn ratio(&self, name: &str) -> Option<f64> {
        match *self.get(name) {
            Value::Number(number) => Some(number),
            Value::Integer(integer) => Some(integer as f64),
            _ => None,
        }
    }

    /// The whole number called `name`, if there is one.
    pub fn integer(&self, name: &str) -> Option<u64> {
        if let Value::Integer(integer) = *self.get(name) { Some(integer) } else { None }
    }

    /// A whole number of 32 bits. 0 if there is none.
    pub fn small(&self, name: &str) -> u32 {
        self.integer(name).and_then(|integer| u32::try_from(integer).ok()).unwrap_or(0)
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.integer("seed").unwrap_or(0)
    }

    /// Whether `name` is set.
    pub fn flag(&self, name: &str) -> bool {
        *self.get(name) == Value::Flag(true)
    }

    /// Whether `name` is `word`.
    pub fn is(&self, name: &str, word: &str) -> bool {
        matches!(self.get(name), Value::Text(text) if text == word)
    }

    /// The text called `name`, if there is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        if let Value::Text(text) = self.get(name) { Some(text) } else { None }
    }

    /// Takes the numbers per vertex called `name`.
    pub fn take_per_vertex(&mut self, name: &str) -> Option<Vec<u32>> {
        match self.given.remove(name) {
            Some(Value::PerVertex(numbers)) => Some(numbers),
            _ => None,
        }
    }

    /// Takes the numbers called `name`.
    pub fn take_numbers(&mut self, name: &str) -> Option<Vec<f64>> {
        let Some(Value::List(values)) = self.given.remove(name) else { return None };
        let number = |value: Value| match value {
            Value::Number(number) => Some(number),
            _ => None,
        };
        values.into_iter().map(number).collect()
    }

    /// Takes the whole numbers called `name`.
    pub fn take_integers(&mut self, name: &str) -> Option<Vec<u32>> {
        let Some(Value::List(values)) = self.given.remove(name) else { return None };
        let number = |value: Value| match value {
            // The largest stands for what is too large for any parameter.
            Value::Integer(number) => Some(number.min(u32::MAX.into()) as u32),
            _ => None,
        };
        values.into_iter().map(number).collect()
    }

    /// Takes the weights `balance_on`, shared as `balance_on_ratio` says.
    pub fn take_balance_on(&mut self) -> Result<Option<BalanceOn>> {
        let ratio = self.number("balance_on_ratio");
        self.take_per_vertex("balance_on").map(|weights| BalanceOn::new(weights, ratio)).transpose()
    }

    /// The same where `balance_on` may be a list.
    pub fn take_several_balance_on(&mut self) -> Result<Vec<BalanceOn>> {
        let ratio = self.number("balance_on_ratio");
        let arrays = match self.given.remove("balance_on") {
            Some(Value::List(arrays)) => arrays,
            one => Vec::from_iter(one),
        };
        let arrays = arrays.into_iter().filter_map(|array| match array {
            Value::PerVertex(weights) => Some(BalanceOn::new(weights, ratio)),
            _ => None,
        });
        arrays.collect()
    }

    /// Refuses values that belong to the other `of` than the one asked for, unless they are the defaults.
    pub fn refuse_other_of(&self, of: Of, fields: &[Field]) -> Result<()> {
        let foreign = |field: &&Field| field.only.is_some_and(|only| only != of);
        match fields.iter().filter(foreign).find(|field| *self.get(field.name) != field.default) {
            Some(field) => {
                let of = field.only.unwrap_or(of).name();
                Err(Error::parameter(field.name, format!("it belongs to of=\"{of}\"")))
            }
            None => Ok(()),
        }
    }
}
