//! Joint work of the replicas of a divided run: levels whose lists are also divided, and work of the first
//! replica that the others wait for.
//!
//! The replicas sum the lists of clusters together ([`in_files`](super::in_files)). Each writes those that it
//! has summed into a file that all of them see, and copies its share of these files to its own disk
//! ([`pieces`]). So a run of another number of replicas can go on from them. The first replica copies the
//! lists of the top as a whole and partitions it.

use std::path::PathBuf;

use super::Checkpoints;
use crate::algorithms::multilevel::coarsening::in_files::{ListFiles, weights_of};
use crate::algorithms::multilevel::coarsening::{Clustering, Step};
use crate::algorithms::multilevel::model::{Graph, Quality, Solution, copied};
use crate::base::{Error, Result, Run};
use crate::exec::Division;
use crate::graph::pieces;
use crate::graph::pieces::{Copied, Dealt, Piece};

/// The graph of clusters, whose lists all replicas `make` together, unless there are checkpoints of them. The
/// first replica has all lists if it is to have the `whole` graph.
pub(crate) fn lists<const D: usize>(
    step: Step<D>,
    (division, checkpoints): (&Division, Option<&Checkpoints>),
    clustering: &Clustering,
    whole: bool,
    make: impl FnOnce() -> Result<ListFiles>,
) -> Result<Graph<'static, D>> {
    let Step { number, graph, run, .. } = step;
    let key = division.of_first(&[checkpoints.map_or(0, Checkpoints::key)])?;
    let shared = Shared { division, number, key: key.first().copied().unwrap_or(0), run };
    let n = clustering.count as u32;
    let known = checkpoints.map(|done| done.table(number, run)).transpose()?.flatten();
    let known = division.of_first(known.as_deref().unwrap_or_default())?;
    let found = if known.is_empty() { None } else { shared.found(&known, n, whole)? };
    let (copied, starts) = match found {
        Some(found) => found,
        None => {
            let table = shared.write(&make()?)?;
            checkpoints.map_or(Ok(()), |done| done.keep_table(number, &table, run))?;
            let (copied, starts) = shared.copied(&table, n, whole);
            (copied?, starts)
        }
    };
    let lists = copied.join(division, run)?;
    let missing = || Error::Internal("a level without weights of edges".into());
    let edge_weights = (lists.weights.ok_or_else(missing)?, lists.weight);
    let weights = weights_of(graph, clustering, run)?;
    let coarse = Graph::of(lists.offsets, lists.targets, edge_weights, weights, run)?;
    Ok(coarse.divided(Some(division.of(starts))))
}

/// The lists of a level in files that all replicas see.
struct Shared<'a> {
    division: &'a Division,
    number: usize,
    key: u128,
    run: &'a Run,
}

/// The first vertex, the end of the vertices and the number of entries of a piece.
type Row = [u64; 3];

impl Shared<'_> {
    fn path(&self, replica: usize) -> PathBuf {
        self.division.folder().join(format!("lists-{}-{replica}.bin", self.number))
    }

    /// Writes the lists that this replica has summed. Returns a row for the lists of each replica.
    fn write(&self, lists: &ListFiles) -> Result<Vec<Row>> {
        let (own, degrees) = (self.path(self.division.number()), lists.degrees()?);
        pieces::write(&own, self.key, (lists.first, &degrees, true), self.run, |to| {
            to.items_of(&lists.targets, lists.len())?;
            to.items_of(&lists.weights, lists.len())
        })?;
        let first = u64::from(lists.first);
        self.division.concatenated(&[[first, first + degrees.len() as u64, lists.len()]])
    }

    /// This replica's share of the lists, and the first vertex of each replica.
    fn copied(&self, table: &[Row], n: u32, whole: bool) -> (Result<Copied>, Vec<u32>) {
        let piece = |(replica, &[first, end, entries]): (usize, &Row)| Piece {
            path: self.path(replica),
            vertices: first as u32..end as u32,
            entries,
        };
        let pieces: Vec<Piece> = table.iter().enumerate().map(piece).collect();
        let firsts = pieces::deal(&pieces, self.division.count());
        let dealt = Dealt { pieces: &pieces, key: self.key, n, weighted: true, firsts: &firsts, whole };
        (dealt.copy(self.division.number(), self.run), pieces::starts(&pieces, &firsts, n))
    }

    /// The result of [`Self::copied`], or `None` if some replica cannot read its share.
    fn found(&self, table: &[Row], n: u32, whole: bool) -> Result<Option<(Copied, Vec<u32>)>> {
        let (copied, starts) = self.copied(table, n, whole);
        if let Err(error) = &copied {
            self.run.note(format!("multilevel: {error}. This step is made again"));
        }
        let failed = self.division.sum(copied.is_err().into())?;
        Ok(if failed == 0 { copied.ok().map(|copied| (copied, starts)) } else { None })
    }
}

/// Parts that the first replica makes, and all others get from it. Without replicas they are made here.
pub(crate) fn of_first(
    division: Option<&Division>,
    make: impl FnOnce() -> Result<(Solution, u64)>,
) -> Result<(Solution, u64)> {
    let Some(division) = division else { return make() };
    let made = if division.number() == 0 { Some(make()?) } else { None };
    let numbers =
        made.as_ref().map(|((_, quality), rounds)| [quality.excess.to_bits(), quality.cut, *rounds]);
    let numbers = division.of_first(numbers.as_slice())?;
    let parts = made.as_ref().map_or(&[][..], |((parts, _), _)| parts);
    let parts = copied(&division.of_first(parts)?)?;
    let missing = || Error::Internal("the first replica sent no parts".into());
    let &[excess, cut, rounds] = numbers.first().ok_or_else(missing)?;
    Ok(((parts, Quality { excess: f64::from_bits(excess), cut }), rounds))
}
