//! Rules that a bound trial must keep, found before any server starts.
//!
//! Each rule looks at one treatment's trial only and reports a [`Finding`] with its path into the
//! experiment file. Types and generators of columns are checked where they are bound.

mod catalogue;
mod dump;
mod duration;
mod finding;
mod load;
mod load_in_server;
mod read;
mod settings;
mod sql;
mod steps;
mod tables;
mod value;

pub use finding::Finding;
pub use settings::{SettingProblem, normalise_setting};

use crate::model::BoundTrial;

/// Everything a machine can find wrong with one treatment's trial: settings, tables, then steps in order.
#[must_use]
pub fn check_trial(trial: &BoundTrial) -> Vec<Finding> {
    let mut findings = settings::check(trial);
    findings.extend(tables::check(trial));
    findings.extend(steps::check(trial));
    findings
}

#[cfg(test)]
mod tests;
