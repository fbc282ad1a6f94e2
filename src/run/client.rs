//! What this process itself uses while it is a client.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// User and system time of all threads, in seconds.
pub(super) fn cpu_seconds() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[expect(clippy::cast_precision_loss, reason = "seconds of CPU time are far below 2^52")]
fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
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
