//! A second opinion: `notebooks/verdicts.py` works out all verdicts from `run.json` and Parquet alone, and must agree with loadlab,
//! on many made-up runs and on every kept one. Needs Python, like `python_results`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use loadlab::model::{
    Claim, ClaimSource, Contrast, Group, Guard, Metric, Outcome, RawUnit, RawValues, Reading, Scalar,
    Statement,
};
use loadlab::store::kept_runs;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::python_results::python;
use crate::results::fixture::{Example, formats, unlogged};

/// Made-up runs; each has a dozen claims.
const RUNS: u64 = 40;

/// Numbers that are the same in every run of the tests (splitmix64: G. L. Steele and others, OOPSLA 2014).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `sides` - 1.
    fn roll(&mut self, sides: usize) -> usize {
        usize::try_from(self.next() % sides as u64).unwrap()
    }

    /// 0 to 1.
    fn share(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 40).unwrap()) / f64::from(1_u32 << 24)
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())].clone()
    }
}

/// A run with noise, failures, guards, holes and claims of all kinds.
fn made_up(seed: u64) -> Example {
    let mut dice = Dice(seed);
    // One is beyond what is counted out exactly.
    let blocks = if seed == 0 { 64 } else { u32::try_from(1 + dice.roll(14)).unwrap() };
    let mut example = if dice.roll(2) == 0 { unlogged(blocks) } else { formats(blocks) };
    example.manifest.run = format!("20170608-101530-{seed:03}-aaaaaa");
    let (noise, trouble) = (dice.one(&[0.0, 0.002, 0.02, 0.3]), dice.one(&[0.0, 0.0, 0.05, 0.3]));
    let zeros = dice.roll(3) == 0;
    for record in &mut example.records {
        for step in &mut record.measurements {
            step.spans.seconds *= (noise * (dice.share() + dice.share() - 1.0)).exp();
            if dice.share() < noise / 2.0 {
                // A wild value, which the two halves of the interval take differently.
                step.spans.seconds *= 3.0;
            }
            if zeros && dice.roll(2) == 0 {
                step.counters.wal_bytes = step.counters.wal_bytes.map(|_| 0);
            }
            if dice.share() < trouble / 2.0 {
                let guards = [Guard::CheckpointInWindow, Guard::ServerRestarted, Guard::ClientBound];
                step.guards = vec![dice.one(&guards)];
            }
        }
        if dice.share() < trouble / 4.0 {
            record.outcome = Outcome::TimedOut;
        }
        if dice.share() < trouble / 4.0 {
            record.measurements.pop();
        }
    }
    // Trials that were never begun.
    example.records.retain(|_| dice.share() >= trouble / 4.0);
    example.manifest.claims = (0..12).map(|index| claim(&example, index, &mut dice)).collect();
    example
}

fn group(example: &Example, dice: &mut Dice) -> Group {
    let factors = &example.manifest.design.factors;
    let named = factors.iter().enumerate().filter(|_| dice.roll(3) > 0).map(|(at, _)| at);
    let named: Vec<usize> = named.collect();
    Group { levels: named.into_iter().map(|at| (at, dice.roll(factors[at].levels.len()))).collect() }
}

fn contrast(example: &Example, dice: &mut Dice) -> Contrast {
    let mut of = group(example, dice);
    if of.levels.is_empty() {
        of.levels.push((0, 1));
    }
    let mut to = of.clone();
    let factors = &example.manifest.design.factors;
    let at = dice.roll(to.levels.len());
    let (factor, level) = to.levels[at];
    to.levels[at].1 = (level + 1) % factors[factor].levels.len();
    if dice.roll(8) == 0 {
        // Groups with nothing alike, or even the same.
        to = group(example, dice);
    }
    Contrast { of, to }
}

fn statement(example: &Example, dice: &mut Dice) -> Statement {
    match dice.roll(8) {
        0..=2 => Statement::Ratio(contrast(example, dice)),
        3 | 4 => Statement::NoDifference {
            contrast: contrast(example, dice),
            margin: dice.one(&[0.02, 0.05, 0.3]),
        },
        5 => {
            let Contrast { of, to } = contrast(example, dice);
            let third = group(example, dice);
            Statement::Order(if dice.roll(2) == 0 { vec![of, to] } else { vec![to, of, third] })
        }
        6 => Statement::Absolute(group(example, dice)),
        _ => Statement::NotComparable("needs another machine".to_owned()),
    }
}

fn raw(dice: &mut Dice) -> Option<RawValues> {
    let side = |dice: &mut Dice| {
        let count = 1 + dice.roll(3);
        let scale = dice.one(&[1.0, 10.0, 100.0]);
        let digits = dice.one(&[1.0, 10.0, 100.0]);
        (0..count).map(|_| (scale * (2.0 + dice.share()) * digits).round() / digits).collect::<Vec<f64>>()
    };
    let (of, mut to) = (side(dice), side(dice));
    if dice.roll(4) == 0 {
        to.clear();
    }
    let rounding = dice.one(&[None, None, Some(0.5)]);
    (dice.roll(2) == 0).then_some(RawValues { unit: RawUnit::Seconds, of, to, rounding })
}

fn claim(example: &Example, index: usize, dice: &mut Dice) -> Claim {
    let (steps, name): (&[&str], &str) = match (example.manifest.experiment.as_str(), dice.roll(6)) {
        ("unlogged", 0) => (&["create", "insert"], "seconds"),
        ("unlogged", 1) => (&["insert"], "batch_p99_seconds"),
        ("unlogged", 2 | 3) => (&["insert"], "wal_bytes"),
        ("unlogged", _) => (&["insert"], "rows_per_second"),
        (_, 0) => (&["copy", "select"], "seconds"),
        (_, 1) => (&["copy"], "durable_seconds"),
        (_, 2) => (&["copy", "select"], "wal_bytes"),
        (_, 3) => (&["select"], "payload_bytes_per_second"),
        (_, _) => (&["copy"], "rows_per_second"),
    };
    let needs = [
        ("rows", ">= 10_000"),
        ("rows", "30_000"),
        ("version", "18"),
        ("version", "> 18"),
        ("version", "<= 18.1"),
        ("backend", "local"),
        ("durable", "true"),
        ("cores", ">= 2"),
        ("memory", "1GB"),
        ("seconds", "< 1"),
        ("storage", "ext4"),
        ("moon", "full"),
    ];
    let chosen = (0..2).filter(|_| dice.roll(4) == 0).map(|_| ()).collect::<Vec<()>>();
    let needs = chosen.iter().map(|()| {
        let (name, bound) = dice.one(&needs);
        (name.to_owned(), Scalar::Text(bound.to_owned()))
    });
    let needs: IndexMap<String, Scalar> = needs.collect();
    let statement = statement(example, dice);
    Claim {
        id: format!("claim-{index}"),
        source_id: "s".to_owned(),
        source: ClaimSource { title: "A page".to_owned(), author: None, date: None, system: None, url: None },
        quote: None,
        reading: Reading::AsPublished,
        metric: Some(Metric {
            steps: steps.iter().map(|step| (*step).to_owned()).collect(),
            name: name.to_owned(),
            counter: name == "wal_bytes",
        }),
        statement,
        published: dice.one(&[
            Some(1.6),
            Some(1.62),
            Some(0.9),
            Some(1.0),
            Some(0.0133),
            Some(2.0),
            Some(1.05),
            Some(1.3),
            Some(12.0),
        ]),
        raw: raw(dice),
        needs,
        confounds: None,
    }
}

/// What loadlab says of the claims of a run.
fn said(lab: &Lab, run: &Path) -> Value {
    let said = lab.loadlab(&["claims", run.to_str().unwrap(), "--format", "json"]).ended_with(0);
    let mut json: Value = serde_json::from_str(&said.stdout).unwrap();
    json["claims"].take()
}

/// Fails with everything in which Python and loadlab differ.
fn compare(lab: &Lab, runs: &[PathBuf]) -> Vec<Value> {
    let entries: Vec<Value> = runs.iter().map(|run| json!({"run": run, "claims": said(lab, run)})).collect();
    let list = lab.folder().join("list.json");
    std::fs::write(&list, serde_json::to_vec(&entries).unwrap()).unwrap();
    python("tests/python/second_opinion.py", &[&list]);
    entries
}

#[test]
fn a_second_opinion_agrees_on_many_made_up_runs() {
    let lab = Lab::bare();
    let results = lab.folder().join("results");
    let write = |seed| made_up(seed).write(&results).path().to_owned();
    let entries = compare(&lab, &(0..RUNS).map(write).collect::<Vec<_>>());
    let claims = || entries.iter().flat_map(|entry| entry["claims"].as_array().unwrap());
    let seen = |key: &str| claims().map(|claim| claim[key].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(seen("verdict").len(), 6, "every verdict and none: {:?}", seen("verdict"));
    assert_eq!(seen("kind").len(), 5, "{:?}", seen("kind"));
    let unlike = claims().flat_map(|claim| claim["comparisons"].as_array().unwrap());
    assert!(unlike.filter(|comparison| comparison["alike"] == false).count() > 0);
}

#[test]
fn a_smoke_run_has_no_verdict_by_either() {
    let lab = Lab::bare();
    let mut example = made_up(3);
    example.manifest.smoke = true;
    let entries = compare(&lab, &[example.write(&lab.folder().join("results")).path().to_owned()]);
    assert!(entries[0]["claims"].as_array().unwrap().iter().all(|claim| claim["verdict"].is_null()));
}

#[test]
fn the_notebook_of_claims_runs_on_runs_of_all_kinds() {
    for seed in [0, 5] {
        let results = tempfile::tempdir().unwrap();
        drop(made_up(seed).write(results.path()));
        let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/02-claims.ipynb");
        python("notebooks/execute.py", &[&notebook, results.path()]);
    }
}

#[test]
fn a_second_opinion_agrees_on_every_kept_run() {
    let lab = Lab::bare();
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let experiments = results.read_dir().unwrap().flatten().filter(|entry| entry.path().is_dir());
    let names = experiments.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let runs = names.flat_map(|name| kept_runs(&results, &name).unwrap());
    let claims = |run: &PathBuf| !loadlab::store::read_run(run).unwrap().manifest.claims.is_empty();
    compare(&lab, &runs.filter(claims).collect::<Vec<_>>());
}
