//! What a trial gave: facts, measurements, samples. Serialised into the journal; `store` turns it into Parquet.
//!
//! `None` means "not known here" (a counter that the version or the machine does not have); it is never zero in disguise.
//! No float in here is NaN or infinite: a rate over a span of zero is `None`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Backend, Outside, PlannedTrial, Pressure, ReadState, Sample, Scalar, Scanned, Unit};

/// Everything one trial left behind, failed or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Which trial.
    pub trial: PlannedTrial,
    /// 0 for the first attempt; a trial lost to a kill is redone with the next number.
    pub attempt: u32,
    /// Label of the treatment, `storage=logged batch=500`.
    pub treatment: String,
    /// Factor name and the level's value (its name for named levels), in factor order.
    pub factors: Vec<(String, Scalar)>,
    /// Wall-clock label; never used for a span.
    pub started_at: Timestamp,
    /// Trial as a whole: from launching the server to having removed it.
    pub seconds: f64,
    /// Launch to the second answered query, seconds; outside every step's span.
    pub server_start_seconds: Option<f64>,
    /// Facts about the server, once it answered.
    pub server: Option<ServerFacts>,
    /// How the trial ended.
    pub outcome: Outcome,
    /// What went wrong, with its cause chain; passwords removed.
    pub error: Option<String>,
    /// SQLSTATE of the error, when the server sent one.
    pub error_sqlstate: Option<String>,
    /// Settings that were asked for or differ from the server's default.
    pub settings: Vec<EffectiveSetting>,
    /// One per step that was started.
    pub measurements: Vec<Measurement>,
    /// Time series, all steps.
    pub samples: Vec<Sample>,
}

/// How a trial or step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Done and verified.
    Ok,
    /// Ended with an error, or the rows are not what was sent.
    Failed,
    /// A deadline passed.
    TimedOut,
    /// The server could not be launched or died.
    EnvironmentFault,
    /// Ended by the user.
    Cancelled,
    /// Left out: this machine does not have what the experiment says it needs.
    NotRun,
}

impl Outcome {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::EnvironmentFault => "environment_fault",
            Self::Cancelled => "cancelled",
            Self::NotRun => "not_run",
        }
    }
}

/// A condition that makes a number invalid or doubtful. Guarded trials are kept, shown and never averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// A setting that was asked for is not in force.
    SettingNotInForce,
    /// The postmaster's start time changed during the trial.
    ServerRestarted,
    /// Autovacuum or autoanalyze worked on a table of the trial inside a step.
    AutovacuumInWindow,
    /// A checkpoint that was not ours began or ended inside a step.
    CheckpointInWindow,
    /// Rows counted in the table are not the rows sent.
    RowsWrong,
    /// The content checksum is not the generator's.
    ChecksumWrong,
    /// A thread of the client was busy all the time, or the server waited for the client: the number is the client's.
    ClientBound,
    /// The server's cgroup was held back by its CPU quota.
    Throttled,
    /// The kernel killed a process of the server for want of memory.
    OutOfMemoryKill,
    /// The machine swapped.
    Swapped,
    /// A hypervisor gave the machine's CPU time to others.
    CpuStolen,
    /// Wall clock and monotonic clock moved apart.
    ClockDisagrees,
    /// A read was to begin without anything in the caches, but did not, or it cannot be known.
    CacheNotCold,
    /// A read was to begin with everything in a cache, but did not.
    CacheNotWarm,
    /// Synchronous commits are faster than any disk, and the experiment did not ask for that: what was written is not safe.
    SyncTooFast,
    /// Another run of loadlab was at work on the machine.
    AnotherRun,
}

impl Guard {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SettingNotInForce => "setting_not_in_force",
            Self::ServerRestarted => "server_restarted",
            Self::AutovacuumInWindow => "autovacuum_in_window",
            Self::CheckpointInWindow => "checkpoint_in_window",
            Self::RowsWrong => "rows_wrong",
            Self::ChecksumWrong => "checksum_wrong",
            Self::ClientBound => "client_bound",
            Self::Throttled => "throttled",
            Self::OutOfMemoryKill => "out_of_memory_kill",
            Self::Swapped => "swapped",
            Self::CpuStolen => "cpu_stolen",
            Self::ClockDisagrees => "clock_disagrees",
            Self::CacheNotCold => "cache_not_cold",
            Self::CacheNotWarm => "cache_not_warm",
            Self::SyncTooFast => "sync_too_fast",
            Self::AnotherRun => "another_run",
        }
    }
}

/// What the server is, as far as the trial saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Backend that was taken.
    pub backend: Backend,
    /// Name of the environment.
    pub environment: String,
    /// `server_version_num`.
    pub version_num: i32,
    /// Path-free identity of the binaries or image (image id, or version and sha256 of `postgres`).
    pub identity: String,
    /// How the data directory was made fresh: `overlay`, `copy`, `initdb`, `baked image`, ...
    pub fresh: String,
    /// File system or volume kind under the data directory.
    pub storage: String,
    /// `socket`, `address` or `published`.
    pub connection: String,
    /// CPUs of the server, if limited.
    pub cpuset: Option<String>,
    /// CPUs of the client, if limited.
    #[serde(default)]
    pub client_cpuset: Option<String>,
    /// False when `fsync`, `full_page_writes` or `synchronous_commit` is off, or the storage is memory.
    pub durable: bool,
    /// What a synchronous commit of almost nothing takes longer than one that is not synchronous, seconds (median);
    /// `None`: not known.
    #[serde(default)]
    pub sync_seconds: Option<f64>,
    /// What was fixed when the server was compiled and its cluster made, as the server itself says it.
    #[serde(default)]
    pub cluster: Option<ClusterFacts>,
}

/// Properties of a cluster that no setting can change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterFacts {
    /// Bytes of a block.
    pub block_size: u32,
    /// Bytes of a WAL segment.
    pub wal_segment_size: u64,
    /// Whether pages carry checksums.
    pub data_checksums: bool,
    /// Encoding of the trial's database.
    pub encoding: String,
    /// `libc`, `icu` or `builtin`, of the trial's database.
    pub locale_provider: String,
    /// The locale that text is compared by: the provider's.
    pub locale: String,
}

/// One server setting of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectiveSetting {
    /// Name.
    pub name: String,
    /// As asked for in the files; `None`: not asked for.
    pub requested: Option<String>,
    /// As the server reports it (`SHOW`).
    pub effective: String,
    /// The server's built-in default as its catalogue has it, with the unit (`16384 x 8kB`), if it has one.
    pub server_default: Option<String>,
    /// `source` of `pg_settings`.
    pub source: String,
    /// False when the requested value is not in force.
    pub in_force: bool,
}

/// What one step of one trial gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Measurement {
    /// Place in the trial, from 0.
    pub step_index: u32,
    /// Name of the step.
    pub step: String,
    /// Which repetition of the step inside the trial, from 0.
    #[serde(default)]
    pub repetition: u32,
    /// `create`, `index`, `sql`, `load`, `read`, `command`.
    pub kind: String,
    /// `insert`, `copy`, `select`, `copy_out`; empty for other kinds.
    pub method: String,
    /// The bound parameters of the step as JSON text.
    pub parameters: String,
    /// SQL name(s) of the table, if the step has one.
    pub table: Option<String>,
    /// Parallel connections.
    pub clients: u32,
    /// `None` while no outcome was reached (never stored so).
    pub outcome: Option<Outcome>,
    /// What went wrong.
    pub error: Option<String>,
    /// Tripped guards, sorted, without repeats.
    pub guards: Vec<Guard>,
    /// Spans of the step.
    pub spans: Spans,
    /// Rows the step was to move.
    pub rows_expected: Option<u64>,
    /// Rows the client sent or received.
    pub rows: Option<u64>,
    /// Rows in the table at verification.
    pub rows_in_table: Option<u64>,
    /// Content checksum according to the generator (hex).
    pub checksum_expected: Option<String>,
    /// Content checksum of the table or of the decoded values (hex).
    pub checksum: Option<String>,
    /// Why the content was not compared with the generator, where it could not be.
    #[serde(default)]
    pub content_unverified: Option<String>,
    /// Bytes of row data that went over the connection or lay in the file.
    pub payload_bytes: Option<u64>,
    /// CPU time of this process, all threads, within `spans.seconds`; of a client program and what it waited for.
    pub client_cpu_seconds: Option<f64>,
    /// Highest resident memory of this process during the step.
    pub client_peak_memory_bytes: Option<u64>,
    /// Server counters over the step, up to the last span.
    pub counters: ServerCounters,
    /// Time per round trip of a batch (insert), COPY statement (copy) or chunk of rows (portal fetch), seconds.
    pub batch_latency: Option<Latency>,
    /// Time per COMMIT, seconds.
    pub commit_latency: Option<Latency>,
    /// Time per batch from its intended start, seconds; only with a rate.
    #[serde(default)]
    pub scheduled_latency: Option<Latency>,
    /// Rows of a load by duration that were committed outside its window.
    #[serde(default)]
    pub outside: Option<Outside>,
    /// Longest time without an acknowledged row within `spans.seconds`; `None` where batches are too few to know.
    #[serde(default)]
    pub longest_gap: Option<f64>,
    /// Share of `spans.seconds` in which rows came at under a tenth of the median rate; `None` as above.
    #[serde(default)]
    pub stalled_share: Option<f64>,
    /// Numbers found in what a client program printed, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Captured>,
    /// Where in the run's folder a client program's output is kept, without `.stdout` and `.stderr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What else happened on the machine.
    #[serde(default)]
    pub pressure: Pressure,
    /// What a read met (reads).
    #[serde(default)]
    pub read: Option<ReadState>,
    /// What a scan by the server did (reads of method `scan`).
    #[serde(default)]
    pub scan: Option<Scanned>,
}

/// A number found in what a client program printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Captured {
    /// Name; the metric is `<step>.<name>`.
    pub name: String,
    /// Unit, as declared.
    pub unit: Unit,
    /// As printed; finite.
    pub value: f64,
}

/// Spans on the monotonic clock, in seconds. Set-up (connect, prepare) lies outside `seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spans {
    /// Opening the connections.
    pub connect: Option<f64>,
    /// Preparing statements, writing server files.
    pub prepare: Option<f64>,
    /// From the first BEGIN to the last acknowledged COMMIT, the headline: transfer + commit.
    /// For `create`, `index` and `sql`: all statements.
    pub seconds: f64,
    /// Until the last row was accepted.
    pub transfer: Option<f64>,
    /// Sum of COMMIT round trips on the slowest client, contained in `seconds`.
    pub commit: Option<f64>,
    /// From asking to the first row (reads).
    pub first_row: Option<f64>,
    /// CHECKPOINT after the commit.
    pub flush: Option<f64>,
    /// VACUUM (ANALYZE) after that.
    pub settle: Option<f64>,
    /// Verification, outside every other span.
    pub verify: Option<f64>,
}

/// Deltas of server counters over a step; sizes are absolute, after it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerCounters {
    /// WAL bytes by LSN difference.
    pub wal_bytes: Option<u64>,
    /// WAL records.
    pub wal_records: Option<u64>,
    /// Full-page images.
    pub wal_full_page_images: Option<u64>,
    /// Main fork, free space and visibility map of the table(s).
    pub table_bytes: Option<u64>,
    /// Indexes of the table(s).
    pub index_bytes: Option<u64>,
    /// TOAST table and its index.
    pub toast_bytes: Option<u64>,
    /// Checkpoints begun by time or WAL volume.
    pub checkpoints_timed: Option<u64>,
    /// Checkpoints asked for, without loadlab's own.
    pub checkpoints_requested: Option<u64>,
    /// Autovacuum and autoanalyze runs on the trial's tables.
    pub autovacuum_runs: Option<u64>,
    /// CPU time of all server processes.
    pub server_cpu_seconds: Option<f64>,
    /// Bytes the server caused to be read from the block layer.
    pub server_read_bytes: Option<u64>,
    /// Bytes the server caused to be written to the block layer.
    pub server_written_bytes: Option<u64>,
}

/// Percentiles of a latency, in seconds (HDR histogram, 3 significant digits).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}
