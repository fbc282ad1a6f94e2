//! Whether a run has room for its servers and its results, asked before the first server is made.

use std::path::Path;

use super::failure::Failure;
use crate::environment::doctor::free_space;
use crate::report;
use crate::store::can_write;

/// Finds out before any server is made whether results can be written; leaves nothing behind.
pub(super) fn writable(results: &Path) -> Result<(), Failure> {
    let there = std::path::absolute(results).unwrap_or_else(|_| results.to_owned());
    let nearest = there.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    can_write(nearest).map_err(|error| {
        Failure::environment(format!(
            "error: results cannot be written to {}: {}: {error}; name another folder with --results",
            results.display(),
            nearest.display()
        ))
    })
}

/// Refuses a run that would fill the disk: a full disk ends servers in ways that look like results.
pub(super) fn room(cache: &Path, needed: u64) -> Result<(), Failure> {
    match free_space(cache) {
        Some(free) if free < needed => Err(Failure::environment(format!(
            "error: the largest trial needs about {} of disk, {} are free in {}\n  what to do: free some space, name a \
             folder on another disk in LOADLAB_CACHE, or load fewer rows (--set tables.<name>.rows=...)",
            report::bytes(needed),
            report::bytes(free),
            cache.display()
        ))),
        _ => Ok(()),
    }
}
