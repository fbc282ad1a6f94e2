//! `loadlab lock FILE...`: what files and servers are now, written down for `loadlab run --locked`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;

use super::failure::{Exit, Failure};
use super::inputs::Inputs;
use super::locking::root;
use super::options::{ServerOptions, SpecOptions};
use super::ready::find_servers;
use super::say;
use super::servers::Servers;
use crate::environment::choose::Choice;
use crate::environment::doctor::cache_folder;
use crate::environment::ledger::Ledger;
use crate::environment::reaper::Reaper;
use crate::plan::Plan;
use crate::spec;
use crate::store::{ExperimentLock, LOCK_FILE, LockFile, new_run_id};

/// Arguments of `lock`.
#[derive(Debug, Args)]
pub(super) struct LockArguments {
    /// Experiment files; other entries of the lock stay as they are
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    spec: SpecOptions,
    #[command(flatten)]
    server: ServerOptions,
}

pub(super) async fn lock(arguments: LockArguments) -> Result<Exit, Failure> {
    let cache = cache_folder();
    let ledger = Ledger::open(&cache, &new_run_id(Timestamp::now()))?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::environment(format!("error: cannot find the program itself: {error}")))?;
    let reaper = Reaper::start(&program, &ledger)?;
    // In a box: the compiler gives up on futures that are nested as deeply as this one.
    let locked = Box::pin(lock_all(&arguments, &ledger)).await;
    reaper.finish(&ledger);
    for (path, name, lock) in locked? {
        let mut file = LockFile::read(&path)?.unwrap_or_default();
        let (inputs, servers) = (lock.inputs.len(), lock.servers.len());
        match file.experiments.get_mut(&name) {
            // One profile more of the same files.
            Some(known) if arguments.spec.profile.is_some() && known.inputs == lock.inputs => known.add(lock),
            _ => drop(file.experiments.insert(name.clone(), lock)),
        }
        file.write(&path)?;
        say(&format!("{name}: {inputs} files and {servers} servers are in {}", path.display()));
    }
    Ok(Exit::Done)
}

/// Everything is found out before anything is written.
async fn lock_all(
    arguments: &LockArguments,
    ledger: &Arc<Ledger>,
) -> Result<Vec<(PathBuf, String, ExperimentLock)>, Failure> {
    let mut locked = Vec::new();
    for file in &arguments.files {
        let mut options = arguments.spec.clone();
        let first = spec::load(file, &options.load())?;
        let mut lock = one(&options, file, &arguments.server, ledger).await?;
        if options.profile.is_none() {
            for profile in first.profiles() {
                options.profile = Some(profile);
                match one(&options, file, &arguments.server, ledger).await {
                    Ok(more) => lock.add(more),
                    // What this machine cannot do with one profile does not concern the others.
                    Err(failure) => say(&format!(
                        "note: profile {} is not locked: {}",
                        options.profile.as_deref().unwrap_or_default(),
                        failure.first_line()
                    )),
                }
            }
        }
        locked.push((root(file).join(LOCK_FILE), first.name, lock));
    }
    Ok(locked)
}

async fn one(
    options: &SpecOptions,
    file: &std::path::Path,
    server: &ServerOptions,
    ledger: &Arc<Ledger>,
) -> Result<ExperimentLock, Failure> {
    let spec = spec::load(file, &options.load())?;
    spec.check_all()?;
    let plan = Plan::new(&spec.design).map_err(|error| Failure::wrong(format!("error: {error}")))?;
    let choice = Choice { on: server.on, offline: server.offline, cache: cache_folder(), earlier: None };
    let mut servers = Servers::new(choice, HashMap::new(), Arc::clone(ledger));
    for line in find_servers(&spec, &plan, &mut servers, |_, _| {}).await?.lines() {
        say(&format!("note: not locked: {line}"));
    }
    Ok(ExperimentLock::new(&Inputs::of(&spec)?.records(), &servers.pinned))
}
