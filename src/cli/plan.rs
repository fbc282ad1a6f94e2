//! `loadlab plan FILE`: what a run would do, without any server.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;

use super::commands;
use super::failure::{Exit, Failure};
use super::options::{ControlOptions, SpecOptions};
use super::print;
use super::servers::Servers;
use crate::environment::EnvironmentError;
use crate::environment::choose::{Choice, On};
use crate::environment::doctor::cache_folder;
use crate::environment::ledger::Ledger;
use crate::model::{BoundTrial, Needs, PlannedTrial};
use crate::plan::{Estimate, Plan, estimate};
use crate::report::{bytes, count, duration};
use crate::run::LoadSteps;
use crate::spec::{self, Spec};
use crate::store::new_run_id;

/// Trials listed at most, unless `--all` is given.
const LISTED: usize = 40;
/// Treatments that are estimated one by one; above, a spread of this many stands for all.
const ESTIMATED: u64 = 1_000;

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    /// Experiment file
    file: PathBuf,
    #[command(flatten)]
    spec: SpecOptions,
    #[command(flatten)]
    controls: ControlOptions,
    /// Backend for which the experiment's needs are looked at: auto, container, local or external
    #[arg(long, value_name = "BACKEND", default_value = "auto")]
    on: On,
    /// Folder of results, where an earlier run shows how far numbers scatter
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
    /// List every trial
    #[arg(long)]
    all: bool,
    /// `text`, or `json` for machines
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

/// Sums over a whole plan.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Rows that are loaded over all trials.
    pub(super) rows: f64,
    /// Disk that the largest trial needs at once, bytes.
    pub(super) disk: u64,
    /// Rough time of all trials, seconds.
    pub(super) seconds: f64,
    /// Of this, control trials.
    control_seconds: f64,
    /// Environments by name.
    pub(super) environments: Vec<String>,
}

pub(super) async fn plan(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let spec = spec::load(&arguments.file, &arguments.spec.load())?;
    let checked = spec.check_all()?;
    let mut plan = Plan::new(&spec.design).map_err(|error| Failure::wrong(format!("error: {error}")))?;
    let Preview { left_out, first, loads } = preview(&spec, &plan, arguments.on).await?;
    let loads = Some(loads).filter(|_| arguments.controls.wanted(&spec));
    if let Some(index) = first.filter(|_| loads.is_some()) {
        plan = plan.with_control(index);
    }
    let totals = totals(&spec, &plan, None).await?;
    let commands = commands::of_plan(&spec, &plan)?;
    if arguments.format == "json" {
        let mut json = json(&spec, &plan, &totals, arguments.all);
        json["commands"] = commands.into();
        json["not_run"] = left_out.json();
        json["controls"] = loads.as_ref().map(|loads| controls_json(&spec, &plan, &totals, loads)).into();
        print(&format!("{}\n", serde_json::to_string_pretty(&json).expect("values are plain data")));
        return Ok(Exit::Done);
    }
    print(&head(&spec, &plan, &totals, &checked.to_string(), &arguments.results));
    for line in loads.iter().flat_map(|loads| controls(&spec, &plan, &totals, loads)) {
        print(&format!("controls    {line}\n"));
    }
    for line in left_out.lines() {
        print(&format!("needs       {line}\n"));
    }
    for command in commands {
        print(&format!("command     {command} (needs --allow-commands)\n"));
    }
    list(&spec, &plan, if arguments.all { usize::MAX } else { LISTED });
    Ok(Exit::Done)
}

/// Everything above the list of trials.
fn head(spec: &Spec, plan: &Plan, totals: &Totals, checked: &str, results: &Path) -> String {
    let mut lines = vec![format!("experiment  {}: {}", spec.name, spec.question)];
    lines.extend(spec.design.factors.iter().map(|factor| {
        let levels: Vec<&str> = factor.levels.iter().map(|level| level.name.as_str()).collect();
        format!("factor      {}: {}", factor.name, levels.join(", "))
    }));
    lines.push(format!("treatments  {} ({checked})", count(plan.treatments())));
    lines.push(format!("blocks      {}", blocks(spec)));
    if spec.smoke {
        lines.push("smoke       rows and durations are capped; proves nothing about speed".to_owned());
    }
    let controls = match plan.controls() {
        0 => String::new(),
        trials => format!(" and {} control trials", count(trials)),
    };
    let trials = count(plan.trials() - plan.controls());
    lines.push(format!("trials      {trials}{controls}, each on a fresh server"));
    lines.push(format!("servers     {}", totals.environments.join(", ")));
    lines.push(format!("rows        {} loaded over all trials", rows(totals.rows)));
    lines.push(format!("disk        {} for the largest trial (freed after each)", bytes(totals.disk)));
    let time = duration(totals.seconds);
    lines.push(format!("time        about {time} (rough; better known once trials have run)"));
    lines.extend(super::power::lines(spec, results));
    lines.push(format!("order       seed {}, digest {}", spec.design.seed, plan.order_digest()));
    lines.join("\n") + "\n"
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shown only, and not negative")]
fn rows(rows: f64) -> String {
    count(rows as u64)
}

fn blocks(spec: &Spec) -> String {
    let blocks = &spec.design.blocks;
    let mut text = blocks.min.to_string();
    if blocks.max > blocks.min {
        text = format!("{} to {}", blocks.min, blocks.max);
    }
    if blocks.max < 6 {
        text += " (fewer than six give no verdict)";
    }
    text
}

/// Treatments that are not run on this machine, with the reason.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    treatments: Vec<(String, String)>,
}

impl LeftOut {
    pub(super) fn add(&mut self, treatment: String, why: String) {
        self.treatments.push((treatment, why));
    }

    fn json(&self) -> serde_json::Value {
        let one =
            |(treatment, why): &(String, String)| serde_json::json!({"treatment": treatment, "why": why});
        self.treatments.iter().map(one).collect()
    }

    /// A line for each reason, with the treatments it is about.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (treatment, why) in &self.treatments {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, treatments)) => treatments.push(treatment),
                None => reasons.push((why, vec![treatment])),
            }
        }
        let named = |(why, treatments): (&str, Vec<&str>)| match treatments.as_slice() {
            [only] => format!("{only}: {why}"),
            [first, ..] => format!("{} treatments, among them {first}: {why}", treatments.len()),
            [] => why.to_owned(),
        };
        reasons.into_iter().map(named).collect()
    }
}

/// The control trials, and what is measured without a server.
fn controls(spec: &Spec, plan: &Plan, totals: &Totals, loads: &LoadSteps) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(plan.control().map(|index| {
        let (trials, time) = (count(plan.controls()), duration(totals.control_seconds));
        let treatment = spec.design.label(&plan.treatment(index));
        format!("{treatment} a second time in each block: {trials} trials more, about {time} of the time")
    }));
    if loads.measured() > 0 {
        let (kinds, time) = (loads.words(), duration(loads.seconds()));
        let left_out = match loads.left_out() {
            0 => String::new(),
            more => format!("; {more} more are left out"),
        };
        lines.push(format!("the client alone, without a server, by {kinds}: {time}{left_out}"));
    }
    lines
}

fn controls_json(spec: &Spec, plan: &Plan, totals: &Totals, loads: &LoadSteps) -> serde_json::Value {
    serde_json::json!({
        "treatment": plan.control().map(|index| spec.design.label(&plan.treatment(index))),
        "trials": plan.controls(), "estimated_seconds": totals.control_seconds,
        "ceilings": loads.measured(), "ceilings_left_out": loads.left_out(), "ceilings_seconds": loads.seconds(),
    })
}

/// What can be told of the treatments of a plan on this machine.
#[derive(Default)]
struct Preview {
    left_out: LeftOut,
    /// The first that can be run here.
    first: Option<u64>,
    /// The load steps of those that can.
    loads: LoadSteps,
}

/// Looks at treatments and their needs. Nothing is fetched, made or started for it.
async fn preview(spec: &Spec, plan: &Plan, on: On) -> Result<Preview, Failure> {
    let mut seen = Preview::default();
    let cache = cache_folder();
    let mut servers = None;
    for index in 0..plan.treatments().min(ESTIMATED) {
        let treatment = plan.treatment(index);
        let bound = spec.bind(&treatment)?;
        if servers.is_none() && bound.needs != Needs::default() {
            let ledger = Ledger::open(&cache, &new_run_id(Timestamp::now()))?;
            let choice = Choice { on, offline: true, cache: cache.clone(), earlier: None };
            servers = Some(Servers::new(choice, HashMap::new(), ledger));
        }
        let why = match &mut servers {
            None => None,
            Some(servers) => match servers.preview(&bound).await {
                Ok(why) => why,
                // That a server is missing is for the run to say, where nothing declares that it may be.
                Err(EnvironmentError::Unavailable { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        if let Some(why) = why {
            seen.left_out.add(spec.design.label(&treatment), why);
            continue;
        }
        seen.first.get_or_insert(index);
        seen.loads.add(index, &bound);
    }
    Ok(seen)
}

/// Adds up the estimates; of very many treatments an even spread stands for all. Those that `servers` says cannot be
/// run here are left out.
pub(super) async fn totals(
    spec: &Spec,
    plan: &Plan,
    mut servers: Option<&mut Servers>,
) -> Result<Totals, Failure> {
    let treatments = plan.treatments();
    let seen = treatments.min(ESTIMATED);
    let mut totals = Totals::default();
    for index in 0..seen {
        let treatment = plan.treatment(
            u64::try_from(u128::from(index) * u128::from(treatments) / u128::from(seen.max(1))).unwrap_or(0),
        );
        let bound = spec.bind(&treatment)?;
        if let Some(servers) = &mut servers
            && servers.lacks(&bound.needs).await?.is_some()
        {
            continue;
        }
        add(&mut totals, &bound, &estimate(&bound));
    }
    let scale = ratio(plan.trials() - plan.controls(), seen);
    totals.rows *= scale;
    totals.seconds *= scale;
    totals.add_control(spec, plan)?;
    Ok(totals)
}

impl Totals {
    /// Adds the control trials of a plan, if it has any.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn add_control(&mut self, spec: &Spec, plan: &Plan) -> Result<(), Failure> {
        let Some(index) = plan.control() else { return Ok(()) };
        let one = estimate(&spec.bind(&plan.treatment(index))?);
        let trials = plan.controls() as f64;
        self.rows += one.rows as f64 * trials;
        self.control_seconds = one.seconds * trials;
        self.seconds += self.control_seconds;
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn ratio(trials: u64, seen: u64) -> f64 {
    if seen == 0 { 0.0 } else { trials as f64 / seen as f64 }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn add(totals: &mut Totals, bound: &BoundTrial, estimate: &Estimate) {
    totals.rows += estimate.rows as f64;
    totals.seconds += estimate.seconds;
    totals.disk = totals.disk.max(estimate.bytes_on_disk);
    let environment = format!("{} (PostgreSQL {})", bound.environment.name, bound.environment.versions);
    if !totals.environments.contains(&environment) {
        totals.environments.push(environment);
    }
}

fn list(spec: &Spec, plan: &Plan, most: usize) {
    let mut block = None;
    for trial in plan.iter().take(most) {
        if block.replace(trial.block) != Some(trial.block) {
            print(&format!("\nblock {}\n", trial.block + 1));
        }
        let control = if trial.control { " (control)" } else { "" };
        print(&format!("  {:>6}  {}{control}\n", trial.number + 1, spec.design.label(&trial.treatment)));
    }
    let left = plan.trials().saturating_sub(most as u64);
    if left > 0 {
        print(&format!("\n  ... and {} more trials (--all lists them)\n", count(left)));
    }
}

fn json(spec: &Spec, plan: &Plan, totals: &Totals, all: bool) -> serde_json::Value {
    let trial = |trial: PlannedTrial| {
        serde_json::json!({
            "trial": trial.number, "block": trial.block, "position": trial.position,
            "treatment": spec.design.label(&trial.treatment), "control": trial.control,
        })
    };
    let trials: Vec<_> = plan.iter().take(if all { usize::MAX } else { LISTED }).map(trial).collect();
    serde_json::json!({
        "experiment": spec.name, "smoke": spec.smoke, "question": spec.question, "hash": spec.hash,
        "treatments": plan.treatments(), "trials": plan.trials(), "blocks": spec.design.blocks,
        "seed": spec.design.seed, "order_digest": plan.order_digest(), "environments": totals.environments,
        "rows": totals.rows, "disk_bytes": totals.disk, "estimated_seconds": totals.seconds, "order": trials,
    })
}
