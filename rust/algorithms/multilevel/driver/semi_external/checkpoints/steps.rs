//! The steps in a directory of checkpoints: each is read if it is there and whole, else made and written.
//! The format is that of [`checked`](crate::base::checked) files.

use std::fs::File;

use super::{Checkpoints, is_there, opened};
use crate::algorithms::multilevel::coarsening::Clustering;
use crate::algorithms::multilevel::model::graph::Arrays;
use crate::algorithms::multilevel::model::{Graph, Quality, Solution, copied};
use crate::base::checked::{Fault, Head, Read, Reader, Writer};
use crate::base::{Buffer, Error, Result, Run, TempFile, shown};
use crate::capacity::Load;
use crate::exec::Division;

/// The first bytes of a step.
const MAGIC: [u8; 8] = *b"fpstep02";

/// The checkpoints, if there are any here, and the replicas of a divided run.
pub(crate) type Done<'a> = (Option<&'a Checkpoints>, Option<&'a Division>);

/// Parts of all vertices, how good they are, and the number of rounds of improvement.
type PartsAndRounds = (Solution, u64);

impl Checkpoints {
    fn head(&self) -> Head {
        (MAGIC, self.key)
    }

    /// Reads the step `name`, if it is there and whole.
    fn read<T>(&self, name: &str, run: &Run, load: impl FnOnce(&mut Reader) -> Read<T>) -> Result<Option<T>> {
        let path = self.path(name);
        if !is_there(&path)? {
            return Ok(None);
        }
        let file = opened(&path, File::options().read(true))?;
        let read = Reader::begin(file, &path, self.head(), run).and_then(|mut reader| {
            let item = load(&mut reader)?;
            reader.finish().map(|()| item)
        });
        match read {
            Ok(item) => Ok(Some(item)),
            Err(Fault::Failed(error)) => Err(error),
            Err(Fault::Damaged) => {
                run.note(format!("multilevel: {} is damaged, and this step is made again", shown(&path)));
                Ok(None)
            }
        }
    }

    /// The key of the graph and the parameters, on which the steps depend.
    pub(crate) fn key(&self) -> u128 {
        self.key
    }

    /// Where the replicas of a divided run have the lists of a level, if these are there.
    pub(crate) fn table(&self, level: usize, run: &Run) -> Result<Option<Vec<[u64; 3]>>> {
        let name = format!("lists-{level}");
        self.steps().push(name.clone());
        self.read(&name, run, |from| {
            let count: u64 = from.number()?;
            from.expect(count)?;
            let mut rows = vec![[0; 3]; count as usize];
            from.items(&mut rows)?;
            Ok(rows)
        })
    }

    /// Keeps it.
    pub(crate) fn keep_table(&self, level: usize, rows: &[[u64; 3]], run: &Run) -> Result<()> {
        self.write(&format!("lists-{level}"), run, |to| {
            to.number(&(rows.len() as u64))?;
            to.items(rows)
        })
    }

    fn write(&self, name: &str, run: &Run, save: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
        let mut writer = Writer::create(&self.path(name), self.head(), run)?;
        save(&mut writer)?;
        writer.finish()
    }
}

/// The step `name`: read if it is there, else made and written. Without checkpoints it is made.
fn read_or_make<T>(
    checkpoints: Option<&Checkpoints>,
    name: &str,
    run: &Run,
    load: impl FnOnce(&mut Reader) -> Read<T>,
    make: impl FnOnce() -> Result<T>,
    save: impl FnOnce(&T, &mut Writer) -> Result<()>,
) -> Result<T> {
    let Some(checkpoints) = checkpoints else { return make() };
    let item = match checkpoints.read(name, run, load)? {
        Some(item) => item,
        None => {
            let item = make()?;
            checkpoints.write(name, run, |to| save(&item, to))?;
            item
        }
    };
    checkpoints.steps().push(name.into());
    Ok(item)
}

/// Three numbers, and labels of vertices.
type Labels = ([u64; 3], Buffer<u32>);

/// Labels below `end` of the `n` vertices of a level. In a divided run the first replica has the checkpoints.
fn labels(
    (checkpoints, division): Done,
    name: &str,
    (n, end): (usize, u64),
    run: &Run,
    make: impl FnOnce() -> Result<Labels>,
) -> Result<Labels> {
    let load = |from: &mut Reader| {
        let mut numbers = [0; 3];
        from.items(&mut numbers)?;
        Ok((numbers, from.ids(n, end, "labels")?))
    };
    let save = |(numbers, labels): &Labels, to: &mut Writer| {
        to.items(numbers)?;
        to.items(labels)
    };
    let Some(division) = division else { return read_or_make(checkpoints, name, run, load, make, save) };
    let found = checkpoints.map(|done| done.read(name, run, load)).transpose()?.flatten();
    let numbers = division.of_first(found.as_ref().map(|(numbers, _)| *numbers).as_slice())?;
    let item = match numbers.first() {
        Some(&numbers) => {
            let here = found.as_ref().map_or(&[][..], |(_, labels)| labels);
            (numbers, copied(&division.of_first(here)?)?)
        }
        None => {
            let item = make()?;
            checkpoints.map_or(Ok(()), |done| done.write(name, run, |to| save(&item, to)))?;
            item
        }
    };
    if let Some(done) = checkpoints {
        done.steps().push(name.into());
    }
    Ok(item)
}

/// Clusters of a graph of `n` vertices.
pub(crate) fn clusters(
    done: Done,
    level: usize,
    n: usize,
    run: &Run,
    make: impl FnOnce() -> Result<Clustering>,
) -> Result<Clustering> {
    let make = || make().map(|Clustering { cluster_of, count }| ([count as u64, 0, 0], cluster_of));
    let ([count, ..], cluster_of) = labels(done, &format!("clusters-{level}"), (n, n as u64), run, make)?;
    Ok(Clustering { cluster_of, count: count as usize })
}

/// Parts `0..k` of the `n` vertices of a level, and the number of rounds of improvement.
pub(crate) fn parts(
    done: Done,
    level: usize,
    (n, k): (usize, usize),
    run: &Run,
    make: impl FnOnce() -> Result<PartsAndRounds>,
) -> Result<PartsAndRounds> {
    let make = || {
        make().map(|((part_of, quality), rounds)| ([quality.excess.to_bits(), quality.cut, rounds], part_of))
    };
    let ([excess, cut, rounds], part_of) = labels(done, &format!("parts-{level}"), (n, k as u64), run, make)?;
    Ok(((part_of, Quality { excess: f64::from_bits(excess), cut }), rounds))
}

/// The graph of `n` clusters, whose lists lie in files.
pub(crate) fn lists<const D: usize>(
    checkpoints: Option<&Checkpoints>,
    level: usize,
    n: usize,
    run: &Run,
    make: impl FnOnce() -> Result<Graph<'static, D>>,
) -> Result<Graph<'static, D>> {
    let load = |from: &mut Reader| {
        let mut offsets: Buffer<u64> = Buffer::zeroed(n + 1, "graph: offsets")?;
        from.items(&mut offsets)?;
        let mut weights: Buffer<Load<D>> = Buffer::zeroed(n, "graph: weights")?;
        from.items(&mut weights)?;
        if offsets[0] != 0 || !offsets.is_sorted() {
            return Err(Fault::Damaged);
        }
        let (targets, _) = file(from, offsets[n], n as u64, run)?;
        let edge_weights = file(from, offsets[n], u64::MAX, run)?;
        Ok(Graph::of(offsets, targets, edge_weights, weights, run)?)
    };
    let save = |graph: &Graph<'static, D>, to: &mut Writer| {
        let Some(Arrays { offsets, targets, edge_weights, weights }) = graph.arrays() else {
            return Err(Error::Internal("checkpoints: a level without lists".into()));
        };
        to.items(offsets)?;
        to.items(weights)?;
        to.items(targets)?;
        to.items(edge_weights)
    };
    read_or_make(checkpoints, &format!("lists-{level}"), run, load, make, save)
}

/// `count` numbers below `end`, in a temporary file, and their sum.
fn file(from: &mut Reader, count: u64, end: u64, run: &Run) -> Read<(Buffer<u32>, u64)> {
    let file = TempFile::create(run.tmp_dir())?;
    let sum = from.copy(count, end, &file, 0)?;
    Ok((Buffer::of_file(file, count as usize)?, sum))
}
