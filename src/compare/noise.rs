//! How far the numbers of a run scatter, and what would help: more blocks, or longer trials.

use std::collections::BTreeMap;

use super::observations::{Observations, find, is_counted, reasons};
use super::summary::{answers, step_names};
use crate::model::{Design, Phase, Sample, TrialRecord};
use crate::stats::{blocks_needed, components, detectable, mean, relative_error, standard_deviation};

/// Coverage and power that plans are made for.
const LEVEL: f64 = 0.95;
/// A difference is found so often.
const POWER: f64 = 0.8;
/// Series with fewer intervals say nothing about a trial's own noise.
const FEWEST_INTERVALS: usize = 8;

/// Scatter of a step's headline number.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    /// Name of the step.
    pub step: String,
    /// Standard deviation of the log ratio of two trials of one block, apart from what their treatments do.
    pub scatter: f64,
    /// Standard deviation between blocks in logs: slow changes of the machine, which pairing takes out.
    pub between_blocks: f64,
    /// Share of the variance of a trial that its own time series explains, neighbours in time counted as what they are:
    /// near 1, longer trials help as much as more blocks; near 0, only more blocks do. `None` without long enough series.
    pub inside: Option<f64>,
}

impl Noise {
    /// Blocks that find a difference of `share` (0.05 for 5 %) four times in five.
    #[must_use]
    pub fn blocks_for(&self, share: f64) -> Option<usize> {
        blocks_needed(share.ln_1p(), self.scatter, LEVEL, POWER)
    }

    /// The smallest difference that `blocks` blocks find four times in five; `None` with too few for a verdict.
    #[must_use]
    pub fn found_by(&self, blocks: usize) -> Option<f64> {
        detectable(blocks, self.scatter, LEVEL, POWER).map(f64::exp_m1)
    }
}

/// Noise of every step that loads, reads or indexes, where two blocks or more have two treatments or more.
#[must_use]
pub fn noise(records: &[TrialRecord], design: &Design) -> Vec<Noise> {
    let records: Vec<TrialRecord> =
        records.iter().filter(|record| is_counted(record, design)).cloned().collect();
    step_names(&records).iter().filter_map(|step| step_noise(&records, design, step)).collect()
}

fn step_noise(records: &[TrialRecord], design: &Design, step: &str) -> Option<Noise> {
    let kind = |record: &TrialRecord| record.measurements.iter().any(|m| m.step == step && answers(&m.kind));
    if !records.iter().any(kind) {
        return None;
    }
    // What treatments do is taken out, so that the rest is noise: of blocks, and of trials within them.
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for values in Observations::collect(records, design, step).values.values() {
        let logs: Vec<f64> = values.values().map(|value| value.ln()).collect();
        let centre = mean(&logs)?;
        for (block, value) in values {
            blocks.entry(*block).or_default().push(value.ln() - centre);
        }
    }
    let groups: Vec<Vec<f64>> = blocks.into_values().collect();
    let found = components(&groups)?;
    // The treatments' means took one block's worth of freedom.
    let within = found.within * counted(groups.len()) / (counted(groups.len()) - 1.0);
    if within <= 0.0 || !within.is_finite() {
        return None;
    }
    let own: Vec<f64> = records.iter().filter_map(|record| own_variance(record, step)).collect();
    Some(Noise {
        step: step.to_owned(),
        scatter: (2.0 * within).sqrt(),
        between_blocks: found.between.sqrt(),
        inside: mean(&own).map(|own| (own / within).min(1.0)),
    })
}

/// Variance of the log of a trial's rate that its repetitions, or else its own time series, lead to expect.
fn own_variance(record: &TrialRecord, step: &str) -> Option<f64> {
    // A guarded or failed trial is in no number; its own noise would be that of what guarded it.
    if !reasons(record, step).is_empty() {
        return None;
    }
    let values: Option<Vec<f64>> = find(record, step)
        .map(|found| Some(found.spans.seconds.ln()).filter(|log| log.is_finite()))
        .collect();
    let values = values?;
    if values.len() > 1 {
        // Repetitions tell directly how far a trial's own mean scatters.
        let one = standard_deviation(&values)?;
        return Some(one * one / counted(values.len()));
    }
    let rates = rates(measured_samples(record, step));
    (rates.len() >= FEWEST_INTERVALS).then(|| relative_error(&rates)).flatten().map(|error| error * error)
}

/// Samples of a step without those of a warm-up, which is not part of any number.
fn measured_samples<'a>(record: &'a TrialRecord, step: &'a str) -> impl Iterator<Item = &'a Sample> {
    record.samples.iter().filter(move |sample| sample.step == step && sample.phase == Phase::Measure)
}

/// Rows per second between neighbouring points of a series, all clients together.
fn rates<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<f64> {
    let mut points: Vec<(f64, u64)> = Vec::new();
    for sample in samples {
        match points.last_mut() {
            Some((at, rows)) if sample.elapsed_seconds.total_cmp(at).is_eq() => *rows += sample.rows,
            _ => points.push((sample.elapsed_seconds, sample.rows)),
        }
    }
    let pairs = points.windows(2).filter_map(|two| {
        let ((from, before), (to, after)) = (two[0], two[1]);
        (to > from).then(|| counted_rows(after.saturating_sub(before)) / (to - from))
    });
    pairs.collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn counted(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn counted_rows(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(client: u32, elapsed_seconds: f64, rows: u64) -> Sample {
        Sample {
            step_index: 0,
            step: "load".to_owned(),
            client,
            elapsed_seconds,
            rows,
            phase: Phase::Measure,
        }
    }

    #[test]
    fn rates_are_those_of_all_clients_together() {
        let series = [
            sample(0, 1.0, 10),
            sample(1, 1.0, 20),
            sample(0, 2.0, 30),
            sample(1, 2.0, 40),
            sample(0, 4.0, 80),
        ];
        // The last point lacks the second client: its rows are not taken to be lost below zero.
        assert_eq!(rates(series.iter()), [40.0, 5.0]);
    }

    #[test]
    fn blocks_and_what_they_find_are_two_readings_of_one_rule() {
        let noise = Noise { step: "load".to_owned(), scatter: 0.03, between_blocks: 0.1, inside: None };
        let blocks = noise.blocks_for(0.05).unwrap();
        assert!(noise.found_by(blocks).unwrap() <= 0.06, "{blocks}");
        assert_eq!(noise.found_by(5), None);
    }
}
