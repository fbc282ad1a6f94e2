//! CPUs: model, frequency rules, groups, and whether they are real.

use super::tree::{Tree, value_of};

/// Makers of virtual machines as firmware names them, with the kind of machine.
const MAKERS: [(&str, &str); 9] = [
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("amazon ec2", "amazon"),
    ("google", "google"),
    ("microsoft corporation", "hyper-v"),
    ("vmware", "vmware"),
    ("innotek", "virtualbox"),
    ("xen", "xen"),
    ("parallels", "parallels"),
];

/// Model of the first CPU.
pub(super) fn model(tree: &Tree) -> Option<String> {
    value_of(&tree.read("proc/cpuinfo")?, "model name")
}

/// The frequency rules of all CPUs, each once.
pub(super) fn governor(tree: &Tree) -> Option<String> {
    const CPUS: &str = "sys/devices/system/cpu";
    let cpus = tree.names(CPUS).into_iter().filter(|name| is_numbered(name, "cpu"));
    let mut found: Vec<String> =
        cpus.filter_map(|cpu| tree.read(format!("{CPUS}/{cpu}/cpufreq/scaling_governor"))).collect();
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then(|| found.join(", "))
}

/// Whether frequencies above the nominal one are allowed. Drivers say it in one of two ways.
pub(super) fn turbo(tree: &Tree) -> Option<bool> {
    let flag = |path: &str| match tree.read(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    flag("sys/devices/system/cpu/intel_pstate/no_turbo")
        .map(|forbidden| !forbidden)
        .or_else(|| flag("sys/devices/system/cpu/cpufreq/boost"))
}

/// Groups of CPUs with memory of their own.
pub(super) fn numa_nodes(tree: &Tree) -> Option<u64> {
    let nodes = tree.names("sys/devices/system/node");
    let count = nodes.iter().filter(|name| is_numbered(name, "node")).count() as u64;
    (count > 0).then_some(count)
}

/// The kind of virtual machine, or `none`.
pub(super) fn virtualisation(tree: &Tree) -> Option<String> {
    if tree
        .read("proc/sys/kernel/osrelease")
        .is_some_and(|release| release.to_lowercase().contains("microsoft"))
    {
        return Some("wsl".to_owned());
    }
    let info = tree.read("proc/cpuinfo")?;
    // Only x86 has this flag; elsewhere the maker alone may tell.
    let flags = value_of(&info, "flags");
    let virtual_cpu = flags.as_ref().map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if virtual_cpu == Some(false) {
        return Some("none".to_owned());
    }
    let firmware = ["sys_vendor", "product_name"]
        .map(|file| tree.read(format!("sys/class/dmi/id/{file}")).unwrap_or_default().to_lowercase());
    let made = |(maker, _): &&(&str, &str)| firmware.iter().any(|name| name.contains(maker));
    let kind = MAKERS.iter().find(made).map(|(_, kind)| (*kind).to_owned());
    let kind = kind.or_else(|| tree.read("sys/hypervisor/type"));
    kind.or_else(|| virtual_cpu.map(|_| "virtual machine".to_owned()))
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    let digits = name.strip_prefix(prefix).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_of;
    use super::*;

    #[test]
    fn rules_of_frequencies_are_read() {
        let (_folder, tree) = made_of(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
            ("sys/devices/system/node/node0/meminfo", ""),
            ("sys/devices/system/node/node1/meminfo", ""),
            ("sys/devices/system/node/possible", "0-1"),
        ]);
        assert_eq!(governor(&tree), Some("performance, powersave".to_owned()));
        assert_eq!((turbo(&tree), numa_nodes(&tree)), (Some(true), Some(2)));
        let (_folder, tree) = made_of(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")]);
        assert_eq!((turbo(&tree), governor(&tree), numa_nodes(&tree)), (Some(false), None, None));
    }

    #[test]
    fn virtual_machines_are_told_from_real_ones() {
        let of = |flags: &str, files: &[(&str, &str)]| {
            let info = format!("model name : X\nflags : {flags}\n");
            let all: Vec<_> = files.iter().copied().chain([("proc/cpuinfo", info.as_str())]).collect();
            virtualisation(&made_of(&all).1)
        };
        let vendor = |name| [("sys/class/dmi/id/sys_vendor", name)];
        assert_eq!(of("fpu sse2", &vendor("Dell Inc.")).as_deref(), Some("none"));
        assert_eq!(of("fpu hypervisor", &vendor("QEMU\n")).as_deref(), Some("kvm"));
        assert_eq!(of("fpu hypervisor", &vendor("VMware, Inc.")).as_deref(), Some("vmware"));
        assert_eq!(of("fpu hypervisor", &[]).as_deref(), Some("virtual machine"));
        let subsystem = [("proc/sys/kernel/osrelease", "5.15.1-microsoft-standard-WSL2")];
        assert_eq!(of("fpu hypervisor", &subsystem).as_deref(), Some("wsl"));
        // Without the flag of x86 and without firmware that says so nothing is known.
        let (_folder, arm) = made_of(&[("proc/cpuinfo", "Features : fp\n")]);
        assert_eq!(virtualisation(&arm), None);
    }
}
