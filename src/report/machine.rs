//! The machine in two coarse lines: what is known of it, and how busy it was.

use super::numbers::bytes;
use crate::store::{DeviceFacts, HostFacts};

/// What the machine is, and how it is set up; the second line is left out where nothing of it is known.
pub(super) fn machine(host: &HostFacts) -> Vec<String> {
    let what = [
        Some(format!("machine: {} {}", host.os, host.architecture)),
        host.cpu_model.clone(),
        host.cores.map(|cores| format!("{cores} CPU{}", if cores == 1 { "" } else { "s" })),
        host.memory_bytes.map(memory),
        host.virtualisation.as_ref().map(|kind| virtualisation(kind)),
        host.in_container.filter(|inside| *inside).map(|_| "in a container".to_owned()),
    ];
    let mut lines = vec![what.into_iter().flatten().collect::<Vec<_>>().join(", ")];
    let set_up = set_up(host);
    if !set_up.is_empty() {
        lines.push(format!("machine set up: {}", set_up.join(", ")));
    }
    lines
}

fn set_up(host: &HostFacts) -> Vec<String> {
    let facts = [
        host.cpu_governor.as_ref().map(|governor| format!("governor {governor}")),
        host.turbo.map(|on| format!("turbo {}", if on { "on" } else { "off" })),
        host.transparent_huge_pages.as_ref().map(|mode| format!("huge pages {mode}")),
        host.numa_nodes.filter(|nodes| *nodes > 1).map(|nodes| format!("{nodes} NUMA nodes")),
        host.swap_bytes
            .map(|size| if size == 0 { "no swap".to_owned() } else { format!("swap of {}", memory(size)) }),
        host.cgroup_version.map(|version| format!("cgroup v{version}")),
        host.container_engine.as_ref().map(|version| format!("container engine {version}")),
    ];
    let devices = host.data_devices.iter().filter_map(device);
    let load = host.state_at_start.load_average.map(|load| format!("load {load:.2} at the start"));
    facts.into_iter().flatten().chain(devices).chain(load).collect()
}

/// `data of local servers on ext4 (nvme, write back)`.
fn device(device: &DeviceFacts) -> Option<String> {
    // Virtual disks are said to turn unless their host says otherwise.
    let is_virtual = matches!(device.kind.as_deref(), Some("virtio" | "xen"));
    let below = [
        device.kind.clone(),
        device.rotational.filter(|turns| *turns && !is_virtual).map(|_| "rotating".to_owned()),
        device.write_cache.clone(),
    ];
    let below = below.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let filesystem = device.filesystem.as_ref()?;
    let below = if below.is_empty() { below } else { format!(" ({below})") };
    Some(format!("data of {} servers on {filesystem}{below}", device.backend.word()))
}

fn virtualisation(kind: &str) -> String {
    match kind {
        "none" => "no virtual machine".to_owned(),
        "virtual machine" => kind.to_owned(),
        kind => format!("virtual machine ({kind})"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown in three digits")]
fn memory(size: u64) -> String {
    bytes(size as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Backend;
    use crate::store::StateAtStart;

    #[test]
    fn what_is_known_is_told_and_nothing_else() {
        let bare =
            HostFacts { os: "macos".to_owned(), architecture: "aarch64".to_owned(), ..HostFacts::default() };
        assert_eq!(machine(&bare), ["machine: macos aarch64"]);
        let known = HostFacts {
            cpu_model: Some("Some CPU".to_owned()),
            cores: Some(2),
            virtualisation: Some("kvm".to_owned()),
            turbo: Some(false),
            swap_bytes: Some(0),
            numa_nodes: Some(1),
            data_devices: vec![DeviceFacts {
                backend: Backend::Local,
                filesystem: Some("ext4".to_owned()),
                kind: Some("nvme".to_owned()),
                rotational: Some(false),
                write_cache: Some("write back".to_owned()),
            }],
            state_at_start: StateAtStart { load_average: Some(0.5), busy_threads: Some(1) },
            ..bare
        };
        assert_eq!(
            machine(&known),
            [
                "machine: macos aarch64, Some CPU, 2 CPUs, virtual machine (kvm)",
                "machine set up: turbo off, no swap, data of local servers on ext4 (nvme, write back), load 0.50 at the start",
            ]
        );
    }
}
