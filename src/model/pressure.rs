//! What else happened on the machine while something was measured.

use serde::{Deserialize, Serialize};

/// What else happened on the machine during a step's window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Pressure {
    /// Share of the time that the client's busiest thread was on a CPU, 0 to 1.
    pub busiest_client_thread_share: Option<f64>,
    /// Share of looks at the server's working sessions that found one waiting for its client, 0 to 1.
    pub client_wait_share: Option<f64>,
    /// Share of the machine's CPU time that a hypervisor gave to others, 0 to 1.
    pub stolen_share: Option<f64>,
    /// Bytes swapped in and out by the whole machine.
    pub swapped_bytes: Option<u64>,
    /// Times the server's cgroup was held back by its CPU quota.
    pub throttled_periods: Option<u64>,
    /// Times the cgroup of loadlab itself was held back by a CPU quota; local servers live in it as well.
    #[serde(default)]
    pub client_throttled_periods: Option<u64>,
    /// Processes of the server's cgroup that the kernel killed for want of memory.
    pub memory_kills: Option<u64>,
    /// How far wall clock and monotonic clock moved apart, seconds.
    pub clock_disagreement_seconds: Option<f64>,
    /// Other runs of loadlab that were at work when the step began or ended.
    #[serde(default)]
    pub other_runs: Option<u64>,
    /// CPUs that neither the server nor loadlab kept busy, on average over the window: other programs, and the kernel's own work.
    #[serde(default)]
    pub other_cpus: Option<f64>,
    /// Share of the time that some task of the machine waited for a CPU, 0 to 1.
    #[serde(default)]
    pub cpu_pressure_share: Option<f64>,
    /// The same for a device.
    #[serde(default)]
    pub io_pressure_share: Option<f64>,
    /// The same for memory.
    #[serde(default)]
    pub memory_pressure_share: Option<f64>,
}
