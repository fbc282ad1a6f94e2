//! The valid headline numbers of one step, by treatment and block.

use std::collections::BTreeMap;

use super::pairs::Values;
use super::summary::Metric;
use crate::model::{Design, Measurement, TrialRecord};

/// Valid values of one step. The key is the level index of every factor.
#[derive(Debug)]
pub(super) struct Observations {
    /// What the values are.
    pub(super) metric: Metric,
    /// Treatment to block to value.
    pub(super) values: Values,
}

impl Observations {
    /// Collects a step's values from all records that fit the design.
    pub(super) fn collect(records: &[TrialRecord], design: &Design, step: &str) -> Self {
        let metric = metric_of(records, step);
        let mut values: Values = BTreeMap::new();
        for record in records.iter().filter(|record| is_counted(record, design)) {
            let Some(measurement) = find(record, step) else { continue };
            if !record.reasons_against(measurement).is_empty() {
                continue;
            }
            if let Some(value) = metric.value(measurement) {
                let treatment = values.entry(record.trial.treatment.levels.clone()).or_default();
                treatment.insert(record.trial.block, value);
            }
        }
        Self { metric, values }
    }
}

/// The record's measurement of a step.
pub(super) fn find<'a>(record: &'a TrialRecord, step: &str) -> Option<&'a Measurement> {
    record.measurements.iter().find(|measurement| measurement.step == step)
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
    let first = records.iter().find_map(|record| find(record, step)?.captures.first());
    match first.and_then(|first| first.unit.more_is_faster()) {
        Some(true) => return Metric::CapturedRate,
        Some(false) => return Metric::CapturedTime,
        None => {}
    }
    let mut measurements = records.iter().filter_map(|record| find(record, step));
    let moves_rows = |m: &Measurement| {
        matches!(m.kind.as_str(), "load" | "read" | "command") && m.rows_per_second() > Some(0.0)
    };
    if measurements.any(moves_rows) { Metric::RowsPerSecond } else { Metric::Seconds }
}
