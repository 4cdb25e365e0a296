use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use tempfile::TempDir;

use super::*;

/// Fails the n-th call, once. May lack the exchange. A file may come into the target before its name changes.
struct FaultyFs {
    left: AtomicUsize,
    exchanges: bool,
    comes: Mutex<Option<PathBuf>>,
}

impl FaultyFs {
    fn new(nth: usize, exchanges: bool) -> &'static FaultyFs {
        Box::leak(Box::new(FaultyFs { left: AtomicUsize::new(nth), exchanges, comes: Mutex::default() }))
    }

    /// Never fails. The file `comes` once a name changes.
    fn busy(exchanges: bool, comes: PathBuf) -> &'static FaultyFs {
        let comes = Mutex::new(Some(comes));
        Box::leak(Box::new(FaultyFs { left: AtomicUsize::new(0), exchanges, comes }))
    }

    fn come(&self) {
        if let Some(file) = self.comes.lock().unwrap().take() {
            std::fs::write(file, "mine").unwrap();
        }
    }

    fn call<T>(&self, real: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.left.fetch_sub(1, Relaxed) == 1 {
            return Err(io::Error::from_raw_os_error(libc::EDQUOT));
        }
        real()
    }

    /// Whether the fault is still to come.
    fn unused(&self) -> bool {
        (1..usize::MAX / 2).contains(&self.left.load(Relaxed))
    }
}

impl Fs for FaultyFs {
    fn create(&self, path: &Path) -> io::Result<File> {
        self.call(|| RealFs.create(path))
    }
    fn create_dir(&self, path: &Path) -> io::Result<File> {
        self.call(|| RealFs.create_dir(path))
    }
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.call(|| RealFs.write_at(file, bytes, offset))
    }
    fn sync(&self, file: &File) -> io::Result<()> {
        self.call(|| RealFs.sync(file))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.come();
        self.call(|| RealFs.rename(from, to))
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        if !self.exchanges {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        self.call(|| RealFs.exchange(one, other))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(|| RealFs.remove(path))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.call(|| RealFs.sync_dir(path))
    }
}

fn names(directory: &Path) -> BTreeSet<OsString> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

fn only(name: &str) -> BTreeSet<OsString> {
    BTreeSet::from([name.into()])
}

fn assert_names(error: &Error, path: &Path) {
    let Error::Io { path: named, source } = error else { panic!("{error}") };
    assert_eq!((named.as_path(), source.raw_os_error()), (path, Some(libc::EDQUOT)), "{error}");
}

fn owned(files: &[&str]) -> Entries {
    Entries::new(files.iter().map(PathBuf::from))
}

#[test]
fn any_call_of_a_file_may_fail() {
    for old in [None, Some("old")] {
        let mut failures = 0;
        loop {
            let home = TempDir::new().unwrap();
            let target = home.path().join("out");
            old.inspect(|text| std::fs::write(&target, text).unwrap());
            let fs = FaultyFs::new(failures + 1, true);
            let written = AtomicFile::create_on(fs, &target).and_then(|mut file| {
                file.write_all(b"new").map_err(|error| Error::io(file.target(), error))?;
                file.write_at(b"!", 3)?;
                file.commit()
            });
            let now = std::fs::read_to_string(&target).ok();
            let Err(error) = written else {
                assert!(fs.unused());
                assert_eq!(now.as_deref(), Some("new!"));
                break;
            };
            failures += 1;
            assert_names(&error, &target);
            // The last call forces the new name to the disk, after the rename.
            assert_eq!(now.as_deref(), if failures < 6 { old } else { Some("new!") });
            assert_eq!(names(home.path()), if now.is_some() { only("out") } else { BTreeSet::new() });
        }
        // create, two writes, sync, rename, sync of the directory.
        assert_eq!(failures, 6);
    }
}

#[test]
fn any_call_of_a_directory_may_fail() {
    for (old, exchanges) in [(false, true), (true, true), (true, false)] {
        let mut failures = 0;
        loop {
            let home = TempDir::new().unwrap();
            let target = home.path().join("out");
            if old {
                std::fs::create_dir(&target).unwrap();
                std::fs::write(target.join("manifest.json"), "old").unwrap();
                std::fs::write(target.join("old part"), "old").unwrap();
            }
            let fs = FaultyFs::new(failures + 1, exchanges);
            let written = AtomicDir::create_on(fs, &target, owned(&["manifest.json", "old part"])).and_then(
                |directory| {
                    std::fs::create_dir(directory.path().join("part-0")).unwrap();
                    std::fs::write(directory.path().join("part-0/x.npy"), "new").unwrap();
                    std::fs::write(directory.path().join("manifest.json"), "new").unwrap();
                    directory.commit()
                },
            );
            let now = std::fs::read_to_string(target.join("manifest.json")).ok();
            let Err(error) = written else {
                assert!(fs.unused());
                assert_eq!(now.as_deref(), Some("new"));
                assert_eq!(names(home.path()), only("out"));
                assert_eq!(names(&target).len(), 2);
                break;
            };
            failures += 1;
            let Error::Io { path, source } = error else { panic!("{error}") };
            assert_eq!(source.raw_os_error(), Some(libc::EDQUOT));
            if path == target {
                let leftovers = names(home.path()).into_iter().filter(|name| name != "out");
                let whole = if now.as_deref() == Some("new") { "part-0" } else { "old part" };
                assert_eq!(target.join(whole).exists(), now.is_some());
                // Only the replaced directory may wait for removal.
                assert!(leftovers.count() == 0 || (old && now.as_deref() == Some("new")));
            } else {
                // The old directory could not be removed: the error says where it is.
                assert_eq!(now.as_deref(), Some("new"));
                assert_eq!(std::fs::read_to_string(path.join("manifest.json")).unwrap(), "old");
            }
            assert_eq!(now.is_some(), old || failures == 7);
        }
        // create, two files, two directories, rename, sync of the parent. If there is an old one, its
        // exchange (or two renames) and removal come on top.
        assert_eq!(failures, if !old { 7 } else { 8 + usize::from(exchanges) + 2 * usize::from(!exchanges) });
    }
}

#[test]
fn a_dropped_output_never_was() {
    let home = TempDir::new().unwrap();
    let target = home.path().join("out");
    let mut file = AtomicFile::create(&target).unwrap();
    file.write_all(&vec![0; 3 * BUFFER]).unwrap();
    assert_eq!(names(home.path()).len(), 1);
    drop(file);
    drop(AtomicDir::create(&target, owned(&["manifest.json"])).unwrap());
    assert!(names(home.path()).is_empty());
}

#[test]
fn threads_and_appends_share_a_file_of_usual_permissions() {
    let home = TempDir::new().unwrap();
    let target = home.path().join("out");
    let mut file = AtomicFile::create(&target).unwrap();
    file.write_all(b"head").unwrap();
    std::thread::scope(|scope| {
        for index in 0..4_u8 {
            let file = &file;
            scope.spawn(move || file.write_at(&[index; 1000], 4 + 1000 * u64::from(index)).unwrap());
        }
    });
    file.commit().unwrap();
    let expected: Vec<u8> = b"head".iter().copied().chain((0..4).flat_map(|index| [index; 1000])).collect();
    assert_eq!(std::fs::read(&target).unwrap(), expected);
    std::fs::write(home.path().join("usual"), "").unwrap();
    let mode = |name: &str| std::fs::metadata(home.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("out"), mode("usual"));
}

/// A sweeper may come between the steps in which a temporary is made and locked.
#[test]
fn writers_of_one_target_do_not_disturb_each_other() {
    let home = TempDir::new().unwrap();
    let target = home.path().join("out");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    drop(AtomicDir::create(&target, owned(&["manifest.json"])).unwrap());
                }
            });
        }
    });
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn leftovers_of_the_dead_are_swept_and_those_of_the_living_kept() {
    let home = TempDir::new().unwrap();
    let target = home.path().join("out");
    std::fs::write(home.path().join(".out.tmp-1.2"), "dead").unwrap();
    std::fs::create_dir(home.path().join(".out.tmp-1.7")).unwrap();
    std::fs::write(home.path().join(".out.tmp-1.7/x"), "dead").unwrap();
    let others = [
        ".out.tmp-x",
        ".out.tmp-1",
        ".out.tmp-1.",
        ".out.tmp-.1",
        ".out.tmp-1.2.3",
        ".out.old-1.1",
        ".another.tmp-1.1",
    ];
    for name in others {
        std::fs::write(home.path().join(name), "").unwrap();
    }
    let living = AtomicFile::create(&target).unwrap();
    let directory = AtomicDir::create(&target, owned(&["manifest.json"])).unwrap();
    let second = AtomicFile::create(&target).unwrap();
    assert!(living.temp.path.exists() && directory.path().exists() && second.temp.path.exists());
    assert_eq!(names(home.path()).len(), others.len() + 3);
    living.write_at(b"first", 0).unwrap();
    second.write_at(b"second", 0).unwrap();
    drop(directory);
    second.commit().unwrap();
    living.commit().unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "first");
    assert_eq!(names(home.path()).len(), others.len() + 1);
}

#[test]
fn refusals_come_first_and_name_the_path() {
    let home = TempDir::new().unwrap();
    let target = home.path().join("no/such/out");
    for error in
        [AtomicFile::create(&target).err().unwrap(), AtomicDir::create(&target, owned(&["m"])).err().unwrap()]
    {
        let Error::Io { path, source } = &error else { panic!("{error}") };
        assert_eq!((path.as_path(), source.kind()), (target.parent().unwrap(), ErrorKind::NotFound));
        assert!(error.to_string().contains("must exist"), "{error}");
    }
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below_a_file = AtomicFile::create(&file.join("out")).err();
    assert!(matches!(below_a_file, Some(Error::Io { path, .. }) if path == file));
    for (wrong, cause) in [
        (AtomicFile::create(home.path()).err(), "is a directory"),
        (AtomicFile::create(Path::new("/dev/null")).err(), "is a device"),
        (AtomicFile::create(Path::new("/")).err(), "names no file"),
        (AtomicDir::create(&file, owned(&["m"])).err(), "is a file"),
    ] {
        assert!(
            matches!(&wrong, Some(error @ Error::Parameter { name: "out", .. })
            if error.to_string().contains(cause)),
            "{wrong:?}"
        );
    }
    let refused = AtomicDir::create(home.path(), owned(&["manifest.json"])).err().unwrap();
    assert!(refused.to_string().contains("did not write there: file. Move it"), "{refused}");
    assert_eq!(names(home.path()), only("file"));
}

#[test]
fn only_listed_entries_are_replaced_and_others_are_named() {
    let home = TempDir::new().unwrap();
    let (target, entries) = (home.path().join("out"), owned(&["m", "part/x", "part/deep/y"]));
    std::fs::create_dir_all(target.join("part/deep")).unwrap();
    for file in ["m", "part/x", "part/deep/y"] {
        std::fs::write(target.join(file), "ours").unwrap();
    }
    assert!(entries.cover(&target).is_ok());
    for foreign in ["part/notes", "part/deep/x", "a", "b/c", "run/best.pt"] {
        let file = target.join(foreign);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "mine").unwrap();
    }
    let refused = AtomicDir::create(&target, entries.clone()).err().unwrap().to_string();
    assert!(refused.contains("there: a, b, part/deep/x, 2 more. Move"), "{refused}");
    // A folder in place of a listed file, and a file in place of a listed folder.
    let other = home.path().join("other");
    std::fs::create_dir_all(other.join("m")).unwrap();
    std::fs::write(other.join("part"), "").unwrap();
    let refused = entries.cover(&other).err().unwrap().to_string();
    assert!(refused.contains("there: m, part. Move"), "{refused}");
    assert!(entries.cover(&home.path().join("absent")).is_ok());
}

#[test]
fn a_directory_that_filled_meanwhile_is_kept() {
    let home = TempDir::new().unwrap();
    let target = home.path().join("out");
    std::fs::create_dir(&target).unwrap();
    let directory = AtomicDir::create(&target, owned(&["manifest.json"])).unwrap();
    std::fs::write(target.join("thesis.tex"), "").unwrap();
    assert!(matches!(directory.commit(), Err(Error::Parameter { .. })));
    assert_eq!((names(home.path()), names(&target)), (only("out"), only("thesis.tex")));
}

#[test]
fn what_came_just_before_the_exchange_is_kept_and_the_old_directory_put_back() {
    for exchanges in [true, false] {
        let home = TempDir::new().unwrap();
        let target = home.path().join("out");
        std::fs::create_dir(&target).unwrap();
        std::fs::write(target.join("m"), "old").unwrap();
        let fs = FaultyFs::busy(exchanges, target.join("thesis.tex"));
        let directory = AtomicDir::create_on(fs, &target, owned(&["m"])).unwrap();
        std::fs::write(directory.path().join("m"), "new").unwrap();
        let refused = directory.commit().err().unwrap().to_string();
        assert!(refused.contains("out holds what fastpart did not write there: thesis.tex"), "{refused}");
        assert_eq!(names(home.path()), only("out"));
        assert_eq!(std::fs::read_to_string(target.join("m")).unwrap(), "old");
        assert_eq!(std::fs::read_to_string(target.join("thesis.tex")).unwrap(), "mine");
    }
}

#[test]
fn names_may_be_any_bytes_and_links_are_followed() {
    let home = TempDir::new().unwrap();
    let odd = home.path().join(OsStr::from_bytes(b"a\nb \xff"));
    write_file(&odd, b"odd").unwrap();
    let link = home.path().join("link");
    symlink(&odd, &link).unwrap();
    write_file(&link, b"linked").unwrap();
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&odd).unwrap(), b"linked");
    let dir = home.path().join(OsStr::from_bytes(b"d\xff"));
    for _ in 0..2 {
        let directory = AtomicDir::create(&dir, owned(&["m"])).unwrap();
        std::fs::write(directory.path().join("m"), "").unwrap();
        directory.commit().unwrap();
    }
    assert_eq!(names(home.path()).len(), 3);
}
