//! What a person sees: tables on the terminal, Markdown, JSON, and progress while trials run.
//!
//! `layout` decides what is said, once; `terminal` and `markdown` only draw it.

mod layout;
mod markdown;
mod notes;
mod numbers;
mod progress;
mod terminal;

pub use markdown::markdown;
pub use progress::{FinishedTrial, PlanSize, Progress};
pub use terminal::table;

use crate::compare::Summary;

/// The summary as JSON, for machines.
///
/// # Panics
/// Never: every key of a summary is a string.
#[must_use]
pub fn json(summary: &Summary) -> serde_json::Value {
    serde_json::to_value(summary).expect("every key of a summary is a string")
}
