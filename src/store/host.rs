//! What the machine is, coarsely: enough to judge a number, not enough to identify a person. No host name.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Facts about the machine that ran the trials. `None`: not known here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `linux`, `macos`, ...
    pub os: String,
    /// Processor architecture, `x86_64`.
    pub architecture: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Model of the first CPU.
    pub cpu_model: Option<String>,
    /// CPUs this process may use.
    pub cores: Option<u64>,
    /// Physical memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Kind of the file system under the results folder.
    pub filesystem: Option<String>,
}

impl HostFacts {
    /// Reads what can be read without asking for rights; `folder` is where results are written.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let names = nix::sys::utsname::uname().ok();
        Self {
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: names.and_then(|names| names.release().to_str().map(str::to_owned)),
            cpu_model: read("/proc/cpuinfo").and_then(|text| value_of(&text, "model name")),
            cores: std::thread::available_parallelism().ok().and_then(|n| u64::try_from(n.get()).ok()),
            memory_bytes: read("/proc/meminfo").and_then(|text| memory(&text)),
            filesystem: read("/proc/self/mounts")
                .and_then(|text| filesystem(&text, &fs::canonicalize(folder).ok()?)),
        }
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The first `name : value` line.
fn value_of(text: &str, name: &str) -> Option<String> {
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

fn memory(text: &str) -> Option<u64> {
    let value = value_of(text, "MemTotal")?;
    value.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Kind of the mount with the longest matching path; later mounts cover earlier ones.
fn filesystem(mounts: &str, folder: &Path) -> Option<String> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let under =
        fields.filter(|fields| fields.len() > 2 && folder.starts_with(fields[1].replace("\\040", " ")));
    under.max_by_key(|fields| fields[1].len()).map(|fields| fields[2].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_parsed() {
        assert_eq!(memory("MemFree: 1 kB\nMemTotal:       2048 kB\n"), Some(2_097_152));
        assert_eq!(value_of("x\nmodel name\t: A B\n", "model name"), Some("A B".to_owned()));
        let mounts = "overlay / overlay rw 0 0\n/dev/a /data ext4 rw 0 0\n/dev/b /dat xfs rw 0 0\n";
        assert_eq!(filesystem(mounts, Path::new("/data/results")), Some("ext4".to_owned()));
        assert_eq!(filesystem(mounts, Path::new("/home")), Some("overlay".to_owned()));
    }

    #[test]
    fn reading_never_fails() {
        assert!(!HostFacts::read(Path::new("/does/not/exist")).os.is_empty());
    }
}
