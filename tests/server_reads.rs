//! What a read meets: cold, warm and settled tables, hint bits, shares by key, numbers stored two ways.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loadlab::engine::postgres::Endpoint;
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::{Launch, Provider};
use loadlab::model::{
    ConnectionPath, EnvironmentSpec, FreshMethod, Guard, Measurement, Outcome, TrialRecord,
};

use crate::lab::{Lab, Run, Server, step};
use crate::server_local::environment;

/// Runs an experiment of these factors, tables and steps to a good end.
fn run(lab: &Lab, server: Server, text: &str) -> Run {
    lab.experiment(&format!(
        "experiment: reads\nquestion: What does a read meet?\nenvironment: postgres\n\
         server: {{settings: {{autovacuum: off}}}}\n{text}"
    ));
    let said = lab.run(server, &[]);
    let run = lab.find().unwrap_or_else(|| panic!("{}", said.stderr));
    for record in run.records() {
        assert_eq!(record.outcome, Outcome::Ok, "{}: {:?}", record.treatment, record.error);
    }
    said.ended_with(0);
    run
}

/// No step tripped a guard but the one named. How busy the machine is must not matter.
#[track_caller]
fn guards(record: &TrialRecord, except: &[(&str, Guard)]) {
    for measurement in &record.measurements {
        let expected: Vec<Guard> =
            except.iter().filter(|(step, _)| *step == measurement.step).map(|(_, guard)| *guard).collect();
        let ours = |guard: &&Guard| {
            guard.voids_trial()
                || matches!(
                    guard,
                    Guard::CacheNotCold
                        | Guard::CacheNotWarm
                        | Guard::CheckpointInWindow
                        | Guard::AutovacuumInWindow
                )
        };
        let found: Vec<Guard> = measurement.guards.iter().filter(ours).copied().collect();
        assert_eq!(found, expected, "{}: {:?}", measurement.step, measurement.read);
    }
}

fn share(share: Option<f64>) -> f64 {
    share.expect("known here")
}

const PLAIN: &str = "
tables:
  t:
    ddl: CREATE TABLE t (id integer, name text)
    rows: 30_000
    values: {id: {sequence: {start: -50}}, name: {text: {length: 40}}}
";

/// The author of the COPY FREEZE post: \"the first read after a plain COPY sets hint bits and so writes\".
fn hint_bits(server: Server) {
    if !server.is_here() {
        return;
    }
    let text = format!(
        "design: {{blocks: 1, factors: {{freeze: [false, true]}}}}\n{PLAIN}
steps:
  - create: t
  - load: {{table: t, method: {{copy: {{same_transaction: truncate, freeze: \"{{{{ freeze }}}}\"}}}}}}
  - read: {{name: first_scan, table: t, method: scan}}
  - read: {{name: second_scan, table: t, method: {{scan: {{}}}}, columns: [name]}}
  - read: {{name: settled, table: t, method: scan, state: settled, clients: 2}}
"
    );
    let lab = Lab::new();
    let run = run(&lab, server, &text);
    let records = run.records();
    assert_eq!(records.len(), 2);
    for record in &records {
        guards(record, &[]);
        let frozen = record.treatment == "freeze=true";
        let (first, second) = (step(record, "first_scan"), step(record, "second_scan"));
        let settled = step(record, "settled");
        for scan in [first, second, settled] {
            assert_eq!((scan.rows, scan.payload_bytes), (Some(30_000), Some(0)), "no rows travel");
            assert_eq!(scan.spans.first_row, None);
        }
        let pages = |scan: &Measurement| scan.scan.expect("a scan");
        let all = pages(first).pages_hit + pages(first).pages_read;
        assert!(all > 200, "{:?}", pages(first));
        let hint_bits = if frozen { 0 } else { all };
        assert_eq!(pages(first).pages_dirtied, hint_bits, "{}", record.treatment);
        assert_eq!(pages(second).pages_dirtied, 0, "{}", record.treatment);
        // Checksums are on, so hint bits are logged.
        assert_eq!(pages(first).wal_bytes > 0, !frozen, "{}", record.treatment);
        let frozen_share = |scan: &Measurement| scan.read.as_ref().and_then(|state| state.all_frozen_share);
        if frozen_share(first).is_some() {
            assert_eq!(frozen_share(first), Some(if frozen { 1.0 } else { 0.0 }), "{}", record.treatment);
            assert_eq!(frozen_share(settled), Some(1.0));
        }
        assert!(settled.spans.settle > Some(0.0));
        assert_eq!(pages(settled).pages_dirtied, 0);
        let settings = &first.read.as_ref().unwrap().session_settings;
        assert_eq!(settings, &["synchronize_seqscans=off", "max_parallel_workers_per_gather=0", "jit=off"]);
    }
    let frame = run.parquet("measurements");
    assert_eq!(frame.column("pages_dirtied").unwrap().null_count(), 4, "create and load of both trials");
}

#[test]
fn the_first_scan_after_a_plain_copy_writes_on_a_local_server() {
    hint_bits(Server::Local);
}

#[test]
fn the_first_scan_after_a_plain_copy_writes_in_a_container() {
    hint_bits(Server::Container);
}

const COLD_STEPS: &str = "
steps:
  - create: t
  - load: {table: t, method: copy}
  - read: {name: select, table: t, method: {select: {mode: streamed}}, decode: values, cache: cold}
  - read: {name: copied, table: t, method: {copy_out: {format: csv}}, decode: values, cache: cold, clients: 3}
  - read: {name: scanned, table: t, method: scan, cache: cold, state: settled}
  - read: {name: warm, table: t, method: {copy_out: {}}, cache: warm}
  - read: {name: as_is, table: t, method: {select: {}}, decode: values}
";

fn cold(server: Server, environment: &str) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    let file = format!(
        "environment: for tests\nengine: postgres\nversions: {}\n{environment}\n\
         initdb: {{locale: C, encoding: UTF8, checksums: on}}\n",
        if server == Server::Local { "\"14-18\"" } else { "15" }
    );
    lab.write(&format!("{}/postgres.yaml", server.word()), &file);
    let run = run(&lab, server, &format!("design: {{blocks: 1}}\n{PLAIN}{COLD_STEPS}"));
    let record = run.record();
    guards(&record, &[]);
    for name in ["select", "copied", "scanned"] {
        let read = step(&record, name);
        let state = read.read.as_ref().unwrap();
        assert!(share(state.cached_share) < 0.01, "{name}: {state:?}");
        assert!(state.buffered_share.is_none_or(|share| share < 0.01), "{name}: {state:?}");
        assert_eq!(state.cache_note, None, "{name}");
        let table_bytes = read.counters.table_bytes.unwrap();
        // Where the kernel tells what a server read: the table, from the disk.
        if let Some(bytes) = read.counters.server_read_bytes {
            assert!(bytes >= table_bytes / 2, "{name}: {bytes} of {table_bytes}");
        }
        assert_eq!(read.rows, Some(30_000), "{name}");
    }
    assert_eq!(step(&record, "select").checksum, step(&record, "copied").checksum);
    assert!(step(&record, "scanned").scan.unwrap().pages_read > 200, "nothing is in shared buffers");
    for name in ["warm", "as_is"] {
        let read = step(&record, name);
        assert!(share(read.read.as_ref().unwrap().cached_share) > 0.95, "{name}: {:?}", read.read);
    }
    // Settings are those of the first start.
    assert!(record.settings.iter().any(|setting| setting.name == "autovacuum" && setting.in_force));
}

#[test]
fn a_cold_read_is_cold_over_an_overlay() {
    cold(Server::Local, "fresh: overlay");
}

#[test]
fn a_cold_read_is_cold_in_a_copied_data_directory_by_tcp() {
    cold(Server::Local, "fresh: copy\nconnection: address");
}

#[test]
fn a_cold_read_is_cold_in_a_container() {
    cold(Server::Container, "image: loadlab/postgres:15");
}

#[test]
fn a_cold_read_is_cold_in_a_volume_at_another_address() {
    cold(Server::Container, "image: loadlab/postgres:15\nstorage: volume\nconnection: published");
}

#[test]
fn rows_in_memory_are_refused_as_cold() {
    let lab = Lab::new();
    let file = "environment: for tests\nengine: postgres\nversions: 15\nimage: loadlab/postgres:15\nstorage: tmpfs\n";
    lab.write("container/postgres.yaml", file);
    lab.experiment(&format!(
        "experiment: reads\nquestion: Is memory cold?\nenvironment: postgres\ndesign: {{blocks: 1}}\n{PLAIN}{COLD_STEPS}"
    ));
    lab.run(Server::Container, &[]).ended_with(2).complained(&["cache", "never cold", "storage: layer"]);
}

/// Reads every file below a folder.
fn read_all(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => read_all(&path),
            // It may be gone by now.
            Ok(kind) if kind.is_file() => drop(std::fs::read(&path)),
            _ => {}
        }
    }
}

#[test]
fn a_reader_in_between_makes_a_cold_read_void() {
    let lab = Lab::alone();
    let trials: PathBuf = lab.folder().join("c/trials");
    let done = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&done);
    let reader = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            for trial in std::fs::read_dir(&trials).into_iter().flatten().flatten() {
                read_all(&trial.path().join("upper/base"));
                read_all(&trial.path().join("data/base"));
            }
        }
    });
    let steps = "
steps:
  - create: t
  - load: {table: t, method: copy}
  - read: {name: disturbed, table: t, method: scan, cache: cold}
";
    let run = run(&lab, Server::Local, &format!("design: {{blocks: 1}}\n{PLAIN}{steps}"));
    done.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    let record = run.record();
    guards(&record, &[("disturbed", Guard::CacheNotCold)]);
    assert!(share(step(&record, "disturbed").read.as_ref().unwrap().cached_share) > 0.5);
    let reasons = record.reasons_against(step(&record, "disturbed"));
    assert!(reasons.contains(&"cache_not_cold"), "{reasons:?}");
}

/// Clients and copies share by ranges of a key: negative numbers, gaps, rows without a key, a partitioned table.
fn keys(server: Server) {
    if !server.is_here() {
        return;
    }
    let text = r"
design: {blocks: 1, factors: {kind: [plain, copies, parts]}}
tables:
  plain:
    ddl: CREATE TABLE plain (id bigint, k integer, name text)
    indexes: CREATE INDEX ON plain (k)
    rows: 5_003
    values: {id: {sequence: {}}, k: {uniform: {min: -1000, max: 1000}, nulls: 10%}, name: {text: {length: 20}}}
  copies:
    ddl: CREATE TABLE {{ table }} (k smallint NOT NULL, name text)
    copies: 2
    rows: 5_003
    values: {k: {uniform: {min: -32768, max: 32767}}}
  parts:
    ddl: |
      CREATE TABLE parts (k bigint NOT NULL, name text) PARTITION BY RANGE (k);
      CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (0);
      CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (0) TO (MAXVALUE);
    rows: 5_003
    values: {k: {sequence: {start: -2500}}}
steps:
";
    let mut text = text.to_owned();
    for name in ["plain", "copies", "parts"] {
        let when = format!("when: \"{{{{ kind == '{name}' }}}}\"");
        let clients = if name == "copies" { 2 } else { 1 };
        writeln!(text, "  - create: {{table: {name}, {when}}}").unwrap();
        writeln!(text, "  - load: {{table: {name}, method: copy, clients: {clients}, {when}}}").unwrap();
        for (number, method) in [
            "{select: {mode: streamed}}, decode: values",
            "{select: {format: text}}, decode: values",
            "{select: {mode: {portal: {fetch_size: 100}}}}, decode: values",
            "{copy_out: {format: binary}}, decode: values, columns: [name, k]",
            "{copy_out: {format: csv}}, decode: values, columns: [name]",
            "scan",
        ]
        .iter()
        .enumerate()
        {
            let shares = "clients: 5, by: key, key: k";
            writeln!(
                text,
                "  - read: {{name: read_{number}, table: {name}, {shares}, method: {method}, {when}}}"
            )
            .unwrap();
        }
    }
    let lab = Lab::new();
    let run = run(&lab, server, &text);
    assert_eq!(run.records().len(), 3);
    for record in run.records() {
        guards(&record, &[]);
        for number in 0..6 {
            let read = step(&record, &format!("read_{number}"));
            assert_eq!((read.rows, read.rows_expected), (Some(5_003), Some(5_003)), "{}", read.parameters);
            assert_eq!(read.checksum, read.checksum_expected, "{}", read.parameters);
            assert_eq!(read.checksum.is_some(), number < 5, "{}", read.parameters);
        }
    }
}

#[test]
fn shares_by_key_read_each_row_once_on_a_local_server() {
    keys(Server::Local);
}

#[test]
fn shares_by_key_read_each_row_once_in_a_container() {
    keys(Server::Container);
}

/// \"The same numbers stored both ways, read as values both ways, equal to the last bit.\"
fn floats(server: Server) {
    if !server.is_here() {
        return;
    }
    let ways = [
        "{select: {}}",
        "{select: {mode: streamed}}",
        "{select: {mode: {portal: {fetch_size: 50}}}}",
        "{select: {format: text}}",
        "{copy_out: {format: text}}",
        "{copy_out: {format: csv}}",
        "{copy_out: {format: binary}}, clients: 3",
    ];
    let mut text = r#"
design: {blocks: 1, factors: {type: {real: {sql: "float4[]"}, double: {sql: "double precision[]"}}}}
tables:
  arrays:
    ddl: CREATE TABLE arrays (id integer, numbers {{ type.sql }})
    rows: 700
    values: &values
      numbers: {array: {length: {min: 0, max: 400}, of: {normal: {mean: 0, deviation: 1e9}}}, nulls: 5%}
  twice:
    ddl: CREATE TABLE twice (numbers {{ type.sql }}, packed bytea)
    rows: 700
    values:
      numbers: {array: {length: {min: 0, max: 400}, of: {normal: {mean: 0, deviation: 1e9}}}, nulls: 5%}
      packed: {floats_of: numbers}
steps:
  - create: arrays
  - create: twice
  - load: {name: load_arrays, table: arrays, method: copy}
  - load: {name: load_twice, table: twice, method: {insert: {rows_per_batch: 50}}}
"#
    .to_owned()
    .replace("&values", "");
    for (number, way) in ways.iter().enumerate() {
        for (name, what) in [
            ("array", "table: arrays"),
            ("other", "table: twice, columns: [numbers]"),
            ("packed", "table: twice, columns: [packed]"),
        ] {
            writeln!(text, "  - read: {{name: {name}_{number}, {what}, decode: floats, method: {way}}}")
                .unwrap();
        }
    }
    let lab = Lab::new();
    let run = run(&lab, server, &text);
    let records = run.records();
    for record in &records {
        guards(record, &[]);
        let first = step(record, "array_0").checksum.clone().expect("decoded");
        // Tables of one experiment have one seed, so a column of the same name holds the same numbers.
        let of = |name: &str| step(record, name).checksum.clone().expect("decoded");
        for (number, way) in ways.iter().enumerate() {
            for name in ["array", "other", "packed"] {
                assert_eq!(of(&format!("{name}_{number}")), first, "{}: {name} by {way}", record.treatment);
            }
        }
    }
    let checksum = |record: &TrialRecord| step(record, "array_0").checksum.clone();
    assert_ne!(checksum(&records[0]), checksum(&records[1]), "4 bytes are not 8");
}

#[test]
fn numbers_are_equal_to_the_last_bit_on_a_local_server() {
    floats(Server::Local);
}

#[test]
fn numbers_are_equal_to_the_last_bit_in_a_container() {
    floats(Server::Container);
}

/// A driver with autocommit holds the whole result before its first row is seen; its memory grows with the table.
#[test]
fn a_whole_result_shows_in_memory_and_in_the_time_to_the_first_row() {
    let text = "
design: {blocks: 1}
tables:
  t:
    ddl: CREATE TABLE t (id integer, name text)
    rows: 60_000
    values: {name: {text: {length: 400}}}
steps:
  - create: t
  - load: {table: t, method: {copy: {}}}
  - read: {name: streamed, table: t, method: {select: {mode: streamed}}}
  - read: {name: portal, table: t, method: {select: {mode: {portal: {fetch_size: 500}}}}}
  - read: {name: copied, table: t, method: {copy_out: {format: binary}}}
  - read: {name: text, table: t, method: {select: {mode: streamed, format: text}}}
  - read: {name: all, table: t, method: {select: {mode: all}}}
  - read: {name: all_text, table: t, method: {select: {mode: all, format: text}}}
";
    let lab = Lab::new();
    let run = run(&lab, Server::Local, text);
    let record = run.record();
    guards(&record, &[]);
    let read = |name: &str| step(&record, name);
    let most = |name: &str| read(name).client_peak_memory_bytes.expect("the kernel tells");
    for name in ["streamed", "portal", "copied", "text", "all", "all_text"] {
        let measurement = read(name);
        assert!(measurement.spans.first_row > Some(0.0), "{name}");
        assert!(measurement.client_cpu_seconds > Some(0.0), "{name}");
        assert!(measurement.payload_bytes > Some(24_000_000), "{name}: {:?}", measurement.payload_bytes);
    }
    for all in ["all", "all_text"] {
        for name in ["streamed", "portal", "copied", "text"] {
            assert!(most(all) > most(name) + 20_000_000, "{all} {} {name} {}", most(all), most(name));
        }
        let spans = read(all).spans;
        assert!(spans.first_row.unwrap() > 0.5 * spans.seconds, "most of the time is before the first row");
    }
}

#[test]
fn values_are_not_decoded_from_text_that_lost_digits() {
    let lab = Lab::new();
    lab.experiment(&format!(
        "experiment: reads\nquestion: Are digits lost?\nenvironment: postgres\ndesign: {{blocks: 1}}\n{PLAIN}
steps:
  - create: t
  - load: {{table: t, method: copy}}
  - sql: ALTER ROLE CURRENT_USER SET extra_float_digits = 0
  - read: {{name: in_binary, table: t, method: {{select: {{}}}}, decode: values}}
  - read: {{name: counted, table: t, method: {{select: {{format: text}}}}}}
  - read: {{name: decoded, table: t, method: {{select: {{format: text}}}}, decode: values}}
"
    ));
    lab.run(Server::Local, &[]).ended_with(1);
    let record = lab.newest().record();
    let error = record.error.as_ref().expect("refused");
    assert!(error.contains("step decoded") && error.contains("extra_float_digits is 0"), "{error}");
    assert_eq!(step(&record, "counted").outcome, Some(Outcome::Ok));
}

/// A server that others may use is not restarted, and its files may be anywhere: the number is there, but not valid.
#[tokio::test(flavor = "multi_thread")]
async fn a_cold_read_of_an_external_server_is_void_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), "outer").unwrap();
    let connection = ConnectionPath::Address;
    let spec = EnvironmentSpec { connection, ..environment(FreshMethod::Auto) };
    let (provider, _) = LocalProvider::find(&spec, folder.path(), true, &ledger).await.unwrap();
    provider.prepare().await.unwrap();
    let launch = Launch { run_id: "outer".to_owned(), trial: 1, environment: spec };
    let outer = provider.start(&launch).await.unwrap();
    let Endpoint::Tcp { host, port, password } = &outer.endpoint else { panic!("TCP was asked for") };
    let url = format!("postgres://loadlab:{}@{host}:{port}/loadlab", password.0);
    let lab = Lab::new().variable("LOADLAB_URL", &url);
    let steps = "
steps:
  - create: t
  - load: {table: t, method: copy}
  - read: {name: not_cold, table: t, method: {select: {}}, cache: cold, decode: values}
  - read: {name: scanned, table: t, method: scan}
";
    lab.experiment(&format!(
        "experiment: reads\nquestion: Is it cold?\nenvironment: postgres\ndesign: {{blocks: 1}}\n{PLAIN}{steps}"
    ));
    let arguments =
        ["run", "experiment.yaml", "--on", "external", "--environments", "local", "--results", "results"];
    let said = tokio::task::block_in_place(|| lab.loadlab(&arguments));
    outer.running.stop().await.unwrap();
    let record = lab.find().unwrap_or_else(|| panic!("{}", said.stderr)).record();
    let read = step(&record, "not_cold");
    assert_eq!((read.outcome, read.rows), (Some(Outcome::Ok), Some(30_000)), "{:?}", record.error);
    assert!(read.guards.contains(&Guard::CacheNotCold));
    let note = read.read.as_ref().unwrap().cache_note.as_deref().unwrap();
    assert!(note.contains("already runs is not restarted"), "{note}");
    // The owner of a database may not do a CHECKPOINT, without which a scan counts too little.
    let error = record.error.as_ref().expect("refused");
    assert!(error.contains("step scanned") && error.contains("pg_checkpoint"), "{error}");
}

/// Repetitions are the lower level of two: rows of their own in the results, one number of the trial in comparisons.
#[test]
fn a_repeated_read_is_one_number_of_its_trial() {
    let lab = Lab::new();
    let run = run(
        &lab,
        Server::Local,
        "design: {factors: {format: [text, binary]}, blocks: 2}
tables: {t: {ddl: 'CREATE TABLE t (id integer)', rows: 2000}}
steps:
  - create: t
  - load: {table: t, method: {copy: {format: binary}}}
  - read: {name: read, table: t, method: {copy_out: {format: '{{ format }}'}}, repeat: 3}
",
    );
    for record in run.records() {
        let reads: Vec<&Measurement> = record.measurements.iter().filter(|m| m.step == "read").collect();
        assert_eq!(reads.iter().map(|read| read.repetition).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(reads.iter().all(|read| read.rows == Some(2000)));
        let places: Vec<u32> = reads.iter().map(|read| read.step_index).collect();
        assert_eq!(places, [2, 3, 4]);
    }
    let summary = loadlab::compare::summarise(&run.records(), &run.stored.manifest.design);
    let read = summary.steps.iter().find(|step| step.step == "read").unwrap();
    assert!(read.cells.iter().all(|cell| cell.valid + cell.invalid == 2), "trials are counted, not reads");
}
