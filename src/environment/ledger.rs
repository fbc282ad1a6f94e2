//! What a run puts on the machine, written down before it is made.
//!
//! `<cache>/live/<run id>/` belongs to a running run: its file `owner` names the process and is locked
//! for as long as that lives, its file `things` lists what must be gone at the end. The lock, not the
//! presence of a file, says whether the run still lives: the kernel releases it on any kind of death.
//! Whoever gets the lock of a dead run (reaper, next start, `loadlab clean`) removes what is listed.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::files::{ensure_folder, failed, random_hex};
use super::{EnvironmentError, process};

/// Name of the locked file in a live folder.
const OWNER_FILE: &str = "owner";
/// Name of the list in a live folder.
const THINGS_FILE: &str = "things";
/// Folder names with this start are live folders in the making; nothing is recorded in them yet.
const UNFINISHED: &str = ".new-";

/// Something on the machine that has to be removed at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thing {
    /// A folder that did not exist before, with everything in it.
    Directory(PathBuf),
    /// A process, and everything below it.
    Process {
        /// Its number.
        pid: u32,
        /// When it started, in the unit of the system (clock ticks since boot on Linux).
        started: u64,
    },
    /// All processes whose environment has `LOADLAB_COMMAND` with this value: a client program and whatever it started.
    Marked(String),
    /// A container, by id or name.
    Container(String),
    /// A volume, by name.
    Volume(String),
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "folder {}", path.display()),
            Self::Process { pid, .. } => write!(f, "process {pid}"),
            Self::Marked(mark) => write!(f, "processes of the command {mark}"),
            Self::Container(name) => write!(f, "container {name}"),
            Self::Volume(name) => write!(f, "volume {name}"),
        }
    }
}

/// A process of one boot of one machine; as text (`pid:start:boot`) the value of the label
/// `io.loadlab.owner`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    started: u64,
    boot: String,
}

impl Owner {
    /// This process.
    pub fn this() -> Self {
        let pid = std::process::id();
        Self { pid, started: process::started(pid).unwrap_or_default(), boot: process::boot() }
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, ':');
        let pid = parts.next()?.parse().ok()?;
        let started = parts.next()?.parse().ok()?;
        Some(Self { pid, started, boot: parts.next()?.to_owned() })
    }

    /// Whether the process is provably gone: it ran in this boot, here, and is no more. Of another boot
    /// nothing can be proven, since it may be another machine that shares a container engine.
    pub fn is_gone(&self) -> bool {
        self.boot == process::boot() && process::started(self.pid) != Some(self.started)
    }

    /// Number of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.pid, self.started, self.boot)
    }
}

/// One line of the list.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Made(Thing),
    Gone(Thing),
}

/// The list of one run; its lock is held until the value is dropped.
#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    run_id: String,
    owner: Owner,
    things: Mutex<File>,
    /// Holds the lock.
    _lock: File,
}

impl Ledger {
    /// Makes `<cache>/live/<run id>/` and locks it. When a dead run of that name has left a folder that
    /// nobody has cleaned yet, the new one gets the next free name (`<run id>~2`).
    ///
    /// # Errors
    /// When the run id is not a plain name or the folder cannot be written or locked.
    pub fn open(cache: &Path, run_id: &str) -> Result<Arc<Self>, EnvironmentError> {
        if run_id.is_empty() || run_id.starts_with('.') || run_id.contains(['/', '\0']) {
            return Err(EnvironmentError::Unavailable {
                reason: format!("{run_id:?} cannot be the name of a run"),
                remedy: "use letters, digits, `-` and `_`".to_owned(),
            });
        }
        let live = live_folder(cache);
        ensure_folder(&live)?;
        let owner = Owner::this();
        let unfinished = live.join(format!("{UNFINISHED}{}-{owner}", random_hex(4)?));
        let making = || failed(format!("{}: making the folder of a live run", unfinished.display()));
        fs::create_dir(&unfinished).map_err(making())?;
        let mut lock = File::create(unfinished.join(OWNER_FILE)).map_err(making())?;
        lock.try_lock().map_err(|error| making()(error.into()))?;
        write!(lock, "{owner}").map_err(making())?;
        lock.sync_all().map_err(making())?;
        let things = OpenOptions::new().append(true).create(true).open(unfinished.join(THINGS_FILE));
        let things = things.map_err(making())?;
        // Renamed only now, so that nobody ever sees a live folder without its lock.
        let folder = take_name(&unfinished, &live, run_id)?;
        Ok(Arc::new(Self {
            folder,
            run_id: run_id.to_owned(),
            owner,
            things: Mutex::new(things),
            _lock: lock,
        }))
    }

    /// Writes a thing down, synced to the disk. Call it before the thing is made (a process: as soon as
    /// it has a number).
    ///
    /// # Errors
    /// When the list cannot be written, or the thing is a folder that exists already: that one is not ours.
    pub fn record(&self, thing: &Thing) -> Result<(), EnvironmentError> {
        if let Thing::Directory(path) = thing {
            let refuse = |why: &str| {
                failed(format!("{}: {why}", path.display()))(std::io::ErrorKind::InvalidInput.into())
            };
            if !path.is_absolute() {
                return Err(refuse("only absolute folders can be written down for removal"));
            }
            if fs::symlink_metadata(path).is_ok() {
                return Err(refuse("exists already, so it is not ours to remove"));
            }
        }
        self.append(&Line::Made(thing.clone()), true)
    }

    /// Writes down that a thing is gone.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn forget(&self, thing: &Thing) -> Result<(), EnvironmentError> {
        // Not synced: removing what is gone already does no harm.
        self.append(&Line::Gone(thing.clone()), false)
    }

    fn append(&self, line: &Line, sync: bool) -> Result<(), EnvironmentError> {
        let what = || failed(format!("{}: writing the list of things to remove", self.folder.display()));
        let mut text = serde_json::to_string(line).map_err(|error| what()(error.into()))?;
        text.push('\n');
        let mut file = self.things.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes()).map_err(what())?;
        if sync {
            file.sync_data().map_err(what())?;
        }
        Ok(())
    }

    /// What is written down and not gone.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn remaining(&self) -> Result<Vec<Thing>, EnvironmentError> {
        read_things(&self.folder)
    }

    /// Writes a file that only this account can read into the live folder; it is removed when the value is dropped,
    /// or with the folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn private_file(&self, text: &str) -> Result<PrivatePath, EnvironmentError> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.folder.join(format!("private-{}", random_hex(8)?));
        let writing = || failed(format!("{}: writing", path.display()));
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(writing())?;
        let file_there = PrivatePath(path.clone());
        file.write_all(text.as_bytes()).map_err(writing())?;
        Ok(file_there)
    }

    /// An empty folder that only this account can read, in the live folder; removed with everything in it when the
    /// value is dropped, or with the live folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn private_folder(&self) -> Result<PrivatePath, EnvironmentError> {
        let path = self.folder.join(format!("private-{}", random_hex(8)?));
        super::files::new_folder(&path, 0o700, None)?;
        Ok(PrivatePath(path))
    }

    /// The live folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run it belongs to: the value of the label `io.loadlab.run`.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The process that holds the lock: the value of the label `io.loadlab.owner`.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Drop for Ledger {
    /// Removes the live folder when nothing is left on the machine; else it stays for the next clean-up.
    fn drop(&mut self) {
        if self.remaining().is_ok_and(|things| things.is_empty()) {
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

/// A file of [`Ledger::private_file`] or a folder of [`Ledger::private_folder`].
#[derive(Debug)]
pub struct PrivatePath(PathBuf);

impl PrivatePath {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivatePath {
    fn drop(&mut self) {
        // What stays goes with the folder.
        drop(super::files::remove_tree(&self.0));
    }
}

/// Where live runs are listed.
pub(crate) fn live_folder(cache: &Path) -> PathBuf {
    cache.join("live")
}

fn take_name(unfinished: &Path, live: &Path, run_id: &str) -> Result<PathBuf, EnvironmentError> {
    let mut tries = 1;
    loop {
        let name = if tries == 1 { run_id.to_owned() } else { format!("{run_id}~{tries}") };
        let folder = live.join(name);
        // Renaming a folder onto one that is not empty fails on every Unix.
        match fs::rename(unfinished, &folder) {
            Ok(()) => return Ok(folder),
            Err(_) if folder.exists() && tries < 1000 => tries += 1,
            Err(error) => {
                return Err(failed(format!("{}: making the folder of a live run", folder.display()))(error));
            }
        }
    }
}

/// What a live folder lists as made and not gone. A last line without its end was never finished, so
/// its thing was never made.
pub(crate) fn read_things(folder: &Path) -> Result<Vec<Thing>, EnvironmentError> {
    let path = folder.join(THINGS_FILE);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed(format!("{}: reading", path.display())))?,
    };
    let mut things = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        match serde_json::from_slice(line) {
            Ok(Line::Made(thing)) => things.push(thing),
            Ok(Line::Gone(thing)) => things.retain(|known| *known != thing),
            // A line damaged by a full disk: the thing after it still has to go.
            Err(_) => {}
        }
    }
    Ok(things)
}

/// The lock of a live folder whose run is dead; `None` while it lives or when the folder is gone.
/// Waits up to `patience` for the lock.
pub(crate) fn take_over(folder: &Path, patience: Duration) -> Option<File> {
    let lock = OpenOptions::new().read(true).write(true).open(folder.join(OWNER_FILE)).ok()?;
    process::wait_until(patience, || lock.try_lock().is_ok()).then_some(lock)
}

/// Live folders, and those that a run died in while it made them.
pub(crate) fn live_runs(cache: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(live_folder(cache)) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect()
}

/// Whether the process that was making a folder under `live` is gone: by the name of the folder or,
/// after a restart of the machine, by its age.
pub(crate) fn is_abandoned(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let Some((_, maker)) = name.strip_prefix(UNFINISHED).and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    let age =
        fs::metadata(folder).and_then(|facts| facts.modified()).ok().and_then(|time| time.elapsed().ok());
    Owner::parse(maker).is_some_and(|owner| owner.is_gone())
        || age.is_some_and(|age| age > Duration::from_mins(10))
}

/// The run a live folder belongs to.
pub(crate) fn run_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.split('~').next().unwrap_or_default().to_owned()
}

/// Whether a folder under `live` is being made.
pub(crate) fn is_unfinished(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> tempfile::TempDir {
        tempfile::tempdir().expect("temporary folder")
    }

    #[test]
    fn what_is_recorded_and_not_forgotten_remains() {
        let cache = cache();
        let ledger = Ledger::open(cache.path(), "r1").expect("ledger");
        let folder = Thing::Directory(cache.path().join("new"));
        let server = Thing::Process { pid: 7, started: 8 };
        ledger.record(&folder).expect("recorded");
        ledger.record(&server).expect("recorded");
        ledger.forget(&server).expect("forgotten");
        assert_eq!(ledger.remaining().expect("list"), [folder]);
    }

    #[test]
    fn a_folder_that_exists_is_not_ours() {
        let cache = cache();
        let ledger = Ledger::open(cache.path(), "r1").expect("ledger");
        let error = ledger.record(&Thing::Directory(cache.path().to_owned())).expect_err("foreign");
        assert!(error.to_string().contains("not ours"), "{error}");
        assert!(ledger.record(&Thing::Directory("relative".into())).is_err());
    }

    #[test]
    fn the_lock_says_who_lives() {
        let cache = cache();
        let ledger = Ledger::open(cache.path(), "r1").expect("ledger");
        let folder = ledger.folder().to_owned();
        assert!(take_over(&folder, Duration::ZERO).is_none());
        ledger.record(&Thing::Volume("v".to_owned())).expect("recorded");
        drop(ledger);
        assert!(folder.exists(), "a volume is left");
        assert!(take_over(&folder, Duration::ZERO).is_some());
        let again = Ledger::open(cache.path(), "r1").expect("the next run of that name");
        assert_eq!(again.folder().file_name().expect("name"), "r1~2");
        assert_eq!(run_of(again.folder()), "r1");
        let second = again.folder().to_owned();
        drop(again);
        assert!(!second.exists(), "nothing was left");
    }

    #[test]
    fn a_folder_in_the_making_is_abandoned_when_its_maker_is_gone() {
        let cache = cache();
        let this = Owner::this();
        let dead = Owner { started: this.started + 1, ..this.clone() };
        for (owner, abandoned) in [(this, false), (dead, true)] {
            let folder = cache.path().join(format!("{UNFINISHED}0a-{owner}"));
            fs::create_dir(&folder).expect("folder");
            assert_eq!(is_abandoned(&folder), abandoned);
        }
    }

    #[test]
    fn a_torn_last_line_was_never_made() {
        let cache = cache();
        let text = "{\"made\":{\"volume\":\"a\"}}\nrubbish\n{\"made\":{\"volume\":\"b\"}}\n{\"made\":{\"vol";
        fs::write(cache.path().join(THINGS_FILE), text).expect("file");
        let things = read_things(cache.path()).expect("list");
        assert_eq!(things, [Thing::Volume("a".to_owned()), Thing::Volume("b".to_owned())]);
    }

    #[test]
    fn names_of_runs_stay_inside_the_folder() {
        let cache = cache();
        for name in ["", "..", "../x", "a/b", ".new-1"] {
            assert!(Ledger::open(cache.path(), name).is_err(), "{name}");
        }
    }

    #[test]
    fn owners_round_trip_and_the_living_are_not_gone() {
        let this = Owner::this();
        assert_eq!(Owner::parse(&this.to_string()).as_ref(), Some(&this));
        assert!(!this.is_gone());
        let dead = Owner { started: this.started + 1, ..this.clone() };
        assert!(dead.is_gone());
        let elsewhere = Owner { boot: "other".to_owned(), ..dead };
        assert!(!elsewhere.is_gone(), "another machine's process proves nothing");
        assert_eq!(Owner::parse("1:2"), None);
    }
}
