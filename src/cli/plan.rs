//! `loadlab plan FILE`: what a run would do, without any server.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;

use super::commands;
use super::failure::{Exit, Failure};
use super::options::SpecOptions;
use super::print;
use super::servers::Servers;
use crate::environment::EnvironmentError;
use crate::environment::choose::{Choice, On};
use crate::environment::doctor::cache_folder;
use crate::environment::ledger::Ledger;
use crate::model::{BoundTrial, Needs, PlannedTrial};
use crate::plan::{Estimate, Plan, estimate};
use crate::report::{bytes, count, duration};
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
    /// Environments by name.
    pub(super) environments: Vec<String>,
}

pub(super) async fn plan(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let spec = spec::load(&arguments.file, &arguments.spec.load())?;
    let checked = spec.check_all()?;
    let plan = Plan::new(&spec.design).map_err(|error| Failure::wrong(format!("error: {error}")))?;
    let totals = totals(&spec, &plan, None).await?;
    let left_out = left_out(&spec, &plan, arguments.on).await?;
    let commands = commands::of_plan(&spec, &plan)?;
    if arguments.format == "json" {
        let mut json = json(&spec, &plan, &totals, arguments.all);
        json["commands"] = commands.into();
        json["not_run"] = left_out.json();
        print(&format!("{}\n", serde_json::to_string_pretty(&json).expect("values are plain data")));
        return Ok(Exit::Done);
    }
    print(&head(&spec, &plan, &totals, &checked.to_string(), &arguments.results));
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
    lines.push(format!("trials      {}, each on a fresh server", count(plan.trials())));
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

/// Treatments whose needs this machine does not meet. Nothing is fetched, made or started for it.
async fn left_out(spec: &Spec, plan: &Plan, on: On) -> Result<LeftOut, Failure> {
    let mut left_out = LeftOut::default();
    let cache = cache_folder();
    let mut servers = None;
    for index in 0..plan.treatments().min(ESTIMATED) {
        let treatment = plan.treatment(index);
        let bound = spec.bind(&treatment)?;
        if bound.needs == Needs::default() {
            continue;
        }
        if servers.is_none() {
            let ledger = Ledger::open(&cache, &new_run_id(Timestamp::now()))?;
            let choice = Choice { on, offline: true, cache: cache.clone(), earlier: None };
            servers = Some(Servers::new(choice, HashMap::new(), ledger));
        }
        let Some(servers) = &mut servers else { continue };
        let why = match servers.preview(&bound).await {
            Ok(why) => why,
            // That a server is missing is for the run to say, where nothing declares that it may be.
            Err(EnvironmentError::Unavailable { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(why) = why {
            left_out.add(spec.design.label(&treatment), why);
        }
    }
    Ok(left_out)
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
    let scale = ratio(plan.trials(), seen);
    totals.rows *= scale;
    totals.seconds *= scale;
    Ok(totals)
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
        print(&format!("  {:>6}  {}\n", trial.number + 1, spec.design.label(&trial.treatment)));
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
            "treatment": spec.design.label(&trial.treatment),
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
