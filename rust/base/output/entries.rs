//! The one rule about folders: fastpart replaces and removes only entries that it has listed itself.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result, shown};

/// Most entries that a refusal names.
const NAMED: usize = 3;

/// The files and folders that fastpart has written in a directory, as it lists them there.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    files: HashSet<PathBuf>,
    folders: HashSet<PathBuf>,
}

impl Entries {
    /// Files by their paths below the directory. The folders that they lie in belong to them.
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Entries {
        let files: HashSet<PathBuf> = files.into_iter().collect();
        let folders = files.iter().flat_map(|file| file.ancestors().skip(1)).map(Path::to_path_buf).collect();
        Entries { files, folders }
    }

    /// Refuses a directory that holds anything else, and names it. One that is absent holds nothing.
    pub fn cover(&self, directory: &Path) -> Result<()> {
        let mut foreign = Vec::new();
        match self.collect(directory, Path::new(""), &mut foreign) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let what = format!("{} is a file. Name a directory", shown(directory));
                return Err(Error::parameter("out", what));
            }
            Err(error) => return Err(Error::io(directory, error)),
        }
        if foreign.is_empty() {
            return Ok(());
        }
        foreign.sort();
        let mut named: Vec<String> =
            foreign.iter().take(NAMED).map(|entry| shown(entry).to_string()).collect();
        if foreign.len() > NAMED {
            named.push(format!("{} more", foreign.len() - NAMED));
        }
        let what = format!(
            "{} holds what fastpart did not write there: {}. Move it, or name a new or an empty directory",
            shown(directory),
            named.join(", ")
        );
        Err(Error::parameter("out", what))
    }

    /// Collects what is below `folder` of the directory and not among the entries. A foreign folder is named
    /// as a whole.
    fn collect(&self, directory: &Path, folder: &Path, foreign: &mut Vec<PathBuf>) -> std::io::Result<()> {
        for entry in std::fs::read_dir(directory.join(folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true if self.folders.contains(&path) => self.collect(directory, &path, foreign)?,
                false if self.files.contains(&path) => {}
                _ => foreign.push(path),
            }
        }
        Ok(())
    }
}
