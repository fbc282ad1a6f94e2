//! `sources` and `claims`: published statements that an experiment re-tests.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::scalar::Single;
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

/// A published statement. It has exactly one of `ratio`, `no_difference`, `order` and `not_comparable`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimFile {
    /// Short unique name.
    pub id: String,
    /// Key of `sources`.
    pub source: String,
    /// What is said there.
    pub quote: Option<String>,
    /// Metric of a step: `insert.rows_per_second`.
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
    /// Why the statement cannot be tested here.
    pub not_comparable: Option<String>,
    /// The ratio as published.
    pub published: Option<f64>,
    /// The ratio with known mistakes of the source taken out.
    pub corrected: Option<f64>,
    /// What must hold for a verdict: `{rows: ">= 100_000"}`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Single>")]
    pub needs: IndexMap<String, Single>,
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
