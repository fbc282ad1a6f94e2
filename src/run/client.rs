//! What this process itself uses while it is a client.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// User and system time of all threads, in seconds.
pub(super) fn cpu_seconds() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// User and system time of all ended processes that this one started, and of what those waited for, in seconds.
pub(super) fn children_cpu_seconds() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[expect(clippy::cast_precision_loss, reason = "seconds of CPU time are far below 2^52")]
fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// Lets all threads of this process run on these CPUs only; `None` gives back those it began with.
///
/// # Errors
/// Says why the CPUs cannot be had.
#[cfg(target_os = "linux")]
pub(super) fn pin(cpus: Option<&str>) -> Result<(), String> {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    static FIRST: std::sync::OnceLock<CpuSet> = std::sync::OnceLock::new();
    let set = match (cpus, FIRST.get()) {
        (None, None) => return Ok(()),
        (None, Some(first)) => *first,
        (Some(list), _) => {
            let own = sched_getaffinity(Pid::from_raw(0)).map_err(|error| error.to_string())?;
            FIRST.get_or_init(|| own);
            let mut set = CpuSet::new();
            for cpu in cpu_numbers(list)? {
                set.set(cpu).map_err(|error| format!("client_cpuset {list}: CPU {cpu}: {error}"))?;
            }
            set
        }
    };
    let wanted = cpus.unwrap_or("as at the start");
    let threads = std::fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
    for thread in threads.flatten() {
        let id = thread.file_name().to_string_lossy().parse().unwrap_or(0);
        sched_setaffinity(Pid::from_raw(id), &set)
            .map_err(|error| format!("client_cpuset {wanted}: {error}"))?;
    }
    Ok(())
}

/// Only Linux pins threads.
#[cfg(not(target_os = "linux"))]
pub(super) fn pin(cpus: Option<&str>) -> Result<(), String> {
    if cpus.is_none() { Ok(()) } else { Err("client_cpuset needs Linux".to_owned()) }
}

/// `0,2-3` as numbers.
#[cfg(target_os = "linux")]
fn cpu_numbers(list: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("client_cpuset `{list}` is no list of CPUs such as `0` or `0,2-3`");
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let from: usize = from.trim().parse().map_err(|_| wrong())?;
        let to: usize = to.trim().parse().map_err(|_| wrong())?;
        if to > 65_535 {
            return Err(wrong());
        }
        cpus.extend(from..=to);
    }
    Ok(cpus)
}

/// Forgets the highest resident memory so far, where the kernel allows it.
pub(super) fn reset_peak_memory() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Highest resident memory since [`reset_peak_memory`], in bytes.
pub(super) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_numbers("0,2-4"), Ok(vec![0, 2, 3, 4]));
        assert!(cpu_numbers("a-b").is_err());
    }

    #[test]
    fn this_process_uses_cpu_and_memory() {
        assert!(cpu_seconds().is_some_and(|seconds| seconds > 0.0));
        assert!(peak_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
