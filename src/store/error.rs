//! What can go wrong with the results folder.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of the store. Every one names the place, the reason and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A name that is part of a path is not a plain slug.
    #[error(
        "{what} {name:?} cannot name a folder: use 1 to 100 letters, digits, `-`, `_` or `.`, starting with a letter or digit"
    )]
    BadName {
        /// `experiment` or `run`.
        what: &'static str,
        /// The name as given.
        name: String,
    },
    /// The path is a link; results are never written through links.
    #[error("{}: is a symbolic link; results are not written through links, name the real folder", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// There is no run here.
    #[error("{}: not a run folder ({reason}); give a folder results/<experiment>/<run>", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The run was packed for a repository, and nothing is added to it.
    #[error("{}: is a kept run: finished, and packed for a repository; nothing is left to resume, start a new run instead", path.display())]
    Kept {
        /// The run folder.
        path: PathBuf,
    },
    /// The run must not go into a repository.
    #[error("{}: cannot be kept: {reason}", path.display())]
    NotKeepable {
        /// The run folder.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// Another process writes to the run.
    #[error("{}: in use by {owner}; wait for it or stop it, then try again", path.display())]
    Locked {
        /// The run folder.
        path: PathBuf,
        /// `process 123`, or `another process`.
        owner: String,
    },
    /// A file of a run has a name that is no place in its folder.
    #[error("{name:?} is no place in a run's `inputs/`: the run's `run.json` was changed by hand")]
    BadInput {
        /// The name.
        name: String,
    },
    /// A run's files are not all there.
    #[error("{}: cannot be repeated from this folder alone:\n  {problems}", path.display())]
    InputsMissing {
        /// The run folder.
        path: PathBuf,
        /// A line for each file.
        problems: String,
    },
    /// `loadlab.lock` cannot be understood.
    #[error("{}: cannot be used: {reason}; lock it again with `loadlab lock FILE`", path.display())]
    BadLock {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The disk of the results is full.
    #[error("{}: no space left; {}; make room, then continue with `run --resume`", path.display(),
        if *kept { "all finished trials are safe in the journal" } else { "what the last trial gave is lost, all earlier ones are safe in the journal" })]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
        /// Whether the journal holds everything; false when it could not take the last event.
        kept: bool,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}", path.display())]
    Io {
        /// `write`, `read`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A JSON file is not what it should be.
    #[error("{}: not readable as {what}; it may come from another version of loadlab", path.display())]
    Json {
        /// `a run manifest`, ...
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The folder was written by a newer loadlab.
    #[error("{}: results schema {found} is newer than {known}, the newest this loadlab knows; update loadlab", path.display())]
    TooNew {
        /// The manifest.
        path: PathBuf,
        /// Version in the file.
        found: u32,
        /// Newest known version.
        known: u32,
    },
    /// A record holds something the journal cannot hold, such as a number that is not finite.
    #[error("{}: trial {trial} cannot be written: a number in it is not finite; this is a bug in loadlab", path.display())]
    NotStorable {
        /// The journal.
        path: PathBuf,
        /// Number of the trial.
        trial: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// polars could not make a file.
    #[error("{}: cannot be made from the journal", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Wraps an I/O error with its place; a full disk gets its own variant.
pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::DiskFull { path, kept: true }
        }
        _ => StoreError::Io { action, path, source },
    }
}
