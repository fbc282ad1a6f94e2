//! What is found out about a claim: the verdict, and all the arithmetic it rests on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{ClaimSource, RawValues, Reading};

/// A claim, judged by a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Id of the claim.
    pub claim: String,
    /// Its source.
    pub source: ClaimSource,
    /// What is said there.
    pub quote: Option<String>,
    /// Whether the source is taken as it stands or with its mistakes taken out.
    pub reading: Reading,
    /// What the claim says.
    pub kind: Kind,
    /// The number that is compared, `insert.rows_per_second`; empty for a claim that cannot be compared.
    pub metric: String,
    /// From when to when, or over what, that number is taken.
    pub end_point: String,
    /// The published number in this reading.
    pub published: Option<f64>,
    /// The values behind it, as printed.
    pub raw: Option<RawValues>,
    /// What counts as the published number.
    pub tolerance: Option<Tolerance>,
    /// The comparisons that were made: one, or for an order each group with the next and the first with the last.
    pub comparisons: Vec<Comparison>,
    /// Our own value, for an absolute statement: the median.
    pub ours: Option<f64>,
    /// Comparisons of all claims that were judged together; `together` intervals hold for all of them at once.
    pub family: usize,
    /// Trials of the compared groups that were left out, by reason (a trial may have several).
    pub left_out: BTreeMap<String, usize>,
    /// What must hold for a verdict.
    pub preconditions: Vec<Precondition>,
    /// What else differs between the groups, or is not known about the source.
    pub confounds: Option<String>,
    /// The verdict; `None` where none is ever given: absolute statements, and smoke runs.
    pub verdict: Option<Verdict>,
    /// Why, in words.
    pub reason: String,
    /// Blocks that would probably decide an inconclusive claim (four times in five), when more would help.
    pub blocks_needed: Option<usize>,
}

/// Verdicts on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval lies within the tolerance (or the margin), or the order is shown.
    Reproduced,
    /// The difference goes the way that was published, its size is another or not known well enough.
    SameDirection,
    /// The opposite is shown, or no difference where one was published.
    Contradicted,
    /// The run does not decide it.
    Inconclusive,
    /// Something the claim needs is not there.
    NotComparable,
}

impl Verdict {
    /// All of them, best first.
    pub const ALL: [Self; 5] =
        [Self::Reproduced, Self::SameDirection, Self::Contradicted, Self::Inconclusive, Self::NotComparable];

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::Contradicted => "contradicted",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not comparable",
        }
    }
}

/// Kinds of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One group is so many times the other.
    Ratio,
    /// Two groups do not differ.
    NoDifference,
    /// Groups stand in an order.
    Order,
    /// A value of its own machine.
    Absolute,
    /// Cannot be tested here.
    NotComparable,
}

impl Kind {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::NoDifference => "no difference",
            Self::Order => "order",
            Self::Absolute => "absolute",
            Self::NotComparable => "not comparable",
        }
    }
}

/// The range of ratios that counts as the published one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Relative width to either side: 0.05 for 5 %.
    pub share: f64,
    /// Lower and upper end.
    pub range: (f64, f64),
    /// Where it comes from, in words.
    pub from: String,
}

/// One group of treatments against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Levels of the one group that the other does not have, `storage=unlogged`.
    pub of: String,
    /// Levels of the other.
    pub to: String,
    /// Levels that both have; empty for none.
    pub shared: String,
    /// Medians of the two groups.
    pub medians: (Option<f64>, Option<f64>),
    /// Value of the one over value of the other, in pairs within blocks; `None` without a pair.
    pub ratio: Option<Ratio>,
    /// Pairs that went in.
    pub pairs: usize,
    /// Pairs that are missing because one side is not valid.
    pub pairs_missing: usize,
    /// Whether pairs are alike in every factor that the claim does not name.
    pub alike: bool,
    /// Whether loadlab itself set the pace while it did the same on both sides: then this says nothing about the server.
    #[serde(default)]
    pub client_bound: bool,
}

/// A ratio with its intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Geometric mean over blocks.
    pub ratio: f64,
    /// The 95 % interval of this comparison alone; `None` with one block.
    pub interval: Option<(f64, f64)>,
    /// The interval that verdicts rest on: with those of the family, 95 % for all at once.
    pub together: Option<(f64, f64)>,
    /// Blocks with at least one pair.
    pub blocks: usize,
    /// Standard deviation of the blocks' log ratios.
    pub scatter: Option<f64>,
    /// The smallest difference that so many blocks find four times in five: 0.05 for 5 %.
    pub detectable: Option<f64>,
}

/// A condition of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// As written: `rows >= 100_000`.
    pub need: String,
    /// What the run has.
    pub found: String,
    /// Whether it holds.
    pub met: bool,
}
