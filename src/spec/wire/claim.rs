//! `sources` and `claims`: published statements that an experiment re-tests.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::scalar::Single;
use super::words;
use crate::model::{RawUnit, Reading};
use crate::spec::units::Share;

/// Where published numbers come from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Title.
    pub title: String,
    /// Author.
    pub author: Option<String>,
    /// Date of publication.
    pub date: Option<String>,
    /// What was measured there: system, version, driver.
    pub system: Option<String>,
    /// Where to read it.
    pub url: Option<String>,
    /// What to know when comparing.
    pub notes: Option<String>,
}

/// A published statement. It has exactly one of `ratio`, `no_difference`, `order`, `absolute` and `not_comparable`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimFile {
    /// Short unique name.
    pub id: String,
    /// Key of `sources`.
    pub source: String,
    /// What is said there.
    pub quote: Option<String>,
    /// `as-published` (default), or `as-corrected`: with known mistakes of the source taken out.
    pub reading: Option<ReadingWord>,
    /// Number that a step gives: `insert.rows_per_second`; of several steps added: `copy+index.seconds`.
    pub metric: Option<String>,
    /// Deterministic counter of a step: `insert.wal_bytes`.
    pub counter: Option<String>,
    /// One group of treatments against another.
    pub ratio: Option<ContrastFile>,
    /// Two groups of treatments that do not differ.
    pub no_difference: Option<ContrastFile>,
    /// Groups of treatments, the highest value first.
    #[schemars(with = "Option<Vec<BTreeMap<String, Single>>>")]
    pub order: Option<Vec<IndexMap<String, Single>>>,
    /// A group whose value belongs to the source's machine: shown beside ours, never judged.
    #[schemars(with = "Option<BTreeMap<String, Single>>")]
    pub absolute: Option<IndexMap<String, Single>>,
    /// Why the statement cannot be tested here.
    pub not_comparable: Option<String>,
    /// The ratio in this reading; for `absolute` the value.
    pub published: Option<f64>,
    /// The values behind it, as printed in the source.
    pub raw: Option<RawFile>,
    /// What must hold for a verdict: `{rows: ">= 100_000"}`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Single>")]
    pub needs: IndexMap<String, Single>,
    /// What else differs between the groups, or is not known about the source.
    pub confounds: Option<String>,
}

impl ClaimFile {
    /// Names of the steps of its metric.
    pub fn step_names(&self) -> impl Iterator<Item = &str> {
        let metric = self.metric.as_deref().or(self.counter.as_deref());
        let steps = metric.and_then(|metric| metric.rsplit_once('.')).map(|(steps, _)| steps);
        steps.into_iter().flat_map(|steps| steps.split('+')).map(str::trim)
    }
}

/// Values as printed in a source, one per repetition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawFile {
    /// `min`, `s`, `ms`, `rows/s`, `MB/s`, `bytes`, `MiB` or `count`.
    pub unit: UnitWord,
    /// Of the group that is compared.
    pub of: Vec<f64>,
    /// Of the group it is compared to.
    #[serde(default)]
    pub to: Vec<f64>,
    /// Step of the last printed digit: 0.01 for 7.03.
    pub rounding: Option<f64>,
}

/// Units of published values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum UnitWord {
    /// Minutes.
    #[serde(rename = "min")]
    Minutes,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Rows per second.
    #[serde(rename = "rows/s")]
    RowsPerSecond,
    /// Megabytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Mebibytes.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// Anything else that is counted.
    #[serde(rename = "count")]
    Count,
}

impl From<UnitWord> for RawUnit {
    fn from(word: UnitWord) -> Self {
        match word {
            UnitWord::Minutes => Self::Minutes,
            UnitWord::Seconds => Self::Seconds,
            UnitWord::Milliseconds => Self::Milliseconds,
            UnitWord::RowsPerSecond => Self::RowsPerSecond,
            UnitWord::MegabytesPerSecond => Self::MegabytesPerSecond,
            UnitWord::Bytes => Self::Bytes,
            UnitWord::Mebibytes => Self::Mebibytes,
            UnitWord::Count => Self::Count,
        }
    }
}

words! {
    /// How a source is read.
    ReadingWord => Reading {
        /// As it stands there.
        AsPublished => Reading::AsPublished,
        /// With known mistakes of the source taken out.
        AsCorrected => Reading::AsCorrected,
    }
}

/// Two groups of treatments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContrastFile {
    /// Levels of the group that is compared.
    #[schemars(with = "BTreeMap<String, Single>")]
    pub of: IndexMap<String, Single>,
    /// Levels of the group it is compared to.
    #[schemars(with = "BTreeMap<String, Single>")]
    pub to: IndexMap<String, Single>,
    /// Levels that both groups share.
    #[serde(default, rename = "where")]
    #[schemars(with = "BTreeMap<String, Single>")]
    pub shared: IndexMap<String, Single>,
    /// For `no_difference`: the largest difference that counts as none. Default 5 %.
    pub margin: Option<Share>,
}
