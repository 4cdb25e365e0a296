//! From the nodes of a level to their in-edges.

use std::ops::Range;

use super::node_places::IdTable;
use super::picked_edges::{ENOUGH, Picks, Places};
use super::relation_runs::{Asked, Runs};
use super::sample::{EdgeColumns, Sample};
use super::targets::{Target, Targets};
use crate::base::Result;
use crate::sampling::topology::{Part, Topology};

/// Lists of relations up to this length are brought into the cache before they are picked from.
const SHORT: usize = 64;

/// Picks in-edges of one list after the other.
pub(crate) trait Picker {
    /// Lists up to this length are brought into the cache before they are picked from.
    fn short(&self, _asked: Asked) -> usize {
        usize::MAX
    }

    /// Brings into the cache what [`Self::prepare`] reads for a list that comes soon.
    #[inline(always)]
    fn announce(&self, _list: &Target) {}

    /// Brings into the cache what [`Self::pick`] reads for a list that comes soon.
    #[inline(always)]
    fn prepare(&self, _asked: Asked, _list: &Target, _part: &Part) {}

    /// Picks in-edges of a list of `part`: of all in-edges of a target, or of its in-edges of a relation.
    fn pick(&mut self, asked: Asked, list: &Target, part: &Part, picks: &mut Picks) -> Result<Picked>;
}

/// The outcome for a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picked {
    /// Some of its in-edges were picked.
    Some,
    /// All of them are to be taken.
    All,
}

/// Takes all in-edges.
#[derive(Debug)]
pub(crate) struct All;

impl Picker for All {
    fn pick(&mut self, _: Asked, _: &Target, _: &Part, _: &mut Picks) -> Result<Picked> {
        Ok(Picked::All)
    }
}

/// How in-edges are appended to a batch.
pub(crate) struct Expansion<'a, R> {
    /// The parts that hold the in-edges.
    pub topology: &'a Topology,
    /// How the in-edges of a vertex are divided.
    pub runs: R,
    /// How sources become places in the batch.
    pub places: Places,
    /// Columns of in-edges.
    pub edges: EdgeColumns,
    /// Ends the work by an error. Asked now and then.
    pub check: &'a dyn Fn() -> Result<()>,
}

/// Tables from which a batch is made.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The rows of the batch.
    pub(crate) ids: IdTable,
    /// In-edges that were picked.
    pub(crate) picks: Picks,
    /// Relations of the in-edges of the batch, if the graph has types.
    pub(crate) relations: Vec<u16>,
}

impl Tables {
    /// Begins a batch. One that an error ended may have left picks.
    pub(crate) fn begin(&mut self) {
        self.ids.begin();
        self.picks.clear();
        self.relations.clear();
    }
}

impl<R: Runs> Expansion<'_, R> {
    /// Appends the in-edges of the nodes `level` that `picker` picks.
    pub(crate) fn expand(
        &self,
        level: Range<usize>,
        Tables { ids, picks, relations }: &mut Tables,
        into: &mut Sample,
        mut picker: impl Picker,
    ) -> Result<()> {
        let (mut targets, mut next) = (Targets::none(), Targets::none());
        let (mut done, whole) = (level.start, self.runs.whole());
        let short = whole.map_or(SHORT, |asked| picker.short(asked));
        next.locate(self.topology, &into.rows[done..level.end]);
        while done < level.end {
            std::mem::swap(&mut targets, &mut next);
            done += targets.len();
            next.locate(self.topology, &into.rows[done..level.end]);
            targets.look_up(self.topology, short, &mut into.ids)?;
            if let Some(asked) = whole {
                targets.iter(self.topology).for_each(|(target, _)| picker.announce(target));
                targets.iter(self.topology).for_each(|(target, part)| picker.prepare(asked, target, part));
            } else {
                targets.iter(self.topology).for_each(|(target, _)| self.runs.prefetch(target));
            }
            for (target, part) in targets.iter(self.topology) {
                let mut begin = picks.len();
                self.runs.each(target, |relation, asked, list| {
                    let before = picks.len();
                    let count = match picker.pick(asked, list, part, picks)? {
                        Picked::Some => picks.len() - before,
                        Picked::All => {
                            if list.degree > ENOUGH {
                                picks.close(target.part, begin, false);
                                self.take_all(list, ids, picks, into)?;
                                begin = picks.len();
                            } else {
                                picks.push_all(list.first..list.first + list.degree);
                            }
                            list.degree
                        }
                    };
                    R::note(relations, relation, count);
                    Ok(())
                })?;
                picks.close(target.part, begin, true);
                if picks.len() >= ENOUGH {
                    self.take(ids, picks, into)?;
                }
            }
            (self.check)()?;
        }
        self.take(ids, picks, into)
    }

    /// Picks many in-edges, and looks them up in between.
    #[cold]
    fn take_all(&self, list: &Target, ids: &mut IdTable, picks: &mut Picks, into: &mut Sample) -> Result<()> {
        let end = list.first + list.degree;
        for first in (list.first..end).step_by(ENOUGH) {
            let begin = picks.len();
            picks.push_all(first..end.min(first + ENOUGH));
            picks.close(list.part, begin, false);
            self.take(ids, picks, into)?;
            (self.check)()?;
        }
        Ok(())
    }

    fn take(&self, ids: &mut IdTable, picks: &mut Picks, into: &mut Sample) -> Result<()> {
        picks.take(self.topology, ids, self.places, self.edges, into)
    }
}
