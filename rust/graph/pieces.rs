//! Lists of ranges of vertices, in files that all replicas of a divided run see.
//!
//! A *piece* holds the lists of consecutive vertices: of the given graph, in the order of the adjacency
//! ([`csr`](super::csr)), or of a coarser one. Pieces are dealt to the replicas in runs ([`deal`]). A replica
//! copies its pieces to its own disk, into a file with space for the lists of all vertices. The lists of
//! other replicas are holes that take no disk space, so places in the file are the same everywhere.
//!
//! **Format.** A [`checked`](crate::base::checked) file: the first vertex, the number of vertices, that of
//! entries, and whether entries have weights. Then the degree of each vertex, all targets, and all weights.
//!
//! **Memory.** 12 bytes per vertex.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::base::checked::{Fault, Head, Read, Reader, Writer};
use crate::base::regular_file::open_own;
use crate::base::{Buffer, Error, Result, Run, TempFile, shown, zeros};
use crate::exec::Division;

/// The first bytes of a piece.
const KIND: [u8; 8] = *b"fplist01";
/// Vertices between two polls of the cancel flag.
const CHUNK: usize = 1 << 16;

/// A piece that is there.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Its file.
    pub path: PathBuf,
    /// Its vertices.
    pub vertices: Range<u32>,
    /// Entries of their lists.
    pub entries: u64,
}

/// Writes the lists of the vertices from `first` on. `rest` adds the targets, and the weights if there are
/// any. The key says what the lists depend on.
pub(crate) fn write(
    path: &Path,
    key: u128,
    (first, degrees, weighted): (u32, &[u32], bool),
    run: &Run,
    rest: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<()> {
    let entries: u64 = degrees.iter().map(|&degree| u64::from(degree)).sum();
    let mut writer = Writer::create(path, (KIND, key), run)?;
    writer.items(&[u64::from(first), degrees.len() as u64, entries, u64::from(weighted)])?;
    writer.items(degrees)?;
    rest(&mut writer)?;
    writer.finish()
}

/// The number of entries of a piece.
pub fn entries(path: &Path) -> Result<u64> {
    let io = |error| Error::io(path, error);
    let mut head = [0_u64; 6];
    let mut file = open_own(path, File::options().read(true))?;
    file.read_exact(bytemuck::cast_slice_mut(&mut head[..])).map_err(io)?;
    // The kind and the key come first.
    if head[0].to_le_bytes() == KIND { Ok(head[5]) } else { Err(damaged(path)) }
}

/// The first piece of each of `count` replicas, and the number of all pieces. All replicas get about the same
/// number of entries.
pub(crate) fn deal(pieces: &[Piece], count: usize) -> Vec<usize> {
    let all: u64 = pieces.iter().map(|piece| piece.entries + 1).sum();
    let (mut firsts, mut before) = (vec![0], 0);
    for (index, piece) in pieces.iter().enumerate() {
        // A piece belongs to the replica in whose share of the entries its middle lies.
        let middle = 2 * u128::from(before) + u128::from(piece.entries + 1);
        let owner = (middle * count as u128 / (2 * u128::from(all))) as usize;
        firsts.resize(firsts.len().max(owner + 1), index);
        before += piece.entries + 1;
    }
    firsts.resize(count + 1, pieces.len());
    firsts
}

/// The first vertex of each replica, and the number of all vertices `n`.
pub(crate) fn starts(pieces: &[Piece], firsts: &[usize], n: u32) -> Vec<u32> {
    firsts.iter().map(|&first| pieces.get(first).map_or(n, |piece| piece.vertices.start)).collect()
}

/// Lists of all vertices, of which this replica has some.
pub(crate) struct Lists {
    /// Where the list of each vertex begins, and the number of all entries.
    pub offsets: Buffer<u64>,
    /// The targets of all entries that are here.
    pub targets: Buffer<u32>,
    /// Their weights, if there are any.
    pub weights: Option<Buffer<u32>>,
    /// Sum of the weights of all entries, also of those elsewhere.
    pub weight: u64,
}

/// Pieces of a graph, and which of them each replica has.
pub(crate) struct Dealt<'a> {
    /// All pieces, in the order of their vertices.
    pub pieces: &'a [Piece],
    /// The key of the input that their lists depend on.
    pub key: u128,
    /// Number of vertices.
    pub n: u32,
    /// Whether entries have weights.
    pub weighted: bool,
    /// The first piece of each replica ([`deal`]).
    pub firsts: &'a [usize],
    /// Whether the first replica also has all lists.
    pub whole: bool,
}

/// The lists of a replica, in files on its own disk.
pub(crate) struct Copied {
    targets: TempFile,
    weights: Option<TempFile>,
    /// The places of the entries.
    places: Range<usize>,
    /// Degrees of the replica's vertices, and the weight of their entries.
    degrees: Vec<u32>,
    weight: u64,
}

impl Dealt<'_> {
    /// Copies the pieces of replica `number`.
    pub(crate) fn copy(&self, number: usize, run: &Run) -> Result<Copied> {
        let Self { pieces, n, weighted, firsts, whole, key } = *self;
        let own = firsts[number]..firsts[number + 1];
        let here = if whole && number == 0 { 0..pieces.len() } else { own.clone() };
        let entries = |pieces: &[Piece]| pieces.iter().map(|piece| piece.entries).sum::<u64>();
        let before = entries(&pieces[..here.start]);
        let create = || TempFile::create(run.tmp_dir());
        let (targets, weights) = (create()?, weighted.then(create).transpose()?);
        let (mut degrees, mut weight, mut at) = (Vec::new(), 0, before);
        for index in here {
            let piece = &pieces[index];
            let mut of_piece = zeros(piece.vertices.len(), "degrees of vertices")?;
            let its = read(piece, (KIND, key), n, run, &mut of_piece, (&targets, weights.as_ref(), at))?;
            if own.contains(&index) {
                weight += its;
                degrees.append(&mut of_piece);
            }
            at += piece.entries;
        }
        Ok(Copied { targets, weights, places: before as usize..at as usize, degrees, weight })
    }
}

impl Copied {
    /// The lists, once all replicas have told the degrees of their vertices.
    pub(crate) fn join(self, division: &Division, run: &Run) -> Result<Lists> {
        let Self { targets, weights, places, degrees, weight } = self;
        let degrees = division.concatenated(&degrees)?;
        let mut offsets: Buffer<u64> = Buffer::zeroed(degrees.len() + 1, "offsets of the adjacency")?;
        let mut end = 0;
        for (offsets, degrees) in offsets[1..].chunks_mut(CHUNK).zip(degrees.chunks(CHUNK)) {
            for (offset, &degree) in offsets.iter_mut().zip(degrees) {
                end += u64::from(degree);
                *offset = end;
            }
            run.check()?;
        }
        let map = |file| Buffer::of_sparse_file(file, end as usize, places.clone());
        let (targets, weights) = (map(targets)?, weights.map(map).transpose()?);
        Ok(Lists { offsets, targets, weights, weight: division.sum(weight)? })
    }
}

/// Reads a piece: the degrees of its vertices, and its lists, which go to `at` in these files. Returns the
/// weight of its entries.
fn read(
    piece: &Piece,
    head: Head,
    n: u32,
    run: &Run,
    degrees: &mut [u32],
    (targets, weights, at): (&TempFile, Option<&TempFile>, u64),
) -> Result<u64> {
    let file = open_own(&piece.path, File::options().read(true))?;
    let load = || -> Read<u64> {
        let mut reader = Reader::begin(file, &piece.path, head, run)?;
        let mut counts = [0_u64; 4];
        reader.items(&mut counts)?;
        let vertices = &piece.vertices;
        let expected =
            [vertices.start.into(), vertices.len() as u64, piece.entries, weights.is_some().into()];
        if counts != expected {
            return Err(Fault::Damaged);
        }
        reader.items(degrees)?;
        if degrees.iter().map(|&degree| u64::from(degree)).sum::<u64>() != piece.entries {
            return Err(Fault::Damaged);
        }
        reader.copy(piece.entries, n.into(), targets, at)?;
        let weight = match weights {
            None => piece.entries,
            Some(weights) => reader.copy(piece.entries, u64::MAX, weights, at)?,
        };
        reader.finish().map(|()| weight)
    };
    load().map_err(|fault| match fault {
        Fault::Failed(error) => error,
        Fault::Damaged => damaged(&piece.path),
    })
}

/// The refusal of a piece that is not what it should be.
fn damaged(path: &Path) -> Error {
    let what = "the file is damaged, or of another graph. Remove it and run again, which writes it again";
    Error::format(shown(path), what)
}
