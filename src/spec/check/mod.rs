//! Rules that a bound trial must keep, found before any server starts.

mod catalogue;
mod finding;
mod settings;
mod value;

pub use finding::Finding;
pub use settings::{SettingProblem, normalise_setting};

use crate::model::BoundTrial;

/// Everything a machine can find wrong with one treatment's trial, in the order of the file.
#[must_use]
pub fn check_trial(trial: &BoundTrial) -> Vec<Finding> {
    settings::check(trial)
}
