//! What a container's processes used, by the engine's statistics API: the way out where the files of its cgroup are not
//! visible. It costs milliseconds of the engine's own CPU time.

use bollard::models::ContainerStatsResponse;

use crate::environment::Usage;

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
        cpu_seconds: total.map(seconds),
        read_bytes: sum("read"),
        written_bytes: sum("write"),
        throttled_periods: stats
            .cpu_stats
            .as_ref()
            .and_then(|cpu| cpu.throttling_data.as_ref()?.throttled_periods),
        memory_kills: None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days of CPU time")]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
