//! What one factor does: every level against the first, in pairs that differ in nothing else.
//!
//! Pairs are two trials of one block whose treatments have equal levels of all other factors. The log ratios of a block are
//! averaged first; blocks are the replication, so the interval is over block means and n is the number of blocks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::client::hides_the_server;
use super::observations::Observations;
use super::pairs::block_means;
use super::summary::Metric;
use crate::model::Design;
use crate::stats::{MIN_BLOCKS, geometric_mean_ratio, log_ratio};

/// Effects within another factor's levels that differ by more than this ratio are worth showing.
const WORTH_SHOWING: f64 = 1.10;

/// All levels of one factor against its first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorContrast {
    /// The factor.
    pub factor: String,
    /// Its first level.
    pub reference: String,
    /// One per further level that has pairs.
    pub levels: Vec<Contrast>,
}

/// One level against the factor's first level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// The level.
    pub level: String,
    /// How many times as fast as the reference: above 1 is faster, whatever the metric.
    pub ratio: f64,
    /// Ends of the 95 % interval; `None` with one block.
    pub interval: Option<(f64, f64)>,
    /// Blocks with at least one pair.
    pub blocks: usize,
    /// Pairs that went in.
    pub pairs: usize,
    /// Pairs that are missing because one side is not valid.
    pub pairs_missing: usize,
    /// What may be said.
    pub reading: Reading,
    /// Whether loadlab itself set the pace while it did the same on both sides: then this says nothing about the server.
    #[serde(default)]
    pub client_bound: bool,
    /// The same within each level of the factor that changes it most, when that matters.
    pub within: Option<Within>,
}

/// What a ratio and its interval allow to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Fewer than [`MIN_BLOCKS`] blocks: exploratory, no verdict.
    Exploratory,
    /// The interval lies above 1.
    Faster,
    /// The interval lies below 1.
    Slower,
    /// The interval holds 1: no difference was shown, which is not the same as no difference.
    Unclear,
}

/// A contrast within each level of another factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The other factor.
    pub factor: String,
    /// Its levels, each with the contrast among treatments that have it.
    pub levels: Vec<(String, Contrast)>,
}

/// Contrasts of every factor that has at least two levels.
pub(super) fn contrasts(observations: &Observations, design: &Design) -> Vec<FactorContrast> {
    let factors = design.factors.iter().enumerate().filter(|(_, factor)| factor.levels.len() > 1);
    let contrasts = factors.map(|(index, factor)| FactorContrast {
        factor: factor.name.clone(),
        reference: factor.levels[0].name.clone(),
        levels: (1..factor.levels.len())
            .filter_map(|level| full_contrast(observations, design, (index, level)))
            .collect(),
    });
    contrasts.filter(|contrast| !contrast.levels.is_empty()).collect()
}

fn full_contrast(observations: &Observations, design: &Design, of: (usize, usize)) -> Option<Contrast> {
    let mut contrast = contrast(observations, design, of, None)?;
    let others = (0..design.factors.len()).filter(|other| *other != of.0);
    let within = others.filter_map(|other| within(observations, design, of, other));
    let strongest = within.max_by(|(a, _), (b, _)| a.total_cmp(b));
    contrast.within =
        strongest.filter(|(influence, _)| *influence > WORTH_SHOWING.ln()).map(|(_, within)| within);
    Some(contrast)
}

/// The contrast within each level of `other`, and how far apart these are (difference of log ratios).
fn within(
    observations: &Observations,
    design: &Design,
    of: (usize, usize),
    other: usize,
) -> Option<(f64, Within)> {
    let factor = &design.factors[other];
    let levels = factor.levels.iter().enumerate().filter_map(|(index, level)| {
        Some((level.name.clone(), contrast(observations, design, of, Some((other, index)))?))
    });
    let levels: Vec<(String, Contrast)> = levels.collect();
    let logs = levels.iter().map(|(_, contrast)| contrast.ratio.ln());
    let (low, high) = (logs.clone().min_by(f64::total_cmp)?, logs.max_by(f64::total_cmp)?);
    (levels.len() > 1).then(|| (high - low, Within { factor: factor.name.clone(), levels }))
}

/// Level `of.1` of factor `of.0` against its level 0, among treatments with the level `only` when given.
fn contrast(
    observations: &Observations,
    design: &Design,
    of: (usize, usize),
    only: Option<(usize, usize)>,
) -> Option<Contrast> {
    let (factor, level) = of;
    let mut combinations: Vec<Vec<(u32, f64)>> = Vec::new();
    let mut client_bound = false;
    let mut possible = 0;
    for (treatment, values) in &observations.values {
        if treatment[factor] != level || only.is_some_and(|(other, wanted)| treatment[other] != wanted) {
            continue;
        }
        let mut reference = treatment.clone();
        reference[factor] = 0;
        let Some(references) = observations.values.get(&reference) else { continue };
        possible += values.keys().chain(references.keys()).collect::<BTreeSet<_>>().len();
        let pairs = values.iter().filter_map(|(block, value)| {
            Some((*block, speed_ratio(observations.metric, *value, *references.get(block)?)?))
        });
        combinations.push(pairs.collect());
        let work = |levels: &Vec<usize>| observations.client.get(levels);
        client_bound |= hides_the_server(work(treatment), work(&reference));
    }
    let pairs = combinations.iter().map(Vec::len).sum::<usize>();
    let found = geometric_mean_ratio(&block_means(&combinations), 0.95)?;
    Some(Contrast {
        level: design.factors[factor].levels[level].name.clone(),
        ratio: found.ratio,
        interval: found.bounds,
        blocks: found.n,
        pairs,
        pairs_missing: possible - pairs,
        reading: reading(found.n, found.bounds),
        client_bound,
        within: None,
    })
}

/// Log of how many times as fast `value` is as `reference`: seconds are turned round, so that above 1 is always faster.
pub(super) fn speed_ratio(metric: Metric, value: f64, reference: f64) -> Option<f64> {
    match metric {
        Metric::RowsPerSecond | Metric::CapturedRate => log_ratio(value, reference),
        Metric::Seconds | Metric::CapturedTime => log_ratio(reference, value),
    }
}

pub(super) fn reading(blocks: usize, bounds: Option<(f64, f64)>) -> Reading {
    match bounds {
        _ if blocks < MIN_BLOCKS => Reading::Exploratory,
        Some((low, _)) if low > 1.0 => Reading::Faster,
        Some((_, high)) if high < 1.0 => Reading::Slower,
        _ => Reading::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_need_blocks_and_an_interval_beside_one() {
        assert_eq!(reading(5, Some((1.1, 1.2))), Reading::Exploratory);
        assert_eq!(reading(6, Some((1.1, 1.2))), Reading::Faster);
        assert_eq!(reading(6, Some((0.8, 0.9))), Reading::Slower);
        assert_eq!(reading(6, Some((0.9, 1.1))), Reading::Unclear);
        assert_eq!(reading(1, None), Reading::Exploratory);
    }

    #[test]
    fn seconds_are_turned_round() {
        assert!(speed_ratio(Metric::Seconds, 1.0, 2.0) > Some(0.0));
        assert!(speed_ratio(Metric::RowsPerSecond, 1.0, 2.0) < Some(0.0));
    }
}
