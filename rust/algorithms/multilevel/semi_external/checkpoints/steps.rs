//! The steps in a directory of checkpoints: each is read if it is there and whole, else made and written.
//!
//! **Format.** [`MAGIC`], the hash of the list of graph and parameters, numbers and arrays as they lie in
//! memory, and the XXH3-128 of all before it.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use bytemuck::{Pod, bytes_of_mut, cast_slice, cast_slice_mut};
use xxhash_rust::xxh3::Xxh3;

use super::{Checkpoints, is_there, regular};
use crate::algorithms::multilevel::assignment::Quality;
use crate::algorithms::multilevel::clustering::Clustering;
use crate::algorithms::multilevel::graph::{Arrays, Graph, sum_of};
use crate::algorithms::multilevel::problem::Solution;
use crate::base::{AtomicFile, Buffer, Error, Result, Run, TempFile, shown, zeros};
use crate::capacity::Load;
use crate::edges::open_file::open_regular;

/// The first bytes of a step: the format.
const MAGIC: [u8; 8] = *b"fpstep01";
/// Bytes that are read, written and hashed at a time.
const CHUNK: usize = 1 << 16;

/// Why a step cannot be read.
enum Fault {
    Damaged,
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Failed(error)
    }
}

type Read<T> = Result<T, Fault>;

/// Parts of all vertices, how good they are, and the number of rounds of improvement.
type PartsAndRounds = (Solution, u64);

impl Checkpoints {
    /// Reads the step `name`, if it is there and whole.
    fn read<T>(&self, name: &str, run: &Run, load: impl FnOnce(&mut Reader) -> Read<T>) -> Result<Option<T>> {
        let path = self.path(name);
        if !is_there(&path)? {
            return Ok(None);
        }
        let file = regular(open_regular(&path))?;
        let mut reader = Reader { file, hash: Xxh3::new(), path: &path, run };
        let read = reader.begin(self.key).and_then(|()| load(&mut reader)).and_then(|item| {
            let digest = reader.hash.digest128();
            if reader.number::<u128>()? == digest { Ok(item) } else { Err(Fault::Damaged) }
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

    fn write(&self, name: &str, run: &Run, save: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
        let file = AtomicFile::create(&self.path(name))?;
        let mut writer = Writer { file, hash: Xxh3::new(), run };
        writer.bytes(&MAGIC)?;
        writer.bytes(&self.key.to_le_bytes())?;
        save(&mut writer)?;
        let digest = writer.hash.digest128();
        writer.bytes(&digest.to_le_bytes())?;
        writer.file.commit()
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

/// Clusters of a graph of `n` vertices.
pub(in super::super) fn clusters(
    checkpoints: Option<&Checkpoints>,
    level: usize,
    n: usize,
    run: &Run,
    make: impl FnOnce() -> Result<Clustering>,
) -> Result<Clustering> {
    let load = |from: &mut Reader| {
        let count = from.number::<u64>()? as usize;
        Ok(Clustering { cluster_of: from.ids(n, count as u64, "clusters")?, count })
    };
    let save = |Clustering { cluster_of, count }: &Clustering, to: &mut Writer| {
        to.bytes(&(*count as u64).to_le_bytes())?;
        to.items(cluster_of)
    };
    read_or_make(checkpoints, &format!("clusters-{level}"), run, load, make, save)
}

/// The graph of `n` clusters, whose lists lie in files.
pub(in super::super) fn lists<const D: usize>(
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
        let (targets, _) = from.file(offsets[n], n as u64)?;
        let edge_weights = from.file(offsets[n], u64::MAX)?;
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

/// Parts `0..k` of the `n` vertices of a level, and the number of rounds of improvement.
pub(in super::super) fn parts(
    checkpoints: Option<&Checkpoints>,
    level: usize,
    (n, k): (usize, usize),
    run: &Run,
    make: impl FnOnce() -> Result<PartsAndRounds>,
) -> Result<PartsAndRounds> {
    let load = |from: &mut Reader| {
        let [excess, cut, rounds] = [from.number()?, from.number()?, from.number::<u64>()?];
        let quality = Quality { excess: f64::from_bits(excess), cut };
        Ok(((from.ids(n, k as u64, "parts")?, quality), rounds))
    };
    let save = |((part_of, quality), rounds): &PartsAndRounds, to: &mut Writer| {
        for number in [quality.excess.to_bits(), quality.cut, *rounds] {
            to.bytes(&number.to_le_bytes())?;
        }
        to.items(part_of)
    };
    read_or_make(checkpoints, &format!("parts-{level}"), run, load, make, save)
}

/// Writes a step.
struct Writer<'a> {
    file: AtomicFile,
    hash: Xxh3,
    run: &'a Run,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        let written = self.file.write_all(bytes);
        written.map_err(|error| Error::io(self.file.target(), error))?;
        self.run.check()
    }

    fn items<T: Pod>(&mut self, items: &[T]) -> Result<()> {
        cast_slice(items).chunks(CHUNK).try_for_each(|chunk| self.bytes(chunk))
    }
}

/// Reads a step.
struct Reader<'a> {
    file: File,
    hash: Xxh3,
    path: &'a Path,
    run: &'a Run,
}

impl Reader<'_> {
    fn begin(&mut self, key: u128) -> Read<()> {
        let mut magic = [0; MAGIC.len()];
        self.bytes(&mut magic)?;
        if magic == MAGIC && self.number::<u128>()? == key { Ok(()) } else { Err(Fault::Damaged) }
    }

    fn bytes(&mut self, bytes: &mut [u8]) -> Read<()> {
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Fault::Damaged,
            _ => Fault::Failed(Error::io(self.path, error)),
        })?;
        self.hash.update(bytes);
        Ok(self.run.check()?)
    }

    fn number<T: Pod>(&mut self) -> Read<T> {
        let mut number = T::zeroed();
        self.bytes(bytes_of_mut(&mut number))?;
        Ok(number)
    }

    fn items<T: Pod>(&mut self, items: &mut [T]) -> Read<()> {
        cast_slice_mut(items).chunks_mut(CHUNK).try_for_each(|chunk| self.bytes(chunk))
    }

    /// `count` ids below `end`.
    fn ids(&mut self, count: usize, end: u64, what: &str) -> Read<Buffer<u32>> {
        let mut ids: Buffer<u32> = Buffer::zeroed(count, what)?;
        self.items(&mut ids)?;
        if ids.iter().all(|&id| u64::from(id) < end) { Ok(ids) } else { Err(Fault::Damaged) }
    }

    /// `count` numbers below `end`, in a temporary file, and their sum.
    fn file(&mut self, count: u64, end: u64) -> Read<(Buffer<u32>, u64)> {
        let known = self.file.metadata().map_err(|error| Error::io(self.path, error))?;
        if count > known.len() / 4 {
            return Err(Fault::Damaged);
        }
        let (file, mut sum) = (TempFile::create(self.run.tmp_dir())?, 0_u64);
        let mut chunk: Vec<u32> = zeros(CHUNK / 4, "a chunk of a checkpoint")?;
        for first in (0..count).step_by(CHUNK / 4) {
            let items = &mut chunk[..(CHUNK / 4).min((count - first) as usize)];
            self.bytes(cast_slice_mut(items))?;
            if items.iter().any(|&id| u64::from(id) >= end) {
                return Err(Fault::Damaged);
            }
            file.write(first, items)?;
            // The sum of a damaged file is not used.
            sum = sum.wrapping_add(sum_of(items));
        }
        Ok((Buffer::of_file(file, count as usize)?, sum))
    }
}
