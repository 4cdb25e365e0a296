//! From the nodes of a level to their in-edges, relation by relation.

use std::ops::Range;

use super::types::Types;
use crate::base::Result;
use crate::sampling::ids::IdTable;
use crate::sampling::part::Part;
use crate::sampling::picker::{Picked, Picker};
use crate::sampling::picks::{ENOUGH, Picks, Places};
use crate::sampling::sample::{EdgeColumns, Sample};
use crate::sampling::targets::{Target, Targets};
use crate::sampling::topology::Topology;

/// Lists up to this length are brought into the cache before they are picked from.
const SHORT: usize = 64;

/// The pickers of all relations.
pub(super) trait RelationPicker {
    /// Whether in-edges of a relation are wanted.
    fn wants(&self, relation: u16) -> bool;

    /// The picker of a relation.
    fn of(&mut self, relation: u16) -> impl Picker;
}

/// How in-edges are appended to a batch.
pub(super) struct TypedExpansion<'a> {
    /// The parts of the graph.
    pub topology: &'a Topology,
    /// Their relations.
    pub types: &'a Types,
    /// Where sources are in the batch.
    pub places: Places,
    /// Whether ids of in-edges are wanted.
    pub edge_ids: bool,
    /// Ends the work by an error. Asked now and then.
    pub check: &'a dyn Fn() -> Result<()>,
}

/// The tables that a batch is made with.
pub(super) struct Tables<'a> {
    pub ids: &'a mut IdTable,
    pub picks: &'a mut Picks,
    /// Relation of each in-edge of the batch.
    pub relations: &'a mut Vec<u16>,
}

impl TypedExpansion<'_> {
    /// Appends the in-edges of the nodes `level` that `pickers` pick.
    pub(super) fn expand(
        &self,
        level: Range<usize>,
        tables: &mut Tables<'_>,
        into: &mut Sample,
        pickers: &mut impl RelationPicker,
    ) -> Result<()> {
        let (mut targets, mut next) = (Targets::none(), Targets::none());
        let mut done = level.start;
        next.locate(self.topology, &into.rows[done..level.end]);
        while done < level.end {
            std::mem::swap(&mut targets, &mut next);
            done += targets.len();
            next.locate(self.topology, &into.rows[done..level.end]);
            targets.look_up(self.topology, SHORT, &mut into.ids)?;
            for (target, _) in targets.iter(self.topology) {
                let relations = &self.types.relations[target.part as usize];
                relations.prefetch(target.first);
                relations.prefetch(target.first + target.degree.saturating_sub(1));
            }
            for (target, part) in targets.iter(self.topology) {
                self.pick(target, part, tables, into, pickers)?;
                if tables.picks.len() >= ENOUGH {
                    self.take(tables, into)?;
                }
            }
            (self.check)()?;
        }
        self.take(tables, into)
    }

    /// Picks in-edges of a target, run by run.
    #[inline(always)]
    fn pick(
        &self,
        target: &Target,
        part: &Part,
        tables: &mut Tables<'_>,
        into: &mut Sample,
        pickers: &mut impl RelationPicker,
    ) -> Result<()> {
        let (mut first, end) = (target.first, target.first + target.degree);
        let (mut begin, mut before) = (tables.picks.len(), None);
        while first < end {
            let (relation, run_end) = self.types.next_run(target.part as usize, first, end, before)?;
            let run = Target { first, degree: run_end - first, ..*target };
            (first, before) = (first + run.degree, Some(relation));
            if !pickers.wants(relation) {
                continue;
            }
            let known = tables.picks.len();
            let picked = match pickers.of(relation).pick(&run, part, tables.picks)? {
                Picked::Some => tables.picks.len() - known,
                Picked::All if run.degree <= ENOUGH => {
                    tables.picks.push_all(run.first..first);
                    run.degree
                }
                Picked::All => {
                    tables.picks.close(target.part, begin, false);
                    self.take_all(target.part, run.first..first, tables, into)?;
                    begin = tables.picks.len();
                    run.degree
                }
            };
            tables.relations.resize(tables.relations.len() + picked, relation);
        }
        tables.picks.close(target.part, begin, true);
        Ok(())
    }

    /// Picks many in-edges, and looks them up in between.
    #[cold]
    fn take_all(
        &self,
        part: u32,
        mut edges: Range<usize>,
        tables: &mut Tables<'_>,
        into: &mut Sample,
    ) -> Result<()> {
        while !edges.is_empty() {
            let until = edges.end.min(edges.start + ENOUGH);
            tables.picks.extend(part, edges.start..until, false);
            self.take(tables, into)?;
            (self.check)()?;
            edges.start = until;
        }
        Ok(())
    }

    fn take(&self, tables: &mut Tables<'_>, into: &mut Sample) -> Result<()> {
        let edges = EdgeColumns { ids: self.edge_ids, rows: false };
        tables.picks.take(self.topology, tables.ids, self.places, edges, into)
    }
}
