//! `run.json`: what was asked, with what, where and when.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::host::HostFacts;
use crate::model::{Backend, Claim, Controls, Design, Input};

/// Everything about a run that is not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Version of the results schema ([`super::SCHEMA_VERSION`]).
    pub schema_version: u32,
    /// Name of the experiment; names the folder.
    pub experiment: String,
    /// Identity of the run, from [`new_run_id`]; names the folder.
    pub run: String,
    /// The experiment's question.
    pub question: String,
    /// Whether rows, durations and blocks were capped (`--smoke`): such numbers prove nothing about speed.
    #[serde(default)]
    pub smoke: bool,
    /// The experiment file.
    pub spec: SpecRecord,
    /// Every file that shaped the run; `inputs/` holds those that were not left out.
    #[serde(default)]
    pub inputs: Vec<Input>,
    /// The run that this one repeats.
    #[serde(default)]
    pub rerun_of: Option<String>,
    /// What wrote this.
    pub tool: ToolVersion,
    /// Seed of the order and of generated rows.
    pub seed: u64,
    /// Digest of the planned order, so that a resume can prove it runs the same plan.
    pub order_digest: String,
    /// Trials of the whole plan, with control trials.
    pub trials_planned: u64,
    /// The controls; `None` for a run without.
    #[serde(default)]
    pub controls: Option<Controls>,
    /// Factors, levels and blocks.
    pub design: Design,
    /// Published statements that the run re-tests, as bound to the design.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Which backend each environment got, and why.
    pub environments: Vec<EnvironmentChoice>,
    /// The machine.
    pub host: HostFacts,
    /// When the run began (UTC).
    pub started_at: Timestamp,
    /// Why the rule of its blocks ended it before the last block; `None` for any other end.
    #[serde(default)]
    pub ended_by_rule: Option<String>,
    /// When its last trial ended (UTC); `None` while it runs and after a kill.
    pub ended_at: Option<Timestamp>,
}

/// The experiment file as written and as understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpecRecord {
    /// Name of the file, without its folder.
    pub file: String,
    /// Text as written.
    pub text: String,
    /// Tree after profile and `--set`, templates unrendered.
    pub resolved: serde_json::Value,
    /// SHA-256 of the resolved tree and of every file it names.
    pub hash: String,
    /// Options of the command line that shaped it.
    pub options: OptionsUsed,
}

/// Options of the command line that shaped the experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionsUsed {
    /// `--profile`.
    pub profile: Option<String>,
    /// `--set`, in order.
    pub set: Vec<String>,
    /// `--only`, in order.
    pub only: Vec<String>,
    /// `--beside-others`: other runs on the machine were allowed.
    #[serde(default)]
    pub beside_others: bool,
    /// `--controls` or `--no-controls`; `None` where the experiment decided.
    #[serde(default)]
    pub controls: Option<bool>,
}

/// Version and commit of loadlab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolVersion {
    /// Version of the package.
    pub version: String,
    /// Commit it was built from, or `unknown`.
    pub commit: String,
}

impl ToolVersion {
    /// The running program.
    #[must_use]
    pub fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("LOADLAB_COMMIT").unwrap_or("unknown").to_owned(),
        }
    }
}

/// The backend an environment got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentChoice {
    /// Name of the environment.
    pub environment: String,
    /// What was taken.
    pub backend: Backend,
    /// The reason, as a sentence.
    pub why: String,
}

/// A run id: UTC time, so that names sort by age, and a random part, because clocks jump and runs may start together.
/// `20170608-101530-123-3f9a2c`, milliseconds in the middle: runs of one second sort as well.
///
/// # Panics
/// When the operating system has no source of random bytes.
#[must_use]
pub fn new_run_id(now: Timestamp) -> String {
    let mut random = [0_u8; 3];
    getrandom::fill(&mut random).expect("the operating system gives random bytes");
    let [a, b, c] = random;
    let time = now.strftime("%Y%m%d-%H%M%S");
    format!("{time}-{:03}-{a:02x}{b:02x}{c:02x}", now.subsec_millisecond())
}

/// Refuses names that would not be one plain folder name everywhere.
pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let starts_plain = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts_plain && name.len() <= 100 && name.chars().all(plain) {
        return Ok(());
    }
    Err(StoreError::BadName { what, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_sort_by_time_and_are_plain_names() {
        let early = new_run_id("2017-06-08T10:15:30Z".parse().unwrap());
        let late = new_run_id("2026-01-02T00:00:00.9Z".parse().unwrap());
        assert!(early.starts_with("20170608-101530-") && early < late);
        check_name("run", &early).unwrap();
        assert_eq!(early.len(), 26);
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", "..", ".hidden", "a/b", "/etc", "a\\b", "a\0b", "ä", "-x", "a b", &"x".repeat(101)]
        {
            assert!(check_name("experiment", name).is_err(), "{name:?}");
        }
        check_name("experiment", "copy-freeze_2.1").unwrap();
    }
}
