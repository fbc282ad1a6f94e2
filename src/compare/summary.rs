//! The summary of a run: what each treatment did, and what each factor changed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::contrast::{FactorContrast, contrasts};
use super::observations::{Observations, find, is_counted, reasons, value};
use super::stalls::{self, Stall};
use crate::model::{Design, Measurement, Outcome, TrialRecord, Unit};
use crate::stats::{median, relative_range};

/// A run, summarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Names of the factors, in the order of the file.
    pub factors: Vec<String>,
    /// Blocks with at least one record.
    pub blocks: usize,
    /// Trials with a record.
    pub trials: usize,
    /// Of these, trials that were left out because the machine lacks what they need.
    #[serde(default)]
    pub not_run: usize,
    /// Trials that ran and did not end `ok`, by outcome.
    pub not_ok: BTreeMap<String, usize>,
    /// In the order in which steps run.
    pub steps: Vec<StepSummary>,
    /// Why trials did not end well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<TrialErrors>,
    /// Why trials were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<TrialErrors>,
    /// What a sync took on the trials' servers, seconds: the median over all trials where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_seconds: Option<f64>,
}

/// One step over all treatments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// Name of the step.
    pub step: String,
    /// `create`, `index`, `sql`, `load` or `read`.
    pub kind: String,
    /// Methods that occur, `copy`, `insert`.
    pub methods: Vec<String>,
    /// What medians and ratios are about.
    pub metric: Metric,
    /// Numbers captured from a program, in the order of the file; the cells' `captures` are in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureName>,
    /// One per treatment that has a record and the step.
    pub cells: Vec<Cell>,
    /// Effects of the factors.
    pub contrasts: Vec<FactorContrast>,
}

/// A number captured from a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureName {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
}

/// Trials that ended with the same error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialErrors {
    /// First line of the error.
    pub error: String,
    /// How many trials ended with it.
    pub trials: usize,
    /// Treatment of the first of them.
    pub treatment: String,
}

/// The headline metric of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Loads and reads: more is faster.
    RowsPerSecond,
    /// Everything else: less is faster.
    Seconds,
    /// The first number captured from a program, a rate: more is faster.
    CapturedRate,
    /// The first number captured from a program, a time: less is faster.
    CapturedTime,
}

impl Metric {
    /// 1 where more is faster, -1 where less is.
    #[must_use]
    pub fn sign(self) -> f64 {
        match self {
            Self::RowsPerSecond | Self::CapturedRate => 1.0,
            Self::Seconds | Self::CapturedTime => -1.0,
        }
    }

    /// The metric's value of a measurement.
    #[must_use]
    pub fn value(self, measurement: &Measurement) -> Option<f64> {
        match self {
            Self::RowsPerSecond => measurement.rows_per_second(),
            Self::CapturedRate | Self::CapturedTime => measurement.captures.first().map(|first| first.value),
            Self::Seconds => Some(measurement.spans.seconds).filter(|seconds| seconds.is_finite()),
        }
    }
}

/// One treatment's numbers of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Label of the treatment.
    pub treatment: String,
    /// Level names, in factor order.
    pub levels: Vec<String>,
    /// Valid trials; only these are in the numbers.
    pub valid: usize,
    /// Trials that are not valid, by reason (a trial may have several).
    pub not_valid: BTreeMap<String, usize>,
    /// Number of trials that are not valid.
    pub invalid: usize,
    /// Median of the metric; `None` without a value.
    pub median: Option<f64>,
    /// Smallest and largest value.
    pub range: Option<(f64, f64)>,
    /// (max - min) / median; `None` with fewer than two values.
    pub spread: Option<f64>,
    /// Median of the WAL bytes.
    pub wal_bytes: Option<f64>,
    /// Median of the seconds to durable (headline and CHECKPOINT), where that was measured.
    pub durable_seconds: Option<f64>,
    /// The worst stall of a valid trial, where one is worth a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
    /// Medians of the step's captures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Option<f64>>,
    /// Whether a crash right after the commit would lose nothing the server acknowledged; `None`: not known.
    pub durable: Option<bool>,
}

impl Summary {
    /// Without anything that says one treatment were faster than another.
    #[must_use]
    pub fn unjudged(mut self) -> Self {
        self.steps.iter_mut().for_each(|step| step.contrasts.clear());
        self
    }
}

/// Summarises records. Records that do not fit the design, from another plan, are left out.
#[must_use]
pub fn summarise(records: &[TrialRecord], design: &Design) -> Summary {
    let mut records: Vec<TrialRecord> =
        records.iter().filter(|record| is_counted(record, design)).cloned().collect();
    records.sort_by_key(|record| (record.trial.treatment_index, record.trial.block, record.attempt));
    let mut not_ok = BTreeMap::new();
    let went_wrong = |outcome| !matches!(outcome, Outcome::Ok | Outcome::NotRun);
    for record in records.iter().filter(|record| went_wrong(record.outcome)) {
        *not_ok.entry(record.outcome.name().to_owned()).or_default() += 1;
    }
    let syncs = records.iter().filter_map(|record| record.server.as_ref()?.sync_seconds);
    Summary {
        sync_seconds: median(&syncs.collect::<Vec<_>>()),
        errors: errors(&records, went_wrong),
        left_out: errors(&records, |outcome| outcome == Outcome::NotRun),
        not_run: records.iter().filter(|record| record.outcome == Outcome::NotRun).count(),
        factors: design.factors.iter().map(|factor| factor.name.clone()).collect(),
        blocks: records.iter().map(|record| record.trial.block).collect::<BTreeSet<_>>().len(),
        trials: records.len(),
        not_ok,
        steps: step_names(&records).iter().map(|step| step_summary(&records, design, step)).collect(),
    }
}

/// The first line of an error; with the next where the first only leads to it.
fn in_one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(next) if first.ends_with(':') => format!("{first} {next}"),
        _ => first.to_owned(),
    }
}

/// Errors of trials with some outcomes: the first line of each kind with how many trials ended so.
fn errors(records: &[TrialRecord], outcomes: fn(Outcome) -> bool) -> Vec<TrialErrors> {
    let mut kinds: Vec<TrialErrors> = Vec::new();
    for record in records.iter().filter(|record| outcomes(record.outcome)) {
        let error = record.error.as_deref().map_or_else(|| "no reason is known".to_owned(), in_one_line);
        if let Some(kind) = kinds.iter_mut().find(|kind| kind.error == error) {
            kind.trials += 1;
        } else {
            kinds.push(TrialErrors { error, trials: 1, treatment: record.treatment.clone() });
        }
    }
    kinds
}

/// Names of steps by place, then name: treatments may have different steps.
pub(super) fn step_names(records: &[TrialRecord]) -> Vec<String> {
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    for measurement in records.iter().flat_map(|record| &record.measurements) {
        let place = first.entry(&measurement.step).or_insert(measurement.step_index);
        *place = (*place).min(measurement.step_index);
    }
    let mut names: Vec<(u32, &str)> = first.into_iter().map(|(name, place)| (place, name)).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// Whether steps of this kind answer questions; `create` and `dump` seldom do.
#[must_use]
pub fn answers(kind: &str) -> bool {
    matches!(kind, "load" | "read" | "index" | "sql" | "restore" | "command")
}

fn step_summary(records: &[TrialRecord], design: &Design, step: &str) -> StepSummary {
    let observations = Observations::collect(records, design, step);
    let measurements: Vec<&Measurement> = records.iter().flat_map(|record| find(record, step)).collect();
    let mut methods: Vec<String> =
        measurements.iter().map(|m| m.method.clone()).filter(|name| !name.is_empty()).collect();
    methods.sort_unstable();
    methods.dedup();
    let captures = captures(&measurements);
    let mut groups: BTreeMap<u64, Vec<&TrialRecord>> = BTreeMap::new();
    for record in records {
        groups.entry(record.trial.treatment_index).or_default().push(record);
    }
    StepSummary {
        step: step.to_owned(),
        kind: measurements.first().map(|measurement| measurement.kind.clone()).unwrap_or_default(),
        methods,
        metric: observations.metric,
        cells: groups
            .values()
            .filter_map(|group| cell(group, design, step, observations.metric, &captures))
            .collect(),
        captures,
        contrasts: contrasts(&observations, design),
    }
}

/// `None` for a treatment that does not have the step: its trials ended well without it.
fn cell(
    records: &[&TrialRecord],
    design: &Design,
    step: &str,
    metric: Metric,
    captures: &[CaptureName],
) -> Option<Cell> {
    let reached =
        |record: &&&TrialRecord| find(record, step).next().is_some() || record.outcome != Outcome::Ok;
    let records: Vec<&TrialRecord> = records.iter().filter(reached).copied().collect();
    let first = *records.first()?;
    let mut valid = Vec::new();
    let mut not_valid: BTreeMap<String, usize> = BTreeMap::new();
    let mut values = Vec::new();
    let mut trials = 0;
    for record in &records {
        let there = find(record, step).next().is_some();
        let reasons = if there { reasons(record, step) } else { vec![record.outcome.name()] };
        for reason in &reasons {
            *not_valid.entry((*reason).to_owned()).or_default() += 1;
        }
        if reasons.is_empty() {
            trials += 1;
            values.extend(value(record, step, |measurement| metric.value(measurement)));
            valid.extend(find(record, step));
        }
    }
    Some(Cell {
        treatment: first.treatment.clone(),
        levels: design.describe(&first.trial.treatment).iter().map(|(_, level)| level.name.clone()).collect(),
        valid: trials,
        not_valid,
        invalid: records.len() - trials,
        median: median(&values),
        range: values
            .iter()
            .copied()
            .min_by(f64::total_cmp)
            .zip(values.iter().copied().max_by(f64::total_cmp)),
        spread: relative_range(&values),
        wal_bytes: median_of(&valid, |measurement| measurement.counters.wal_bytes.map(bytes)),
        durable_seconds: median_of(&valid, Measurement::durable_seconds),
        stall: stalls::worst(&valid),
        captures: captures.iter().map(|capture| captured(&valid, &capture.name)).collect(),
        durable: records
            .iter()
            .filter_map(|record| record.server.as_ref())
            .map(|server| server.durable)
            .reduce(|a, b| a && b),
    })
}

/// Names and units of a step's captures, each once: treatments may have different ones.
fn captures(measurements: &[&Measurement]) -> Vec<CaptureName> {
    let mut names: Vec<CaptureName> = Vec::new();
    for captured in measurements.iter().flat_map(|measurement| &measurement.captures) {
        if !names.iter().any(|known| known.name == captured.name) {
            names.push(CaptureName { name: captured.name.clone(), unit: captured.unit });
        }
    }
    names
}

fn captured(measurements: &[&Measurement], name: &str) -> Option<f64> {
    let values = measurements.iter().flat_map(|measurement| &measurement.captures);
    let values: Vec<f64> = values.filter(|captured| captured.name == name).map(|c| c.value).collect();
    median(&values)
}

fn median_of(measurements: &[&Measurement], value: fn(&Measurement) -> Option<f64>) -> Option<f64> {
    median(&measurements.iter().filter_map(|measurement| value(measurement)).collect::<Vec<_>>())
}

#[expect(clippy::cast_precision_loss, reason = "a median of bytes need not be exact")]
fn bytes(count: u64) -> f64 {
    count as f64
}
