//! The design of an experiment: factors, levels, treatments, blocks.

use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Scalar;

/// What is varied, how often, and in which seeded order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The factors, in the order of the file; the first level of each is its reference.
    pub factors: Vec<Factor>,
    /// Treatments added to the full crossing: one level index per factor.
    pub include: Vec<Treatment>,
    /// Partial treatments taken out of the full crossing: factor index to level index.
    pub exclude: Vec<Vec<(usize, usize)>>,
    /// How many blocks are run.
    pub blocks: Blocks,
    /// Seed of the order of trials and of generated rows.
    pub seed: u64,
}

/// A dimension that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name as used in templates and results.
    pub name: String,
    /// At least one level.
    pub levels: Vec<Level>,
}

/// One value of a factor. A named level may carry several values that vary together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Label in tables and results; for a plain level the value itself.
    pub name: String,
    /// The plain value, when the level is not a named map.
    pub value: Option<Scalar>,
    /// The values of a named level: `{{ factor.key }}` in templates.
    pub values: IndexMap<String, Scalar>,
}

/// One level index for every factor, in factor order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Treatment {
    /// Index of the level of each factor.
    pub levels: Vec<usize>,
}

/// How many blocks are run, or the declared rule that decides it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// At least this many.
    pub min: u32,
    /// At most this many; equal to `min` for a fixed number.
    pub max: u32,
    /// Stop early when every contrast's 95 % interval is within this ratio (0.03 = 3 %).
    pub until: Option<f64>,
    /// Stop early when this time has been used.
    pub budget: Option<Duration>,
}

impl Design {
    /// Factor names and level names of a treatment, in factor order.
    #[must_use]
    pub fn describe(&self, treatment: &Treatment) -> Vec<(&str, &Level)> {
        self.factors
            .iter()
            .zip(&treatment.levels)
            .map(|(factor, level)| (factor.name.as_str(), &factor.levels[*level]))
            .collect()
    }

    /// `storage=logged batch=500`, or `(single treatment)` without factors.
    #[must_use]
    pub fn label(&self, treatment: &Treatment) -> String {
        if self.factors.is_empty() {
            return "(single treatment)".to_owned();
        }
        let parts = self.describe(treatment).into_iter();
        parts.map(|(factor, level)| format!("{factor}={}", level.name)).collect::<Vec<_>>().join(" ")
    }
}
