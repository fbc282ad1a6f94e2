//! What the machine is, coarsely: enough to judge a number, not enough to identify a person. No host name, no serial numbers.
//!
//! Everything is read from files that anybody may read; what is not there is not known. So it is on other systems than Linux.

mod cpu;
mod device;
mod memory;
mod state;
mod tree;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use device::DeviceFacts;
pub use state::StateAtStart;
use tree::Tree;

/// Facts about the machine that ran the trials. `None`: not known here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// Which rule sets the CPUs' frequencies, `performance`; several with commas where CPUs differ.
    #[serde(default)]
    pub cpu_governor: Option<String>,
    /// Whether CPUs may run above their nominal frequency.
    #[serde(default)]
    pub turbo: Option<bool>,
    /// Groups of CPUs with memory of their own.
    #[serde(default)]
    pub numa_nodes: Option<u64>,
    /// `none`, or the kind of virtual machine: `kvm`, `vmware`, `hyper-v`, `xen`, ..., `virtual machine`.
    #[serde(default)]
    pub virtualisation: Option<String>,
    /// Whether loadlab itself runs in a container.
    #[serde(default)]
    pub in_container: Option<bool>,
    /// Version of control groups: 1 or 2.
    #[serde(default)]
    pub cgroup_version: Option<u64>,
    /// Mode of transparent huge pages: `always`, `madvise` or `never`.
    #[serde(default)]
    pub transparent_huge_pages: Option<String>,
    /// Size of the swap space in bytes, 0 for none.
    #[serde(default)]
    pub swap_bytes: Option<u64>,
    /// What servers' data lie on, by backend.
    #[serde(default)]
    pub data_devices: Vec<DeviceFacts>,
    /// Version of the container engine, where one was used.
    #[serde(default)]
    pub container_engine: Option<String>,
    /// What else the machine did when the run began: it changes from run to run.
    #[serde(default)]
    pub state_at_start: StateAtStart,
}

impl HostFacts {
    /// Reads what can be read without asking for rights; `folder` is where results are written.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        Self::of(&Tree::machine(), folder)
    }

    fn of(tree: &Tree, folder: &Path) -> Self {
        let names = nix::sys::utsname::uname().ok();
        Self {
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: names.and_then(|names| names.release().to_str().map(str::to_owned)),
            cpu_model: cpu::model(tree),
            cores: std::thread::available_parallelism().ok().and_then(|n| u64::try_from(n.get()).ok()),
            memory_bytes: memory::total(tree),
            filesystem: device::filesystem(tree, folder),
            cpu_governor: cpu::governor(tree),
            turbo: cpu::turbo(tree),
            numa_nodes: cpu::numa_nodes(tree),
            virtualisation: cpu::virtualisation(tree),
            in_container: tree
                .is_linux()
                .then(|| tree.exists(".dockerenv") || tree.exists("run/.containerenv")),
            cgroup_version: state::cgroup_version(tree),
            transparent_huge_pages: memory::huge_pages(tree),
            swap_bytes: memory::swap(tree),
            data_devices: Vec::new(),
            container_engine: None,
            state_at_start: StateAtStart::of(tree),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_never_fails() {
        assert!(!HostFacts::read(Path::new("/does/not/exist")).os.is_empty());
        let empty = tempfile::tempdir().expect("folder");
        let facts = HostFacts::of(&Tree::at(empty.path()), Path::new("/does/not/exist"));
        let known = HostFacts {
            os: facts.os.clone(),
            architecture: facts.architecture.clone(),
            kernel: facts.kernel.clone(),
            cores: facts.cores,
            ..HostFacts::default()
        };
        assert_eq!(facts, known, "what has no file is not known");
    }

    #[test]
    fn facts_of_older_runs_are_read() {
        let old = r#"{"os":"linux","architecture":"x86_64","kernel":null,"cpu_model":null,"cores":2,"memory_bytes":1,"filesystem":null}"#;
        let facts: HostFacts = serde_json::from_str(old).expect("readable");
        assert_eq!((facts.cores, facts.turbo, facts.data_devices.len()), (Some(2), None, 0));
    }
}
