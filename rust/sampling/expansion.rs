//! From the nodes of a level to their in-edges.

use std::ops::Range;

use super::ids::IdTable;
use super::picker::{Picked, Picker};
use super::picks::{ENOUGH, Picks, Places};
use super::sample::{EdgeColumns, Sample};
use super::targets::{Target, Targets};
use super::topology::Topology;
use crate::base::{Error, Result};

/// Appends rows to the nodes of an empty batch. A row may occur once.
pub(crate) fn add_distinct(
    name: &'static str,
    rows: &[u32],
    topology: &Topology,
    ids: &mut IdTable,
    into: &mut Sample,
) -> Result<()> {
    topology.check_rows(name, rows)?;
    rows.iter().for_each(|&row| ids.prefetch(row));
    if let Some(&row) = rows.iter().find(|&&row| !ids.place(row).1) {
        let part = &topology.parts()[topology.part_of(row)];
        let vertex = part.id(row - part.start)?;
        return Err(Error::parameter(name, format!("vertex {vertex} occurs twice in a batch. Pass it once")));
    }
    into.rows.extend_from_slice(rows);
    Ok(())
}

/// How in-edges are appended to a batch.
pub(crate) struct Expansion<'a> {
    /// The parts of the graph.
    pub topology: &'a Topology,
    /// The place of each source in the batch.
    pub places: Places,
    /// The columns of in-edges that are wanted.
    pub edges: EdgeColumns,
    /// Ends the work by an error. Asked now and then.
    pub check: &'a dyn Fn() -> Result<()>,
}

impl Expansion<'_> {
    /// Appends the in-edges of the nodes `level` that `picker` picks.
    pub(crate) fn expand(
        &self,
        level: Range<usize>,
        (ids, picks): (&mut IdTable, &mut Picks),
        into: &mut Sample,
        mut picker: impl Picker,
    ) -> Result<()> {
        let (mut targets, mut next) = (Targets::none(), Targets::none());
        let mut done = level.start;
        next.locate(self.topology, &into.rows[done..level.end]);
        while done < level.end {
            std::mem::swap(&mut targets, &mut next);
            done += targets.len();
            next.locate(self.topology, &into.rows[done..level.end]);
            targets.look_up(self.topology, picker.short(), &mut into.ids)?;
            targets.iter(self.topology).for_each(|(target, _)| picker.announce(target));
            for (target, part) in targets.iter(self.topology) {
                picker.prepare(target, part);
            }
            for (target, part) in targets.iter(self.topology) {
                let begin = picks.len();
                match picker.pick(target, part, picks)? {
                    Picked::Some => picks.end(target.part, begin),
                    Picked::All => self.take_all(target, ids, picks, into)?,
                }
                if picks.len() >= ENOUGH {
                    self.take(ids, picks, into)?;
                }
            }
            (self.check)()?;
        }
        self.take(ids, picks, into)
    }

    /// Picks all in-edges, and looks them up in between if they are many.
    #[inline(always)]
    fn take_all(
        &self,
        target: &Target,
        ids: &mut IdTable,
        picks: &mut Picks,
        into: &mut Sample,
    ) -> Result<()> {
        let end = target.first + target.degree;
        let mut first = target.first;
        while end - first > ENOUGH {
            picks.extend(target.part, first..first + ENOUGH, false);
            self.take(ids, picks, into)?;
            (self.check)()?;
            first += ENOUGH;
        }
        picks.extend(target.part, first..end, true);
        Ok(())
    }

    fn take(&self, ids: &mut IdTable, picks: &mut Picks, into: &mut Sample) -> Result<()> {
        picks.take(self.topology, ids, self.places, self.edges, into)
    }
}
