//! What must be equal before times of two runs say anything about each other: the machine, and where servers run on it.
//!
//! What one run does not know, such as one that an older loadlab made, is told and not held against the two: else nothing
//! could be compared with a machine that shows less of itself.

use std::collections::BTreeSet;

use super::{Differences, Fact, all, differ};
use crate::model::TrialRecord;
use crate::store::{DeviceFacts, HostFacts};

/// Memory that differs by less than this share is the same: kernels keep some for themselves.
const MEMORY: f64 = 0.02;

/// A fact about a machine in words; `None`: not known.
type HostFact = fn(&HostFacts) -> Option<String>;

const MUST_BE_EQUAL: [(&str, HostFact); 10] = [
    ("operating system", |host| Some(host.os.clone())),
    ("architecture", |host| Some(host.architecture.clone())),
    ("CPU", |host| host.cpu_model.clone()),
    ("CPUs", |host| host.cores.map(|cores| cores.to_string())),
    ("virtualisation", |host| host.virtualisation.clone()),
    ("loadlab in a container", |host| host.in_container.map(yes_or_no)),
    ("frequency rule", |host| host.cpu_governor.clone()),
    ("turbo", |host| host.turbo.map(yes_or_no)),
    ("huge pages", |host| host.transparent_huge_pages.clone()),
    ("NUMA nodes", |host| host.numa_nodes.map(|nodes| nodes.to_string())),
];

/// The same about what servers' data lie on.
type DeviceFact = fn(&DeviceFacts) -> Option<String>;

const OF_DEVICES: [(&str, DeviceFact); 4] = [
    ("file system", |device| device.filesystem.clone()),
    ("device", |device| device.kind.clone()),
    ("rotating device", |device| device.rotational.map(yes_or_no)),
    ("write cache", |device| device.write_cache.clone()),
];

/// Facts that a trial's record has; what is not there does not apply.
const OF_SERVERS: [(&str, Fact); 6] = [
    ("backend", |record| Some(record.server.as_ref()?.backend.word().to_owned())),
    ("storage", |record| Some(record.server.as_ref()?.storage.clone())),
    ("connection", |record| Some(record.server.as_ref()?.connection.clone())),
    ("CPUs of the server", |record| record.server.as_ref()?.cpuset.clone()),
    ("CPUs of the client", |record| record.server.as_ref()?.client_cpuset.clone()),
    ("durable", |record| record.server.as_ref().map(|server| yes_or_no(server.durable))),
];

/// Machines.
pub(super) fn hosts(found: &mut Differences, a: &HostFacts, b: &HostFacts) {
    for (what, fact) in MUST_BE_EQUAL {
        compare(found, what, fact(a), fact(b));
    }
    let memory = |host: &HostFacts| host.memory_bytes.map(|bytes| bytes.to_string());
    if !alike(a.memory_bytes, b.memory_bytes) {
        compare(found, "memory", memory(a), memory(b));
    }
    for ours in &a.data_devices {
        // A backend that only one run used is a difference of its own.
        let Some(theirs) = b.data_devices.iter().find(|device| device.backend == ours.backend) else {
            continue;
        };
        for (what, fact) in OF_DEVICES {
            let what = format!("{what} of {} servers", ours.backend.word());
            compare(found, &what, fact(ours), fact(theirs));
        }
    }
}

/// What must be equal and is known to differ, apart from what servers' data lie on.
pub(in crate::cli) fn differing_hosts(a: &HostFacts, b: &HostFacts) -> Vec<String> {
    let mut found = Differences::default();
    let without = |host: &HostFacts| HostFacts { data_devices: Vec::new(), ..host.clone() };
    hosts(&mut found, &without(a), &without(b));
    found.machine
}

/// Where servers run, and whether their commits are safe.
pub(super) fn servers(found: &mut Differences, a: &[TrialRecord], b: &[TrialRecord]) {
    // Treatments that only one run has are not compared; what they need says nothing about the others.
    let labels = |records: &[TrialRecord]| -> BTreeSet<String> {
        records
            .iter()
            .filter(|record| record.server.is_some())
            .map(|record| record.treatment.clone())
            .collect()
    };
    let (of_a, of_b) = (labels(a), labels(b));
    let common = |records: &[TrialRecord]| -> Vec<TrialRecord> {
        let both =
            |record: &&TrialRecord| of_a.contains(&record.treatment) && of_b.contains(&record.treatment);
        records
            .iter()
            .filter(both)
            .map(|record| TrialRecord { samples: Vec::new(), ..record.clone() })
            .collect()
    };
    let (a, b) = (common(a), common(b));
    for (what, fact) in OF_SERVERS {
        differ(&mut found.machine, what, &all(&a, fact), &all(&b, fact));
    }
}

/// What of a machine may differ: it changes with an update, or matters little.
pub(super) fn states(found: &mut Vec<String>, a: &HostFacts, b: &HostFacts) {
    let facts: [(&str, HostFact); 4] = [
        ("kernel", |host| host.kernel.clone()),
        ("swap space", |host| host.swap_bytes.map(|bytes| bytes.to_string())),
        ("version of cgroups", |host| host.cgroup_version.map(|version| version.to_string())),
        ("container engine", |host| host.container_engine.clone()),
    ];
    for (what, fact) in facts {
        differ(found, what, &words(fact(a)), &words(fact(b)));
    }
}

fn compare(found: &mut Differences, what: &str, a: Option<String>, b: Option<String>) {
    let list = if a.is_some() && b.is_some() { &mut found.machine } else { &mut found.unknown };
    differ(list, what, &words(a), &words(b));
}

fn words(value: Option<String>) -> String {
    value.unwrap_or_else(|| "unknown".to_owned())
}

fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn alike(a: Option<u64>, b: Option<u64>) -> bool {
    a.zip(b).is_some_and(|(a, b)| ratio(a.abs_diff(b), a.max(b)) < MEMORY)
}

#[expect(clippy::cast_precision_loss, reason = "a share of memory need not be exact")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Backend;

    fn known() -> HostFacts {
        HostFacts {
            os: "linux".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu_model: Some("A".to_owned()),
            cores: Some(2),
            memory_bytes: Some(8_000_000_000),
            cpu_governor: Some("performance".to_owned()),
            turbo: Some(true),
            virtualisation: Some("none".to_owned()),
            data_devices: vec![device(Backend::Local, "nvme"), device(Backend::Container, "nvme")],
            ..HostFacts::default()
        }
    }

    fn device(backend: Backend, kind: &str) -> DeviceFacts {
        DeviceFacts {
            backend,
            filesystem: Some("ext4".to_owned()),
            kind: Some(kind.to_owned()),
            rotational: None,
            write_cache: None,
        }
    }

    fn between(change: impl Fn(&mut HostFacts)) -> (Vec<String>, Vec<String>) {
        let mut other = known();
        change(&mut other);
        let mut found = Differences::default();
        hosts(&mut found, &known(), &other);
        (found.machine, found.unknown)
    }

    #[test]
    fn each_fact_that_must_be_equal_is_told() {
        type Change = fn(&mut HostFacts);
        let changes: [(&str, Change); 7] = [
            ("architecture: x86_64 / aarch64", |host| host.architecture = "aarch64".to_owned()),
            ("CPU: A / B", |host| host.cpu_model = Some("B".to_owned())),
            ("memory: 8000000000 / 9000000000", |host| host.memory_bytes = Some(9_000_000_000)),
            ("frequency rule: performance / powersave", |host| {
                host.cpu_governor = Some("powersave".to_owned());
            }),
            ("turbo: yes / no", |host| host.turbo = Some(false)),
            ("virtualisation: none / kvm", |host| host.virtualisation = Some("kvm".to_owned())),
            ("device of local servers: nvme / scsi", |host| {
                host.data_devices = vec![device(Backend::Local, "scsi")];
            }),
        ];
        for (words, change) in changes {
            assert_eq!(between(change), (vec![words.to_owned()], vec![]));
        }
    }

    #[test]
    fn what_one_run_does_not_know_is_told_apart() {
        assert_eq!(between(|_| ()), (vec![], vec![]));
        assert_eq!(between(|host| host.memory_bytes = Some(8_000_100_000)), (vec![], vec![]));
        let unknown = |words: &str| (vec![], vec![words.to_owned()]);
        assert_eq!(between(|host| host.turbo = None), unknown("turbo: yes / unknown"));
        assert_eq!(between(|host| host.memory_bytes = None), unknown("memory: 8000000000 / unknown"));
        assert_eq!(between(|host| host.data_devices.clear()), (vec![], vec![]));
    }
}
