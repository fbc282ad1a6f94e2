//! `loadlab keep RUN`: a finished run, packed for a repository.

use std::path::{Path, PathBuf};

use clap::Args;

use super::failure::{Exit, Failure};
use super::print;
use super::report::find;
use crate::report::bytes;
use crate::store::{self, Kept};

/// File beside a run in which whoever keeps it says what it cannot show.
const NOTES: &str = "NOTES.md";

/// Arguments of `keep`.
#[derive(Debug, Args)]
pub(super) struct KeepArguments {
    /// Folder of a run, or the name of an experiment for its newest run
    run: PathBuf,
    /// Folder of results
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
}

pub(super) fn keep(arguments: &KeepArguments) -> Result<Exit, Failure> {
    let path = find(Some(&arguments.run), &arguments.results)?;
    let kept = store::keep(&path)?;
    print(&said(&path, &kept));
    Ok(Exit::Done)
}

/// What was done, how large it is, what is next.
fn said(path: &Path, kept: &Kept) -> String {
    let path = path.display();
    let before = if kept.before { "is kept already" } else { "is kept" };
    let mut lines = vec![format!(
        "{path} {before}: the journal is packed from {} to {}",
        bytes(kept.journal_bytes),
        bytes(kept.packed_bytes)
    )];
    lines.extend(kept.files.iter().map(|(name, size)| format!("  {name}: {}", bytes(*size))));
    let sum = kept.files.iter().map(|(_, size)| size).sum();
    lines.push(format!("  {} files, {} in all", kept.files.len(), bytes(sum)));
    if !kept.files.iter().any(|(name, _)| name == NOTES) {
        lines.push(format!("What it cannot show belongs into {path}/{NOTES}; docs/CLAIMS.md quotes it."));
    }
    lines.push(format!("Results are ignored by git; this adds it: git add -f {path}"));
    lines.join("\n") + "\n"
}
