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
    /// Whether the source's words are taken as they are, or with its known mistakes taken out.
    pub reading: Reading,
    /// What is compared; `None` for a statement that is not comparable.
    pub metric: Option<Metric>,
    /// What is said about it.
    pub statement: Statement,
    /// The number in this reading: a ratio, or for an absolute statement the value in `raw.unit`.
    pub published: Option<f64>,
    /// The values behind it, as printed in the source.
    pub raw: Option<RawValues>,
    /// What must hold for a verdict, as written: `rows` to `>= 100_000`.
    pub needs: IndexMap<String, Scalar>,
    /// What else differs between the groups, or is not known about the source.
    pub confounds: Option<String>,
}

/// How a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// As it stands there.
    #[default]
    AsPublished,
    /// With known mistakes of the source taken out.
    AsCorrected,
}

/// Values as printed in a source, one per repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawValues {
    /// Unit of all of them.
    pub unit: RawUnit,
    /// Of the group that is compared.
    pub of: Vec<f64>,
    /// Of the group it is compared to; empty for an absolute statement.
    pub to: Vec<f64>,
    /// Step of the last printed digit: 0.01 for 7.03.
    pub rounding: Option<f64>,
}

/// Units of published values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RawUnit {
    /// Minutes.
    Minutes,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Rows per second.
    RowsPerSecond,
    /// Megabytes per second.
    MegabytesPerSecond,
    /// Bytes.
    Bytes,
    /// Mebibytes.
    Mebibytes,
    /// Anything else that is counted.
    Count,
}

impl RawUnit {
    /// Short form after a number; empty for a plain count.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Minutes => "min",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::RowsPerSecond => "rows/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Bytes => "bytes",
            Self::Mebibytes => "MiB",
            Self::Count => "",
        }
    }

    /// Whether a smaller value is the faster one.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Self::Minutes | Self::Seconds | Self::Milliseconds)
    }
}

impl RawValues {
    /// Ratio of the arithmetic means, as speed where the unit is a time (`to / of`) and the metric is a rate.
    /// `None` when a side is empty.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a source prints a handful of values")]
    pub fn ratio(&self, of_rates: bool) -> Option<f64> {
        let mean =
            |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let (of, to) = (mean(&self.of)?, mean(&self.to)?);
        Some(if self.unit.is_time() && of_rates { to / of } else { of / to })
    }
}

/// A number that one or several steps give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Names of the steps; values of several are added.
    pub steps: Vec<String>,
    /// Name of the number: `rows_per_second`, `wal_bytes`.
    pub name: String,
    /// Whether it is a deterministic counter rather than a time or rate.
    pub counter: bool,
}

impl Claim {
    /// Whether a run can judge it at all: it is no value of another machine, and something can be compared.
    #[must_use]
    pub fn can_be_judged(&self) -> bool {
        !matches!(self.statement, Statement::Absolute(_) | Statement::NotComparable(_))
    }
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
    /// A value of its own machine: shown beside ours, never judged.
    Absolute(Group),
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

impl Group {
    /// Whether a treatment, by the level index of each factor, belongs to it.
    #[must_use]
    pub fn holds(&self, treatment: &[usize]) -> bool {
        self.levels.iter().all(|(factor, level)| treatment.get(*factor) == Some(level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_times_give_the_ratio_of_speeds_for_a_rate() {
        let raw =
            RawValues { unit: RawUnit::Seconds, of: vec![7.03, 6.94], to: vec![7.50, 7.41], rounding: None };
        let ratio = raw.ratio(true).expect("both sides are there");
        assert!((ratio - 1.067).abs() < 0.001, "{ratio}");
        let times = raw.ratio(false).expect("both sides are there");
        assert!((ratio * times - 1.0).abs() < 1e-12);
    }
}
