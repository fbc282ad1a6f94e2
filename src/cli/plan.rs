//! `loadlab plan FILE`: what a run would do, without any server.

use std::path::{Path, PathBuf};

use clap::Args;

use super::failure::{Exit, Failure};
use super::options::SpecOptions;
use super::print;
use crate::model::{BoundTrial, PlannedTrial};
use crate::plan::{Estimate, Plan, estimate};
use crate::report::{bytes, count, duration};
use crate::spec::{self, Spec};

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

pub(super) fn plan(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let spec = spec::load(&arguments.file, &arguments.spec.load())?;
    let checked = spec.check_all()?;
    let plan = Plan::new(&spec.design).map_err(|error| Failure::wrong(format!("error: {error}")))?;
    let totals = totals(&spec, &plan)?;
    if arguments.format == "json" {
        print_json(&spec, &plan, &totals, arguments.all);
        return Ok(Exit::Done);
    }
    print(&head(&spec, &plan, &totals, &checked.to_string(), &arguments.results));
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

/// Adds up the estimates; of very many treatments an even spread stands for all.
pub(super) fn totals(spec: &Spec, plan: &Plan) -> Result<Totals, Failure> {
    let treatments = plan.treatments();
    let seen = treatments.min(ESTIMATED);
    let mut totals = Totals::default();
    for index in 0..seen {
        let treatment = plan.treatment(
            u64::try_from(u128::from(index) * u128::from(treatments) / u128::from(seen.max(1))).unwrap_or(0),
        );
        let bound = spec.bind(&treatment)?;
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

fn print_json(spec: &Spec, plan: &Plan, totals: &Totals, all: bool) {
    let trial = |trial: PlannedTrial| {
        serde_json::json!({
            "trial": trial.number, "block": trial.block, "position": trial.position,
            "treatment": spec.design.label(&trial.treatment),
        })
    };
    let trials: Vec<_> = plan.iter().take(if all { usize::MAX } else { LISTED }).map(trial).collect();
    let json = serde_json::json!({
        "experiment": spec.name, "smoke": spec.smoke, "question": spec.question, "hash": spec.hash,
        "treatments": plan.treatments(), "trials": plan.trials(), "blocks": spec.design.blocks,
        "seed": spec.design.seed, "order_digest": plan.order_digest(), "environments": totals.environments,
        "rows": totals.rows, "disk_bytes": totals.disk, "estimated_seconds": totals.seconds, "order": trials,
    });
    print(&format!("{}\n", serde_json::to_string_pretty(&json).expect("values are plain data")));
}
