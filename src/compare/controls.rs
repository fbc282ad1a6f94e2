//! What a run's controls say: how far the same treatment differs from itself, and how near trials came to the ceiling of
//! their client.
//!
//! A control trial is compared with its twin, the other trial of its treatment in the same block, by the same arithmetic as any
//! two treatments: what it shows is what that arithmetic makes of nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::claims::{Judgement, Verdict};
use super::contrast::{Reading, reading, speed_ratio};
use super::observations::{find, fits, metric_of, reasons, value as one_of_trial};
use super::summary::{Metric, answers, step_names};
use crate::model::{Ceiling, Claim, Controls, Design, TrialRecord};
use crate::stats::geometric_mean_ratio;

/// Coverage of intervals.
const LEVEL: f64 = 0.95;
/// A trial this near to the ceiling of its clients is theirs at least in part: driver and sockets, which a ceiling leaves out,
/// take their share of a client's time as well.
const NEAR: f64 = 0.7;

/// The controls of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlSummary {
    /// Label of the treatment that was run twice in each block.
    pub treatment: Option<String>,
    /// Control trials with a record.
    pub trials: usize,
    /// Steps of these that are not valid, by reason.
    pub not_valid: BTreeMap<String, usize>,
    /// The same treatment against itself, for each step that answers questions.
    pub noise_floor: Vec<NoiseFloor>,
    /// Trials against the ceiling of their client, for each distinct load step.
    pub ceilings: Vec<CeilingUse>,
    /// Distinct load steps whose ceiling was not measured, because there are too many.
    pub ceilings_left_out: u64,
}

/// A treatment against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Name of the step.
    pub step: String,
    /// What is compared.
    pub metric: Metric,
    /// How many times as fast the control trials are as their twins; above 1 is faster.
    pub ratio: f64,
    /// Ends of the 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Blocks in which both trials are valid.
    pub blocks: usize,
    /// What would be said if these were two treatments.
    pub reading: Reading,
}

impl NoiseFloor {
    /// Whether a difference was found where there is none.
    #[must_use]
    pub fn found_one(&self) -> bool {
        matches!(self.reading, Reading::Faster | Reading::Slower)
    }

    /// How far the ratio is from 1: 0.02 for 2 %, in either direction.
    #[must_use]
    pub fn differs_by(&self) -> f64 {
        self.ratio.ln().abs().exp_m1()
    }
}

/// How near the trials of a step came to the ceiling of their client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CeilingUse {
    /// Name of the step.
    pub step: String,
    /// Method, format and batch in words.
    pub method: String,
    /// Name of the table in the experiment.
    pub table: String,
    /// Its rows.
    pub table_rows: u64,
    /// Rows per second of one client without a server.
    pub rows_per_second: f64,
    /// Bytes per second of one client without a server.
    pub bytes_per_second: f64,
    /// The valid trial that came nearest; `None` without one.
    pub nearest: Option<Nearest>,
}

/// The trial that came nearest to a ceiling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// Label of its treatment.
    pub treatment: String,
    /// Its clients.
    pub clients: u32,
    /// Its rows per second.
    pub rows_per_second: f64,
    /// Share of the ceiling of its clients: one client's times their number, but at most once for each CPU.
    pub share: f64,
}

impl CeilingUse {
    /// Whether a trial is so near that its number is the client's at least in part.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.nearest.as_ref().is_some_and(|nearest| nearest.share > NEAR)
    }
}

/// Works out the controls of a run; `cores`: CPUs of the machine, where they are known.
#[must_use]
pub fn controls(
    controls: &Controls,
    records: &[TrialRecord],
    design: &Design,
    cores: Option<u64>,
) -> ControlSummary {
    let trials: Vec<&TrialRecord> =
        records.iter().filter(|record| record.trial.control && fits(record, design)).collect();
    let mut not_valid = BTreeMap::new();
    for record in &trials {
        let reasons = record.measurements.iter().flat_map(|step| record.reasons_against(step));
        let none = record.measurements.is_empty().then(|| record.outcome.name());
        for reason in reasons.chain(none) {
            *not_valid.entry(reason.to_owned()).or_default() += 1;
        }
    }
    let steps = step_names(records);
    ControlSummary {
        treatment: trials.first().map(|record| record.treatment.clone()),
        trials: trials.len(),
        not_valid,
        noise_floor: steps.iter().filter_map(|step| noise_floor(&trials, records, step)).collect(),
        ceilings: controls.ceilings.iter().flat_map(|ceiling| uses(ceiling, records, cores)).collect(),
        ceilings_left_out: controls.left_out,
    }
}

/// Control trials of a step against their twins; `None` with fewer than two blocks.
fn noise_floor(controls: &[&TrialRecord], records: &[TrialRecord], step: &str) -> Option<NoiseFloor> {
    let kind =
        records.iter().find_map(|record| find(record, step).next()).map(|found| found.kind.as_str())?;
    if !answers(kind) {
        return None;
    }
    let metric = metric_of(records, step);
    let logs = controls.iter().filter_map(|control| {
        let twin = records.iter().find(|record| is_twin(record, control))?;
        speed_ratio(metric, value(control, step, metric)?, value(twin, step, metric)?)
    });
    let found = geometric_mean_ratio(&logs.collect::<Vec<_>>(), LEVEL).filter(|found| found.n > 1)?;
    Some(NoiseFloor {
        step: step.to_owned(),
        metric,
        ratio: found.ratio,
        interval: found.bounds,
        blocks: found.n,
        reading: reading(found.n, found.bounds),
    })
}

fn is_twin(record: &TrialRecord, control: &TrialRecord) -> bool {
    !record.trial.control
        && record.trial.block == control.trial.block
        && record.trial.treatment_index == control.trial.treatment_index
}

/// The valid value of a trial's step.
fn value(record: &TrialRecord, step: &str, metric: Metric) -> Option<f64> {
    reasons(record, step).is_empty().then(|| one_of_trial(record, step, |found| metric.value(found)))?
}

fn uses(ceiling: &Ceiling, records: &[TrialRecord], cores: Option<u64>) -> Vec<CeilingUse> {
    let Some((rate, bytes)) = ceiling.rows_per_second().zip(ceiling.bytes_per_second()) else {
        return Vec::new();
    };
    let of_step = |step: &String| CeilingUse {
        step: step.clone(),
        method: ceiling.words.clone(),
        table: ceiling.table.clone(),
        table_rows: ceiling.table_rows,
        rows_per_second: rate,
        bytes_per_second: bytes,
        nearest: nearest(ceiling, step, rate, records, cores),
    };
    ceiling.steps.keys().map(of_step).collect()
}

fn nearest(
    ceiling: &Ceiling,
    step: &str,
    rate: f64,
    records: &[TrialRecord],
    cores: Option<u64>,
) -> Option<Nearest> {
    let trials = records
        .iter()
        .filter(|record| !record.trial.control && ceiling.is_of(record.trial.treatment_index, step));
    let steps = trials.flat_map(|record| find(record, step).map(move |found| (record, found)));
    let shares = steps.filter(|(record, found)| record.reasons_against(found).is_empty());
    let shares = shares.filter_map(|(record, found)| {
        let reached = found.rows_per_second()?;
        // A client is one thread; more of them than CPUs cannot work at the same time.
        let cpus = cores.and_then(|cores| u32::try_from(cores).ok()).unwrap_or(u32::MAX);
        let threads = found.clients.min(cpus).max(1);
        Some(Nearest {
            treatment: record.treatment.clone(),
            clients: found.clients,
            rows_per_second: reached,
            share: reached / (rate * f64::from(threads)),
        })
    });
    shares.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Adds to verdicts on times and rates of a step that in this run the same treatment differed from itself there.
/// `judgements` are those of `claims`, in their order.
pub fn doubt(claims: &[Claim], judgements: &mut [Judgement], controls: &ControlSummary) {
    for (claim, judgement) in claims.iter().zip(judgements) {
        let Some(metric) = claim.metric.as_ref().filter(|metric| !metric.counter) else { continue };
        if !matches!(judgement.verdict, Some(verdict) if verdict != Verdict::NotComparable) {
            continue;
        }
        for found in controls.noise_floor.iter().filter(|found| found.found_one()) {
            if metric.steps.contains(&found.step) {
                judgement.reason += &doubtful(found);
            }
        }
    }
}

fn doubtful(found: &NoiseFloor) -> String {
    let percent = found.differs_by() * 100.0;
    format!(
        "; but in this run the same treatment differs from itself by {percent:.1} % in step {}, which happens by chance in one \
         comparison of twenty: a difference of that size is no evidence here",
        found.step
    )
}
