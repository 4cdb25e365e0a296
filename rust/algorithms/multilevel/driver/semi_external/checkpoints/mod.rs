//! Checkpoints: what a partition with levels in files has found so far, in a directory, so that a killed run
//! goes on.
//!
//! **Steps.** Each is a file of its own, which is there as a whole or not at all ([`output::AtomicFile`]):
//! `clusters-0` the clusters of the graph, `lists-0` the graph that they make, `clusters-1`, and so on.
//! `parts-2` are the parts of the top if there are two levels, `parts-1` the refined parts of the level above
//! it, and `parts-0` the parts of the graph. A step that is there is read instead of made. Every step depends
//! on the graph, the parameters and the steps before it only. So the result is the same as without an
//! interruption, wherever that was.
//!
//! **Identity.** `checkpoint.txt` lists the graph and the parameters, one in a line. A run with others
//! refuses the directory and names the first that differs. The plan is also listed. A run that leaves the
//! plan open takes the one that is there, even if another memory limit would choose another one.
//!
//! **Damage.** A step carries a checksum of that list and one of its content, and ids are compared with their
//! bounds. A step that does not agree is made again, and the run says so. A lock keeps a second run out. The
//! operating system frees it when a process dies.
//!
//! **Files of others.** The directory may hold any. The steps in it are fastpart's if `checkpoint.txt` is
//! there. Without it, a file with the name of a step is refused. When the partition is done, the steps that
//! it read or wrote are removed, then `checkpoint.txt`, `checkpoint.lock`, and nothing else. A run that gets
//! the lock of a file which has lost its name meanwhile takes the lock again. A note names files that cannot
//! be removed.
//!
//! **Disk.** 4 bytes per vertex for clusters and for parts of each level, and 8 per entry for lists: once
//! more what the levels take, until the partition is done.

mod steps;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use super::path;
use super::path::Plan;
use crate::algorithms::multilevel::driver::Multilevel;
use crate::base::regular_file::open_own;
use crate::base::system::has_no_name;
use crate::base::{Error, Result, Run, output, shown};
use crate::graph::Csr;
pub(crate) use steps::{clusters, lists, parts};

/// The beginning of the names of all files.
const PREFIX: &str = "checkpoint";
/// The kinds of steps.
const KINDS: [&str; 3] = ["clusters", "lists", "parts"];
/// Most bytes of a list of graph and parameters.
const LONGEST_LIST: u64 = 1 << 16;

/// The checkpoints of a run.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    dir: PathBuf,
    /// Hash of the list of graph and parameters.
    key: u128,
    /// Names of the steps that were read or written.
    steps: Mutex<Vec<String>>,
    /// Locked as long as this lives.
    _lock: File,
}

impl Multilevel {
    /// Everything that the result depends on, one `name=value` per line, without the plan.
    fn identity(&self, csr: &Csr) -> String {
        let graph = csr.graph();
        let weights = csr.extent().map_or("none", |extent| &extent.checksum);
        let mut lines = vec![
            format!("fastpart={}", env!("CARGO_PKG_VERSION")),
            format!("n={}", graph.n),
            format!("m={}", graph.m),
            format!("checksum={}", graph.checksum),
            format!("weights={weights}"),
            format!("symmetric={}", csr.is_symmetric()),
            format!("effort={:?}", self.effort),
        ];
        lines.extend(self.goal.identity(graph.n));
        lines.join("\n") + "\n"
    }

    /// The plan, and the checkpoints in the directory that was given, if the plan has levels in files.
    pub(crate) fn plan_with_checkpoints(&self, csr: &Csr, run: &Run) -> Result<(Plan, Option<Checkpoints>)> {
        let (n, entries) = (csr.graph().n, csr.most_entries());
        let Some(dir) = &self.checkpoints else { return Ok((self.plan(n, entries, run)?, None)) };
        let list = list_of(dir);
        if !is_there(&list)? {
            let plan = self.plan(n, entries, run)?;
            if plan.path.levels() == 0 {
                run.note("multilevel: no checkpoints, since all levels fit into memory");
                return Ok((plan, None));
            }
        }
        let identity = self.identity(csr);
        let lock = locked(dir)?;
        let stored = read_list(&list)?;
        let plan = match &stored {
            None => {
                refuse_steps(dir)?;
                self.plan(n, entries, run)?
            }
            Some(stored) => {
                let plan = stored_plan(stored, &identity).map_err(|what| refused(dir, &what))?;
                if self.path.is_some_and(|path| path != plan.path)
                    || self.sample.is_some_and(|sample| sample != plan.sample)
                {
                    return Err(refused(dir, &format!("{} there, another plan here", line_of(plan))));
                }
                let same = Multilevel { path: Some(plan.path), sample: Some(plan.sample), ..self.clone() };
                same.validate_plan()?;
                run.note(format!("multilevel: goes on from the checkpoints in {}", shown(dir)));
                same.plan(n, entries, run)?
            }
        };
        let text = format!("{identity}{}\n", line_of(plan));
        if stored.is_none() {
            output::write_file(&list, text.as_bytes())?;
        }
        let key = xxh3_128(text.as_bytes());
        Ok((plan, Some(Checkpoints { dir: dir.clone(), key, steps: Mutex::default(), _lock: lock })))
    }
}

fn list_of(dir: &Path) -> PathBuf {
    dir.join(format!("{PREFIX}.txt"))
}

fn lock_of(dir: &Path) -> PathBuf {
    dir.join(format!("{PREFIX}.lock"))
}

/// Whether there is anything of that name.
fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, error)),
    }
}

/// Opens a file of checkpoints. Neither a FIFO nor a terminal of that name may stop the run, and no link may
/// lead out of the folder.
fn opened(path: &Path, options: &mut OpenOptions) -> Result<File> {
    open_own(path, options).map_err(|error| match error {
        Error::NotARegularFile { path, kind } => {
            let what = format!("{} is {kind} and no file of checkpoints. Name another folder", shown(&path));
            Error::parameter("checkpoints", what)
        }
        other => other,
    })
}

/// The list of graph and parameters, if it is there. Text that cannot be one is empty.
fn read_list(path: &Path) -> Result<Option<String>> {
    if !is_there(path)? {
        return Ok(None);
    }
    let file = opened(path, File::options().read(true))?;
    let mut bytes = Vec::new();
    file.take(LONGEST_LIST).read_to_end(&mut bytes).map_err(|error| Error::io(path, error))?;
    Ok(Some(String::from_utf8(bytes).unwrap_or_default()))
}

/// Refuses a directory without a list, in which some file has the name of a step: that file belongs to
/// somebody else.
fn refuse_steps(dir: &Path) -> Result<()> {
    let io = |error| Error::io(dir, error);
    for entry in fs::read_dir(dir).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        if name.to_str().is_some_and(is_step) {
            let what = format!(
                "{} would be overwritten, and {PREFIX}.txt, which would say what it is, is not there. Name another folder",
                shown(&dir.join(name))
            );
            return Err(Error::parameter("checkpoints", what));
        }
    }
    Ok(())
}

fn is_step(file: &str) -> bool {
    let step = file.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".bin"));
    step.and_then(|step| step.split_once('-')).is_some_and(|(kind, level)| {
        KINDS.contains(&kind) && !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn line_of(Plan { path, sample }: Plan) -> String {
    format!("path={}, sample={sample}", path.name())
}

/// The plan in a list that agrees with `identity`, or the first line that does not.
fn stored_plan(stored: &str, identity: &str) -> Result<Plan, String> {
    let mut lines = stored.lines();
    for here in identity.lines() {
        match lines.next() {
            Some(there) if there == here => {}
            Some(there) => return Err(format!("{there} there, {here} here")),
            None => return Err(format!("nothing there, {here} here")),
        }
    }
    let last = lines.next().unwrap_or_default();
    let plan = last.strip_prefix("path=").and_then(|rest| rest.split_once(", sample=")).and_then(
        |(name, sample)| {
            let path = path::Path::named(name)?;
            Some(Plan { path, sample: sample.parse().ok()? })
        },
    );
    plan.ok_or_else(|| "no plan there".into())
}

fn refused(dir: &Path, what: &str) -> Error {
    let text = format!(
        "{} is of another run ({what}). Name another folder, or let that run finish first",
        shown(&list_of(dir))
    );
    Error::parameter("checkpoints", text)
}

/// The lock of the directory, which is made if it is absent.
fn locked(dir: &Path) -> Result<File> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(Error::io(dir, error)),
        _ => {}
    }
    let path = lock_of(dir);
    loop {
        let file = opened(&path, File::options().create(true).truncate(false).write(true))?;
        match file.try_lock() {
            // A run that is done has removed it between the two calls.
            Ok(()) if has_no_name(&file) => {}
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                let what =
                    format!("another run is at work in {}. Wait for it, or name another folder", shown(dir));
                return Err(Error::parameter("checkpoints", what));
            }
            Err(TryLockError::Error(error)) => return Err(Error::io(&path, error)),
        }
    }
}

impl Checkpoints {
    /// Removes the steps of the finished run, then the list: without that, what is left would be somebody
    /// else's. The lock, which is held, is the last. The partition is there already, so what cannot be
    /// removed is only told.
    pub(crate) fn remove(&self, run: &Run) {
        let steps = std::mem::take(&mut *self.steps());
        let files = steps.iter().map(|name| self.path(name)).chain([list_of(&self.dir), lock_of(&self.dir)]);
        let failed =
            files.map(|path| fs::remove_file(&path).map_err(|error| (path, error))).find_map(Result::err);
        if let Some((path, error)) = failed {
            run.note(format!(
                "multilevel: the partition is done, but {} of its checkpoints stays: {error}",
                shown(&path)
            ));
        }
    }

    fn steps(&self) -> MutexGuard<'_, Vec<String>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{PREFIX}-{name}.bin"))
    }
}
