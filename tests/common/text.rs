//! Text and files to convert.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fastpart::internals::base::Run;
use fastpart::internals::base::npy;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::convert::text::{Asked, Cut};
use fastpart::internals::convert::{Conversion, Convert, WeightsFrom, convert, text};
use fastpart::internals::edges::Record;
use fastpart::internals::edges::{IdType, WideRecord};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

pub static ONE: LazyLock<Run> = LazyLock::new(|| Run::new(Some(1), None).unwrap());
pub static THREE: LazyLock<Run> = LazyLock::new(|| Run::new(Some(3), None).unwrap());

pub const TINY: Cut = Cut { batch: 5, piece: 3 };

/// Parses a text that is one piece.
pub fn parse(bytes: &[u8]) -> Result<Vec<WideRecord>> {
    stream(bytes, Cut { batch: bytes.len() + 1, piece: bytes.len() + 1 }, &ONE).map(|(records, _)| records)
}

/// Parses a text cut into pieces; returns its notes, too.
pub fn stream(source: impl Read + Send, cut: Cut, run: &Run) -> Result<(Vec<WideRecord>, Vec<String>)> {
    let mut records = Vec::new();
    let seen = text::read(source, Path::new("g.txt"), u64::MAX, cut, Asked::default(), run, |more, _| {
        records.extend_from_slice(more);
        Ok(())
    })?;
    Ok((records, seen.notes))
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Line and column of the refusal, and its text.
pub fn place(error: Error) -> (u64, u64, String) {
    match error {
        Error::Text { line, column, what, .. } => (line, column, what),
        other => panic!("{other}"),
    }
}

pub struct Case {
    pub dir: TempDir,
    pub input: PathBuf,
    pub target: PathBuf,
}

impl Case {
    pub fn new(name: &str, bytes: &[u8]) -> Case {
        let dir = TempDir::new().unwrap();
        let (input, target) = (dir.path().join(name), dir.path().join("out.bin"));
        fs::write(&input, bytes).unwrap();
        Case { dir, input, target }
    }

    pub fn convert(&self, options: &Convert) -> Result<Conversion> {
        convert(&self.input, &self.target, options, &THREE)
    }

    pub fn records(&self) -> Vec<Record> {
        let bytes = fs::read(&self.target).unwrap();
        bytes.chunks_exact(8).map(|pair| [&pair[..4], &pair[4..]].map(le32)).collect()
    }

    pub fn ids(&self) -> Vec<u64> {
        let bytes = fs::read(self.dir.path().join("out.bin.ids.npy")).unwrap();
        let length = bytes.len() - bytes.len() % 64;
        let start = bytes[..length].windows(2).position(|pair| pair == b"}\x20" || pair == b"}\n");
        let start =
            bytes[start.unwrap()..].iter().position(|&byte| byte == b'\n').unwrap() + start.unwrap() + 1;
        let ids: Vec<u64> =
            bytes[start..].chunks_exact(8).map(|id| u64::from_le_bytes(id.try_into().unwrap())).collect();
        assert_eq!(&bytes[..start], npy::header("<u8", &[ids.len() as u64]));
        ids
    }

    /// Refused, with nothing new in the directory.
    pub fn refused(&self, options: &Convert) -> Error {
        let before = self.names();
        let error = self.convert(options).unwrap_err();
        assert_eq!(self.names(), before, "{error}");
        error
    }

    pub fn names(&self) -> Vec<std::ffi::OsString> {
        let mut names: Vec<_> =
            fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

pub fn le32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

const PLAIN: Convert = Convert {
    format: None,
    relabel: false,
    swap: false,
    id_type: None,
    layout: None,
    num_vertices: None,
    drop_loops: false,
    dedup: false,
    shuffle: None,
    weights: WeightsFrom::Nowhere,
    unsure: false,
    columns: None,
    max_vertices: None,
    comments: None,
    names: false,
};
pub const RELABEL: Convert = Convert { relabel: true, ..PLAIN };
pub const SWAP: Convert = Convert { swap: true, ..PLAIN };

pub fn typed(id_type: IdType) -> Convert {
    Convert { id_type: Some(id_type), ..Convert::default() }
}

pub fn words<const N: usize>(ids: impl IntoIterator<Item = u64>, bytes: fn(u64) -> [u8; N]) -> Vec<u8> {
    ids.into_iter().flat_map(bytes).collect()
}
