//! Two runs, or two treatments of one run, against each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Reading;
use super::client::{ClientWork, hides_the_server};
use super::contrast::reading;
use super::observations::{Observations, is_counted};
use super::pairs::{block_means, pair_groups};
use super::summary::{Metric, answers, step_names};
use crate::model::{Design, Group, TrialRecord};
use crate::stats::{
    MIN_BLOCKS, detectable, geometric_mean_ratio, level_for_family, median, standard_deviation, two_samples,
};

/// Coverage of intervals, alone or for all lines at once.
const LEVEL: f64 = 0.95;
/// A detectable difference is found so often.
const POWER: f64 = 0.8;

/// One line of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Name of the step.
    pub step: String,
    /// Label of the treatment; `None` for all that both sides have.
    pub treatment: Option<String>,
    /// What is compared.
    pub metric: Metric,
    /// Medians of the first and the second side.
    pub medians: (Option<f64>, Option<f64>),
    /// How many times as fast the second side is: above 1 is faster, whatever the metric.
    pub ratio: f64,
    /// The 95 % interval of this line alone; `None` with one block a side.
    pub interval: Option<(f64, f64)>,
    /// The interval that holds with 95 % for all lines at once.
    pub together: Option<(f64, f64)>,
    /// Blocks of either side that went in.
    pub blocks: (usize, usize),
    /// The smallest difference that so many blocks find four times in five: 0.05 for 5 %.
    pub detectable: Option<f64>,
    /// What may be said.
    pub reading: Reading,
    /// Whether both sides have the very same times: one is then a copy of the other.
    pub identical: bool,
    /// Whether loadlab itself set the pace while it did the same on both sides: then this says nothing about servers.
    #[serde(default)]
    pub client_bound: bool,
}

/// A run with its design.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its records.
    pub records: &'a [TrialRecord],
    /// Its design.
    pub design: &'a Design,
}

/// What a line is made from.
struct Material {
    step: String,
    treatment: Option<String>,
    metric: Metric,
    medians: (Option<f64>, Option<f64>),
    logs: Logs,
    identical: bool,
    client_bound: bool,
}

/// Logs of speed: higher is faster.
enum Logs {
    /// Of ratios within blocks of one run.
    Paired(Vec<f64>),
    /// Of blocks of two runs, which have nothing to do with each other.
    Apart(Vec<f64>, Vec<f64>),
}

/// The second run against the first: every step that answers questions, over all treatments that both have and for each of them.
/// Blocks of two runs are no pairs; what changed between the runs is not noise that an interval knows of.
#[must_use]
pub fn versus_run(first: Side<'_>, second: Side<'_>) -> Vec<Line> {
    let mut found = Vec::new();
    for step in step_names(first.records).iter().filter(|step| answering(first.records, step)) {
        let (a, b) = (by_label(first, step), by_label(second, step));
        let Some((metric, a)) = a else { continue };
        let Some((_, b)) = b.filter(|(other, _)| *other == metric) else { continue };
        let common: Vec<&String> = a.keys().filter(|label| b.contains_key(*label)).collect();
        if common.len() > 1 {
            found.push(apart(step, None, metric, &a, &b, &common));
        }
        found.extend(
            common.iter().map(|label| apart(step, Some((*label).clone()), metric, &a, &b, &[*label])),
        );
    }
    lines(found)
}

/// The second group of treatments against the first, in pairs within the blocks of one run.
#[must_use]
pub fn versus_group(side: Side<'_>, first: &Group, second: &Group) -> Vec<Line> {
    let mut found = Vec::new();
    for step in step_names(side.records).into_iter().filter(|step| answering(side.records, step)) {
        let observations = Observations::collect(side.records, side.design, &step);
        let pairing = pair_groups(&observations.values, second, first);
        let logs = pairing.combinations.iter().map(|pairs| {
            let logs =
                pairs.iter().map(|(block, of, to)| (*block, observations.metric.sign() * (of / to).ln()));
            logs.filter(|(_, log)| log.is_finite()).collect::<Vec<_>>()
        });
        let logs = block_means(&logs.collect::<Vec<_>>());
        let values = |group: &Group| {
            let values = observations.values.iter().filter(|(levels, _)| group.holds(levels));
            values.flat_map(|(_, blocks)| blocks.values().copied()).collect::<Vec<_>>()
        };
        let (a, b) = (values(first), values(second));
        found.push(Material {
            step,
            treatment: None,
            metric: observations.metric,
            medians: (median(&a), median(&b)),
            logs: Logs::Paired(logs),
            identical: same(&a, &b),
            client_bound: hides_the_server(
                observations.client.iter().filter(|(levels, _)| first.holds(levels)).map(|(_, work)| work),
                observations.client.iter().filter(|(levels, _)| second.holds(levels)).map(|(_, work)| work),
            ),
        });
    }
    lines(found)
}

/// By label of the treatment: values by block, and what the client did.
type Labelled = BTreeMap<String, (BTreeMap<u32, f64>, ClientWork)>;

/// Valid values of a step by label of the treatment: two designs may number their levels differently.
fn by_label(side: Side<'_>, step: &str) -> Option<(Metric, Labelled)> {
    let observations = Observations::collect(side.records, side.design, step);
    let mut labels = BTreeMap::new();
    for record in side.records.iter().filter(|record| is_counted(record, side.design)) {
        let levels = &record.trial.treatment.levels;
        let values = observations.values.get(levels);
        let work = observations.client.get(levels).cloned().unwrap_or_default();
        labels.extend(values.map(|values| (record.treatment.clone(), (values.clone(), work))));
    }
    (!labels.is_empty()).then_some((observations.metric, labels))
}

fn answering(records: &[TrialRecord], step: &str) -> bool {
    records.iter().flat_map(|record| &record.measurements).any(|m| m.step == step && answers(&m.kind))
}

fn apart(
    step: &str,
    treatment: Option<String>,
    metric: Metric,
    a: &Labelled,
    b: &Labelled,
    labels: &[&String],
) -> Material {
    let logs = |side: &Labelled| {
        let values = labels.iter().map(|label| {
            let logs = side[*label].0.iter().map(|(block, value)| (*block, metric.sign() * value.ln()));
            logs.filter(|(_, log)| log.is_finite()).collect::<Vec<_>>()
        });
        block_means(&values.collect::<Vec<_>>())
    };
    let values = |side: &Labelled| {
        labels.iter().flat_map(|label| side[*label].0.values().copied()).collect::<Vec<f64>>()
    };
    let (of_a, of_b) = (values(a), values(b));
    Material {
        step: step.to_owned(),
        treatment,
        metric,
        medians: (median(&of_a), median(&of_b)),
        logs: Logs::Apart(logs(a), logs(b)),
        identical: same(&of_a, &of_b),
        client_bound: labels.iter().any(|label| hides_the_server([&a[*label].1], [&b[*label].1])),
    }
}

/// Two series or more of measured times that agree to the last bit were not measured twice.
fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() > 1 && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

fn lines(found: Vec<Material>) -> Vec<Line> {
    let family = found.len();
    found.into_iter().filter_map(|material| line(material, family)).collect()
}

fn line(material: Material, family: usize) -> Option<Line> {
    let level = level_for_family(LEVEL, family);
    let (ratio, interval, together, blocks, found) = match &material.logs {
        Logs::Paired(logs) => {
            let alone = geometric_mean_ratio(logs, LEVEL)?;
            let together = geometric_mean_ratio(logs, level)?.bounds;
            let found = alone.scatter.and_then(|scatter| detectable(alone.n, scatter, level, POWER));
            (alone.ratio, alone.bounds, together, (alone.n, alone.n), found)
        }
        Logs::Apart(a, b) => {
            let bounds =
                |level| two_samples(b, a, level).map(|found| (found.bounds.0.exp(), found.bounds.1.exp()));
            let ratio = (crate::stats::mean(b)? - crate::stats::mean(a)?).exp();
            let fewest = a.len().min(b.len());
            // As if the smaller side's blocks were pairs.
            let scatter = standard_deviation(a).zip(standard_deviation(b)).map(|(a, b)| a.hypot(b));
            let found = scatter.and_then(|scatter| detectable(fewest, scatter, level, POWER));
            (ratio, bounds(LEVEL), bounds(level), (a.len(), b.len()), found)
        }
    };
    let fewest = blocks.0.min(blocks.1);
    Some(Line {
        step: material.step,
        treatment: material.treatment,
        metric: material.metric,
        medians: material.medians,
        ratio,
        interval,
        together,
        blocks,
        detectable: found.filter(|_| fewest >= MIN_BLOCKS).map(f64::exp_m1),
        reading: reading(fewest, together),
        identical: material.identical,
        client_bound: material.client_bound,
    })
}
