//! What the processes of a cgroup used and how they were held back, from its files (version 1 and 2).
//!
//! The files cost microseconds; the container engine's statistics API, the way out where the files are not visible,
//! costs milliseconds of the engine's own CPU time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::Usage;

/// Where the files of a cgroup are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cgroup {
    /// Version 2: one folder.
    Unified(PathBuf),
    /// Version 1: a folder per controller.
    Split {
        /// Controller `cpuacct`.
        account: Option<PathBuf>,
        /// Controller `cpu`, which may be mounted with it or on its own.
        quota: Option<PathBuf>,
        /// Controller `blkio`.
        blocks: Option<PathBuf>,
        /// Controller `memory`.
        memory: Option<PathBuf>,
    },
}

impl Cgroup {
    /// The cgroup of a process, as this process sees it.
    pub(crate) fn of(pid: i64) -> Option<Self> {
        let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let found = locate(&membership, &mounts)?;
        let exists = match &found {
            Self::Unified(folder) => folder.join("cpu.stat").exists(),
            Self::Split { account, .. } => account.as_ref().is_some_and(|folder| folder.exists()),
        };
        exists.then_some(found)
    }

    /// Resources used so far.
    pub(crate) fn usage(&self) -> Usage {
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
            Self::Split { account, blocks, .. } => {
                let (read_bytes, written_bytes) = account
                    .as_ref()
                    .and_then(|folder| io_of_processes(&folder.join("cgroup.procs")))
                    .or_else(|| blocks.as_ref().and_then(|folder| io_of_controller(folder)))
                    .unzip();
                Usage {
                    cpu_seconds: account
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
    pub(crate) fn memory_kills(&self) -> Option<u64> {
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
            Self::Split { quota, .. } => quota.as_ref().map(|folder| folder.join("cpu.stat")),
        };
        field(&read(&file?)?, "nr_throttled")
    }
}

/// How the processes around this one are held back: in its own cgroup, where local servers live as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnCgroup {
    /// Times a CPU quota held them back, on this cgroup or one above it.
    pub throttled_periods: Option<u64>,
    /// Processes of this cgroup that the kernel killed for want of memory.
    pub memory_kills: Option<u64>,
}

impl OwnCgroup {
    /// The counters of this moment; `None` without cgroups.
    #[must_use]
    pub fn now() -> Self {
        /// A process seldom moves.
        static FILES: LazyLock<Option<OwnFiles>> = LazyLock::new(|| {
            let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
            let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
            Some(OwnFiles::find(&membership, &mounts))
        });
        FILES.as_ref().map(OwnFiles::read).unwrap_or_default()
    }
}

/// Files of this process's cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnFiles {
    /// A quota may be set on any level.
    quotas: Vec<PathBuf>,
    memory: Option<PathBuf>,
}

impl OwnFiles {
    fn find(membership: &str, mounts: &str) -> Self {
        let unified = |file: &str| {
            let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
            Some(levels(mount_point(mounts, |kind, _| kind == "cgroup2")?, path, file))
        };
        let split = |name: &str, file: &str| {
            let path = member_of(membership, name)?;
            let mount = mount_point(mounts, |kind, options| is_controller(kind, options, name))?;
            Some(levels(mount, path, file))
        };
        let quotas = split("cpu", "cpu.stat").or_else(|| unified("cpu.stat")).unwrap_or_default();
        let memory = split("memory", "memory.oom_control")
            // `memory.events` counts what happens in cgroups below as well, such as those of containers.
            .or_else(|| unified("memory.events.local"))
            .and_then(|files| files.into_iter().next());
        Self { quotas, memory }
    }

    fn read(&self) -> OwnCgroup {
        let throttled = self.quotas.iter().filter_map(|file| field(&read(file)?, "nr_throttled"));
        OwnCgroup {
            throttled_periods: throttled.reduce(|sum, more| sum + more),
            memory_kills: self.memory.as_ref().and_then(|file| field(&read(file)?, "oom_kill")),
        }
    }
}

/// A file on every level that is visible here, from the process's own up to the mount. In a container the mount often is its
/// own level, whatever the kernel calls it.
fn levels(mount: &str, path: &str, file: &str) -> Vec<PathBuf> {
    let own = join(mount, path);
    let folders = own.ancestors().take_while(|folder| folder.starts_with(mount));
    folders.map(|folder| folder.join(file)).filter(|file| file.exists()).collect()
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
        let mount = mount_point(mounts, |kind, options| is_controller(kind, options, name))?;
        Some(join(mount, member_of(membership, name)?))
    };
    let account = controller("cpuacct");
    if account.is_some() {
        let (quota, blocks, memory) = (controller("cpu"), controller("blkio"), controller("memory"));
        return Some(Cgroup::Split { account, quota, blocks, memory });
    }
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mount_point(mounts, |kind, _| kind == "cgroup2")?;
    Some(Cgroup::Unified(join(mount, path)))
}

/// The path of a process in the hierarchy of a version 1 controller.
fn member_of<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers.split(',').any(|name| name == controller).then(|| parts.next()).flatten()
    })
}

fn is_controller(kind: &str, options: &str, name: &str) -> bool {
    kind == "cgroup" && options.split(',').any(|option| option == name)
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
                account: Some("/sys/fs/cgroup/cpu,cpuacct/docker/abc".into()),
                quota: Some("/sys/fs/cgroup/cpu,cpuacct/docker/abc".into()),
                blocks: Some("/sys/fs/cgroup/blkio/docker/abc".into()),
                memory: None,
            }
        );
    }

    #[test]
    fn a_quota_is_found_where_its_controller_is_mounted_alone() {
        let membership = "2:cpuacct:/docker/abc\n1:cpu:/docker/abc\n";
        let mounts = "cgroup /c/cpu cgroup rw,cpu 0 0\ncgroup /c/cpuacct cgroup rw,cpuacct 0 0\n";
        let found = locate(membership, mounts).expect("located");
        let Cgroup::Split { account, quota, .. } = found else { panic!("{found:?}") };
        assert_eq!(account, Some("/c/cpuacct/docker/abc".into()));
        assert_eq!(quota, Some("/c/cpu/docker/abc".into()));
    }

    /// A folder with files, as the kernel would show them.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
            fs::write(path, text).expect("file");
        }
        folder
    }

    #[test]
    fn a_quota_above_holds_back_what_is_below() {
        let stat = "nr_periods 9\nnr_throttled 2\n";
        let files = [
            ("cpu.stat", "usage_usec 1\n"),
            ("pod/cpu.stat", stat),
            ("pod/own/cpu.stat", "nr_throttled 5\n"),
            ("pod/memory.events.local", "oom_kill 7\n"),
            ("pod/own/memory.events", "oom_kill 9\n"),
            ("pod/own/memory.events.local", "oom 4\noom_kill 3\n"),
            ("pod/sibling/cpu.stat", "nr_throttled 100\n"),
        ];
        let folder = tree(&files);
        let mounts = format!("cgroup2 {} cgroup2 rw 0 0\n", folder.path().display());
        let found = OwnFiles::find("0::/pod/own\n", &mounts).read();
        assert_eq!(found, OwnCgroup { throttled_periods: Some(7), memory_kills: Some(3) });
    }

    #[test]
    fn version_one_in_a_container_shows_its_own_level_as_the_root() {
        let folder =
            tree(&[("cpu/cpu.stat", "nr_throttled 4\n"), ("memory/memory.oom_control", "oom_kill 1\n")]);
        let root = folder.path().display();
        let mounts =
            format!("c {root}/cpu cgroup rw,cpu,cpuacct 0 0\nc {root}/memory cgroup rw,memory 0 0\n");
        let membership = "2:memory:/docker/x\n1:cpu,cpuacct:/docker/x\n0::/\n";
        let found = OwnFiles::find(membership, &mounts).read();
        assert_eq!(found, OwnCgroup { throttled_periods: Some(4), memory_kills: Some(1) });
    }

    #[test]
    fn without_cgroups_nothing_is_known() {
        assert_eq!(OwnFiles::find("", "").read(), OwnCgroup::default());
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
