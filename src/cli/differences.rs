//! What differs between two runs, beside their numbers.

use std::collections::BTreeSet;

use crate::model::{Backend, TrialRecord};
use crate::store::{OptionsUsed, StoredRun};

/// Facts of two runs that differ.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Of the machine: numbers cannot be compared.
    pub(super) machine: Vec<String>,
    /// Of everything else, which may be what is asked about.
    pub(super) other: Vec<String>,
}

/// Memory that differs by less than this share is the same: kernels keep some for themselves.
const MEMORY: f64 = 0.02;

/// Looks for them.
pub(super) fn differences(first: &StoredRun, second: &StoredRun) -> Differences {
    let (a, b) = (&first.manifest, &second.manifest);
    let (of_a, of_b) = (first.journal.records(), second.journal.records());
    let mut found = Differences::default();
    let words = |value: Option<&String>| value.cloned().unwrap_or_else(|| "unknown".to_owned());
    let count = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
    let machine = &mut found.machine;
    differ(machine, "operating system", &a.host.os, &b.host.os);
    differ(machine, "architecture", &a.host.architecture, &b.host.architecture);
    differ(machine, "CPU", &words(a.host.cpu_model.as_ref()), &words(b.host.cpu_model.as_ref()));
    differ(machine, "CPUs", &count(a.host.cores), &count(b.host.cores));
    if !alike(a.host.memory_bytes, b.host.memory_bytes) {
        differ(machine, "memory", &count(a.host.memory_bytes), &count(b.host.memory_bytes));
    }
    for (what, fact) in must_be_equal() {
        differ(machine, what, &all(&of_a, fact), &all(&of_b, fact));
    }
    let other = &mut found.other;
    differ(other, "server", &all(&of_a, identity), &all(&of_b, identity));
    differ(other, "kernel", &words(a.host.kernel.as_ref()), &words(b.host.kernel.as_ref()));
    differ(other, "loadlab", &tool(first), &tool(second));
    differ(other, "experiment", &short(&a.spec.hash), &short(&b.spec.hash));
    differ(other, "options", &options(&a.spec.options), &options(&b.spec.options));
    differ(other, "seed", &a.seed.to_string(), &b.seed.to_string());
    settings(other, &of_a, &of_b);
    found
}

type Fact = fn(&TrialRecord) -> Option<String>;

fn must_be_equal() -> [(&'static str, Fact); 4] {
    [
        ("backend", |record| {
            record.server.as_ref().map(|server| {
                match server.backend {
                    Backend::Container => "container",
                    Backend::Local => "local",
                    Backend::External => "external",
                }
                .to_owned()
            })
        }),
        ("storage", |record| record.server.as_ref().map(|server| server.storage.clone())),
        ("connection", |record| record.server.as_ref().map(|server| server.connection.clone())),
        ("CPUs of the server", |record| record.server.as_ref().and_then(|server| server.cpuset.clone())),
    ]
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
    let controls = used.controls.map(|on| if on { "--controls" } else { "--no-controls" }.to_owned());
    let all: Vec<String> = profile.chain(set).chain(only).chain(controls).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(" ") }
}

fn alike(a: Option<u64>, b: Option<u64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => ratio(a.abs_diff(b), a.max(b)) < MEMORY,
        (None, None) => true,
        _ => false,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of memory need not be exact")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
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
