//! Statements that people measure by `sql` steps, and SQL that is wrong.

use loadlab::model::{Guard, Outcome};

use crate::lab::{Lab, Server, step};

/// Everything that is often measured after a load, each as a step of its own.
const EXPERIMENT: &str = r#"
experiment: maintenance
question: What does each statement after a load cost?
environment: postgres
server: {settings: {autovacuum: off}}
design: {blocks: 1}
tables:
  parents:
    ddl: CREATE TABLE parents (id bigint)
    rows: 1000
    values: {id: {sequence: {start: 1}}}
  children:
    ddl: CREATE UNLOGGED TABLE children (id bigint, parent bigint, word text)
    rows: 5000
    values:
      id: {sequence: {start: 1}}
      parent: {uniform: {min: 1, max: 1000}}
steps:
  - create: parents
  - create: children
  - load: {table: parents, method: generate}
  - load: {table: children, method: copy}
  - sql: {name: before, run: "SELECT 1"}
  - sql: {name: keys, run: "ALTER TABLE parents ADD PRIMARY KEY (id); ALTER TABLE children ADD PRIMARY KEY (id)"}
  - sql: {name: index, run: CREATE INDEX ON children (word)}
  - sql: {name: logged, run: "ALTER TABLE children SET LOGGED"}
  - sql: {name: foreign_key, run: "ALTER TABLE children ADD CONSTRAINT fk FOREIGN KEY (parent) REFERENCES parents (id) NOT VALID; ALTER TABLE children VALIDATE CONSTRAINT fk"}
  - sql: {name: unique_index, run: "CREATE UNIQUE INDEX CONCURRENTLY children_pair ON children (id, parent)"}
  - sql: {name: vacuum, run: "-- all at once\nVACUUM (FREEZE, ANALYZE) children"}
  - sql: {name: analyze, run: ANALYZE}
  - sql: {name: checkpoint, run: CHECKPOINT}
  - sql: {name: both, run: "CREATE TABLE more AS SELECT * FROM children; CHECKPOINT; checkpoint;"}
  - sql: {name: quiet, run: "SELECT count(*) FROM children"}
"#;

#[test]
fn statements_after_a_load_have_spans_sizes_and_no_guards_of_their_own_making() {
    for server in [Server::Local, Server::Container] {
        if !server.is_here() {
            continue;
        }
        let lab = Lab::new();
        lab.experiment(EXPERIMENT);
        let said = lab.run(server, &[]);
        let run = lab.find().unwrap_or_else(|| panic!("{}", said.stderr));
        let record = run.record();
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        for measurement in &record.measurements {
            let ours = measurement
                .guards
                .iter()
                .any(|guard| matches!(guard, Guard::CheckpointInWindow | Guard::AutovacuumInWindow));
            assert!(!ours, "{}: {:?}", measurement.step, measurement.guards);
            assert!(measurement.spans.seconds > 0.0, "{}", measurement.step);
            assert!(measurement.counters.wal_bytes.is_some(), "{}", measurement.step);
        }
        let sizes = |name| {
            let counters = &step(&record, name).counters;
            (counters.table_bytes.unwrap_or(0), counters.index_bytes.unwrap_or(0))
        };
        assert!(sizes("before").0 > 100_000 && sizes("before").1 == 0, "{:?}", sizes("before"));
        assert!(sizes("keys").1 > 100_000 && sizes("index").1 > sizes("keys").1);
        let wal = |name| step(&record, name).counters.wal_bytes.unwrap_or(0);
        assert!(wal("logged") > 200_000, "{}", wal("logged"));
        assert_eq!(step(&record, "checkpoint").counters.checkpoints_requested, Some(0));
        let said = said.ended_with(0);
        for name in ["foreign_key", "vacuum", "checkpoint"] {
            assert!(
                said.stdout.contains(&format!("{name} (sql)")),
                "{name} is not in the table:\n{}",
                said.stdout
            );
        }
    }
}

fn wrong(sql: &str, treatments: &str) -> (usize, String) {
    let lab = Lab::new();
    lab.experiment(&format!(
        "experiment: wrong\nquestion: Is it seen?\nenvironment: postgres\ndesign: {{blocks: 6, factors: {{n: {treatments}}}}}\n\
         tables:\n  t: {{ddl: CREATE TABLE t (id bigint), rows: 10}}\nsteps:\n  - create: t\n  - load: {{table: t, method: copy}}\n  \
         - sql: {{run: \"{sql}\"}}\n"
    ));
    let said = lab.run(Server::Local, &[]).ended_with(1);
    (lab.newest().records().len(), said.stderr)
}

#[test]
fn sql_that_no_server_understands_ends_the_run_after_the_first_trial() {
    let (trials, said) = wrong("SELCT {{ n }}", "[1, 2, 3]");
    assert_eq!(trials, 1);
    assert!(said.contains("the server does not understand the experiment's SQL"), "{said}");
}

#[test]
fn sql_that_fails_in_every_treatment_ends_the_run_after_the_first_block() {
    let (trials, said) = wrong("SELECT {{ n }} FROM nowhere", "[1, 2]");
    assert_eq!(trials, 2);
    assert!(said.contains("refuses the experiment's SQL in every treatment"), "{said}");
    let (trials, _) = wrong("SELECT 1 FROM {{ 't' if n == 1 else 'nowhere' }}", "[1, 2]");
    assert_eq!(trials, 12, "one treatment is fine");
}
