//! What a person sees: tables on the terminal, Markdown, JSON, and progress while trials run.
//!
//! `layout` decides what is said, once; `terminal` and `markdown` only draw it.

mod claims;
mod claims_document;
mod controls;
mod heading;
mod layout;
mod machine;
mod markdown;
mod notes;
mod numbers;
mod progress;
mod terminal;
mod verdicts;
mod versus;

pub use claims::{claims_markdown, claims_table, verdict_counts};
pub use claims_document::{Reference, Standing, Tested, TestedClaim, claims_document};
pub use controls::{controls_markdown, controls_table};
pub use heading::{completing, heading};
pub use markdown::markdown;
pub use progress::{FinishedTrial, PlanSize, Progress, WorkingStep};
pub use terminal::table;
pub use verdicts::{verdict_pairs, verdicts_table};
pub use versus::versus_table;

use crate::compare::Summary;

/// Bytes as people read them, in powers of 1,000: `4.50 MB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(value: u64) -> String {
    numbers::bytes(value as f64)
}

/// A whole number with commas.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let head = (digits.len() + 2) % 3 + 1;
    let (first, rest) = digits.split_at(head.min(digits.len()));
    rest.as_bytes()
        .chunks(3)
        .fold(first.to_owned(), |text, three| format!("{text},{}", String::from_utf8_lossy(three)))
}

/// Seconds as people read them: `1 h 02 min`, `45 s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    numbers::duration(seconds)
}

/// `12,345 rows/s`. `seconds` must be greater than 0.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn rate(rows: u64, seconds: f64) -> String {
    format!("{} rows/s", numbers::number(rows as f64 / seconds))
}

/// The summary as JSON, for machines.
///
/// # Panics
/// Never: every key of a summary is a string.
#[must_use]
pub fn json(summary: &Summary) -> serde_json::Value {
    serde_json::to_value(summary).expect("every key of a summary is a string")
}
