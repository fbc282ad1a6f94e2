//! What differs between two runs, beside their numbers.

mod machine;

pub(super) use machine::differing_hosts;

use std::collections::BTreeSet;

use crate::compare::median;
use crate::model::TrialRecord;
use crate::store::{OptionsUsed, RunManifest, StoredRun};

/// Facts of two runs that differ.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Of the machine and of where servers run on it: numbers cannot be compared.
    pub(super) machine: Vec<String>,
    /// Of the same, where one run does not know: it may be the same or not.
    pub(super) unknown: Vec<String>,
    /// Of everything else, which may be what is asked about.
    pub(super) other: Vec<String>,
}

impl Differences {
    /// All of them, those of the machine first.
    pub(super) fn all(self) -> Vec<String> {
        [self.machine, self.unknown, self.other].concat()
    }
}

/// What a sync takes is not the same when one run's takes more than this times as long.
const SYNC: f64 = 2.0;

/// Looks for them.
pub(super) fn differences(first: &StoredRun, second: &StoredRun) -> Differences {
    let (a, b) = (&first.manifest, &second.manifest);
    let (of_a, of_b) = (first.journal.records(), second.journal.records());
    let mut found = Differences::default();
    machine::hosts(&mut found, &a.host, &b.host);
    machine::servers(&mut found, &of_a, &of_b);
    let other = &mut found.other;
    machine::states(other, &a.host, &b.host);
    differ(other, "server", &all(&of_a, identity), &all(&of_b, identity));
    if let Some((a, b)) = sync(&of_a).zip(sync(&of_b)).filter(|(a, b)| a.max(*b) > SYNC * a.min(*b)) {
        other.push(format!("what a sync takes: {:.0} us / {:.0} us", a * 1e6, b * 1e6));
    }
    differ(other, "loadlab", &tool(first), &tool(second));
    differ(other, "experiment", &short(&a.spec.hash), &short(&b.spec.hash));
    differ(other, "options", &options(&a.spec.options), &options(&b.spec.options));
    // Whether there were any, not who asked: a repetition asks for what the first run had by itself.
    let controls = |run: &RunManifest| if run.controls.is_some() { "with" } else { "without" };
    differ(other, "controls", controls(a), controls(b));
    differ(other, "seed", &a.seed.to_string(), &b.seed.to_string());
    settings(other, &of_a, &of_b);
    found
}

type Fact = fn(&TrialRecord) -> Option<String>;

/// Seconds a sync takes, the median over all trials.
fn sync(records: &[TrialRecord]) -> Option<f64> {
    let seconds = records.iter().filter(|record| !record.trial.control);
    median(&seconds.filter_map(|record| record.server.as_ref()?.sync_seconds).collect::<Vec<_>>())
}

fn identity(record: &TrialRecord) -> Option<String> {
    record.server.as_ref().map(|server| server.identity.clone())
}

fn tool(run: &StoredRun) -> String {
    format!("{} ({})", run.manifest.tool.version, run.manifest.tool.commit)
}

fn short(hash: &str) -> String {
    hash.chars().take(12).collect()
}

/// Options as they are written on the command line.
fn options(used: &OptionsUsed) -> String {
    let profile = used.profile.iter().map(|name| format!("--profile {name}"));
    let set = used.set.iter().map(|set| format!("--set {set}"));
    let only = used.only.iter().map(|only| format!("--only {only}"));
    let beside = used.beside_others.then(|| "--beside-others".to_owned());
    let all: Vec<String> = profile.chain(set).chain(only).chain(beside).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(" ") }
}

fn differ(found: &mut Vec<String>, what: &str, a: &str, b: &str) {
    if a != b {
        found.push(format!("{what}: {a} / {b}"));
    }
}

/// All values that a fact has in the trials of a run.
fn all(records: &[TrialRecord], fact: Fact) -> String {
    let values: BTreeSet<String> = records.iter().filter_map(fact).collect();
    if values.is_empty() { "none".to_owned() } else { values.into_iter().collect::<Vec<_>>().join(", ") }
}

/// Settings whose effective values over all trials differ.
fn settings(found: &mut Vec<String>, a: &[TrialRecord], b: &[TrialRecord]) {
    let names: BTreeSet<&str> =
        a.iter().chain(b).flat_map(|record| &record.settings).map(|setting| setting.name.as_str()).collect();
    for name in names {
        let values = |records: &[TrialRecord]| {
            let settings = records.iter().flat_map(|record| &record.settings);
            let values: BTreeSet<&str> = settings
                .filter(|setting| setting.name == name)
                .map(|setting| setting.effective.as_str())
                .collect();
            if values.is_empty() {
                "the default".to_owned()
            } else {
                values.into_iter().collect::<Vec<_>>().join(", ")
            }
        };
        differ(found, name, &values(a), &values(b));
    }
}
