//! Every guard, made to trip by real sabotage of a real server: the trial is kept, flagged, shown and counted, and never averaged.
//!
//! Rows that are lost or changed, settings that are not in force, a killed postmaster: `server_run.rs`. Caches: `server_reads.rs`. What
//! cannot be had without harm to the machine (theft, swapping, clocks that jump) is injected as files of the kernel's, in `src/run/machine.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use loadlab::engine::postgres::Endpoint;
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::{Launch, Provider};
use loadlab::model::{FreshMethod, Guard, Scalar};
use nix::sys::signal::Signal;
use polars::prelude::DataFrame;

use crate::lab::{Lab, Said, Server, step};
use crate::server_container::docker;

/// One treatment, one block, a table `t`, and what else stands in the file.
fn experiment(rows: u32, more: &str, steps: &str) -> String {
    format!(
        "experiment: sabotage\nquestion: Is it noticed?\nenvironment: postgres\ndesign: {{blocks: 1}}\n{more}\n\
         tables:\n  t:\n    ddl: CREATE TABLE t (id bigint, name text)\n    rows: {rows}\n    values: {{id: {{sequence: {{start: 1}}}}}}\n\
         steps:\n  - create: t\n{steps}\n"
    )
}

const COPY: &str = "  - load: {name: load, table: t, method: {copy: {}}}";

fn lists(frame: &DataFrame, column: &str, row: usize) -> String {
    format!("{:?}", frame.column(column).unwrap().get(row).unwrap())
}

/// The newest run's only trial has the guard on a step, everywhere where somebody may look; its number is in no median.
#[track_caller]
pub(crate) fn flagged(lab: &Lab, said: &Said, name: &str, guard: Guard) {
    let run = lab.newest();
    let record = run.record();
    let guards = &step(&record, name).guards;
    assert!(guards.contains(&guard), "{} is not among {guards:?}: {:?}", guard.name(), record.error);

    let frame = run.parquet("measurements");
    let steps = frame.column("step").unwrap().str().unwrap();
    let row = (0..frame.height()).find(|row| steps.get(*row) == Some(name)).expect("it is kept");
    assert_eq!(frame.column("valid").unwrap().bool().unwrap().get(row), Some(false));
    assert!(lists(&frame, "guards", row).contains(guard.name()), "{}", lists(&frame, "guards", row));

    assert!(said.stdout.contains(&format!("1 {}", guard.name())), "{}", said.stdout);
    assert!(said.stdout.contains("never averaged"), "{}", said.stdout);
    let json = lab.loadlab(&["report", "--results", "results", "--format", "json"]).ended_with(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let steps = json.pointer("/summary/steps").or_else(|| json.pointer("/steps")).expect("a summary");
    let found = steps.as_array().unwrap().iter().find(|found| found["step"] == name).expect("it is shown");
    let cell = &found["cells"][0];
    assert_eq!(cell["not_valid"][guard.name()], 1, "{cell}");
    assert_eq!(
        (&cell["valid"], &cell["invalid"], &cell["median"]),
        (&0.into(), &1.into(), &serde_json::Value::Null)
    );
}

/// The newest run's only trial does not have the guard.
#[track_caller]
fn not_flagged(lab: &Lab, name: &str, guard: Guard) {
    let record = lab.newest().record();
    assert!(!step(&record, name).guards.contains(&guard), "{:?}", step(&record, name).guards);
}

#[test]
fn a_checkpoint_by_volume_inside_the_window() {
    let lab = Lab::new();
    let much = "  - sql: {name: much, run: 'CREATE TABLE x AS SELECT repeat(md5(n::text), 16) FROM generate_series(1, 160000) n'}";
    let small = "server: {settings: {max_wal_size: 32MB, min_wal_size: 32MB, autovacuum: off}}";
    lab.experiment(&experiment(10, small, much));
    let said = lab.run(Server::Local, &[]).ended_with(0);
    flagged(&lab, &said, "much", Guard::CheckpointInWindow);
    // The same with room for its WAL.
    lab.experiment(&experiment(10, &small.replacen("32MB", "4GB", 1), much));
    lab.run(Server::Local, &[]).ended_with(0);
    not_flagged(&lab, "much", Guard::CheckpointInWindow);
}

#[test]
fn autovacuum_inside_the_window() {
    let lab = Lab::new();
    let steps = format!("{COPY}\n  - sql: {{name: wait, run: SELECT pg_sleep(3.5)}}");
    lab.experiment(&experiment(2_000, "server: {settings: {autovacuum_naptime: 1s}}", &steps));
    let said = lab.run(Server::Local, &[]).ended_with(0);
    flagged(&lab, &said, "wait", Guard::AutovacuumInWindow);
}

#[test]
fn data_in_memory_that_nobody_asked_for() {
    let Some(lab) = Lab::in_memory() else {
        eprintln!("NOT TESTED: no memory folder here");
        return;
    };
    let steps = format!("{COPY}\n  - read: {{name: read, table: t, method: {{select: {{mode: all}}}}}}");
    lab.experiment(&experiment(1_000, "", &steps));
    let said = lab.run(Server::Local, &[]).ended_with(0);
    flagged(&lab, &said, "load", Guard::SyncTooFast);
    flagged(&lab, &said, "create", Guard::SyncTooFast);
    assert!(said.stdout.contains("a sync takes "), "{}", said.stdout);
    not_flagged(&lab, "read", Guard::SyncTooFast);
    let asked = "server: {settings: {fsync: off}}";
    lab.experiment(&experiment(1_000, asked, &steps));
    lab.run(Server::Local, &[]).ended_with(0);
    not_flagged(&lab, "load", Guard::SyncTooFast);
}

/// As images have it, and development machines: a server that already runs, with fsync switched off by somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn fsync_off_that_nobody_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), "outer").unwrap();
    let mut environment = crate::server_local::environment(FreshMethod::Auto);
    environment.settings.insert("fsync".to_owned(), Scalar::Text("off".to_owned()));
    let (provider, _) = LocalProvider::find(&environment, folder.path(), true, &ledger).await.unwrap();
    let launch = Launch { run_id: "outer".to_owned(), trial: 1, environment };
    let outer = provider.start(&launch).await.unwrap();
    let Endpoint::Socket { directory, port, .. } = &outer.endpoint else { panic!("a socket was asked for") };
    let url = format!("postgresql:///loadlab?host={}&port={port}&user=postgres", directory.display());
    let lab = Lab::new().variable("LOADLAB_URL", &url);
    lab.experiment(&experiment(100, "", COPY));
    let words =
        ["run", "experiment.yaml", "--on", "external", "--environments", "local", "--results", "results"];
    tokio::task::block_in_place(|| {
        let said = lab.loadlab(&words).ended_with(0);
        flagged(&lab, &said, "load", Guard::SyncTooFast);
    });
    outer.running.stop().await.unwrap();
}

#[test]
fn two_runs_at_once() {
    let lab = Lab::alone().strict();
    let waits = "  - sql: {name: wait, run: SELECT pg_sleep(60)}";
    lab.experiment(&experiment(10, "", waits));
    let other = lab.start(Server::Local, &[]);
    lab.wait_for_backend(Server::Local, other.pid(), "SELECT");

    let beside = Lab::new().strict();
    beside.experiment(&experiment(100, "", COPY));
    let said = beside
        .run(Server::Local, &[])
        .ended_with(0)
        .complained(&["note: another run of loadlab is at work", "--beside-others"]);
    flagged(&beside, &said, "load", Guard::AnotherRun);
    let said = beside.run(Server::Local, &["--beside-others"]).ended_with(0);
    assert!(said.stderr.contains("which --beside-others allows"), "{}", said.stderr);
    not_flagged(&beside, "load", Guard::AnotherRun);
    let run = beside.newest();
    assert!(run.stored.manifest.spec.options.beside_others, "the record says that it was allowed");
    assert!(step(&run.record(), "load").pressure.other_runs > Some(0), "and that it happened");
    other.interrupt();
    other.end().ended_with(130);
}

/// Ids of the containers of a run.
fn containers(run: u32) -> Vec<String> {
    let all = docker(&["ps", "--format", "{{.Label \"io.loadlab.owner\"}} {{.ID}}"]);
    let ours = all.lines().filter(|line| line.starts_with(&format!("{run}:")));
    ours.filter_map(|line| line.split_once(' ')).map(|(_, id)| id.to_owned()).collect()
}

#[test]
fn a_quota_that_somebody_else_gave_a_container() {
    if !Server::Container.is_here() {
        return;
    }
    let lab = Lab::new();
    let count = "SELECT sum(sqrt(n)) FROM generate_series(1, 1500000) n";
    let steps =
        format!("  - sql: {{name: wait, run: SELECT pg_sleep(2)}}\n  - sql: {{name: count, run: '{count}'}}");
    lab.experiment(&experiment(10, "", &steps));
    let running = lab.start(Server::Container, &[]);
    lab.wait_for_backend(Server::Container, running.pid(), "SELECT");
    for container in containers(running.pid()) {
        docker(&["update", "--cpus", "0.2", &container]);
    }
    let said = running.end().ended_with(0);
    flagged(&lab, &said, "count", Guard::Throttled);
    assert!(step(&lab.newest().record(), "count").pressure.throttled_periods > Some(0));
    // A quota that the experiment asks for is what is measured.
    lab.write("container/postgres.yaml", &format!("{}limits: {{cpus: 0.2}}\n", environment_text(&lab)));
    lab.experiment(&experiment(10, "", &format!("  - sql: {{name: count, run: '{count}'}}")));
    lab.run(Server::Container, &[]).ended_with(0);
    not_flagged(&lab, "count", Guard::Throttled);
    assert!(step(&lab.newest().record(), "count").pressure.throttled_periods > Some(0));
}

fn environment_text(lab: &Lab) -> String {
    fs::read_to_string(lab.folder().join("container/postgres.yaml")).unwrap()
}

#[test]
fn a_backend_that_the_kernel_kills_for_want_of_memory() {
    if !Server::Container.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.write("container/postgres.yaml", &format!("{}limits: {{memory: 96MB}}\n", environment_text(&lab)));
    let hungry =
        "SELECT cardinality(array_agg(repeat(md5(n::text), 32) || n)) FROM generate_series(1, 400000) n";
    let steps = format!("{COPY}\n  - sql: {{name: hungry, run: \"{hungry}\"}}");
    let settings = "server: {settings: {work_mem: 2GB, shared_buffers: 16MB}}";
    lab.experiment(&experiment(100, settings, &steps));
    let said = lab.run(Server::Container, &[]).ended_with(1).complained(&["out of memory"]);
    flagged(&lab, &said, "hungry", Guard::OutOfMemoryKill);
    flagged(&lab, &said, "load", Guard::OutOfMemoryKill);
}

/// A control group with a fifth of a CPU, of either version; removed at the end.
struct Slow(PathBuf);

impl Slow {
    fn new() -> Option<Self> {
        let name = format!("loadlab-test-{}", std::process::id());
        let (split, unified) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let (folder, file, quota) =
            if split.join("cpu.cfs_quota_us").exists() || split.join("cpu.shares").exists() {
                (split.join(name), "cpu.cfs_quota_us", "20000")
            } else {
                (unified.join(name), "cpu.max", "20000 100000")
            };
        fs::create_dir(&folder).ok()?;
        let slow = Self(folder);
        fs::write(slow.0.join(file), quota).ok()?;
        Some(slow)
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}

#[test]
fn a_quota_on_loadlab_itself() {
    let Some(slow) = Slow::new() else {
        eprintln!("NOT TESTED: no control group can be made here");
        return;
    };
    let lab = Lab::new();
    let count = "  - sql: {name: count, run: 'SELECT sum(sqrt(n)) FROM generate_series(1, 300000) n'}";
    lab.experiment(&experiment(10, "", count));
    let program = env!("CARGO_BIN_EXE_loadlab");
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec {program} run experiment.yaml --on local --environments local --offline \
         --results results --beside-others",
        slow.0.display()
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(lab.folder())
        .env("LOADLAB_CACHE", lab.cache())
        .output()
        .unwrap();
    let said = Said {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        elapsed: Duration::ZERO,
    };
    let said = said.ended_with(0);
    flagged(&lab, &said, "count", Guard::Throttled);
    assert!(step(&lab.newest().record(), "count").pressure.client_throttled_periods > Some(0));
}

/// A client that cannot keep up with COPY, because it is held again and again.
#[test]
fn a_client_that_is_the_narrow_place() {
    let lab = Lab::alone();
    lab.experiment(&experiment(200_000, "server: {settings: {max_wal_size: 4GB, autovacuum: off}}", COPY));
    let mut running = lab.start(Server::Local, &[]);
    lab.wait_for_backend(Server::Local, running.pid(), "COPY");
    for _ in 0..20 {
        if !running.runs() {
            break;
        }
        running.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(190));
        running.signal(Signal::SIGCONT);
        std::thread::sleep(Duration::from_millis(10));
    }
    running.end().ended_with(0);
    let run = lab.newest();
    let record = run.record();
    let load = step(&record, "load");
    assert!(load.guards.contains(&Guard::ClientBound), "{:?} {:?}", load.guards, load.pressure);
    assert!(load.pressure.client_wait_share > Some(0.2), "{:?}", load.pressure);
    // The number is right, and the client's: what may be said of it is tested in tests/results/client_bound.rs.
    let only = load.guards == [Guard::ClientBound];
    assert_eq!(record.reasons_against(load).is_empty(), only, "{:?}", load.guards);
}
