//! What the tests of the partition directory share: its files.

// Each test is a crate of its own and uses some of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastpart::internals::base::npy;

/// A folder's files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A `.npy` file of int64.
pub fn i64s(items: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let items: Vec<i64> = items.into_iter().collect();
    [npy::header("<i8", &[items.len() as u64]), bytemuck::cast_slice(&items).to_vec()].concat()
}

/// A `.npy` file of int32.
pub fn i32s(items: impl IntoIterator<Item = i32>) -> Vec<u8> {
    let items: Vec<i32> = items.into_iter().collect();
    [npy::header("<i4", &[items.len() as u64]), bytemuck::cast_slice(&items).to_vec()].concat()
}

/// Files by name.
pub fn named<const N: usize>(files: [(&str, Vec<u8>); N]) -> Files {
    files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

/// All files below `folder`, by folder; nothing else may lie there.
pub fn written(folder: &Path) -> BTreeMap<String, Files> {
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let entries = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let files = |folder: &Path| {
        entries(folder).into_iter().map(|path| (name(path.clone()), fs::read(path).unwrap())).collect()
    };
    entries(folder).into_iter().map(|path| (name(path.clone()), files(&path))).collect()
}
