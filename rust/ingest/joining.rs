//! Keys of a bucket become vertices, and vertices return into the order of the records: the second half of a
//! radix join.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::key::{Key, Kind};
use super::spill::{NULL, Side};
use super::table::{MISSING, Table, read_full};
use crate::base::regular_file::open_own;
use crate::base::system::FileExt as _;
use crate::base::{Error, Result, Run};
use crate::exec::map;

/// Keys that are resolved at a time, and records that are joined.
const BLOCK: usize = 1 << 13;

/// Vertices of a bucket that are read at a time.
const BUFFER: usize = 1 << 14;

/// A bucket of ends to resolve.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// The keys of its ids and their vertices.
    pub keys: Vec<PathBuf>,
    /// The keys of the ends.
    pub ends: PathBuf,
    /// Where their vertices go.
    pub vertices: PathBuf,
    /// The kind of its ids.
    pub kind: Kind,
}

/// Writes the vertices of the ends of buckets, and returns how many are missing in each. A thread keeps one
/// table.
pub fn resolve_all(buckets: &[Bucket], run: &Run) -> Result<Vec<u64>> {
    map(run, usize::MAX, buckets.len(), || Ok(()), |(), index| resolve(&buckets[index], run))
}

fn resolve(bucket: &Bucket, run: &Run) -> Result<u64> {
    let table = Table::load(&bucket.keys, bucket.kind)?;
    let at = |error| Error::io(&bucket.ends, error);
    let to = |error| Error::io(&bucket.vertices, error);
    let mut ends = open_own(&bucket.ends, File::options().read(true))?;
    let mut file = BufWriter::with_capacity(1 << 18, File::create(&bucket.vertices).map_err(to)?);
    let width = bucket.kind.key_bytes();
    let mut block = vec![0; width * BLOCK];
    let (mut keys, mut vertices) = (Vec::with_capacity(BLOCK), vec![0; BLOCK]);
    let mut missing = 0;
    loop {
        let read = read_full(&mut ends, &mut block).map_err(at)?;
        keys.clear();
        keys.extend(block[..read].chunks_exact(width).map(Key::from_bytes));
        table.resolve(&keys, &mut vertices[..keys.len()]);
        missing += vertices[..keys.len()].iter().filter(|&&vertex| vertex == MISSING).count() as u64;
        file.write_all(bytemuck::cast_slice(&vertices[..keys.len()])).map_err(to)?;
        run.advance(keys.len() as u64)?;
        if read < block.len() {
            break;
        }
    }
    file.flush().and_then(|()| file.get_ref().sync_data()).map_err(to)?;
    Ok(missing)
}

/// The records of a unit, to be joined.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The buckets of its ends in their order.
    pub order: PathBuf,
    /// For each bucket its vertices, and how many come before those of the unit.
    pub vertices: Vec<(PathBuf, u64)>,
    /// Where the records go, and the number of the first one there. None: they are only counted.
    pub out: Option<(PathBuf, u64)>,
    /// A byte for each record, which says whether it is kept. Written if any is not.
    pub kept: Option<PathBuf>,
}

/// The records of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Joined {
    /// Records that are kept.
    pub records: u64,
    /// Records with a null end.
    pub nulls: u64,
    /// Records with an end that is missing, and no null end.
    pub missing: u64,
    /// The first record with a missing end, and whether its source is missing.
    pub first_missing: Option<(u64, bool)>,
}

impl Joined {
    /// Counts a record with a missing end.
    pub(super) fn lack(&mut self, record: u64, source: bool) {
        self.missing += 1;
        self.first_missing.get_or_insert((record, source));
    }
}

/// The vertices of a bucket, from the first of a unit on.
struct Cursor {
    path: PathBuf,
    file: BufReader<File>,
}

impl Cursor {
    fn open(path: &Path, first: u64) -> Result<Self> {
        let at = |error| Error::io(path, error);
        let mut file = open_own(path, File::options().read(true))?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(first * 4)).map_err(at)?;
        Ok(Cursor { path: path.into(), file: BufReader::with_capacity(BUFFER, file) })
    }

    #[inline(always)]
    fn next(&mut self) -> Result<u32> {
        let mut vertex = [0; 4];
        self.file.read_exact(&mut vertex).map_err(|error| Error::io(&self.path, error))?;
        Ok(u32::from_le_bytes(vertex))
    }
}

/// Writes the records of units whose ends are both known. `first` is the number of the first vertex of each
/// side's type.
pub fn join_all(units: &[Unit], sides: [Side; 2], first: [u32; 2], run: &Run) -> Result<Vec<Joined>> {
    map(run, usize::MAX, units.len(), || Ok(()), |(), index| join(&units[index], sides, first, run))
}

fn join(unit: &Unit, sides: [Side; 2], first: [u32; 2], run: &Run) -> Result<Joined> {
    let at = |error| Error::io(&unit.order, error);
    let mut order = open_own(&unit.order, File::options().read(true))?;
    let open = |(path, before): &(PathBuf, u64)| Cursor::open(path, *before);
    let mut cursors = unit.vertices.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut out = unit.out.as_ref().map(|(path, first)| Out::open(path, *first)).transpose()?;
    let mut kept = Kept { path: unit.kept.as_deref(), file: None, records: 0 };
    let (mut block, mut records) = (vec![0; 2 * BLOCK], Vec::with_capacity(BLOCK));
    let mut joined = Joined::default();
    let mut at_record = 0;
    loop {
        let read = read_full(&mut order, &mut block).map_err(at)?;
        records.clear();
        for ends in block[..read].chunks_exact(2) {
            if ends[0] == NULL {
                joined.nulls += 1;
                kept.push(false)?;
            } else {
                let source = cursors[sides[0].first + ends[0] as usize].next()?;
                let target = cursors[sides[1].first + ends[1] as usize].next()?;
                let whole = source != MISSING && target != MISSING;
                if whole {
                    records.push([source + first[0], target + first[1]]);
                } else {
                    joined.lack(at_record, source == MISSING);
                }
                kept.push(whole)?;
            }
            at_record += 1;
        }
        joined.records += records.len() as u64;
        if let Some(out) = &mut out {
            out.write(&records)?;
        }
        run.advance(read as u64 / 2)?;
        if read < block.len() {
            break;
        }
    }
    if let Some(out) = out {
        out.finish()?;
    }
    kept.finish()?;
    Ok(joined)
}

/// A region of the file of records.
pub(super) struct Out {
    path: PathBuf,
    file: File,
    at: u64,
}

impl Out {
    /// The region from record number `first` on.
    pub(super) fn open(path: &Path, first: u64) -> Result<Self> {
        let file = File::options().write(true).open(path).map_err(|error| Error::io(path, error))?;
        Ok(Out { path: path.into(), file, at: first * 8 })
    }

    /// Appends records.
    pub(super) fn write(&mut self, records: &[[u32; 2]]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(records);
        self.file.write_all_at(bytes, self.at).map_err(|error| Error::io(&self.path, error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Forces it to the disk.
    pub(super) fn finish(self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::io(&self.path, error))
    }
}

/// A byte per record that says whether it is kept, in a file that is begun at the first record that is not.
struct Kept<'a> {
    path: Option<&'a Path>,
    file: Option<BufWriter<File>>,
    records: u64,
}

impl Kept<'_> {
    #[inline(always)]
    fn push(&mut self, keep: bool) -> Result<()> {
        if self.path.is_some() && (self.file.is_some() || !keep) {
            self.write(keep)?;
        }
        self.records += 1;
        Ok(())
    }

    #[cold]
    fn write(&mut self, keep: bool) -> Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        let at = |error| Error::io(path, error);
        if self.file.is_none() {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(path).map_err(at)?);
            std::io::copy(&mut std::io::repeat(1).take(self.records), &mut file).map_err(at)?;
            self.file = Some(file);
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(&[u8::from(keep)])).map_err(at)
    }

    fn finish(self) -> Result<()> {
        let (Some(path), Some(mut file)) = (self.path, self.file) else { return Ok(()) };
        let flushed = file.flush().and_then(|()| file.get_ref().sync_data());
        flushed.map_err(|error| Error::io(path, error))
    }
}
