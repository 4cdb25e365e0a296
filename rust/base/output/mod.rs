//! Files and directories that appear whole or not at all.
//!
//! Everything is written to a sibling `.NAME.tmp-PID.COUNT`, forced to the disk, and only then renamed. A
//! file is renamed by `rename`. A directory that replaces another is exchanged with it in one step. A
//! failure, a cancelled run or a dropped value leaves the old target and no temporary. Some file systems, and
//! some systems, cannot exchange. There the old directory becomes `.NAME.old-PID.COUNT` between two renames.
//! A crash at that moment leaves it under that name, and it must be renamed back by hand.
//!
//! A process that is killed leaves its temporary behind. The next writer of the same name removes it. A lock
//! on the temporary tells whether its writer is alive. The process id cannot tell that, since it means
//! nothing in another container or on another host of a shared disk. Left-overs stay on file systems without
//! locks.

mod entries;
mod fs;

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use self::entries::Entries;
use self::fs::{Fs, RealFs};
use super::error::{Error, Result, shown};
use super::system;

/// Bytes that [`AtomicFile`]'s [`Write`] collects before it calls the operating system.
const BUFFER: usize = 1 << 18;

/// A file that gets its name at [`AtomicFile::commit`]. If it is dropped before, nothing is left of it.
///
/// [`Write`] appends and [`AtomicFile::write_at`] places. A caller may append a header and place what
/// follows.
pub struct AtomicFile {
    temp: Temp,
    buffer: Vec<u8>,
    appended: u64,
}

impl AtomicFile {
    /// Begins to write `target`, which may exist as a regular file. Its directory must exist.
    pub fn create(target: &Path) -> Result<AtomicFile> {
        Self::create_on(&RealFs, target)
    }

    fn create_on(fs: &'static dyn Fs, target: &Path) -> Result<AtomicFile> {
        let place = Place::of(target)?;
        if let Ok(found) = std::fs::metadata(&place.target)
            && !found.is_file()
        {
            let kind = if found.is_dir() { "directory" } else { "device, pipe or socket" };
            let what = format!("{} is a {kind}. Name a regular file", shown(target));
            return Err(Error::parameter("out", what));
        }
        let temp = Temp::create(fs, place, |path| fs.create(path))?;
        Ok(AtomicFile { temp, buffer: Vec::new(), appended: 0 })
    }

    /// The name that the file will have.
    pub fn target(&self) -> &Path {
        &self.temp.place.target
    }

    /// Writes `bytes` at `offset`. Several threads may do so at once.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.temp.check(self.temp.fs.write_at(&self.temp.handle, bytes, offset))
    }

    /// Appends `bytes` to what was appended before.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.write_all(bytes);
        self.temp.check(written)
    }

    /// Forces the content to the disk, then gives it its name.
    pub fn commit(mut self) -> Result<()> {
        let flushed = self.flush();
        let temp = &mut self.temp;
        temp.check(flushed)?;
        temp.check(temp.fs.sync(&temp.handle))?;
        temp.check(temp.fs.rename(&temp.path, &temp.place.target))?;
        temp.placed = true;
        temp.check(temp.fs.sync_dir(temp.place.directory()))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.fs.write_at(&self.temp.handle, &self.buffer, self.appended)?;
        self.appended += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes `bytes` as the whole file `target`.
pub fn write_file(target: &Path, bytes: &[u8]) -> Result<()> {
    let file = AtomicFile::create(target)?;
    file.write_at(bytes, 0)?;
    file.commit()
}

/// A directory that gets its name at [`AtomicDir::commit`]. If it is dropped before, nothing is left of it.
pub struct AtomicDir {
    temp: Temp,
    owned: Entries,
}

impl AtomicDir {
    /// Begins to write the directory `target`. A directory there is replaced only if all that it holds is
    /// `owned`.
    pub fn create(target: &Path, owned: Entries) -> Result<AtomicDir> {
        Self::create_on(&RealFs, target, owned)
    }

    fn create_on(fs: &'static dyn Fs, target: &Path, owned: Entries) -> Result<AtomicDir> {
        let place = Place::of(target)?;
        owned.cover(&place.target)?;
        let temp = Temp::create(fs, place, |path| fs.create_dir(path))?;
        Ok(AtomicDir { temp, owned })
    }

    /// The directory to fill.
    pub fn path(&self) -> &Path {
        &self.temp.path
    }

    /// The name that the directory will have.
    pub fn target(&self) -> &Path {
        &self.temp.place.target
    }

    /// Forces everything below to the disk, gives it its name, and removes the directory it replaces.
    pub fn commit(mut self) -> Result<()> {
        let temp = &mut self.temp;
        temp.check(sync_tree(temp.fs, &temp.path))?;
        // Asked again: hours may have passed since the first time.
        self.owned.cover(&temp.place.target)?;
        let replaced = match temp.fs.rename(&temp.path, &temp.place.target) {
            // An absent or an empty directory, in one step.
            Ok(()) => None,
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
                Some(temp.exchange()?)
            }
            Err(error) => return temp.check(Err(error)),
        };
        temp.placed = true;
        // And once more, of what nobody can name any longer: a file may have come until the exchange.
        if let Some(old) = replaced.as_deref()
            && self.owned.cover(old).is_err()
        {
            temp.put_back(old)?;
            return self.owned.cover(&temp.place.target);
        }
        temp.check(temp.fs.sync_dir(temp.place.directory()))?;
        match replaced {
            Some(old) => temp.fs.remove(&old).map_err(|error| Error::io(&old, error)),
            None => Ok(()),
        }
    }
}

/// Forces every file and directory below `path` to the disk.
fn sync_tree(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(fs, &entry.path())?;
        } else if kind.is_file() {
            fs.sync(&system::open_to_sync(&entry.path())?)?;
        }
    }
    fs.sync_dir(path)
}

/// A target in a directory that exists. Symbolic links are followed, so that what they point to is replaced.
struct Place {
    target: PathBuf,
    parent: PathBuf,
    name: OsString,
}

impl Place {
    fn of(target: &Path) -> Result<Place> {
        let linked = target.is_symlink().then(|| std::fs::canonicalize(target)).transpose();
        let linked = linked.map_err(|error| Error::io(target, error))?;
        let path = linked.as_deref().unwrap_or(target);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::parameter("out", format!("{} names no file or directory", shown(target))));
        };
        let place = Place { target: parent.join(name), parent: parent.into(), name: name.into() };
        match std::fs::metadata(place.directory()) {
            Ok(found) if found.is_dir() => Ok(place),
            Ok(_) => Err(Error::io(parent, ErrorKind::NotADirectory.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let text = "no such directory. The parent of an output must exist. Create it first";
                Err(Error::io(parent, io::Error::new(ErrorKind::NotFound, text)))
            }
            Err(error) => Err(Error::io(parent, error)),
        }
    }

    /// The directory that holds the target.
    fn directory(&self) -> &Path {
        if self.parent.as_os_str().is_empty() { Path::new(".") } else { &self.parent }
    }

    /// A fresh sibling name: `.NAME.<role>-PID.COUNT`.
    fn sibling(&self, role: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut name = self.prefix(role);
        name.push(format!("{}.{}", std::process::id(), COUNT.fetch_add(1, Relaxed)));
        self.parent.join(name)
    }

    fn prefix(&self, role: &str) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(&self.name);
        prefix.push(format!(".{role}-"));
        prefix
    }

    /// Removes the temporaries of writers that died. Whatever fails here fails harmlessly: the leftover
    /// stays.
    fn sweep(&self, fs: &dyn Fs) {
        let prefix = self.prefix("tmp");
        for entry in std::fs::read_dir(self.directory()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(rest) = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes()) else {
                continue;
            };
            if !is_of_a_writer(rest) {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if !kind.is_file() && !kind.is_dir() {
                continue;
            }
            // Network file systems lock only what is open for writing. Directories cannot be.
            let opened = File::options().read(true).write(kind.is_file()).open(entry.path());
            if let Ok(leftover) = opened
                && leftover.try_lock().is_ok()
            {
                let _ = fs.remove(&entry.path());
            }
        }
    }
}

/// Whether the end of a name is `PID.COUNT`, as [`Place::sibling`] writes it. Any other name is somebody
/// else's.
fn is_of_a_writer(end: &[u8]) -> bool {
    let mut numbers = end.split(|&byte| byte == b'.');
    let mut number =
        || numbers.next().is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
    number() && number() && numbers.next().is_none()
}

/// A locked temporary beside its target. Removed when dropped, unless it got its name.
struct Temp {
    fs: &'static dyn Fs,
    place: Place,
    path: PathBuf,
    handle: File,
    owner: u32,
    placed: bool,
}

impl Temp {
    fn create(fs: &'static dyn Fs, place: Place, create: impl Fn(&Path) -> io::Result<File>) -> Result<Temp> {
        place.sweep(fs);
        loop {
            let path = place.sibling("tmp");
            let handle = match create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => created.map_err(|error| Error::io(&place.target, error))?,
            };
            let lock = handle.try_lock();
            // A sweeper that came between creation and lock holds the lock, or has removed the name.
            let swept = matches!(lock, Err(TryLockError::WouldBlock)) || system::has_no_name(&handle);
            if !swept {
                return Ok(Temp { fs, place, path, handle, owner: std::process::id(), placed: false });
            }
        }
    }

    /// `result` with the target's path.
    fn check(&self, result: io::Result<()>) -> Result<()> {
        result.map_err(|error| Error::io(&self.place.target, error))
    }

    /// Puts the temporary in the place of the target. Returns where the old target is now.
    fn exchange(&self) -> Result<PathBuf> {
        let (fs, target) = (self.fs, &self.place.target);
        match fs.exchange(&self.path, target) {
            Ok(()) => return Ok(self.path.clone()),
            Err(error) if system::is_unsupported(&error) => {}
            Err(error) => return Err(Error::io(target, error)),
        }
        let old = self.place.sibling("old");
        self.check(fs.rename(target, &old))?;
        let Err(error) = fs.rename(&self.path, target) else { return Ok(old) };
        match fs.rename(&old, target) {
            Ok(()) => Err(Error::io(target, error)),
            Err(_) => Err(self.moved(error, &old)),
        }
    }

    /// Puts the directory that was replaced, and lies at `old`, in the place of the target again.
    fn put_back(&mut self, old: &Path) -> Result<()> {
        let (fs, target) = (self.fs, &self.place.target);
        let back = match old == self.path {
            true => fs.exchange(old, target),
            false => fs.rename(target, &self.path).and_then(|()| fs.rename(old, target)),
        };
        back.map_err(|error| self.moved(error, old))?;
        self.placed = false;
        Ok(())
    }

    /// The error for a directory that could not be put back.
    fn moved(&self, error: io::Error, old: &Path) -> Error {
        let text = format!("{error}. The old directory is now {}. Rename it back", shown(old));
        Error::io(&self.place.target, io::Error::new(error.kind(), text))
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        // A forked child also drops its copy. The temporary is its parent's.
        if !self.placed && self.owner == std::process::id() {
            let _ = self.fs.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
