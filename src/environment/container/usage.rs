//! What a container's processes used, from the files of its cgroup (version 1 and 2).
//!
//! The files cost microseconds; the engine's statistics API, the way out where the files are not visible,
//! costs milliseconds of the engine's own CPU time.

use std::fs;
use std::path::{Path, PathBuf};

use bollard::models::ContainerStatsResponse;

use crate::environment::Usage;

/// Where the files of a container's cgroup are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cgroup {
    /// Version 2: one folder.
    Unified(PathBuf),
    /// Version 1: a folder per controller.
    Split {
        /// Controller `cpuacct`.
        cpu: Option<PathBuf>,
        /// Controller `blkio`.
        blocks: Option<PathBuf>,
        /// Controller `memory`.
        memory: Option<PathBuf>,
    },
}

impl Cgroup {
    /// The cgroup of a process, as this process sees it.
    pub(super) fn of(pid: i64) -> Option<Self> {
        let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let found = locate(&membership, &mounts)?;
        let exists = match &found {
            Self::Unified(folder) => folder.join("cpu.stat").exists(),
            Self::Split { cpu, .. } => cpu.as_ref().is_some_and(|folder| folder.exists()),
        };
        exists.then_some(found)
    }

    /// Resources used so far.
    pub(super) fn usage(&self) -> Usage {
        match self {
            Self::Unified(folder) => {
                let blocks = read(&folder.join("io.stat"));
                Usage {
                    cpu_seconds: read(&folder.join("cpu.stat"))
                        .and_then(|text| field(&text, "usage_usec"))
                        .map(|micros| seconds(micros, 1e6)),
                    read_bytes: blocks.as_deref().map(|text| sum_of_pairs(text, "rbytes=")),
                    written_bytes: blocks.as_deref().map(|text| sum_of_pairs(text, "wbytes=")),
                    throttled_periods: self.throttled_periods(),
                    memory_kills: self.memory_kills(),
                }
            }
            Self::Split { cpu, blocks, .. } => {
                let (read_bytes, written_bytes) = cpu
                    .as_ref()
                    .and_then(|folder| io_of_processes(&folder.join("cgroup.procs")))
                    .or_else(|| blocks.as_ref().and_then(|folder| io_of_controller(folder)))
                    .unzip();
                Usage {
                    cpu_seconds: cpu
                        .as_ref()
                        .and_then(|folder| read(&folder.join("cpuacct.usage")))
                        .and_then(|text| text.trim().parse().ok())
                        .map(|nanos| seconds(nanos, 1e9)),
                    read_bytes,
                    written_bytes,
                    throttled_periods: self.throttled_periods(),
                    memory_kills: self.memory_kills(),
                }
            }
        }
    }

    /// How many processes the kernel killed for want of memory; `None` where the kernel does not count them.
    pub(super) fn memory_kills(&self) -> Option<u64> {
        let file = match self {
            Self::Unified(folder) => Some(folder.join("memory.events")),
            Self::Split { memory, .. } => memory.as_ref().map(|folder| folder.join("memory.oom_control")),
        };
        field(&read(&file?)?, "oom_kill")
    }

    /// How often the CPU quota held its processes back; both versions of cgroups call it `nr_throttled`.
    fn throttled_periods(&self) -> Option<u64> {
        let file = match self {
            Self::Unified(folder) => Some(folder.join("cpu.stat")),
            Self::Split { cpu, .. } => cpu.as_ref().map(|folder| folder.join("cpu.stat")),
        };
        field(&read(&file?)?, "nr_throttled")
    }
}

/// Reads an answer of the statistics API.
pub(super) fn from_stats(stats: &ContainerStatsResponse) -> Usage {
    let total = stats.cpu_stats.as_ref().and_then(|cpu| cpu.cpu_usage.as_ref()?.total_usage);
    let entries = stats.blkio_stats.as_ref().and_then(|blocks| blocks.io_service_bytes_recursive.as_ref());
    let sum = |wanted: &str| {
        entries.map(|entries| {
            let matches = |op: &Option<String>| op.as_ref().is_some_and(|op| op.eq_ignore_ascii_case(wanted));
            entries.iter().filter(|entry| matches(&entry.op)).filter_map(|entry| entry.value).sum()
        })
    };
    Usage {
        cpu_seconds: total.map(|nanos| seconds(nanos, 1e9)),
        read_bytes: sum("read"),
        written_bytes: sum("write"),
        throttled_periods: stats
            .cpu_stats
            .as_ref()
            .and_then(|cpu| cpu.throttling_data.as_ref()?.throttled_periods),
        memory_kills: None,
    }
}

/// Bytes read and written by the processes of a version 1 cgroup, each with its ended children. The
/// controller counts only what is throttled on newer kernels, so the processes are asked first; only root
/// and their own user may.
fn io_of_processes(list: &Path) -> Option<(u64, u64)> {
    let mut sum = (0, 0);
    for pid in read(list)?.lines() {
        match fs::read_to_string(format!("/proc/{pid}/io")) {
            Ok(text) => {
                sum.0 += field(&text, "read_bytes:")?;
                sum.1 += field(&text, "write_bytes:")?;
            }
            // It has ended; its parent has its numbers.
            Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => {}
            Err(_) => return None,
        }
    }
    Some(sum)
}

/// Nothing at all means that the controller does not count, not that nothing was read or written.
fn io_of_controller(folder: &Path) -> Option<(u64, u64)> {
    let text = read(&folder.join("blkio.throttle.io_service_bytes_recursive"))
        .or_else(|| read(&folder.join("blkio.throttle.io_service_bytes")))?;
    Some((sum_of_lines(&text, "Read"), sum_of_lines(&text, "Write"))).filter(|sums| *sums != (0, 0))
}

#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days of CPU time")]
fn seconds(ticks: u64, per_second: f64) -> f64 {
    ticks as f64 / per_second
}

/// `membership` is `/proc/<pid>/cgroup`, `mounts` is `/proc/self/mounts`.
fn locate(membership: &str, mounts: &str) -> Option<Cgroup> {
    let controller = |name: &str| {
        let path = membership.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            controllers.split(',').any(|c| c == name).then(|| parts.next()).flatten()
        })?;
        let mount = mount_point(mounts, |kind, options| {
            kind == "cgroup" && options.split(',').any(|option| option == name)
        })?;
        Some(join(mount, path))
    };
    let cpu = controller("cpuacct");
    if cpu.is_some() {
        return Some(Cgroup::Split { cpu, blocks: controller("blkio"), memory: controller("memory") });
    }
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mount_point(mounts, |kind, _| kind == "cgroup2")?;
    Some(Cgroup::Unified(join(mount, path)))
}

fn mount_point(mounts: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut parts = line.split(' ').skip(1);
        let (place, kind, options) = (parts.next()?, parts.next()?, parts.next()?);
        wanted(kind, options).then_some(place)
    })
}

fn join(mount: &str, path: &str) -> PathBuf {
    Path::new(mount).join(path.trim_start_matches('/'))
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The number after `name` in lines `name number`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Sum of all `name=number` of lines `8:0 rbytes=1 wbytes=2 ...`.
fn sum_of_pairs(text: &str, name: &str) -> u64 {
    let numbers = text.split_whitespace().filter_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
    numbers.sum()
}

/// Sum of lines `8:0 Read 123`.
fn sum_of_lines(text: &str, name: &str) -> u64 {
    let number = |line: &str| -> Option<u64> {
        let mut parts = line.split_whitespace().skip(1);
        (parts.next()? == name).then(|| parts.next()?.parse().ok()).flatten()
    };
    text.lines().filter_map(number).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_one_has_a_folder_per_controller() {
        let membership = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:blkio:/docker/abc\n0::/x\n";
        let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\n";
        let found = locate(membership, mounts).expect("located");
        assert_eq!(
            found,
            Cgroup::Split {
                cpu: Some("/sys/fs/cgroup/cpu,cpuacct/docker/abc".into()),
                blocks: Some("/sys/fs/cgroup/blkio/docker/abc".into()),
                memory: None,
            }
        );
    }

    #[test]
    fn version_two_has_one_folder() {
        let membership = "0::/system.slice/docker-abc.scope\n";
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let found = locate(membership, mounts).expect("located");
        assert_eq!(found, Cgroup::Unified("/sys/fs/cgroup/system.slice/docker-abc.scope".into()));
    }

    #[test]
    fn numbers_of_both_versions_are_read() {
        assert_eq!(field("usage_usec 1500000\nuser_usec 3\n", "usage_usec"), Some(1_500_000));
        assert_eq!(field("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "oom_kill"), Some(2));
        assert_eq!(sum_of_pairs("8:0 rbytes=1 wbytes=2\n8:16 rbytes=10 wbytes=20\n", "wbytes="), 22);
        assert_eq!(sum_of_lines("8:0 Read 1\n8:0 Write 2\n8:16 Read 4\nTotal 7\n", "Read"), 5);
    }
}
