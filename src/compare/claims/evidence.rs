//! The numbers of the groups that a claim names, and their ratios.

use std::collections::BTreeMap;

use super::judgement::{Comparison, Ratio};
use crate::compare::client::{ClientWork, depends_on_client, hides_the_server};
use crate::compare::observations::{find, is_counted, reasons, value as one_of_trial};
use crate::compare::pairs::{Values, block_means, pair_groups};
use crate::model::{Contrast, Design, Group, Measurement, Metric, TrialRecord};
use crate::stats::{blocks_needed, detectable, geometric_mean_ratio, level_for_family, log_ratio, median};

/// Coverage of intervals, alone or for a family at once.
pub(super) const LEVEL: f64 = 0.95;
/// A planned number of blocks finds an effect as often as this.
const POWER: f64 = 0.8;

/// Valid values of a claim's metric, and what was left out.
#[derive(Debug, Default)]
pub(super) struct Evidence<'a> {
    /// Values by treatment and block.
    pub(super) values: Values,
    /// Reasons of trials that are not among them.
    pub(super) left_out: BTreeMap<String, usize>,
    /// Records behind the values.
    pub(super) used: Vec<&'a TrialRecord>,
}

impl<'a> Evidence<'a> {
    /// Collects what the trials of `groups` gave.
    pub(super) fn collect(
        records: &'a [TrialRecord],
        design: &Design,
        metric: &Metric,
        groups: &[&Group],
    ) -> Self {
        let mut evidence = Self::default();
        for record in records.iter().filter(|record| is_counted(record, design)) {
            let levels = &record.trial.treatment.levels;
            if !groups.iter().any(|group| group.holds(levels)) {
                continue;
            }
            match value(record, metric) {
                Ok(value) => {
                    evidence.values.entry(levels.clone()).or_default().insert(record.trial.block, value);
                    evidence.used.push(record);
                }
                Err(reasons) => {
                    for reason in reasons {
                        *evidence.left_out.entry(reason.to_owned()).or_default() += 1;
                    }
                }
            }
        }
        evidence
    }

    /// Whether the ratio of two groups is the client's, and says nothing about the server. Counters are not.
    fn is_the_clients(&self, contrast: &Contrast, metric: &Metric) -> bool {
        let work = |group: &Group| {
            let mut treatments: BTreeMap<&[usize], ClientWork> = BTreeMap::new();
            let used = self.used.iter().filter(|record| group.holds(&record.trial.treatment.levels));
            for record in used {
                treatments.entry(&record.trial.treatment.levels).or_default().add(record, &metric.steps);
            }
            treatments
        };
        !metric.counter
            && depends_on_client(&metric.name)
            && hides_the_server(work(&contrast.of).values(), work(&contrast.to).values())
    }

    /// Median over all valid trials of a group.
    pub(super) fn median(&self, group: &Group) -> Option<f64> {
        let values = self.values.iter().filter(|(levels, _)| group.holds(levels));
        median(&values.flat_map(|(_, blocks)| blocks.values().copied()).collect::<Vec<_>>())
    }
}

/// The value of a trial: added over the metric's steps. A step that this treatment does not have adds nothing.
fn value(record: &TrialRecord, metric: &Metric) -> Result<f64, Vec<&'static str>> {
    let mut sum = None;
    for step in metric.steps.iter().filter(|step| find(record, step).next().is_some()) {
        let reasons = reasons(record, step);
        if !reasons.is_empty() {
            return Err(reasons);
        }
        let number = |found: &Measurement| found.number(&metric.name).filter(|value| value.is_finite());
        let value = one_of_trial(record, step, number);
        sum = Some(sum.unwrap_or(0.0) + value.ok_or_else(|| vec!["not measured"])?);
    }
    sum.ok_or_else(|| match record.outcome {
        crate::model::Outcome::Ok => vec!["not measured"],
        other => vec![other.name()],
    })
}

/// A comparison whose interval waits for the size of its family.
#[derive(Debug)]
pub(super) struct Draft {
    /// Everything but the ratio.
    comparison: Comparison,
    /// Mean log ratio of each block.
    logs: Vec<f64>,
}

impl Draft {
    /// Pairs the groups of a contrast.
    pub(super) fn new(
        evidence: &Evidence<'_>,
        design: &Design,
        contrast: &Contrast,
        metric: Option<&Metric>,
    ) -> Self {
        let counter = metric.is_some_and(|metric| metric.counter);
        let pairing = pair_groups(&evidence.values, &contrast.of, &contrast.to);
        let logs = pairing.combinations.iter().map(|pairs| {
            let logs = pairs.iter().filter_map(|(block, of, to)| Some((*block, log(*of, *to, counter)?)));
            logs.collect::<Vec<_>>()
        });
        let logs: Vec<Vec<(u32, f64)>> = logs.collect();
        let pairs = logs.iter().map(Vec::len).sum();
        let comparison = Comparison {
            of: words(design, &contrast.of, |level| !contrast.to.levels.contains(level)),
            to: words(design, &contrast.to, |level| !contrast.of.levels.contains(level)),
            shared: words(design, &contrast.of, |level| contrast.to.levels.contains(level)),
            medians: (evidence.median(&contrast.of), evidence.median(&contrast.to)),
            ratio: None,
            pairs,
            pairs_missing: pairing.possible - pairs,
            alike: pairing.alike,
            client_bound: metric.is_some_and(|metric| evidence.is_the_clients(contrast, metric)),
        };
        Self { comparison, logs: block_means(&logs) }
    }

    /// The comparison with its intervals, as one of `family`.
    pub(super) fn finish(self, family: usize) -> Comparison {
        Comparison { ratio: ratio(&self.logs, family), ..self.comparison }
    }
}

/// The ratio of blocks' mean log ratios, with intervals alone and as one of a family.
pub(super) fn ratio(logs: &[f64], family: usize) -> Option<Ratio> {
    let alone = geometric_mean_ratio(logs, LEVEL)?;
    let level = level_for_family(LEVEL, family);
    let found = alone.scatter.and_then(|scatter| detectable(alone.n, scatter, level, POWER));
    Some(Ratio {
        ratio: alone.ratio,
        interval: alone.bounds,
        together: geometric_mean_ratio(logs, level)?.bounds,
        blocks: alone.n,
        scatter: alone.scatter,
        detectable: found.map(f64::exp_m1),
    })
}

/// Blocks after which a difference of `log` is found four times in five, or with `both` is excluded on both sides; only
/// when these are more than there are.
pub(super) fn more_blocks(ratio: &Ratio, log: f64, both: bool, family: usize) -> Option<usize> {
    // To lie between two ends, both may be missed: each gets half of the chance to fail.
    let power = if both { f64::midpoint(1.0, POWER) } else { POWER };
    let needed = blocks_needed(log, ratio.scatter?, level_for_family(LEVEL, family), power)?;
    (needed > ratio.blocks).then_some(needed)
}

/// Log of one value over another. A counter of zero counts as one, the least there is, so that "none at all" can be compared.
fn log(of: f64, to: f64, counter: bool) -> Option<f64> {
    if counter { log_ratio(of.max(1.0), to.max(1.0)) } else { log_ratio(of, to) }
}

/// `storage=unlogged batch=500`: the levels of a group for which `wanted` holds.
pub(super) fn words(design: &Design, group: &Group, wanted: impl Fn(&(usize, usize)) -> bool) -> String {
    let levels = group.levels.iter().filter(|level| wanted(level)).filter_map(|(factor, level)| {
        let factor = design.factors.get(*factor)?;
        Some(format!("{}={}", factor.name, factor.levels.get(*level)?.name))
    });
    levels.collect::<Vec<_>>().join(" ")
}
