//! One run's folder: `results/<experiment>/<run>/`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::error::{StoreError, io};
use super::files::{remove_leftovers, sync_folder, write_bytes};
use super::inputs;
use super::journal::{Event, Journal, append, encode};
use super::kept::{is_kept, journal_bytes};
use super::lock_file::{ExperimentLock, LOCK_FILE, LockFile};
use super::manifest::{RunManifest, check_name};
use super::parquet;
use super::redact::{redact, redact_json};
use super::schema::SCHEMA_VERSION;
use crate::model::{Input, PlannedTrial, TrialRecord};

const MANIFEST: &str = "run.json";
pub(super) const JOURNAL: &str = "journal.jsonl";
pub(super) const LOCK: &str = ".lock";
/// Space kept back, so that the trial that finds the disk full can still be written down.
pub(super) const RESERVE: &str = ".reserve";
const RESERVE_BYTES: usize = 1 << 20;

/// A run being written by this process, which holds the lock on it until this value is dropped.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    manifest: RunManifest,
    journal: File,
    _lock: File,
}

/// A run as read, without a lock.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The folder.
    pub path: PathBuf,
    /// `run.json`.
    pub manifest: RunManifest,
    /// The journal.
    pub journal: Journal,
}

impl RunFolder {
    /// Makes `results/<experiment>/<run>/` with lock, journal and `run.json`, all synced.
    pub fn create(results: &Path, manifest: &RunManifest) -> Result<Self, StoreError> {
        check_name("experiment", &manifest.experiment)?;
        check_name("run", &manifest.run)?;
        let experiment = results.join(&manifest.experiment);
        fs::create_dir_all(&experiment).map_err(io("create", &experiment))?;
        refuse_link(&experiment)?;
        let path = experiment.join(&manifest.run);
        fs::create_dir(&path).map_err(io("create", &path))?;
        let lock = lock(&path)?;
        let journal_path = path.join(JOURNAL);
        let journal = OpenOptions::new().create_new(true).append(true).open(&journal_path);
        let folder = Self {
            journal: journal.map_err(io("create", &journal_path))?,
            manifest: manifest.clone(),
            _lock: lock,
            path,
        };
        folder.reserve()?;
        folder.write_manifest()?;
        sync_folder(&experiment)?;
        sync_folder(results)?;
        Ok(folder)
    }

    /// Opens a run to continue it. Leftovers of interrupted writes are removed, a torn end of the journal is cut off. A kept run is
    /// refused: it is finished.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let manifest = read_manifest(path)?;
        refuse_link(path)?;
        if is_kept(path) {
            return Err(StoreError::Kept { path: path.to_owned() });
        }
        let lock = lock(path)?;
        remove_leftovers(path)?;
        let journal_path = path.join(JOURNAL);
        let bytes = fs::read(&journal_path).map_err(io("read", &journal_path))?;
        let journal =
            OpenOptions::new().append(true).open(&journal_path).map_err(io("open", &journal_path))?;
        let folder = Self { path: path.to_owned(), manifest, journal, _lock: lock };
        let torn = Journal::parse(&bytes).torn_bytes;
        if torn > 0 {
            folder.journal.set_len(bytes.len() as u64 - torn).map_err(io("repair", &journal_path))?;
            folder.journal.sync_all().map_err(io("sync", &journal_path))?;
        }
        folder.reserve()?;
        Ok(folder)
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest as last written.
    #[must_use]
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// Changes the manifest and rewrites `run.json`.
    pub fn update_manifest(&mut self, change: impl FnOnce(&mut RunManifest)) -> Result<(), StoreError> {
        change(&mut self.manifest);
        self.write_manifest()
    }

    /// Notes that a trial begins.
    pub fn started(&mut self, trial: &PlannedTrial, attempt: u32) -> Result<(), StoreError> {
        self.append(&Event::Started { trial: trial.clone(), attempt, at: Timestamp::now() }, trial.number)
    }

    /// Stores a finished trial; it is on disk when this returns. [`StoreError::DiskFull`] with `kept` means the same, and that no
    /// further trial should be started.
    pub fn finished(&mut self, record: &TrialRecord) -> Result<(), StoreError> {
        self.append(&Event::Finished(Box::new(record.clone())), record.trial.number)
    }

    /// Notes that a trial was found without an end.
    pub fn lost(&mut self, trial: u64, attempt: u32) -> Result<(), StoreError> {
        self.append(&Event::Lost { trial, attempt }, trial)
    }

    /// Notes that a trial was given up without a record.
    pub fn cancelled(&mut self, trial: u64, attempt: u32) -> Result<(), StoreError> {
        self.append(&Event::Cancelled { trial, attempt }, trial)
    }

    /// Keeps what a client program printed, passwords removed, as a file of the run: `output/<file>`.
    pub fn keep(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let path = self.path.join(name);
        let folder = path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder).map_err(io("create", folder))?;
        refuse_link(folder)?;
        write_bytes(&path, redact(text).as_bytes())
    }

    /// Keeps the copy of a file that shaped the run, as `inputs/<name>`.
    pub fn keep_input(&self, input: &Input, bytes: &[u8]) -> Result<(), StoreError> {
        inputs::keep(&self.path, &input.name, bytes, input.executable)
    }

    /// Writes the run's own `loadlab.lock`.
    pub fn write_lock(&self, lock: ExperimentLock) -> Result<(), StoreError> {
        LockFile::of(&self.manifest.experiment, lock).write(&self.path.join(LOCK_FILE))
    }

    /// Writes a sentence into the journal.
    pub fn note(&mut self, text: &str) -> Result<(), StoreError> {
        self.append(&Event::Note { at: Timestamp::now(), text: text.to_owned() }, 0)
    }

    /// The journal as it is on disk.
    pub fn journal(&self) -> Result<Journal, StoreError> {
        read_journal(&self.path)
    }

    /// The latest finished attempt of every trial, by trial number.
    pub fn records(&self) -> Result<Vec<TrialRecord>, StoreError> {
        Ok(self.journal()?.records())
    }

    /// Writes all Parquet files from the journal; each appears under its name only when it is whole.
    pub fn write_parquet(&self) -> Result<(), StoreError> {
        parquet::write_all(&self.path, &self.manifest, &self.records()?)
    }

    fn write_manifest(&self) -> Result<(), StoreError> {
        let path = self.path.join(MANIFEST);
        let json = |source| StoreError::Json { what: "a run manifest", path: path.clone(), source };
        let mut value = serde_json::to_value(&self.manifest).map_err(json)?;
        redact_json(&mut value);
        let text = serde_json::to_string_pretty(&value).map_err(json)?;
        write_bytes(&path, format!("{text}\n").as_bytes())
    }

    fn append(&mut self, event: &Event, trial: u64) -> Result<(), StoreError> {
        let path = self.path.join(JOURNAL);
        let line =
            encode(event).map_err(|source| StoreError::NotStorable { path: path.clone(), trial, source })?;
        let outcome = append(&mut self.journal, &path, &line);
        let reserve = self.path.join(RESERVE);
        if matches!(outcome, Err(StoreError::DiskFull { .. })) && fs::remove_file(&reserve).is_ok() {
            append(&mut self.journal, &path, &line)?;
            return Err(StoreError::DiskFull { path, kept: true });
        }
        outcome
    }

    /// Zeros would be stored as a hole or compressed by some file systems; these bytes are neither.
    fn reserve(&self) -> Result<(), StoreError> {
        let path = self.path.join(RESERVE);
        if fs::metadata(&path).is_ok_and(|found| found.len() == RESERVE_BYTES as u64) {
            return Ok(());
        }
        let mut bytes = vec![0_u8; RESERVE_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| io("fill", &path)(std::io::Error::other(error)))?;
        write_bytes(&path, &bytes)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // Only space: the next writer makes it again.
        let _ = fs::remove_file(self.path.join(RESERVE));
    }
}

/// Reads a run without locking it; another process may be writing to it.
pub fn read_run(path: &Path) -> Result<StoredRun, StoreError> {
    Ok(StoredRun { path: path.to_owned(), manifest: read_manifest(path)?, journal: read_journal(path)? })
}

/// The newest run of an experiment, or of all experiments; `None` when there is none.
pub fn newest_run(results: &Path, experiment: Option<&str>) -> Result<Option<PathBuf>, StoreError> {
    let experiments = match experiment {
        Some(name) => {
            check_name("experiment", name)?;
            vec![results.join(name)]
        }
        None => folders(results)?,
    };
    let mut runs = Vec::new();
    for folder in &experiments {
        runs.extend(runs_below(folder)?);
    }
    Ok(runs.into_iter().max_by(|a, b| a.file_name().cmp(&b.file_name())))
}

/// All runs of an experiment, the newest last.
pub(super) fn runs_of(results: &Path, experiment: &str) -> Result<Vec<PathBuf>, StoreError> {
    check_name("experiment", experiment)?;
    let mut runs = runs_below(&results.join(experiment))?;
    runs.sort();
    Ok(runs)
}

fn runs_below(experiment: &Path) -> Result<Vec<PathBuf>, StoreError> {
    Ok(folders(experiment)?.into_iter().filter(|run| run.join(MANIFEST).is_file()).collect())
}

fn folders(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(path).map_err(io("read", path))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    Ok(paths.map_err(io("read", path))?.into_iter().filter(|path| path.is_dir()).collect())
}

fn read_manifest(path: &Path) -> Result<RunManifest, StoreError> {
    let file = path.join(MANIFEST);
    if !file.is_file() {
        return Err(StoreError::NotARun { path: path.to_owned(), reason: format!("it has no {MANIFEST}") });
    }
    let bytes = fs::read(&file).map_err(io("read", &file))?;
    let json = |source| StoreError::Json { what: "a run manifest", path: file.clone(), source };
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(json)?;
    let found = value.get("schema_version").and_then(serde_json::Value::as_u64).unwrap_or_default();
    if found > u64::from(SCHEMA_VERSION) {
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        return Err(StoreError::TooNew { path: file, found, known: SCHEMA_VERSION });
    }
    serde_json::from_value(value).map_err(json)
}

fn read_journal(path: &Path) -> Result<Journal, StoreError> {
    Ok(Journal::parse(&journal_bytes(path)?))
}

fn refuse_link(path: &Path) -> Result<(), StoreError> {
    let found = fs::symlink_metadata(path).map_err(io("read", path))?;
    if found.is_symlink() {
        return Err(StoreError::Link { path: path.to_owned() });
    }
    Ok(())
}

/// Takes the writer's lock. The lock itself decides, not the file: after a kill the file stays and the lock is gone.
pub(super) fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let open = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
    let mut file = open.map_err(io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::Locked { path: folder.to_owned(), owner: owner(&path) });
        }
        Err(TryLockError::Error(source)) => return Err(StoreError::Io { action: "lock", path, source }),
    }
    file.set_len(0).map_err(io("write", &path))?;
    write!(file, "{}", std::process::id()).map_err(io("write", &path))?;
    Ok(file)
}

fn owner(path: &Path) -> String {
    let pid = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
