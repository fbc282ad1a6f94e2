//! Two made-up experiments with different factors. Numbers follow from a formula, so that snapshots stay.

use std::path::Path;

use indexmap::IndexMap;
use jiff::Timestamp;
use loadlab::model::{
    Backend, Blocks, Captured, ClusterFacts, Design, EffectiveSetting, Factor, Guard, Latency, Level,
    Measurement, Outcome, Outside, Phase, PlannedTrial, Pressure, ReadState, Sample, Scalar, Scanned,
    ServerCounters, ServerFacts, Spans, Treatment, TrialRecord, Unit,
};
use loadlab::store::{
    DeviceFacts, EnvironmentChoice, HostFacts, OptionsUsed, RunFolder, RunManifest, SCHEMA_VERSION,
    SpecRecord, ToolVersion,
};

const ROWS: u32 = 20_000;

pub(crate) struct Example {
    pub(crate) manifest: RunManifest,
    pub(crate) records: Vec<TrialRecord>,
}

impl Example {
    /// Writes the run as a runner would, and its Parquet files.
    pub(crate) fn write(&self, results: &Path) -> RunFolder {
        let mut folder = RunFolder::create(results, &self.manifest).unwrap();
        for record in &self.records {
            folder.started(&record.trial, record.attempt).unwrap();
            folder.finished(record).unwrap();
        }
        folder.write_parquet().unwrap();
        folder
    }
}

/// Logged or unlogged, batch 1 or 500: unlogged gains much with large batches and little with small ones.
/// From two blocks on, one trial fails before its first step and one trips a guard.
pub(crate) fn unlogged(blocks: u32) -> Example {
    let storage = factor("storage", vec![plain("logged"), plain("unlogged")]);
    let batch = factor("batch", vec![level(Scalar::Int(1)), level(Scalar::Int(500))]);
    let mut example = example("unlogged", "20170608-101530-aaaaaa", design(vec![storage, batch], blocks));
    for record in &mut example.records {
        let [storage, batch] = record.trial.treatment.levels[..] else { unreachable!() };
        let gain = [[1.0, 1.05], [1.0, 1.6]][batch][storage];
        let speed = [5_000.0, 100_000.0][batch] * gain * noise(record);
        let mut insert = load(1, "insert", speed);
        insert.counters.wal_bytes = Some([9_000_000, 120_000][storage]);
        insert.batch_latency = Some(Latency { count: 40, p50: 0.001, p90: 0.002, p99: 0.004, max: 0.1 });
        record.measurements = vec![step(0, "create", "create", 0.004), insert];
        record.samples = (1..=3).map(|second| sample("insert", second)).collect();
    }
    let Some(failed) = example.records.get_mut(5) else { return example };
    failed.outcome = Outcome::EnvironmentFault;
    failed.error =
        Some("cannot connect: postgres://loadlab:canary@localhost/loadlab password=canary".to_owned());
    (failed.server, failed.measurements, failed.samples) = (None, Vec::new(), Vec::new());
    let guarded = example.records.last_mut().unwrap();
    guarded.measurements[1].guards = vec![Guard::CheckpointInWindow];
    example
}

/// COPY by format, one or three clients (a named level), and a read; not durable.
pub(crate) fn formats(blocks: u32) -> Example {
    let format = factor("format", vec![plain("text"), plain("csv"), plain("binary")]);
    let named = |name: &str, clients| Level {
        name: name.to_owned(),
        value: None,
        values: IndexMap::from([("clients".to_owned(), Scalar::Int(clients))]),
    };
    let load_factor = factor("load", vec![named("one", 1), named("three into one", 3)]);
    let mut example =
        example("copy-formats", "20260102-000000-bbbbbb", design(vec![format, load_factor], blocks));
    for record in &mut example.records {
        let [format, clients] = record.trial.treatment.levels[..] else { unreachable!() };
        let speed = 400_000.0 * [1.0, 0.9, 1.3][format] * [1.0, 2.0][clients] * noise(record);
        let mut copy = load(1, "copy", speed);
        copy.spans.flush = Some(0.25);
        let mut select = load(2, "select", speed * 2.0);
        "read".clone_into(&mut select.kind);
        record.measurements = vec![step(0, "create", "create", 0.005), copy, select];
        if let Some(server) = &mut record.server {
            server.durable = false;
        }
    }
    example
}

/// One trial with one step in which everything is known.
pub(crate) fn complete() -> Example {
    let mut example = example("complete", "20260102-000000-cccccc", design(Vec::new(), 1));
    let text = Some("x".to_owned());
    let latency = Some(Latency { count: 3, p50: 0.1, p90: 0.2, p99: 0.3, max: 0.4 });
    let seconds = Some(0.5);
    let record = &mut example.records[0];
    (record.error, record.error_sqlstate) = (text.clone(), text.clone());
    record.server.as_mut().unwrap().cpuset.clone_from(&text);
    record.samples = vec![sample("copy", 1)];
    let spans = Spans {
        connect: seconds,
        prepare: seconds,
        seconds: 1.0,
        transfer: seconds,
        commit: seconds,
        first_row: seconds,
        flush: seconds,
        settle: seconds,
        verify: seconds,
    };
    let counters = ServerCounters {
        wal_bytes: Some(1),
        wal_records: Some(1),
        wal_full_page_images: Some(1),
        table_bytes: Some(1),
        index_bytes: Some(1),
        toast_bytes: Some(1),
        checkpoints_timed: Some(1),
        checkpoints_requested: Some(1),
        autovacuum_runs: Some(1),
        server_cpu_seconds: seconds,
        server_read_bytes: Some(1),
        server_written_bytes: Some(1),
    };
    record.measurements = vec![Measurement {
        error: text.clone(),
        checksum: text.clone(),
        checksum_expected: text.clone(),
        client_cpu_seconds: seconds,
        client_peak_memory_bytes: Some(1),
        spans,
        counters,
        batch_latency: latency,
        commit_latency: latency,
        scheduled_latency: latency,
        outside: Some(Outside { warm_up: 1.0, rows_warm_up: 1, rows_after: 1 }),
        longest_gap: seconds,
        stalled_share: seconds,
        content_unverified: text.clone(),
        read: Some(ReadState {
            cached_share: seconds,
            buffered_share: seconds,
            all_visible_share: seconds,
            all_frozen_share: seconds,
            cache_note: text.clone(),
            session_settings: text.iter().cloned().collect(),
        }),
        scan: Some(Scanned::default()),
        captures: vec![Captured { name: "tps".to_owned(), unit: Unit::PerSecond, value: 7.5 }],
        output: Some("output/000000-0-copy".to_owned()),
        pressure: Pressure {
            busiest_client_thread_share: seconds,
            client_wait_share: seconds,
            stolen_share: seconds,
            swapped_bytes: Some(1),
            throttled_periods: Some(1),
            client_throttled_periods: Some(1),
            memory_kills: Some(1),
            clock_disagreement_seconds: seconds,
            other_runs: Some(1),
            other_cpus: seconds,
            cpu_pressure_share: seconds,
            io_pressure_share: seconds,
            memory_pressure_share: seconds,
        },
        ..load(0, "copy", 1.0)
    }];
    describe(&mut example.manifest.host);
    example
}

/// Everything that may be known of a machine.
fn describe(host: &mut HostFacts) {
    let text = Some("x".to_owned());
    (host.kernel, host.cpu_model, host.filesystem, host.memory_bytes) =
        (text.clone(), text.clone(), text.clone(), Some(1));
    (host.virtualisation, host.cpu_governor, host.transparent_huge_pages) =
        (text.clone(), text.clone(), text);
    (host.turbo, host.swap_bytes, host.state_at_start.load_average) = (Some(true), Some(0), Some(0.5));
    host.data_devices = vec![DeviceFacts {
        backend: Backend::Local,
        filesystem: Some("ext4".to_owned()),
        kind: Some("nvme".to_owned()),
        rotational: Some(false),
        write_cache: Some("write back".to_owned()),
    }];
}

fn factor(name: &str, levels: Vec<Level>) -> Factor {
    Factor { name: name.to_owned(), levels }
}

fn plain(name: &str) -> Level {
    level(Scalar::Text(name.to_owned()))
}

fn level(value: Scalar) -> Level {
    Level { name: value.to_string(), value: Some(value), values: IndexMap::new() }
}

fn design(factors: Vec<Factor>, blocks: u32) -> Design {
    let blocks = Blocks { min: blocks, max: blocks, until: None, budget: None };
    Design { factors, include: Vec::new(), exclude: Vec::new(), blocks, seed: 20_170_608 }
}

/// Between 0.97 and 1.03, the same in every run of the tests.
fn noise(record: &TrialRecord) -> f64 {
    let mixed = (record.trial.number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
    let hash = hash % 1_000;
    0.97 + 0.06 * f64::from(u32::try_from(hash).unwrap()) / 1_000.0
}

fn example(name: &str, run: &str, design: Design) -> Example {
    let mut treatments = vec![Vec::new()];
    for factor in &design.factors {
        let longer = treatments.iter().flat_map(|levels: &Vec<usize>| {
            (0..factor.levels.len()).map(move |level| levels.iter().copied().chain([level]).collect())
        });
        treatments = longer.collect::<Vec<Vec<usize>>>();
    }
    let mut records = Vec::new();
    for block in 0..design.blocks.max {
        for (position, levels) in treatments.iter().enumerate() {
            let trial = PlannedTrial {
                number: records.len() as u64,
                block,
                position: u32::try_from(position).unwrap(),
                treatment_index: position as u64,
                treatment: Treatment { levels: levels.clone() },
                control: false,
            };
            records.push(record(&design, trial));
        }
    }
    Example { manifest: manifest(name, run, design, records.len() as u64), records }
}

fn record(design: &Design, trial: PlannedTrial) -> TrialRecord {
    let chosen = design.describe(&trial.treatment);
    let factors = chosen.into_iter().map(|(factor, level)| {
        (factor.to_owned(), level.value.clone().unwrap_or_else(|| Scalar::Text(level.name.clone())))
    });
    TrialRecord {
        attempt: 0,
        treatment: design.label(&trial.treatment),
        factors: factors.collect(),
        started_at: Timestamp::from_second(1_496_916_930 + 2 * i64::try_from(trial.number).unwrap()).unwrap(),
        trial,
        seconds: 1.75,
        server_start_seconds: Some(0.0625),
        server: Some(server()),
        outcome: Outcome::Ok,
        error: None,
        error_sqlstate: None,
        settings: vec![EffectiveSetting {
            name: "max_wal_size".to_owned(),
            requested: Some("8GB".to_owned()),
            effective: "8GB".to_owned(),
            server_default: Some("1GB".to_owned()),
            source: "configuration file".to_owned(),
            in_force: true,
        }],
        measurements: Vec::new(),
        samples: Vec::new(),
    }
}

fn server() -> ServerFacts {
    ServerFacts {
        cluster: Some(ClusterFacts {
            block_size: 8192,
            wal_segment_size: 16 << 20,
            data_checksums: true,
            encoding: "UTF8".to_owned(),
            locale_provider: "libc".to_owned(),
            locale: "C".to_owned(),
        }),
        backend: Backend::Local,
        environment: "postgres".to_owned(),
        version_num: 180_001,
        identity: "18.1 sha256:0123".to_owned(),
        fresh: "overlay".to_owned(),
        storage: "ext4".to_owned(),
        connection: "socket".to_owned(),
        cpuset: None,
        client_cpuset: Some("1".to_owned()),
        durable: true,
        sync_seconds: Some(0.000_3),
    }
}

fn step(index: u32, name: &str, kind: &str, seconds: f64) -> Measurement {
    Measurement {
        step_index: index,
        step: name.to_owned(),
        kind: kind.to_owned(),
        parameters: "{}".to_owned(),
        table: Some("t".to_owned()),
        clients: 1,
        outcome: Some(Outcome::Ok),
        spans: Spans { seconds, ..Spans::default() },
        ..Measurement::default()
    }
}

fn load(index: u32, name: &str, rows_per_second: f64) -> Measurement {
    let rows = Some(u64::from(ROWS));
    let counters =
        ServerCounters { wal_bytes: Some(4_500_000), table_bytes: Some(2_000_000), ..Default::default() };
    Measurement {
        method: name.to_owned(),
        rows,
        rows_expected: rows,
        rows_in_table: rows,
        payload_bytes: Some(1_000_000),
        counters,
        ..step(index, name, "load", f64::from(ROWS) / rows_per_second)
    }
}

fn sample(step: &str, second: u32) -> Sample {
    let rows = u64::from(ROWS * second / 3);
    Sample {
        step_index: 1,
        step: step.to_owned(),
        client: 0,
        elapsed_seconds: f64::from(second),
        rows,
        phase: Phase::Measure,
    }
}

fn manifest(experiment: &str, run: &str, design: Design, trials: u64) -> RunManifest {
    RunManifest {
        schema_version: SCHEMA_VERSION,
        experiment: experiment.to_owned(),
        run: run.to_owned(),
        question: "What does it cost | or gain?\n".to_owned(),
        smoke: false,
        spec: SpecRecord {
            file: format!("{experiment}.yaml"),
            text: format!("experiment: {experiment}\n"),
            resolved: serde_json::json!({"experiment": experiment}),
            hash: "0123456789abcdef".to_owned(),
            options: OptionsUsed { profile: Some("quick".to_owned()), ..OptionsUsed::default() },
        },
        inputs: Vec::new(),
        rerun_of: None,
        tool: ToolVersion { version: "0.1.0".to_owned(), commit: "unknown".to_owned() },
        seed: design.seed,
        order_digest: "fedcba".to_owned(),
        trials_planned: trials,
        controls: None,
        design,
        claims: Vec::new(),
        environments: vec![EnvironmentChoice {
            environment: "postgres".to_owned(),
            backend: Backend::Local,
            why: "local server 18.1, because no container engine answers".to_owned(),
        }],
        host: HostFacts {
            os: "linux".to_owned(),
            architecture: "x86_64".to_owned(),
            cores: Some(2),
            ..Default::default()
        },
        started_at: "2017-06-08T10:15:30Z".parse().unwrap(),
        ended_by_rule: None,
        ended_at: None,
    }
}
