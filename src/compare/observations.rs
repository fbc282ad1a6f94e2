//! The valid headline numbers of one step, by treatment and block.

use std::collections::BTreeMap;

use super::client::ClientWork;
use super::pairs::Values;
use super::summary::Metric;
use crate::model::{Design, Measurement, TrialRecord};
use crate::stats::mean;

/// Valid values of one step. The key is the level index of every factor.
#[derive(Debug)]
pub(super) struct Observations {
    /// What the values are.
    pub(super) metric: Metric,
    /// Treatment to block to value.
    pub(super) values: Values,
    /// What the client did in these trials, by treatment.
    pub(super) client: BTreeMap<Vec<usize>, ClientWork>,
}

impl Observations {
    /// Collects a step's values from all records that fit the design.
    pub(super) fn collect(records: &[TrialRecord], design: &Design, step: &str) -> Self {
        let metric = metric_of(records, step);
        let mut values: Values = BTreeMap::new();
        let mut client: BTreeMap<Vec<usize>, ClientWork> = BTreeMap::new();
        for record in records.iter().filter(|record| is_counted(record, design)) {
            if !reasons(record, step).is_empty() {
                continue;
            }
            if let Some(value) = value(record, step, |measurement| metric.value(measurement)) {
                let treatment = values.entry(record.trial.treatment.levels.clone()).or_default();
                treatment.insert(record.trial.block, value);
                let work = client.entry(record.trial.treatment.levels.clone()).or_default();
                work.add(record, &[step.to_owned()]);
            }
        }
        Self { metric, values, client }
    }
}

/// The record's measurements of a step: one, or as many as the step was repeated.
pub(super) fn find<'a>(record: &'a TrialRecord, step: &str) -> impl Iterator<Item = &'a Measurement> {
    record.measurements.iter().filter(move |measurement| measurement.step == step)
}

/// Why a trial's number of a step must not be used. A guard on one repetition is enough: what is left of them would not be what
/// other trials did.
pub(super) fn reasons(record: &TrialRecord, step: &str) -> Vec<&'static str> {
    let mut reasons: Vec<_> = find(record, step).flat_map(|found| record.reasons_against(found)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

/// One number for a trial: repetitions are the lower level of the two, and become one before trials are compared. Their geometric
/// mean, under which a rate and a time say the same; the plain mean where a counter is zero. `None` when one has no number.
pub(super) fn value(
    record: &TrialRecord,
    step: &str,
    number: impl Fn(&Measurement) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = find(record, step).map(number).collect::<Option<_>>()?;
    if let [value] = values[..] {
        return Some(value);
    }
    if values.iter().all(|value| *value > 0.0) {
        return Some(mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>())?.exp());
    }
    mean(&values)
}

/// Whether a record is one of the trials that numbers are made of: no control, and its treatment has a level the design
/// knows for every factor.
pub(super) fn is_counted(record: &TrialRecord, design: &Design) -> bool {
    !record.trial.control && fits(record, design)
}

/// Whether the record's treatment has a level the design knows for every factor.
pub(super) fn fits(record: &TrialRecord, design: &Design) -> bool {
    let levels = &record.trial.treatment.levels;
    levels.len() == design.factors.len()
        && design.factors.iter().zip(levels).all(|(factor, level)| *level < factor.levels.len())
}

/// The first capture of a program when it is a rate or a time; rows per second for loads and reads that moved rows, seconds for everything else.
pub(super) fn metric_of(records: &[TrialRecord], step: &str) -> Metric {
    let first = records.iter().find_map(|record| find(record, step).next()?.captures.first());
    match first.and_then(|first| first.unit.more_is_faster()) {
        Some(true) => return Metric::CapturedRate,
        Some(false) => return Metric::CapturedTime,
        None => {}
    }
    let mut measurements = records.iter().flat_map(|record| find(record, step));
    let moves_rows = |m: &Measurement| {
        matches!(m.kind.as_str(), "load" | "read" | "command") && m.rows_per_second() > Some(0.0)
    };
    if measurements.any(moves_rows) { Metric::RowsPerSecond } else { Metric::Seconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Guard, Outcome, PlannedTrial, Spans, Treatment};

    fn repeated(seconds: &[f64]) -> TrialRecord {
        let read = |(repetition, seconds): (usize, &f64)| Measurement {
            step: "read".to_owned(),
            repetition: u32::try_from(repetition).unwrap(),
            outcome: Some(Outcome::Ok),
            spans: Spans { seconds: *seconds, ..Spans::default() },
            ..Measurement::default()
        };
        TrialRecord {
            trial: PlannedTrial {
                number: 0,
                block: 0,
                position: 0,
                treatment_index: 0,
                treatment: Treatment { levels: Vec::new() },
                control: false,
            },
            attempt: 0,
            treatment: String::new(),
            factors: Vec::new(),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            seconds: 0.0,
            server_start_seconds: None,
            server: None,
            outcome: Outcome::Ok,
            error: None,
            error_sqlstate: None,
            settings: Vec::new(),
            measurements: seconds.iter().enumerate().map(read).collect(),
            samples: Vec::new(),
        }
    }

    /// The mistake of counting repetitions as trials: three reads in one trial are one number.
    #[test]
    fn repetitions_are_one_number_of_their_trial() {
        let record = repeated(&[1.0, 2.0, 4.0]);
        let time = value(&record, "read", |found| Some(found.spans.seconds)).unwrap();
        let rate = value(&record, "read", |found| Some(1.0 / found.spans.seconds)).unwrap();
        assert!((time - 2.0).abs() < 1e-12 && (time * rate - 1.0).abs() < 1e-12, "{time} {rate}");
        let pages = |found: &Measurement| Some(f64::from(u8::from(found.repetition == 0)) * 9.0);
        assert_eq!(value(&record, "read", pages), Some(3.0));
        assert_eq!(value(&record, "read", |found| (found.repetition > 0).then_some(1.0)), None);
    }

    #[test]
    fn a_guard_on_one_repetition_keeps_the_trial_out() {
        let mut record = repeated(&[1.0, 1.0]);
        assert!(reasons(&record, "read").is_empty());
        record.measurements[1].guards = vec![Guard::CheckpointInWindow];
        assert_eq!(reasons(&record, "read"), ["checkpoint_in_window"]);
    }
}
