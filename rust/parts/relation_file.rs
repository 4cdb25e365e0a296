//! `relations.npy`: the number of the relation of each in-edge.

use std::path::Path;

use crate::base::npy::{ArrayWriter, Start};
use crate::base::{Result, Run};
use crate::edges::Relations;

/// The file, while it is written beside the ids of the edges.
pub(crate) struct RelationFile<'a> {
    pub relations: &'a Relations,
    numbers: Numbers<'a>,
}

/// Numbers of one byte, or of two.
enum Numbers<'a> {
    Narrow(ArrayWriter<'a, u8>),
    Wide(ArrayWriter<'a, u16>),
}

impl<'a> RelationFile<'a> {
    /// Opens the file in the folder of a part.
    pub(crate) fn open(folder: &Path, begin: Start, relations: &'a Relations, run: &'a Run) -> Result<Self> {
        const NAME: &str = "relations.npy";
        let numbers = if relations.narrow() {
            Numbers::Narrow(ArrayWriter::open(folder, NAME, begin, run)?)
        } else {
            Numbers::Wide(ArrayWriter::open(folder, NAME, begin, run)?)
        };
        Ok(Self { relations, numbers })
    }

    /// Appends the numbers of edges with these ids.
    pub(crate) fn extend(&mut self, ids: &[i64]) -> Result<()> {
        let mut numbers = ids.iter().map(|&id| self.relations.number(id as u64));
        match &mut self.numbers {
            Numbers::Narrow(file) => numbers.try_for_each(|number| file.push(number as u8)),
            Numbers::Wide(file) => numbers.try_for_each(|number| file.push(number)),
        }
    }

    /// Finishes the file.
    pub(crate) fn finish(self) -> Result<()> {
        match self.numbers {
            Numbers::Narrow(file) => file.finish(),
            Numbers::Wide(file) => file.finish(),
        }
        .map(drop)
    }
}
