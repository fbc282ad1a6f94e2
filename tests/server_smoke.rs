//! Smoke runs: small, marked everywhere, and smoke for ever.

use loadlab::model::Outcome;

use crate::lab::{Lab, Server};

const SMOKE: &str = "
experiment: large
question: Does it work at all?
environment: postgres
design:
  factors: {rows_per_batch: [1, 5000]}
  blocks: 6
tables:
  customer:
    ddl: CREATE TABLE customer (id integer PRIMARY KEY)
    rows: 3_000
    values: {id: {sequence: {start: 1}}}
  orders:
    ddl: 'CREATE TABLE orders (id bigint, customer integer REFERENCES customer (id), note text)'
    rows: 80_000_000
    values: {customer: {uniform: {min: 1, max: 3_000}}}
steps:
  - create: customer
  - create: orders
  - load: {name: customers, table: customer, method: copy}
  - load: {name: load, table: orders, clients: 2, method: {insert: {rows_per_batch: '{{ rows_per_batch }}', rows_per_commit: 50_000}}}
  - read: {table: orders, method: select, decode: values}
";

fn is_small_and_marked(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.experiment(SMOKE);
    let said = lab.run(server, &["--smoke"]).ended_with(0);
    let first = said.stdout.trim_start().lines().next().unwrap_or_default();
    assert!(
        first.starts_with("SMOKE RUN") && first.contains("proves nothing about speed"),
        "{}",
        said.stdout
    );
    assert!(!said.stdout.contains("times as fast"), "{}", said.stdout);
    let run = lab.newest();
    assert!(run.stored.manifest.smoke);
    let records = run.records();
    assert_eq!(records.len(), 2, "one block");
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        let rows: Vec<Option<u64>> = record.measurements.iter().map(|step| step.rows_in_table).collect();
        assert_eq!(rows[2..4], [Some(3_000), Some(1_000)], "the table that is pointed to keeps its keys");
    }
    let frame = run.parquet("measurements");
    assert!(frame.column("smoke").unwrap().bool().unwrap().all());
    assert!(!frame.column("valid").unwrap().bool().unwrap().any(), "not to be averaged with real numbers");

    let again = lab.run(server, &["--resume"]).ended_with(0);
    assert!(again.stderr.contains("nothing is left to resume"), "{}", again.stderr);
    assert!(again.stdout.trim_start().starts_with("SMOKE RUN"), "{}", again.stdout);
    let real = lab.run(server, &["--resume", "--set", "design.seed=2"]);
    assert!(real.ended_with(2).stderr.contains("cannot be resumed"), "another experiment");
}

#[test]
fn a_smoke_run_is_small_and_marked_on_a_local_server() {
    is_small_and_marked(Server::Local);
}

#[test]
fn a_smoke_run_is_small_and_marked_in_a_container() {
    is_small_and_marked(Server::Container);
}

#[test]
fn a_plan_of_a_smoke_run_is_small_and_a_real_run_is_not_completed_as_one() {
    let lab = Lab::new();
    lab.experiment(SMOKE);
    let words = ["plan", "experiment.yaml", "--environments", "local"];
    let smoke = lab.loadlab(&[words.as_slice(), &["--smoke"]].concat()).ended_with(0).stdout;
    assert!(smoke.contains("proves nothing about speed") && smoke.contains("trials      2,"), "{smoke}");
    let whole = lab.loadlab(&words).ended_with(0).stdout;
    assert!(whole.contains("960,036,000 loaded") && whole.contains("trials      12,"), "{whole}");
    lab.loadlab(&["check", "experiment.yaml", "--environments", "local", "--smoke"]).ended_with(0);

    let real = ["--set", "tables.orders.rows=10", "--only", "rows_per_batch=1", "--set", "design.blocks=1"];
    lab.run(Server::Local, &real).ended_with(0);
    let said = lab.run(Server::Local, &[real.as_slice(), &["--smoke", "--resume"]].concat()).ended_with(2);
    said.complained(&["cannot be resumed"]);
}
