//! Kept runs: a finished run, packed so that it can live in a repository, and read like any other.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::error::{StoreError, io};
use super::files::write_bytes;
use super::folder::{JOURNAL, LOCK, RESERVE, RunFolder, StoredRun, lock, read_run};
use super::journal::Journal;
use super::parquet;

/// The journal of a kept run. Its bytes, unpacked, are those of `journal.jsonl`.
const PACKED: &str = "journal.jsonl.gz";

/// What keeping a run gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Whether the run was packed before.
    pub before: bool,
    /// Size of the journal, bytes.
    pub journal_bytes: u64,
    /// Its size packed, bytes.
    pub packed_bytes: u64,
    /// Files in the folder, with their sizes in bytes, by name.
    pub files: Vec<(String, u64)>,
}

/// Packs a finished run for a repository: Parquet made again from the journal, the journal compressed, what only a writer needs
/// removed. A kill at any moment leaves a folder that can still be read, and packed again.
///
/// # Errors
/// [`StoreError::NotKeepable`] for a run that is not finished, a smoke run and a damaged journal.
pub fn keep(path: &Path) -> Result<Kept, StoreError> {
    let before = is_kept(path);
    if !before {
        // Cuts off a torn end and removes leftovers; the lock says that nobody is writing.
        let folder = RunFolder::open(path)?;
        let run = read_run(path)?;
        if let Some(reason) = not_keepable(&run) {
            return Err(StoreError::NotKeepable { path: path.to_owned(), reason });
        }
        folder.write_parquet()?;
        pack(path)?;
    }
    for name in [LOCK, RESERVE] {
        remove(&path.join(name))?;
    }
    let unpacked = unpack(&path.join(PACKED))?;
    let packed = fs::metadata(path.join(PACKED)).map_err(io("read", path))?;
    let mut files = Vec::new();
    sizes(path, path, &mut files)?;
    files.sort();
    Ok(Kept { before, journal_bytes: unpacked.len() as u64, packed_bytes: packed.len(), files })
}

/// Whether the run in a folder was packed by [`keep`].
#[must_use]
pub fn is_kept(path: &Path) -> bool {
    path.join(PACKED).is_file() && !path.join(JOURNAL).is_file()
}

/// Kept runs of an experiment, the newest last.
pub fn kept_runs(results: &Path, experiment: &str) -> Result<Vec<PathBuf>, StoreError> {
    let mut runs = super::folder::runs_of(results, experiment)?;
    runs.retain(|run| is_kept(run));
    Ok(runs)
}

/// Makes the Parquet files of a run again from its journal, kept or not.
pub fn rewrite(path: &Path) -> Result<(), StoreError> {
    if !is_kept(path) {
        return RunFolder::open(path)?.write_parquet();
    }
    let held = lock(path)?;
    let run = read_run(path)?;
    parquet::write_all(path, &run.manifest, &run.journal.records())?;
    remove(&path.join(LOCK))?;
    drop(held);
    Ok(())
}

/// The bytes of a run's journal, packed or not.
pub(super) fn journal_bytes(folder: &Path) -> Result<Vec<u8>, StoreError> {
    if is_kept(folder) {
        return unpack(&folder.join(PACKED));
    }
    let file = folder.join(JOURNAL);
    fs::read(&file).map_err(io("read", &file))
}

/// Why a run must not be kept, if it must not.
fn not_keepable(run: &StoredRun) -> Option<String> {
    if run.manifest.smoke {
        return Some("it is a smoke run, whose numbers prove nothing".to_owned());
    }
    if let Some(complaint) = run.journal.complaints().first() {
        return Some(format!("its journal is damaged: {complaint}"));
    }
    let (done, planned) = (run.journal.done().len() as u64, run.manifest.trials_planned);
    if run.manifest.ended_at.is_none() || !(done == planned || run.manifest.ended_by_rule.is_some()) {
        let why = run.journal.last_note().map(|note| format!(" (its last note: {note})")).unwrap_or_default();
        return Some(format!(
            "it is not finished: {done} of {planned} trials are done{why}; complete it with `run --resume`"
        ));
    }
    let measured = |journal: &Journal| journal.records().iter().any(|record| !record.measurements.is_empty());
    (!measured(&run.journal)).then(|| "nothing was measured in it".to_owned())
}

/// Writes the packed journal, reads it back, and only then removes the other.
fn pack(folder: &Path) -> Result<(), StoreError> {
    let (plain, packed) = (folder.join(JOURNAL), folder.join(PACKED));
    let bytes = fs::read(&plain).map_err(io("read", &plain))?;
    // No name and no time in its head: the same journal always gives the same file.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes).map_err(io("pack", &packed))?;
    write_bytes(&packed, &encoder.finish().map_err(io("pack", &packed))?)?;
    if unpack(&packed)? != bytes {
        let reason = "its journal does not come back as it was packed; the disk may be faulty".to_owned();
        return Err(StoreError::NotKeepable { path: folder.to_owned(), reason });
    }
    remove(&plain)
}

fn unpack(path: &Path) -> Result<Vec<u8>, StoreError> {
    let packed = fs::read(path).map_err(io("read", path))?;
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).map_err(io("unpack", path))?;
    Ok(bytes)
}

/// Removes a file that may be missing.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Files below a folder, with sizes.
fn sizes(root: &Path, folder: &Path, found: &mut Vec<(String, u64)>) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(io("read", folder))? {
        let entry = entry.map_err(io("read", folder))?;
        let (path, about) = (entry.path(), entry.metadata().map_err(io("read", folder))?);
        if about.is_dir() {
            sizes(root, &path, found)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.push((name, about.len()));
        }
    }
    Ok(())
}
