//! What else a machine does at a moment, and how it groups processes.

use serde::{Deserialize, Serialize};

use super::tree::Tree;

/// What else the machine did when the run began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StateAtStart {
    /// Processes that worked or waited for a disk, mean of the last minute.
    pub load_average: Option<f64>,
    /// Threads that were on a CPU or waited for one at this moment, without loadlab's own.
    pub busy_threads: Option<u64>,
}

impl StateAtStart {
    /// `0.52 0.58 0.59 3/413 4711`: means of 1, 5 and 15 minutes, busy of all threads, last process (proc(5)).
    pub(super) fn of(tree: &Tree) -> Self {
        let text = tree.read("proc/loadavg").unwrap_or_default();
        let mut words = text.split_whitespace();
        let load_average =
            words.next().and_then(|word| word.parse().ok()).filter(|load: &f64| load.is_finite());
        let busy = words.nth(2).and_then(|word| word.split_once('/')?.0.parse::<u64>().ok());
        // The one that reads this is busy as well.
        Self { load_average, busy_threads: busy.map(|busy| busy.saturating_sub(1)) }
    }
}

/// Version 1 as long as any controller is mounted as such: mixed machines keep their limits there.
pub(super) fn cgroup_version(tree: &Tree) -> Option<u64> {
    let mounts = tree.read("proc/self/mounts")?;
    let kinds: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    if kinds.contains(&"cgroup") { Some(1) } else { kinds.contains(&"cgroup2").then_some(2) }
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_of;
    use super::*;

    #[test]
    fn the_load_is_read() {
        let (_folder, tree) = made_of(&[("proc/loadavg", "1.52 0.58 0.59 3/413 4711\n")]);
        assert_eq!(StateAtStart::of(&tree), StateAtStart { load_average: Some(1.52), busy_threads: Some(2) });
        let (_folder, tree) = made_of(&[("proc/loadavg", "nan x\n")]);
        assert_eq!(StateAtStart::of(&tree), StateAtStart::default());
    }

    #[test]
    fn versions_of_cgroups_are_told_by_their_mounts() {
        let of = |mounts: &str| cgroup_version(&made_of(&[("proc/self/mounts", mounts)]).1);
        assert_eq!(of("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"), Some(2));
        assert_eq!(of("c /c/cpu cgroup rw,cpu 0 0\nc /c/unified cgroup2 rw 0 0\n"), Some(1));
        assert_eq!(of("/dev/a / ext4 rw 0 0\n"), None);
    }
}
