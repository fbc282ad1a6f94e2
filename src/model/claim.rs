//! Published statements that an experiment re-tests.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Scalar;

/// Where published numbers come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimSource {
    /// Title.
    pub title: String,
    /// Author.
    pub author: Option<String>,
    /// Date of publication, as written.
    pub date: Option<String>,
    /// What was measured there.
    pub system: Option<String>,
    /// Where to read it.
    pub url: Option<String>,
}

/// A published statement with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Unique in the experiment.
    pub id: String,
    /// Key of the source.
    pub source_id: String,
    /// The source.
    pub source: ClaimSource,
    /// What is said there.
    pub quote: Option<String>,
    /// What is compared; `None` for a statement that is not comparable.
    pub metric: Option<Metric>,
    /// What is said about it.
    pub statement: Statement,
    /// The number as published.
    pub published: Option<f64>,
    /// The number with known mistakes of the source taken out.
    pub corrected: Option<f64>,
    /// What must hold for a verdict, as written: `rows` to `>= 100_000`.
    pub needs: IndexMap<String, Scalar>,
}

/// A number that a step gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Name of the step.
    pub step: String,
    /// Name of the number: `rows_per_second`, `wal_bytes`.
    pub name: String,
    /// Whether it is a deterministic counter rather than a time or rate.
    pub counter: bool,
}

/// What a claim says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    /// `of` is `published` times `to`.
    Ratio(Contrast),
    /// `of` and `to` differ by less than `margin` (0.05 = 5 %).
    NoDifference {
        /// What is compared.
        contrast: Contrast,
        /// Largest difference that counts as none.
        margin: f64,
    },
    /// Groups of treatments, the highest value first.
    Order(Vec<Group>),
    /// Cannot be tested here, and why.
    NotComparable(String),
}

/// Two groups of treatments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// The group that is compared.
    pub of: Group,
    /// The group it is compared to.
    pub to: Group,
}

/// All treatments with these levels: factor index to level index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Factor index and level index, in factor order.
    pub levels: Vec<(usize, usize)>,
}
