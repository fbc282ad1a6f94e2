//! A run at work: servers, the run's folder, one trial after another, what is said at the end.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;

use super::RunArguments;
use super::begin::{Measured, controls, manifest, todo};
use super::events::store;
use super::host;
use crate::cli::claims::{facts, judged};
use crate::cli::failure::{Exit, Failure};
use crate::cli::hopeless::Hopeless;
use crate::cli::inputs::Inputs;
use crate::cli::locking::Locking;
use crate::cli::ready::prepare_all;
use crate::cli::report::controlled;
use crate::cli::servers::Servers;
use crate::cli::stopping::Stopping;
use crate::cli::{commands, print, say};
use crate::environment::choose::{Choice, On};
use crate::environment::clean::clean;
use crate::environment::container::ContainerEngine;
use crate::environment::doctor::cache_folder;
use crate::environment::ledger::Ledger;
use crate::environment::neighbours;
use crate::environment::reaper::Reaper;
use crate::model::PlannedTrial;
use crate::plan::Plan;
use crate::report::{self, PlanSize, Progress};
use crate::run::{self, Event, Prepared, Tally};
use crate::spec::Spec;
use crate::store::{ExperimentLock, RunFolder, RunManifest, new_run_id};

/// What is shown of the results at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Table,
    Json,
    /// Who started the run shows them.
    Nothing,
}

/// A run with its folder, ledger, reaper and servers.
pub(super) struct Session<'a> {
    spec: &'a Spec,
    plan: Plan,
    folder: RunFolder,
    servers: Servers,
    ledger: Arc<Ledger>,
    reaper: Reaper,
    todo: Vec<(PlannedTrial, u32)>,
    estimated_seconds: f64,
    shows: Shows,
    allow_commands: bool,
    beside_others: bool,
}

impl<'a> Session<'a> {
    /// Cleans up after dead runs, finds servers for all environments, opens the run's folder.
    pub(super) async fn open(
        arguments: RunArguments,
        spec: &'a Spec,
        mut plan: Plan,
        folder: Option<RunFolder>,
        (inputs, locking): (&Inputs, &Locking),
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
        let (on, offline) = (arguments.server.on, arguments.server.offline);
        let choice = Choice { on, offline, cache, earlier: None };
        let mut servers = Servers::new(choice, arguments.settled.clone(), Arc::clone(&ledger));
        servers.earlier = locking.earlier();
        let ready = prepare_all(spec, &plan, &mut servers).await;
        let mut ready = match ready.and_then(|ready| locking.servers(&servers.pinned).map(|()| ready)) {
            Ok(ready) => ready,
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
            let mut of_run = None;
            if arguments.controls.wanted(spec) {
                let (with_control, controls) = controls(plan, &mut ready).await?;
                (plan, of_run) = (with_control, Some(controls));
                ready.totals.add_control(spec, &plan)?;
            }
            let host = host::facts(&arguments.results, &servers).await;
            let measured = Measured { controls: of_run, host };
            let manifest = manifest(&arguments, spec, &plan, (&servers, inputs), run, measured);
            let folder = RunFolder::create(&arguments.results, &manifest)?;
            inputs.keep(&folder)?;
            folder.write_lock(ExperimentLock::new(&manifest.inputs, &servers.pinned))?;
            folder
        };
        let todo = todo(&plan, &mut folder)?;
        let shows = match (arguments.repeat.quiet, arguments.format.as_str()) {
            (true, _) => Shows::Nothing,
            (_, "json") => Shows::Json,
            _ => Shows::Table,
        };
        let estimated_seconds = ready.totals.seconds;
        let allow_commands = arguments.allow_commands;
        let beside_others = arguments.beside_others;
        Ok(Self {
            spec,
            plan,
            folder,
            servers,
            ledger,
            reaper,
            todo,
            estimated_seconds,
            shows,
            allow_commands,
            beside_others,
        })
    }

    /// The run's folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) async fn run(mut self, cancel: watch::Receiver<bool>) -> Result<Exit, Failure> {
        let path = self.folder.path().display().to_string();
        for choice in &self.servers.chosen {
            say(&format!("{}: {}", choice.environment, choice.why));
        }
        self.note_neighbours()?;
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
        if self.shows == Shows::Nothing {
            return Ok(exit(tally, self.folder.manifest(), &path));
        }
        let records = self.folder.records()?;
        let summary = crate::cli::report::summary(self.folder.manifest(), &records);
        let controls = controlled(self.folder.manifest(), &records);
        let claims = judged(self.folder.manifest(), &records, controls.as_ref());
        let heading = report::heading(self.folder.manifest(), &records);
        if self.shows == Shows::Json {
            let summary = report::json(&summary);
            let smoke = self.spec.smoke;
            let json = serde_json::json!({"results": path, "smoke": smoke, "heading": heading, "summary": summary, "controls": controls, "claims": claims});
            print(&format!("{json:#}\n"));
        } else {
            let table = crate::cli::report::tables(&summary, controls.as_ref(), &claims);
            print(&format!("\n{}\n\n{table}\nresults: {path}\n", heading.join("\n")));
        }
        Ok(exit(tally, self.folder.manifest(), &path))
    }

    /// Says that others are at work, and writes down that this was allowed.
    fn note_neighbours(&mut self) -> Result<(), Failure> {
        if self.beside_others && !self.folder.manifest().spec.options.beside_others {
            self.folder.update_manifest(|manifest| manifest.spec.options.beside_others = true)?;
        }
        let others = neighbours::runs().unwrap_or_default();
        if let Some(first) = others.first() {
            let (many, more) = (others.len() - 1, if others.len() > 2 { "others" } else { "other" });
            let beside = if many > 0 { format!(" and {many} {more}") } else { String::new() };
            let what = if self.beside_others {
                "their trials disturb each other, which --beside-others allows"
            } else {
                "trials beside it are not valid; wait for it, or allow it with --beside-others"
            };
            say(&format!("note: another run of loadlab is at work (process {first}{beside}): {what}"));
        }
        Ok(())
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
        let facts = facts(self.folder.manifest());
        let mut stopping = Stopping::new(self.spec, facts, self.plan.block_size(), self.folder.records()?);
        let mut hopeless = Hopeless::new(self.plan.treatments(), &self.folder.records()?);
        let stop = Cell::new(stopping.enough().is_some());
        let (spec, servers, folder) = (self.spec, &mut self.servers, &mut self.folder);
        let (ledger, allowed) = (Arc::clone(&self.ledger), self.allow_commands);
        let beside_others = self.beside_others;
        let todo = std::mem::take(&mut self.todo);
        let tally = run::run(
            &run_id,
            todo.into_iter().take_while(|_| !stop.get()),
            async |trial: &PlannedTrial| {
                let prepared = prepare(spec, servers, &ledger, allowed, trial).await?;
                Ok(Prepared { beside_others, ..prepared })
            },
            |event| {
                store(folder, &mut progress, &event)?;
                if let Event::Finished(record) = event {
                    stopping.add(record);
                    let by_rule = stopping.enough();
                    if by_rule.is_some() {
                        folder.update_manifest(|manifest| manifest.ended_by_rule.clone_from(&by_rule))?;
                    }
                    if let Some(why) = hopeless.add(record).or(by_rule) {
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

fn exit(tally: Tally, manifest: &RunManifest, path: &str) -> Exit {
    if tally.cancelled {
        let how =
            if manifest.rerun_of.is_some() { report::completing(manifest) } else { "--resume".to_owned() };
        say(&format!("ended early; complete it with {how} (the run is {path})"));
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
        beside_others: false,
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
