//! What loadlab promises of its own speed, as ratios of two things measured in turn within one run.
//!
//! `just bench` prints a table and fails when a promise is not kept. Absolute times belong to the machine.

#![expect(clippy::unwrap_used, reason = "a benchmark may end at the first surprise")]

mod copy;
mod plan;
mod start;
mod trials;

use std::time::Duration;

/// One promise with what was measured.
struct Promise {
    what: String,
    measured: f64,
    at_most: f64,
    detail: String,
}

fn main() {
    // `cargo bench` passes flags of its harness; a name selects one group.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |group: &str| chosen.is_empty() || chosen.iter().any(|word| word == group);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut promises = Vec::new();
    if wanted("plan") {
        promises.extend(plan::million_trials());
    }
    if wanted("start") {
        promises.extend(runtime.block_on(start::zero_to_answer()));
    }
    if wanted("copy") {
        promises.extend(runtime.block_on(copy::against_the_server_and_psql()));
    }
    if wanted("trials") {
        promises.extend(trials::forty());
    }
    println!("\n{:<66} {:>9} {:>9}", "promise", "measured", "at most");
    let mut broken = 0;
    for promise in &promises {
        let kept = promise.measured <= promise.at_most;
        broken += usize::from(!kept);
        let mark = if kept { "" } else { "  BROKEN" };
        println!("{:<66} {:>9.3} {:>9.3}{mark}", promise.what, promise.measured, promise.at_most);
        println!("    {}", promise.detail);
    }
    println!("\n{} passed, {broken} failed", promises.len() - broken);
    std::process::exit(i32::from(broken > 0));
}

fn median(values: &[f64]) -> f64 {
    loadlab::stats::median(values).unwrap()
}

/// `median (min-max) ms`.
fn milliseconds(name: &str, values: &[f64]) -> String {
    let (min, max) =
        values.iter().fold((f64::MAX, 0.0_f64), |(min, max), value| (min.min(*value), max.max(*value)));
    format!("{name} {:.0} ({:.0}-{:.0}) ms, n={}", median(values) * 1e3, min * 1e3, max * 1e3, values.len())
}

/// Pairs measured in turn: median of the ratios pair by pair.
fn paired(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    median(&ratios)
}

fn cache() -> std::path::PathBuf {
    loadlab::environment::doctor::cache_folder()
}

/// The shipped environment for any PostgreSQL.
fn environment() -> loadlab::model::EnvironmentSpec {
    let spec = loadlab::spec::load(
        std::path::Path::new("experiments/quickstart.yaml"),
        &loadlab::spec::LoadOptions::default(),
    );
    let spec = spec.unwrap_or_else(|found| panic!("{}", found.render(false)));
    let plan = loadlab::plan::Plan::new(&spec.design).unwrap();
    spec.bind(&plan.treatment(0)).unwrap_or_else(|found| panic!("{}", found.render(false))).environment
}

const PATIENCE: Duration = Duration::from_mins(1);
