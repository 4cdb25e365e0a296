//! Every error of fastpart, with the path, offset or parameter, and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything that can be refused.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal or a failure. The text names what, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a file operation.
    #[error("{}: {source}", shown(path))]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The path names something that is not a regular file.
    #[error("{}: not a regular file ({kind}). Copy the edges into a file first", shown(path))]
    NotARegularFile {
        /// The path given.
        path: PathBuf,
        /// The kind of file that was found.
        kind: &'static str,
    },

    /// The bytes are not the graph they were taken for.
    #[error("{origin}: {what}")]
    Format {
        /// The file, or "array".
        origin: String,
        /// The defect, its location and the remedy.
        what: String,
    },

    /// A text input is wrong at one place.
    #[error("{}: line {line}, column {column}: {what}", shown(path))]
    Text {
        /// The file read.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column in bytes, from 1.
        column: u64,
        /// The defect.
        what: String,
    },

    /// A text input has a name where its first lines have numbers, and the caller may read it again as names.
    #[error("{}: line {line}, column {column}: {what}", shown(path))]
    Name {
        /// The file read.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column in bytes, from 1.
        column: u64,
        /// The defect.
        what: String,
    },

    /// An id lies outside `0..n`.
    #[error("{origin}: record {record} holds the id {id}, outside 0..{n}. {remedy}")]
    IdOutOfRange {
        /// The file, or "array".
        origin: String,
        /// Record number, from 0.
        record: u64,
        /// The id, as written.
        id: i128,
        /// Number of vertices.
        n: u64,
        /// The remedy.
        remedy: String,
    },

    /// A parameter has an invalid value.
    #[error("{name}: {what}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// The reason, and the valid values.
        what: String,
    },

    /// The input is too large for the types or for the requested caps.
    #[error("{0}")]
    Capacity(String),

    /// The work would need more memory than allowed. Nothing was allocated.
    #[error(
        "{what} needs {} of memory, but the budget is {}. Raise memory_limit or free memory",
        bytes(*.needed), bytes(*.budget)
    )]
    MemoryBudget {
        /// The work that needs the memory.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        budget: u64,
    },

    /// The operating system refused memory that the budget allowed.
    #[error(
        "{what}: the operating system refused {} of memory. Raise the limit (`ulimit -v`), use fewer threads or free memory",
        bytes(*.needed)
    )]
    MemoryRefused {
        /// The purpose of the memory.
        what: String,
        /// Bytes requested.
        needed: u64,
    },

    /// The edge file changed while it was read.
    #[error(
        "{}: the file changed while it was being read ({what}). Nothing was written. \
         Run again when the file is complete",
        shown(path)
    )]
    FileChanged {
        /// The edge file.
        path: PathBuf,
        /// Size or modification time.
        what: &'static str,
    },

    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,

    /// A defect of fastpart itself.
    #[error("internal error: {0}. Please report it with the call that led here")]
    Internal(String),
}

impl Error {
    /// An I/O error with the path it belongs to.
    pub fn io(path: &Path, source: io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), source }
    }

    /// A refusal of a parameter's value.
    pub fn parameter(name: &'static str, what: impl Into<String>) -> Error {
        Error::Parameter { name, what: what.into() }
    }

    /// A refusal of a file's or an array's content.
    pub fn format(origin: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Format { origin: origin.into(), what: what.into() }
    }
}

/// The item of `known` called `name`. `what` names their kind in the error.
pub fn named<T: Copy>(parameter: &'static str, what: &str, name: &str, known: &[(&str, T)]) -> Result<T> {
    let item = known.iter().find(|(known, _)| *known == name).map(|&(_, item)| item);
    item.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|&(known, _)| known).collect();
        Error::parameter(parameter, format!("unknown {what} {name:?}. Known are {}", names.join(", ")))
    })
}

/// A path on one line: bytes that are not text are shown lossily, and control characters are escaped.
pub fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// A byte count for people: `1.5 GB`.
pub(crate) fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if value < 1000.0 || unit == "TB" {
            let digits = if unit == "bytes" { 0 } else { 1 };
            return format!("{value:.digits$} {unit}");
        }
        value /= 1000.0;
    }
    unreachable!("the loop returns at its last unit")
}
