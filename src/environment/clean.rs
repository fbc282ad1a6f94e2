//! Removes what dead runs left: what their ledgers list, and labelled containers and volumes whose
//! owner is gone. Nothing else is ever touched.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::engine::Engine;
use super::ledger::{self, Thing};
use super::{files, process, shared_memory};

/// How long a server may take for its immediate shutdown before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a clean-up did.
#[derive(Debug, Default)]
pub struct CleanReport {
    /// What was there and is removed, in words.
    pub removed: Vec<String>,
    /// What could not be removed, with the reason.
    pub failed: Vec<String>,
    /// Runs that still live; theirs was not touched.
    pub live: Vec<String>,
    /// Why the container engine was not asked, if it was not.
    pub engine: Option<String>,
}

impl fmt::Display for CleanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for removed in &self.removed {
            writeln!(f, "removed {removed}")?;
        }
        for failed in &self.failed {
            writeln!(f, "could not remove {failed}")?;
        }
        for run in &self.live {
            writeln!(f, "run {run} is alive: left alone")?;
        }
        if let Some(why) = &self.engine {
            writeln!(f, "containers were not looked at: {why}")?;
        }
        if self.removed.is_empty() && self.failed.is_empty() {
            writeln!(f, "nothing to remove")?;
        }
        Ok(())
    }
}

/// Removes what dead runs left. Cheap when there is nothing; called at every start.
pub async fn clean(cache: &Path) -> CleanReport {
    let engine = Engine::connect().await;
    let mut report = CleanReport::default();
    for folder in ledger::live_runs(cache) {
        if ledger::is_unfinished(&folder) {
            // Nothing was recorded in it; one in the making is left alone.
            if ledger::is_abandoned(&folder) {
                drop(files::remove_tree(&folder));
            }
        } else if let Some(lock) = ledger::take_over(&folder, Duration::ZERO) {
            remove_listed(&folder, engine.as_ref().map_err(Clone::clone), &mut report).await;
            drop(lock);
        } else if folder.exists() {
            report.live.push(ledger::run_of(&folder));
        }
    }
    match &engine {
        Ok(engine) => sweep(engine, &mut report).await,
        Err(why) => report.engine = Some(why.clone()),
    }
    report
}

/// Removes labelled containers and volumes whose owner is gone.
pub(crate) async fn sweep(engine: &Engine, report: &mut CleanReport) {
    match engine.orphans().await {
        Ok(orphans) => {
            for thing in &orphans {
                note(thing, remove_in_engine(Ok(engine), thing).await, report);
            }
        }
        Err(why) => report.failed.push(format!("labelled containers: {why}")),
    }
}

/// Removes everything a live folder lists, then the folder. The caller holds its lock. What fails stays
/// listed for the next clean-up.
pub(crate) async fn remove_listed(folder: &Path, engine: Result<&Engine, String>, report: &mut CleanReport) {
    let things = match ledger::read_things(folder) {
        Ok(things) => things,
        Err(error) => return report.failed.push(error.to_string()),
    };
    let failures = report.failed.len();
    // Servers first, so that nothing writes into a folder that is being removed.
    let local = things.clone();
    let (removed, failed) =
        tokio::task::spawn_blocking(move || end_processes(&local)).await.unwrap_or_default();
    report.removed.extend(removed);
    report.failed.extend(failed);
    for thing in things.iter().filter(|thing| matches!(thing, Thing::Container(_))) {
        note(thing, remove_in_engine(engine.clone(), thing).await, report);
    }
    for thing in things.iter().filter(|thing| matches!(thing, Thing::Volume(_))) {
        note(thing, remove_in_engine(engine.clone(), thing).await, report);
    }
    for thing in &things {
        if let Thing::Directory(path) = thing {
            let there = fs::symlink_metadata(path).is_ok();
            let target = path.clone();
            let removing = move || {
                shared_memory::free(&target.join("data"));
                files::remove_tree(&target)
            };
            let done = tokio::task::spawn_blocking(removing).await;
            let done = done.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            note(thing, done.map(|()| there).map_err(|error| error.to_string()), report);
        }
    }
    if report.failed.len() == failures {
        drop(files::remove_tree(folder));
    }
}

fn note(thing: &Thing, outcome: Result<bool, String>, report: &mut CleanReport) {
    match outcome {
        Ok(true) => report.removed.push(thing.to_string()),
        Ok(false) => {}
        Err(why) => report.failed.push(format!("{thing}: {why}")),
    }
}

async fn remove_in_engine(engine: Result<&Engine, String>, thing: &Thing) -> Result<bool, String> {
    match (engine, thing) {
        (Ok(engine), Thing::Container(name)) => engine.remove_container(name).await,
        (Ok(engine), Thing::Volume(name)) => engine.remove_volume(name).await,
        (Err(why), Thing::Container(_) | Thing::Volume(_)) => Err(format!("no container engine: {why}")),
        (_, Thing::Directory(_) | Thing::Process { .. } | Thing::Marked(_)) => Ok(false),
    }
}

/// Ends listed processes, and those that work in a listed folder: a server whose number was never
/// written down, or a child that outlived it.
fn end_processes(things: &[Thing]) -> (Vec<String>, Vec<String>) {
    let listed = things.iter().filter_map(|thing| match thing {
        Thing::Process { pid, started } => Some((*pid, *started)),
        _ => None,
    });
    let (mut removed, mut failed) = (Vec::new(), Vec::new());
    let mut end = |pid: u32, started: u64| {
        if process::started(pid) != Some(started) {
            return;
        }
        let list = if process::end(pid, started, PATIENCE) { &mut removed } else { &mut failed };
        list.push(format!("process {pid}"));
    };
    listed.for_each(|(pid, started)| end(pid, started));
    let folders: Vec<&PathBuf> = things
        .iter()
        .filter_map(|thing| if let Thing::Directory(path) = thing { Some(path) } else { None })
        .collect();
    // The folder as the kernel names it: the cache may lie behind a symbolic link.
    for folder in folders.into_iter().filter_map(|folder| fs::canonicalize(folder).ok()) {
        for pid in process::working_in(&folder).into_iter().filter(|pid| *pid != std::process::id()) {
            if let Some(started) = process::started(pid) {
                end(pid, started);
            }
        }
    }
    for mark in
        things.iter().filter_map(|thing| if let Thing::Marked(mark) = thing { Some(mark) } else { None })
    {
        match process::end_marked(mark) {
            (0, true) => {}
            (_, true) => removed.push(format!("processes of the command {mark}")),
            (_, false) => failed.push(format!("processes of the command {mark} do not end")),
        }
    }
    (removed, failed)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::environment::ledger::Ledger;

    fn listed(cache: &Path, things: &[Thing]) -> PathBuf {
        let ledger = Ledger::open(cache, "dead").expect("ledger");
        for thing in things {
            ledger.record(thing).expect("recorded");
        }
        ledger.folder().to_owned()
    }

    #[tokio::test]
    async fn dead_runs_are_removed_and_foreign_folders_stay() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let ours = cache.path().join("trials/ours");
        let foreign = cache.path().join("trials/foreign");
        let folder = listed(cache.path(), &[Thing::Directory(ours.clone())]);
        fs::create_dir_all(ours.join("data")).expect("folder");
        fs::create_dir_all(&foreign).expect("folder");
        let mut stray =
            Command::new("sleep").arg("60").current_dir(ours.join("data")).spawn().expect("sleep");
        let reaping = std::thread::spawn(move || stray.wait());
        let report = clean(cache.path()).await;
        assert!(report.failed.is_empty(), "{report}");
        assert!(report.to_string().contains("trials/ours"), "{report}");
        assert!(!ours.exists() && !folder.exists() && foreign.exists());
        assert!(!reaping.join().expect("thread").expect("status").success(), "the stray process was ended");
    }

    #[tokio::test]
    async fn living_runs_are_left_alone() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let ledger = Ledger::open(cache.path(), "alive").expect("ledger");
        let ours = cache.path().join("ours");
        ledger.record(&Thing::Directory(ours.clone())).expect("recorded");
        fs::create_dir(&ours).expect("folder");
        let report = clean(cache.path()).await;
        assert_eq!(report.live, ["alive"]);
        assert!(ours.exists());
    }
}
