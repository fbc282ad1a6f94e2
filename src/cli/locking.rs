//! What is found is held against a lock: the project's, or that of the run that is repeated or resumed.

use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::run::RunArguments;
use super::say;
use crate::model::{Input, PinnedServer};
use crate::spec::Spec;
use crate::store::{Drift, ExperimentLock, LOCK_FILE, LockFile};

/// A lock, where it stands, and what drift means.
pub(super) struct Locking {
    lock: Option<ExperimentLock>,
    /// For messages.
    place: String,
    /// Whether drift ends the run.
    refuse: bool,
    /// Whether the locked servers are preferred where an environment leaves a choice.
    prefer: bool,
    /// Whether trials of the same run were made with the locked servers.
    resumed: bool,
}

impl Locking {
    /// The lock of a run about to begin.
    ///
    /// # Errors
    /// When `--locked` finds no lock, or the lock cannot be read.
    pub(super) fn of_run(
        arguments: &RunArguments,
        resumed: Option<&Path>,
        spec: &Spec,
    ) -> Result<Self, Failure> {
        let refuse = arguments.lock.locked;
        if let Some(run) = &arguments.repeat.of {
            let (lock, place) = (arguments.repeat.lock.clone(), format!("{LOCK_FILE} of run {run}"));
            if refuse && lock.is_none() {
                return Err(Failure::wrong(format!(
                    "error: run {run} has no {LOCK_FILE} (it is of an older loadlab): repeat it without --locked"
                )));
            }
            return Ok(Self { lock, place, refuse, prefer: true, resumed: false });
        }
        let path = resumed.map_or_else(|| root(&spec.file).join(LOCK_FILE), |run| run.join(LOCK_FILE));
        let file = match LockFile::read(&path) {
            Ok(file) => file,
            // A file, and the person's own to mend; without --locked nobody asked for it.
            Err(error) if refuse => return Err(Failure::wrong(format!("error: --locked: {error}"))),
            Err(error) => {
                say(&format!("note: {error}; it is left out of account"));
                None
            }
        };
        if let Some(run) = resumed.filter(|_| refuse && file.is_none()) {
            return Err(Failure::wrong(format!(
                "error: --locked: the run {} has no lock (an older loadlab made it): resume it without --locked",
                run.display()
            )));
        }
        let none = if file.is_some() { "no entry of this experiment" } else { "not there" };
        let lock = file.and_then(|mut file| file.experiments.remove(&spec.name));
        if refuse && lock.is_none() {
            return Err(Failure::wrong(format!(
                "error: --locked: {}: {none}; write it with `loadlab lock {}`",
                path.display(),
                spec.file.display()
            )));
        }
        let resumed = resumed.is_some();
        Ok(Self { lock, place: path.display().to_string(), refuse, prefer: refuse || resumed, resumed })
    }

    /// Servers to prefer.
    pub(super) fn earlier(&self) -> Vec<PinnedServer> {
        let lock = self.lock.as_ref().filter(|_| self.prefer);
        lock.map(|lock| lock.servers.clone()).unwrap_or_default()
    }

    /// Holds the files against the lock.
    ///
    /// # Errors
    /// With `--locked`, when one is not as it was: exit code 2.
    pub(super) fn inputs(&self, found: &[Input]) -> Result<(), Failure> {
        let drift = self.lock.as_ref().map(|lock| lock.input_drift(found)).unwrap_or_default();
        self.tell(&drift, Failure::wrong)
    }

    /// Holds the servers against the lock.
    ///
    /// # Errors
    /// With `--locked`, when one is not as it was: exit code 3.
    pub(super) fn servers(&self, found: &[PinnedServer]) -> Result<(), Failure> {
        let drift = self.lock.as_ref().map(|lock| lock.server_drift(found)).unwrap_or_default();
        if self.resumed && !drift.is_empty() {
            // Half of the trials on another server would be no run.
            let lines: Vec<String> = drift.iter().map(Drift::to_string).collect();
            return Err(Failure::environment(format!(
                "error: the servers are not those that the run was begun with:\n  {}\n  what to do: bring them back, or start a new run",
                lines.join("\n  ")
            )));
        }
        self.tell(&drift, Failure::environment)
    }

    fn tell(&self, drift: &[Drift], failure: fn(String) -> Failure) -> Result<(), Failure> {
        if drift.is_empty() {
            return Ok(());
        }
        if self.refuse {
            let lines: Vec<String> = drift.iter().map(Drift::to_string).collect();
            return Err(failure(format!(
                "error: --locked: not as in {}:\n  {}",
                self.place,
                lines.join("\n  ")
            )));
        }
        for line in drift {
            say(&format!(
                "note: not as in {}: {}: was {}, is {}",
                self.place, line.what, line.locked, line.found
            ));
        }
        Ok(())
    }
}

/// The folder of a project's lock: the nearest one above an experiment file that has a lock or `environments/`, else
/// the file's own.
pub(super) fn root(experiment: &Path) -> PathBuf {
    let own = experiment.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let absolute = std::path::absolute(own).unwrap_or_else(|_| own.to_owned());
    let is_root = |folder: &&Path| folder.join(LOCK_FILE).is_file() || folder.join("environments").is_dir();
    absolute.ancestors().find(is_root).map_or_else(|| own.to_owned(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_where_environments_or_a_lock_are() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/experiments/deep");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(root(&deep.join("x.yaml")), deep);
        std::fs::create_dir(folder.path().join("environments")).unwrap();
        assert_eq!(root(&deep.join("x.yaml")), folder.path());
        std::fs::write(folder.path().join("a").join(LOCK_FILE), "").unwrap();
        assert_eq!(root(&deep.join("x.yaml")), folder.path().join("a"));
    }
}
