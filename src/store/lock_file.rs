//! `loadlab.lock`: what the files and servers of experiments were, and how what is found now differs from it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{StoreError, io};
use super::files::write_bytes;
use super::manifest::ToolVersion;
use crate::model::{Input, PinnedServer};

/// Name of the file, in a project's folder and in each run's.
pub const LOCK_FILE: &str = "loadlab.lock";
/// Version of the format.
const VERSION: u32 = 1;
const HEADER: &str = "# Written by loadlab; `loadlab lock FILE` renews the entry of an experiment.\n";
/// Digits of a checksum that are shown.
const SHOWN: usize = 12;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockFile {
    /// Version of the format.
    pub version: u32,
    /// By the name of the experiment.
    pub experiments: BTreeMap<String, ExperimentLock>,
}

/// What one experiment was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentLock {
    /// Version of loadlab.
    pub loadlab: String,
    /// SHA-256 of every file by its name.
    pub inputs: BTreeMap<String, String>,
    /// The servers that its environments gave.
    pub servers: Vec<PinnedServer>,
}

/// Something is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// What.
    pub what: String,
    /// As it was.
    pub locked: String,
    /// As it is.
    pub found: String,
    /// What to do.
    pub remedy: &'static str,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: locked {}, found {}; {}", self.what, self.locked, self.found, self.remedy)
    }
}

impl Default for LockFile {
    fn default() -> Self {
        Self { version: VERSION, experiments: BTreeMap::new() }
    }
}

impl LockFile {
    /// Reads a lock; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is of a newer format.
    pub fn read(path: &Path) -> Result<Option<Self>, StoreError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("read", path)(error)),
        };
        let wrong = |reason: String| StoreError::BadLock { path: path.to_owned(), reason };
        let lock: Self = serde_yaml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if lock.version > VERSION {
            let reason =
                format!("format {} is newer than the {VERSION} that this loadlab knows", lock.version);
            return Err(wrong(reason));
        }
        Ok(Some(lock))
    }

    /// A lock of one experiment.
    #[must_use]
    pub fn of(name: &str, lock: ExperimentLock) -> Self {
        Self { experiments: BTreeMap::from([(name.to_owned(), lock)]), ..Self::default() }
    }

    /// Writes it; the file is whole or as it was.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        let wrong = |reason: String| StoreError::BadLock { path: path.to_owned(), reason };
        let text = serde_yaml::to_string(self).map_err(|error| wrong(error.to_string()))?;
        write_bytes(path, format!("{HEADER}{text}").as_bytes())
    }
}

impl ExperimentLock {
    /// What a run is now.
    #[must_use]
    pub fn new(inputs: &[Input], servers: &[PinnedServer]) -> Self {
        let input = |input: &Input| (input.name.clone(), input.sha256.clone());
        Self {
            loadlab: ToolVersion::current().version,
            inputs: inputs.iter().map(input).collect(),
            servers: servers.to_vec(),
        }
    }

    /// Adds what another profile of the experiment needs.
    pub fn add(&mut self, other: Self) {
        self.inputs.extend(other.inputs);
        let new: Vec<PinnedServer> =
            other.servers.into_iter().filter(|server| !self.servers.contains(server)).collect();
        self.servers.extend(new);
    }

    /// Files, and loadlab itself, that are not as locked. Files that are locked and not used are no drift: a profile
    /// may need fewer.
    #[must_use]
    pub fn input_drift(&self, inputs: &[Input]) -> Vec<Drift> {
        let mut drift = Vec::new();
        let version = ToolVersion::current().version;
        if version != self.loadlab {
            drift.push(Drift {
                what: "loadlab".to_owned(),
                locked: self.loadlab.clone(),
                found: version,
                remedy: "use that version, or lock again",
            });
        }
        for input in inputs {
            let locked = self.inputs.get(&input.name);
            if locked != Some(&input.sha256) {
                drift.push(Drift {
                    what: input.name.clone(),
                    locked: locked.map_or_else(|| "nothing".to_owned(), |digest| checksum(digest)),
                    found: checksum(&input.sha256),
                    remedy: "restore the file, or lock again",
                });
            }
        }
        drift
    }

    /// Servers that are not as locked.
    #[must_use]
    pub fn server_drift(&self, found: &[PinnedServer]) -> Vec<Drift> {
        found
            .iter()
            .filter(|server| !self.servers.contains(server))
            .flat_map(|server| self.differences(server))
            .collect()
    }

    fn differences(&self, found: &PinnedServer) -> Vec<Drift> {
        let asked =
            |locked: &&PinnedServer| locked.environment == found.environment && locked.asks == found.asks;
        let mut candidates: Vec<&PinnedServer> = self.servers.iter().filter(asked).collect();
        // Of several the one that is most alike is the one that was meant.
        candidates.sort_by_key(|locked| locked.is.backend != found.is.backend);
        let Some(locked) = candidates.first() else {
            return vec![Drift {
                what: format!("environment {} ({})", found.environment, found.asks),
                locked: "nothing".to_owned(),
                found: format!("{} PostgreSQL {}", found.is.backend.word(), found.is.version),
                remedy: "lock again, with the same options",
            }];
        };
        let mut drift = Vec::new();
        for ((what, before), (_, now)) in locked.is.facts().into_iter().zip(found.is.facts()) {
            // A registry's digest says less than the id: an image may have several, in any order.
            let same_image = what == "image digest"
                && locked.is.image_id.is_some()
                && locked.is.image_id == found.is.image_id;
            if before != now && !same_image {
                drift.push(Drift {
                    what: format!("environment {}, {what}", found.environment),
                    locked: before.map_or_else(|| "none".to_owned(), checksum),
                    found: now.map_or_else(|| "none".to_owned(), checksum),
                    remedy: remedy(what),
                });
            }
        }
        drift
    }
}

fn remedy(what: &str) -> &'static str {
    match what {
        "backend" => "choose it with --on, or lock again",
        "image" | "image id" | "image digest" => "fetch or tag the locked image, or lock again",
        _ => "install the locked server (`loadlab env list` shows what there is), or lock again",
    }
}

/// Long checksums are told apart by their beginning.
fn checksum(text: &str) -> String {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return format!("sha256:{}", &digits[..SHOWN]);
    }
    if text.is_empty() { "a folder".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Backend, ServerPin};

    fn server(asks: &str, version: &str, binary: char) -> PinnedServer {
        PinnedServer {
            environment: "postgres".to_owned(),
            asks: asks.to_owned(),
            is: ServerPin {
                backend: Backend::Local,
                version: version.to_owned(),
                image: None,
                image_id: None,
                image_digest: None,
                builder: Some("system".to_owned()),
                block_size: Some("8kB".to_owned()),
                binary: Some(format!("sha256:{}", binary.to_string().repeat(64))),
            },
        }
    }

    fn input(name: &str, digit: char) -> Input {
        Input {
            name: name.to_owned(),
            bytes: 1,
            sha256: digit.to_string().repeat(64),
            executable: false,
            left_out: None,
        }
    }

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        assert_eq!(LockFile::read(&path).unwrap(), None);
        let lock = ExperimentLock::new(
            &[input("experiments/x.yaml", 'a')],
            &[server("PostgreSQL 15", "15.18", 'b')],
        );
        let file = LockFile::of("x", lock);
        file.write(&path).unwrap();
        assert_eq!(LockFile::read(&path).unwrap(), Some(file));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# Written by loadlab") && text.contains("experiments/x.yaml"), "{text}");
        fs::write(&path, text.replace("version: 1\n", "version: 9\n")).unwrap();
        assert!(LockFile::read(&path).unwrap_err().to_string().contains("newer"));
        fs::write(&path, "hello").unwrap();
        assert!(LockFile::read(&path).unwrap_err().to_string().contains("lock it again"));
    }

    #[test]
    fn every_difference_is_named() {
        let lock = ExperimentLock::new(
            &[input("experiments/x.yaml", 'a'), input("experiments/only-in-a-profile.sql", 'a')],
            &[server("PostgreSQL 15", "15.18", 'b')],
        );
        assert_eq!(lock.input_drift(&[input("experiments/x.yaml", 'a')]), []);
        let drift = lock.input_drift(&[input("experiments/x.yaml", 'c'), input("experiments/new.sql", 'a')]);
        let words: Vec<String> = drift.iter().map(Drift::to_string).collect();
        assert_eq!(
            words[0],
            "experiments/x.yaml: locked sha256:aaaaaaaaaaaa, found sha256:cccccccccccc; restore the file, or lock again"
        );
        assert!(words[1].starts_with("experiments/new.sql: locked nothing"), "{words:?}");

        assert_eq!(lock.server_drift(&[server("PostgreSQL 15", "15.18", 'b')]), []);
        let drift =
            lock.server_drift(&[server("PostgreSQL 15", "15.19", 'd'), server("PostgreSQL 17", "17.1", 'e')]);
        let words: Vec<&str> = drift.iter().map(|drift| drift.what.as_str()).collect();
        assert_eq!(
            words,
            [
                "environment postgres, PostgreSQL",
                "environment postgres, server binary",
                "environment postgres (PostgreSQL 17)"
            ]
        );
    }

    #[test]
    fn another_version_of_loadlab_is_drift() {
        let mut lock = ExperimentLock::new(&[], &[]);
        assert_eq!(lock.input_drift(&[]), []);
        lock.loadlab = "0.0.1".to_owned();
        assert_eq!(lock.input_drift(&[])[0].what, "loadlab");
    }
}
