//! `loadlab run FILE`: check, plan, servers, trials, Parquet, table.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use tokio::sync::watch;

use super::claims::judged;
use super::commands;
use super::failure::{Exit, Failure};
use super::hopeless::Hopeless;
use super::interrupt;
use super::options::{self, ServerOptions, SpecOptions};
use super::ready::prepare_all;
use super::resume::{reopen, resumed};
use super::servers::Servers;
use super::space::writable;
use super::stopping::Stopping;
use super::{print, say};
use crate::environment::choose::{Choice, On};
use crate::environment::clean::clean;
use crate::environment::container::ContainerEngine;
use crate::environment::doctor::cache_folder;
use crate::environment::ledger::Ledger;
use crate::environment::reaper::Reaper;
use crate::model::{Outcome, PlannedTrial, TrialRecord};
use crate::plan::Plan;
use crate::report::{self, FinishedTrial, PlanSize, Progress, WorkingStep, duration};
use crate::run::{self, Event, Prepared, Tally};
use crate::spec::{self, Spec};
use crate::store::{HostFacts, RunFolder, RunManifest, SCHEMA_VERSION, SpecRecord, ToolVersion, new_run_id};

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
    /// Backends that the first start of a resumed run took, by environment.
    #[arg(skip)]
    pub(super) settled: HashMap<String, On>,
}

pub(super) async fn run(mut arguments: RunArguments) -> Result<Exit, Failure> {
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
    commands::refuse_unless(arguments.allow_commands, &commands::of_plan(&spec, &plan)?)?;
    let folder = match resumed {
        Some(path) => Some(reopen(&path, &spec, &plan)?),
        None => None,
    };
    writable(&arguments.results)?;
    let mut cancel = interrupt::watch()?;
    let session = tokio::select! {
        session = Session::open(arguments, &spec, &plan, folder) => session?,
        Ok(_) = cancel.wait_for(|asked| *asked) => {
            say("ended before the first trial");
            return Ok(Exit::Interrupted);
        }
    };
    session.run(cancel).await
}

/// A run with its folder, ledger, reaper and servers.
struct Session<'a> {
    spec: &'a Spec,
    plan: &'a Plan,
    folder: RunFolder,
    servers: Servers,
    ledger: Arc<Ledger>,
    reaper: Reaper,
    todo: Vec<(PlannedTrial, u32)>,
    estimated_seconds: f64,
    json: bool,
    allow_commands: bool,
}

impl<'a> Session<'a> {
    /// Cleans up after dead runs, finds servers for all environments, opens the run's folder.
    async fn open(
        arguments: RunArguments,
        spec: &'a Spec,
        plan: &'a Plan,
        folder: Option<RunFolder>,
    ) -> Result<Self, Failure> {
        if arguments.server.on == On::Container {
            // Told before the clean-up, which would wait for the same engine in vain.
            ContainerEngine::connect().await?;
        }
        let cache = cache_folder();
        let swept = clean(&cache).await;
        if !swept.removed.is_empty() || !swept.failed.is_empty() {
            say(swept.to_string().trim_end());
        }
        let run = folder
            .as_ref()
            .map_or_else(|| new_run_id(Timestamp::now()), |folder| folder.manifest().run.clone());
        let ledger = Ledger::open(&cache, &run)?;
        let program = std::env::current_exe().map_err(|error| {
            Failure::environment(format!("error: cannot find the program itself: {error}"))
        })?;
        let reaper = Reaper::start(&program, &ledger)?;
        let choice = Choice { on: arguments.server.on, offline: arguments.server.offline, cache };
        let mut servers = Servers::new(choice, arguments.settled.clone(), Arc::clone(&ledger));
        let totals = match prepare_all(spec, plan, &mut servers).await {
            Ok(totals) => totals,
            Err(failure) => {
                reaper.finish(&ledger);
                return Err(failure);
            }
        };
        let mut folder = if let Some(folder) = folder {
            folder
        } else {
            std::fs::create_dir_all(&arguments.results).map_err(|error| {
                let results = arguments.results.display();
                Failure::environment(format!("error: cannot create {results}: {error}"))
            })?;
            RunFolder::create(&arguments.results, &manifest(&arguments, spec, plan, &servers, run))?
        };
        let todo = todo(plan, &mut folder)?;
        let json = arguments.format == "json";
        let estimated_seconds = totals.seconds;
        let allow_commands = arguments.allow_commands;
        Ok(Self {
            spec,
            plan,
            folder,
            servers,
            ledger,
            reaper,
            todo,
            estimated_seconds,
            json,
            allow_commands,
        })
    }

    async fn run(mut self, cancel: watch::Receiver<bool>) -> Result<Exit, Failure> {
        let path = self.folder.path().display().to_string();
        for choice in &self.servers.chosen {
            say(&format!("{}: {}", choice.environment, choice.why));
        }
        let complete = self.todo.is_empty() && self.folder.manifest().ended_at.is_some();
        if complete {
            say("every trial of this run is done already; nothing is left to resume");
        }
        let ended = self.trials(cancel).await;
        if !complete {
            self.folder.update_manifest(|manifest| manifest.ended_at = Some(Timestamp::now()))?;
        }
        self.folder.write_parquet()?;
        self.reaper.finish(&self.ledger);
        let tally = ended?;
        let records = self.folder.records()?;
        let summary = super::report::summary(self.folder.manifest(), &records);
        let claims = judged(self.folder.manifest(), &records);
        let heading = report::heading(self.folder.manifest(), &records);
        if self.json {
            let summary = report::json(&summary);
            let smoke = self.spec.smoke;
            let json = serde_json::json!({"results": path, "smoke": smoke, "heading": heading, "summary": summary, "claims": claims});
            print(&format!("{json:#}\n"));
        } else {
            let table = super::report::tables(&summary, &claims);
            print(&format!("\n{}\n\n{table}\nresults: {path}\n", heading.join("\n")));
        }
        Ok(exit(tally, &path))
    }

    async fn trials(&mut self, cancel: watch::Receiver<bool>) -> Result<Tally, Failure> {
        let size = PlanSize {
            trials: self.plan.trials(),
            done: self.plan.trials() - self.todo.len() as u64,
            blocks: self.spec.design.blocks.max,
            estimated_seconds: Some(self.estimated_seconds),
        };
        let mut progress = Progress::new(size);
        let run_id = self.folder.manifest().run.clone();
        let mut stopping = Stopping::new(&self.spec.design, self.plan.treatments(), self.folder.records()?);
        let mut hopeless = Hopeless::new(self.plan.treatments(), &self.folder.records()?);
        let stop = Cell::new(stopping.enough().is_some());
        let (spec, servers, folder) = (self.spec, &mut self.servers, &mut self.folder);
        let (ledger, allowed) = (Arc::clone(&self.ledger), self.allow_commands);
        let todo = std::mem::take(&mut self.todo);
        let tally = run::run(
            &run_id,
            todo.into_iter().take_while(|_| !stop.get()),
            async |trial: &PlannedTrial| prepare(spec, servers, &ledger, allowed, trial).await,
            |event| {
                store(folder, &mut progress, &event)?;
                if let Event::Finished(record) = event {
                    stopping.add(record);
                    if let Some(why) = hopeless.add(record).or_else(|| stopping.enough()) {
                        folder.note(&why)?;
                        progress.note(&format!("the run ends here: {why}"));
                        stop.set(true);
                    }
                }
                Ok(())
            },
            cancel,
        )
        .await;
        progress.finish();
        tally
    }
}

fn exit(tally: Tally, path: &str) -> Exit {
    if tally.cancelled {
        say(&format!("ended early; complete it with --resume (the run is {path})"));
        return Exit::Interrupted;
    }
    if tally.not_run > 0 {
        say(&format!("{} trials were not run, because this machine lacks what they need", tally.not_run));
    }
    if tally.failed > 0 {
        say(&format!(
            "{} of {} trials did not end well; see the table's notes",
            tally.failed,
            tally.failed + tally.ok + tally.not_run
        ));
        return Exit::TrialsFailed;
    }
    if tally.ok == 0 && tally.not_run > 0 {
        say("nothing was measured");
        return Exit::Environment;
    }
    Exit::Done
}

async fn prepare(
    spec: &Spec,
    servers: &mut Servers,
    ledger: &Arc<Ledger>,
    commands_allowed: bool,
    trial: &PlannedTrial,
) -> Result<Prepared, Failure> {
    let bound = spec.bind(&trial.treatment)?;
    commands::refuse_unless(commands_allowed, &commands::of_trial(&bound))?;
    let provider = servers.of(&bound).await?;
    let factors = spec.design.describe(&trial.treatment).into_iter();
    Ok(Prepared {
        provider,
        experiment: spec.name.clone(),
        folder: spec.folder().to_owned(),
        ledger: Arc::clone(ledger),
        label: spec.design.label(&trial.treatment),
        factors: factors
            .map(|(name, level)| {
                let value =
                    level.value.clone().unwrap_or_else(|| crate::model::Scalar::Text(level.name.clone()));
                (name.to_owned(), value)
            })
            .collect(),
        bound: Arc::new(bound),
    })
}

/// Stores an event before anything else happens, then shows it.
fn store(folder: &mut RunFolder, progress: &mut Progress, event: &Event<'_>) -> Result<(), Failure> {
    match event {
        Event::Started { trial, attempt, label } => {
            folder.started(trial, *attempt)?;
            progress.trial_started(trial.number + 1, label);
        }
        Event::Working(pulse) => progress.working(&WorkingStep {
            step: &pulse.step,
            seconds: pulse.elapsed.as_secs_f64(),
            warm_up: pulse.warm_up.as_secs_f64(),
            whole: pulse.whole.as_secs_f64(),
            rows: pulse.rows,
            rows_per_second: pulse.rows_per_second,
        }),
        Event::Output { name, text } => folder.keep(name, text)?,
        Event::Finished(record) => {
            if record.outcome == Outcome::Cancelled {
                // A trial that was given up is done again; its record would hide that.
                folder.cancelled(record.trial.number, record.attempt)?;
            } else {
                folder.finished(record)?;
            }
            // Why trials are not run was said once, at the beginning.
            if let Some(error) = record.error.as_ref().filter(|_| record.outcome != Outcome::NotRun) {
                progress.note(&format!("{}: {error}", record.treatment));
            }
            progress.trial_finished(&FinishedTrial {
                treatment: &record.treatment,
                outcome: record.outcome,
                headline: &headline(record),
                seconds: record.seconds,
            });
        }
    }
    Ok(())
}

/// `insert 12,345 rows/s`: the last load or read of a trial.
fn headline(record: &TrialRecord) -> String {
    let moved = record.measurements.iter().rev().find(|step| matches!(step.kind.as_str(), "load" | "read"));
    let shown = moved.or(record.measurements.last());
    shown.map_or_else(String::new, |step| match (step.rows, step.spans.seconds) {
        (Some(rows), seconds) if seconds > 0.0 => format!("{} {}", step.step, report::rate(rows, seconds)),
        (_, seconds) => format!("{} {}", step.step, duration(seconds)),
    })
}

/// Trials that are not done, with the number of their next attempt. Those that a kill cut short are marked.
fn todo(plan: &Plan, folder: &mut RunFolder) -> Result<Vec<(PlannedTrial, u32)>, Failure> {
    let journal = folder.journal()?;
    for (trial, attempt) in journal.lost() {
        folder.lost(trial, attempt)?;
        say(&format!("note: trial {} was cut short by a kill; it is done again", trial + 1));
    }
    for complaint in journal.complaints() {
        say(&format!("note: {complaint}"));
    }
    let done: BTreeSet<u64> = journal.done();
    let left = plan.iter().filter(|trial| !done.contains(&trial.number));
    Ok(left
        .map(|trial| {
            let attempt = journal.next_attempt(trial.number);
            (trial, attempt)
        })
        .collect())
}

fn manifest(
    arguments: &RunArguments,
    spec: &Spec,
    plan: &Plan,
    servers: &Servers,
    run: String,
) -> RunManifest {
    RunManifest {
        schema_version: SCHEMA_VERSION,
        experiment: spec.name.clone(),
        run,
        question: spec.question.clone(),
        smoke: spec.smoke,
        spec: SpecRecord {
            file: spec.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            text: spec.source_text.clone(),
            resolved: spec.resolved.clone(),
            hash: spec.hash.clone(),
            options: arguments.spec.used(),
        },
        tool: ToolVersion::current(),
        seed: spec.design.seed,
        order_digest: plan.order_digest(),
        trials_planned: plan.trials(),
        design: spec.design.clone(),
        claims: spec.claims.clone(),
        environments: servers.chosen.clone(),
        host: HostFacts::read(&arguments.results),
        started_at: Timestamp::now(),
        ended_at: None,
    }
}
