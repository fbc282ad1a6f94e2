//! Whole runs on real servers: complete results, and trials that must not count.

use std::time::Duration;

use loadlab::engine::postgres::Endpoint;
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::{Launch, Provider};
use loadlab::model::{FreshMethod, Guard, Outcome};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polars::prelude::DataFrame;

use crate::lab::{Lab, Server, step};
use crate::server_sabotage::flagged;

const SERVERS: [Server; 2] = [Server::Local, Server::Container];

/// An experiment with one treatment, one block, a table `t` and these steps after its creation.
fn small(rows: u32, more: &str, steps: &str) -> String {
    format!(
        "experiment: small\nquestion: Is it noticed?\nenvironment: postgres\ndesign: {{blocks: 1}}\n{more}\n\
         tables:\n  t:\n    ddl: CREATE TABLE t (id bigint, name text)\n    rows: {rows}\n    values: {{id: {{sequence: {{start: 1}}}}}}\n\
         steps:\n  - create: t\n{steps}\n"
    )
}

const COPY: &str = "  - load: {name: load, table: t, method: {copy: {}}}";

fn numbers(frame: &DataFrame, column: &str) -> Vec<f64> {
    let column = frame.column(column).unwrap().cast(&polars::prelude::DataType::Float64).unwrap();
    assert_eq!(column.null_count(), 0, "{}", column.name());
    (0..column.len()).map(|row| column.f64().unwrap().get(row).unwrap()).collect()
}

fn texts(frame: &DataFrame, column: &str) -> Vec<String> {
    let column = frame.column(column).unwrap().str().unwrap();
    (0..column.len()).map(|row| column.get(row).unwrap_or_default().to_owned()).collect()
}

fn the_quickstart_is_complete(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    let file = format!("{}/experiments/quickstart.yaml", env!("CARGO_MANIFEST_DIR"));
    let said = lab.run(server, &[&file, "--profile", "tiny"]).ended_with(0);
    for part in [
        "rows/s",
        "one row at a time",
        "unlogged / logged",
        "5 trials in 1 block; all ok",
        "results: results/quickstart/",
    ] {
        assert!(said.stdout.contains(part), "{part} is not in {}", said.stdout);
    }
    assert!(said.stderr.contains("[5/5]") && said.stderr.contains("as asked for"), "{}", said.stderr);

    let run = lab.newest();
    assert!(run.stored.journal.complaints().is_empty());
    assert!(run.stored.manifest.ended_at.is_some());
    let mut names: Vec<String> = run
        .stored
        .path
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let complete = [
        ".lock",
        "captures.parquet",
        "inputs",
        "journal.jsonl",
        "loadlab.lock",
        "measurements.parquet",
        "run.json",
        "samples.parquet",
        "settings.parquet",
        "treatments.parquet",
    ];
    assert_eq!(names, complete);

    let all = run.parquet("measurements");
    assert_eq!(all.height(), 10);
    assert!(texts(&all, "outcome").iter().all(|outcome| outcome == "ok"));
    assert!(texts(&all, "backend").iter().all(|backend| backend == server.word()));
    assert!(numbers(&all, "server_cpu_seconds").iter().sum::<f64>() > 0.0);
    assert!(numbers(&all, "server_written_bytes").iter().sum::<f64>() >= 0.0);
    assert!(numbers(&all, "server_start_seconds").iter().all(|seconds| *seconds > 0.0));
    assert!(numbers(&all, "index_bytes").iter().all(|bytes| *bytes > 0.0), "the primary key");
    assert!(numbers(&all, "client_peak_memory_bytes").iter().all(|bytes| *bytes > 1e6));
    let (kinds, treatments) = (texts(&all, "kind"), texts(&all, "treatment"));
    let (wal, records, rows) =
        (numbers(&all, "wal_bytes"), numbers(&all, "wal_records"), all.column("rows").unwrap());
    for row in 0..all.height() {
        let (kind, treatment) = (&kinds[row], &treatments[row]);
        match (kind.as_str(), treatment.contains("unlogged")) {
            ("load", false) => assert!(
                wal[row] > 50_000.0 && records[row] > 1000.0,
                "{treatment}: {} of {}",
                wal[row],
                records[row]
            ),
            // The commit, the visibility of the page, and what the server does on its own.
            ("load", true) => assert!(wal[row] < 20_000.0, "{treatment}: {}", wal[row]),
            // DDL is logged, and its records are told in the window they belong to.
            ("create", _) => assert!(
                wal[row] > 1000.0 && records[row] > 10.0,
                "{treatment}: {} of {}",
                wal[row],
                records[row]
            ),
            (kind, _) => panic!("{kind}"),
        }
        assert_eq!(rows.get(row).unwrap().is_null(), kind == "create");
    }
    assert!(run.parquet("samples").height() >= 5);
    assert_eq!(run.parquet("treatments").height(), 5);

    // Told again from the files alone.
    let again = lab.loadlab(&["report", "quickstart", "--results", "results"]).ended_with(0);
    assert!(said.stdout.contains(again.stdout.trim()), "{}", again.stdout);
}

#[test]
fn the_quickstart_is_complete_on_a_local_server() {
    the_quickstart_is_complete(Server::Local);
}

#[test]
fn the_quickstart_is_complete_in_a_container() {
    the_quickstart_is_complete(Server::Container);
}

/// T1: the community's container module switched fsync off without a word.
#[test]
fn durability_is_on_unless_asked_otherwise_and_told_when_off() {
    for server in SERVERS.into_iter().filter(|server| server.is_here()) {
        let lab = Lab::new();
        let text = small(100, "", COPY)
            .replace("design: {blocks: 1}", "design: {blocks: 1, factors: {sync: [on, off]}}");
        // A setting at its default is in the record because it was asked for.
        let settings = "server: {settings: {fsync: \"{{ sync }}\", full_page_writes: on, synchronous_commit: on}}\ntables:";
        lab.experiment(&text.replacen("tables:", settings, 1));
        let said = lab.run(server, &[]).ended_with(0);
        assert!(said.stdout.contains("NOT DURABLE"), "{}", said.stdout);
        let records = lab.newest().records();
        assert_eq!(records.len(), 2);
        for record in records {
            let on = record.treatment.contains("true") || record.treatment.contains("on");
            assert_eq!(record.server.as_ref().unwrap().durable, on, "{}", record.treatment);
            let setting = |name: &str| record.settings.iter().find(|setting| setting.name == name).unwrap();
            assert_eq!(setting("fsync").effective, if on { "on" } else { "off" });
            assert_eq!(setting("full_page_writes").effective, "on");
            assert_eq!(setting("synchronous_commit").effective, "on");
            assert!(record.settings.iter().all(|setting| setting.in_force), "{:?}", record.settings);
        }
        let durable = lab.newest().parquet("measurements");
        assert_eq!(durable.column("durable").unwrap().bool().unwrap().sum(), Some(2), "two steps of two");

        // Without a word about settings, nothing about durability differs from the server's default.
        lab.experiment(&small(100, "", COPY));
        lab.run(server, &[]).ended_with(0);
        let record = lab.newest().record();
        assert!(record.server.as_ref().unwrap().durable);
        let unsafe_ones = ["fsync", "full_page_writes", "synchronous_commit"];
        assert!(
            !record.settings.iter().any(|setting| unsafe_ones.contains(&setting.name.as_str())),
            "{:?}",
            record.settings
        );
    }
}

/// A server that already runs does not take the settings of an experiment.
#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_does_not_take_effect_voids_the_trial() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), "outer").unwrap();
    let environment = crate::server_local::environment(FreshMethod::Auto);
    let (provider, _) = LocalProvider::find(&environment, folder.path(), true, &ledger).await.unwrap();
    let launch = Launch { run_id: "outer".to_owned(), trial: 1, environment };
    let outer = provider.start(&launch).await.unwrap();
    let Endpoint::Socket { directory, port, .. } = &outer.endpoint else { panic!("a socket was asked for") };
    let url = format!("postgresql:///loadlab?host={}&port={port}&user=postgres", directory.display());

    let lab = Lab::new().variable("LOADLAB_URL", &url);
    lab.experiment(&small(100, "server: {settings: {work_mem: 7MB}}", COPY));
    let words =
        ["run", "experiment.yaml", "--on", "external", "--environments", "local", "--results", "results"];
    let said = tokio::task::block_in_place(|| lab.loadlab(&words));
    let run = lab.newest();
    let record = run.record();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    let load = step(&record, "load");
    assert!(load.guards.contains(&Guard::SettingNotInForce), "{:?}", load.guards);
    let setting = record.settings.iter().find(|setting| setting.name == "work_mem").unwrap();
    assert_eq!(
        (setting.requested.as_deref(), setting.effective.as_str(), setting.in_force),
        (Some("7MB"), "4MB", false)
    );
    tokio::task::block_in_place(|| flagged(&lab, &said, "load", Guard::SettingNotInForce));
    assert_eq!(run.parquet("measurements").column("valid").unwrap().bool().unwrap().sum(), Some(0));
    outer.running.stop().await.unwrap();
}

/// T4: rows that get lost on the way, in the statement as in the stream.
#[test]
fn lost_rows_fail_the_trial_with_counts_and_the_first_missing_key() {
    let trigger = "  - sql: |\n      CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n        \
                   IF NEW.id % 1000 = 0 THEN RETURN NULL; END IF; RETURN NEW; END $$;\n      \
                   CREATE TRIGGER loses BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION lose();\n";
    let changes = "  - sql: |\n      CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n        \
                   IF NEW.id = 17 THEN NEW.name := 'changed'; END IF; RETURN NEW; END $$;\n      \
                   CREATE TRIGGER changes BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION change();\n";
    let missing = [
        "holds 9991 rows",
        "the generator says 10001 rows",
        "expected 10001 rows, found 9991",
        "10 missing, the first is row 999 (id = 1000",
    ];
    let read = "\n  - read: {name: read, table: t, method: {select: {mode: streamed}}}";
    let insert = "  - load: {name: load, table: t, method: {insert: {rows_per_batch: 1000}}}";
    let csv = "  - load: {name: load, table: t, method: {copy: {format: csv, header: true, rows_per_commit: 1000}}}";
    let file = "  - load: {name: load, table: t, method: {copy: {source: server}}}";
    let altered = [
        "expected 10001 rows, found 10001",
        "1 missing, the first is row 16 (id = 17",
        "1 too many or changed, the first is (id = 17, name = changed)",
    ];
    for server in SERVERS.into_iter().filter(|server| server.is_here()) {
        let cases = [
            ("insert", format!("{trigger}{insert}"), &missing[..]),
            ("insert, verified after a read", format!("{trigger}{insert}{read}"), &missing[..]),
            ("copy", format!("{trigger}{csv}"), &missing[..]),
            ("copy, with a read after it", format!("{trigger}{csv}{read}"), &missing[..]),
            ("server file", format!("{trigger}{file}"), &missing[..]),
            ("changed", format!("{changes}{csv}"), &altered[..]),
        ];
        // The whole set where servers are cheap, two of it in containers.
        let few = if server == Server::Local { 6 } else { 2 };
        for (name, steps, words) in cases.into_iter().rev().take(few) {
            let lab = Lab::new();
            lab.experiment(&small(10_001, "", &steps));
            let said = lab.run(server, &[]).ended_with(1);
            let run = lab.newest();
            let record = run.record();
            assert_eq!(record.outcome, Outcome::Failed, "{name}");
            let error = record.error.clone().unwrap();
            assert!(error.starts_with("step load: "), "{name}: {error}");
            for word in words {
                assert!(error.contains(word), "{name}: {word:?} is not in {error}");
                assert!(said.stderr.contains(word), "{name}: {word:?} is not in {}", said.stderr);
            }
            let load = step(&record, "load");
            let guard = if name == "changed" { Guard::ChecksumWrong } else { Guard::RowsWrong };
            assert!(
                load.guards.contains(&guard) && load.outcome == Some(Outcome::Failed),
                "{name}: {load:?}"
            );
            flagged(&lab, &said, "load", guard);
            // No throughput of what was not done.
            let frame = run.parquet("measurements");
            assert_eq!(frame.column("rows_per_second").unwrap().null_count(), frame.height(), "{name}");
        }
    }
}

#[test]
fn a_duplicate_key_is_a_failed_row_with_its_sqlstate() {
    for server in SERVERS.into_iter().filter(|server| server.is_here()) {
        for method in ["insert: {rows_per_batch: 10}", "copy: {format: binary}"] {
            let lab = Lab::new();
            let steps = format!(
                "  - sql: CREATE UNIQUE INDEX twice ON t (id); INSERT INTO t VALUES (42, 'here already')\n\
                 \x20 - load: {{name: load, table: t, method: {{{method}}}}}\n{}",
                "  - read: {name: read, table: t, method: {select: {}}}"
            );
            lab.experiment(&small(100, "", &steps));
            lab.run(server, &[]).ended_with(1).complained(&[
                "step load:",
                "duplicate key value violates unique constraint \"twice\"",
                "(id)=(42)",
            ]);
            let run = lab.newest();
            let record = run.record();
            assert_eq!(
                (record.outcome, record.error_sqlstate.as_deref()),
                (Outcome::Failed, Some("23505")),
                "{:?}",
                record.error
            );
            let frame = run.parquet("measurements");
            assert_eq!(texts(&frame, "step"), ["create", "sql", "load"], "the read is left out");
            assert_eq!(texts(&frame, "outcome"), ["ok", "ok", "failed"]);
            assert_eq!(texts(&frame, "trial_error_sqlstate"), ["23505"; 3]);
        }
    }
}

#[test]
fn a_step_that_takes_too_long_is_timed_out_and_its_server_gone() {
    for server in SERVERS.into_iter().filter(|server| server.is_here()) {
        let lab = Lab::alone();
        lab.experiment(&small(
            10,
            "",
            &format!("  - sql: {{run: SELECT pg_sleep(300), timeout: 1s}}\n{COPY}"),
        ));
        let running = lab.start(server, &[]);
        let pid = running.pid();
        let said = running.end().ended_with(1).complained(&["took longer than its timeout of 1s"]);
        assert!(said.elapsed < Duration::from_mins(1), "{:?}", said.elapsed);
        assert_eq!(lab.left(&[pid]), Vec::<String>::new());
        let run = lab.newest();
        let record = run.record();
        assert_eq!(record.outcome, Outcome::TimedOut);
        let frame = run.parquet("measurements");
        assert_eq!(texts(&frame, "outcome"), ["ok", "timed_out"]);
        assert_eq!(frame.column("valid").unwrap().bool().unwrap().sum(), Some(0));
    }
}

/// A backend that is killed takes the whole server through a crash; one that hangs must not hang the run.
#[test]
fn a_server_that_crashes_voids_the_trial_and_the_next_trial_runs() {
    for server in SERVERS.into_iter().filter(|server| server.is_here()) {
        let lab = Lab::alone();
        let steps = format!("{COPY}\n  - sql: {{run: SELECT pg_sleep(60), when: \"{{{{ sleep }}}}\"}}");
        let text =
            small(100, "", &steps).replace("{blocks: 1}", "{blocks: 1, factors: {sleep: [true, false]}}");
        lab.experiment(&text);
        let running = lab.start(server, &[]);
        let run = running.pid();
        let backend = lab.wait_for_backend(server, run, "SELECT");
        kill(Pid::from_raw(backend), Signal::SIGKILL).unwrap();
        let said = running.end().ended_with(1);
        assert!(said.elapsed < Duration::from_secs(50), "{:?}", said.elapsed);
        let records = lab.newest().records();
        assert_eq!(records.len(), 2);
        for record in records {
            let crashed = record.treatment.contains("true");
            assert_eq!(record.outcome == Outcome::Ok, !crashed, "{}: {:?}", record.treatment, record.error);
            if crashed {
                assert_eq!(record.outcome, Outcome::EnvironmentFault, "{:?}", record.error);
                // The load before it was fine, but not on a server that lived.
                assert!(!record.reasons_against(step(&record, "load")).is_empty());
            }
        }
        lab.assert_nothing_left_soon(&[run]);
    }
}

#[test]
fn a_postmaster_that_is_killed_is_told() {
    let lab = Lab::alone();
    lab.experiment(&small(100, "", &format!("{COPY}\n  - sql: SELECT pg_sleep(60)")));
    let running = lab.start(Server::Local, &[]);
    let run = running.pid();
    lab.wait_for_backend(Server::Local, run, "SELECT");
    let is_postmaster = |title: &str| {
        title.contains("bin/postgres ") && !title.contains("unshare") && !title.contains("setpriv")
    };
    let postmaster = lab.processes().into_iter().find(|(_, title)| is_postmaster(title));
    let (postmaster, title) = postmaster.unwrap_or_else(|| panic!("{:#?}", lab.processes()));
    kill(Pid::from_raw(postmaster), Signal::SIGKILL).unwrap();
    let said = running.end().ended_with(1);
    let record = lab.newest().record();
    assert_eq!(record.outcome, Outcome::EnvironmentFault, "{title}: {:?}", record.error);
    flagged(&lab, &said, "load", Guard::ServerRestarted);
    // `unshare` passes a kill on in one way or another.
    let error = record.error.clone().unwrap();
    assert!(
        ["the server ended with", "the server was killed"].iter().any(|end| error.contains(end)),
        "{error}"
    );
    lab.assert_nothing_left_soon(&[run]);
}
