//! `loadlab run FILE`: check, plan, servers, trials, Parquet, table.

mod begin;
mod events;
mod host;
mod session;

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;

use self::session::Session;
use super::commands;
use super::failure::{Exit, Failure};
use super::inputs::Inputs;
use super::interrupt;
use super::locking::Locking;
use super::options::{self, ControlOptions, LockOptions, ServerOptions, SpecOptions};
use super::ready::LOOKED_AT;
use super::resume::{reopen, resumed};
use super::say;
use super::space::writable;
use crate::environment::choose::On;
use crate::plan::Plan;
use crate::report;
use crate::spec;
use crate::store::ExperimentLock;

/// Trials that may be run without being asked for.
const MANY: u64 = 100_000;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// Experiment file
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) spec: SpecOptions,
    #[command(flatten)]
    pub(super) server: ServerOptions,
    #[command(flatten)]
    pub(super) controls: ControlOptions,
    /// Folder of results
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    pub(super) results: PathBuf,
    /// Complete an interrupted run: the newest of the experiment, or the named one
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
    /// `table`, or `json` for machines
    #[arg(long, default_value = "table", value_parser = ["table", "json"])]
    format: String,
    /// Allow a plan of more than 100,000 trials
    #[arg(long)]
    many: bool,
    /// Let `command` steps run programs on this machine; `plan` lists them
    #[arg(long)]
    allow_commands: bool,
    /// Let numbers count although other runs of loadlab are at work on this machine
    #[arg(long)]
    pub(super) beside_others: bool,
    #[command(flatten)]
    pub(super) lock: LockOptions,
    /// What `rerun` adds.
    #[arg(skip)]
    pub(super) repeat: Repeat,
    /// Backends that the first start of a resumed run took, by environment.
    #[arg(skip)]
    pub(super) settled: HashMap<String, On>,
}

/// What a run that repeats another one knows of it.
#[derive(Debug, Default)]
pub(super) struct Repeat {
    /// Name of the run that is repeated.
    pub(super) of: Option<String>,
    /// What it was made with; `None` inside when its folder does not say.
    pub(super) lock: Option<ExperimentLock>,
    /// Its results are shown by who started it.
    pub(super) quiet: bool,
}

/// How a run ended, and where it is if it began.
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) path: Option<PathBuf>,
}

pub(super) async fn run(arguments: RunArguments) -> Result<Exit, Failure> {
    Ok(Box::pin(execute(arguments)).await?.exit)
}

/// Runs an experiment to its end.
pub(super) async fn execute(mut arguments: RunArguments) -> Result<Ended, Failure> {
    let resumed = match arguments.resume.clone() {
        Some(run) => Some(resumed(&mut arguments, &run)?),
        None => None,
    };
    let spec = spec::load(&arguments.file, &arguments.spec.load())?;
    let checked = spec.check_all()?;
    if !checked.warnings.is_empty() {
        say(checked.warnings.render(options::colour()).trim_end());
    }
    let plan = Plan::new(&spec.design).map_err(|error| Failure::wrong(format!("error: {error}")))?;
    if plan.trials() > MANY && !arguments.many {
        return Err(Failure::wrong(format!(
            "error: the plan has {} trials, each on a fresh server: narrow it with --only or a profile, or allow it with --many",
            report::count(plan.trials())
        )));
    }
    if arguments.lock.locked && plan.treatments() > LOOKED_AT {
        return Err(Failure::wrong(format!(
            "error: --locked: the servers of {} treatments cannot all be looked at before the first trial: narrow the plan with --only \
             to {} or fewer",
            report::count(plan.treatments()),
            report::count(LOOKED_AT)
        )));
    }
    commands::refuse_unless(arguments.allow_commands, &commands::of_plan(&spec, &plan)?)?;
    let inputs = Inputs::of(&spec)?;
    let locking = Locking::of_run(&arguments, resumed.as_deref(), &spec)?;
    locking.inputs(&inputs.records())?;
    let (folder, plan) = match resumed {
        Some(path) => {
            let (folder, plan) = reopen(&path, &spec, plan)?;
            (Some(folder), plan)
        }
        None => (None, plan),
    };
    writable(&arguments.results)?;
    let mut cancel = interrupt::watch()?;
    let session = tokio::select! {
        session = Session::open(arguments, &spec, plan, folder, (&inputs, &locking)) => session?,
        Ok(_) = cancel.wait_for(|asked| *asked) => {
            say("ended before the first trial");
            return Ok(Ended { exit: Exit::Interrupted, path: None });
        }
    };
    let path = Some(session.path().to_owned());
    Ok(Ended { exit: session.run(cancel).await?, path })
}
