//! Dumps and restores on both backends: what comes back is what was there, and P4's trap is refused.

use loadlab::model::Outcome;

use crate::lab::{Lab, Server, step};

const EXPERIMENT: &str = r#"
experiment: restore
question: Does everything come back?
environment: postgres
design:
  blocks: 1
  factors:
    how:
      direct: {format: directory, jobs: 1, through: direct, indexes: true, dump_jobs: 2}
      jobs: {format: directory, jobs: 3, through: direct, indexes: true, dump_jobs: 1}
      custom: {format: custom, jobs: 2, through: direct, indexes: true, dump_jobs: 1}
      piped: {format: directory, jobs: 1, through: psql, indexes: true, dump_jobs: 1}
      plain: {format: plain, jobs: 1, through: psql, indexes: true, dump_jobs: 1}
      no indexes: {format: custom, jobs: 1, through: psql, indexes: false, dump_jobs: 1}
tables:
  parents:
    ddl: CREATE TABLE parents (id bigint, doc jsonb, note text)
    indexes: ALTER TABLE parents ADD PRIMARY KEY (id)
    rows: 500
    values:
      id: {shuffle: {start: 1}}
      doc: {object: {n: {uniform: {min: 0, max: 9}}}, nulls: 20%}
      note: {choice: ["it's", "tab\there", "\\.", "", "line\nfeed", "ünï"]}
  children:
    ddl: CREATE UNLOGGED TABLE {{ table }} (parent bigint, amount numeric(10,2))
    indexes: |
      ALTER TABLE {{ table }} ADD FOREIGN KEY (parent) REFERENCES parents (id);
      CREATE INDEX ON {{ table }} (amount);
    rows: 900
    copies: 2
    values:
      parent: {uniform: {min: 1, max: 500}}
      amount: {uniform: {min: -5, max: 5}}
  parted:
    ddl: |
      CREATE TABLE parted (id integer, word text) PARTITION BY RANGE (id);
      CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (50);
      CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (50) TO (MAXVALUE);
    rows: 100
    values: {id: {sequence: {start: 0}}}
steps:
  - create: parents
  - create: children
  - create: parted
  - load: {table: parents, method: copy}
  - load: {table: children, method: copy, clients: 2}
  - load: {table: parted, method: copy}
  - sql: {name: changed, run: "DELETE FROM parents WHERE id NOT IN (SELECT parent FROM children_1 UNION SELECT parent FROM children_2)"}
  - dump: {format: "{{ how.format }}", jobs: "{{ how.dump_jobs }}"}
  - restore: {from: dump, through: "{{ how.through }}", jobs: "{{ how.jobs }}", with_indexes: "{{ how.indexes }}"}
  - index: {table: parents, when: "{{ not how.indexes }}"}
  - sql: {name: keys, run: "INSERT INTO parents VALUES ((SELECT max(id) FROM parents), NULL, 'x') ON CONFLICT (id) DO NOTHING"}
  - read: {table: parted, method: copy_out}
"#;

fn comes_back(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.experiment(EXPERIMENT);
    let said = lab.run(server, &[]);
    let run = lab.find().unwrap_or_else(|| panic!("{}", said.stderr));
    for record in run.records() {
        let name = &record.treatment;
        assert_eq!(record.outcome, Outcome::Ok, "{name}: {:?}", record.error);
        let (dump, restore) = (step(&record, "dump"), step(&record, "restore"));
        assert_eq!((dump.kind.as_str(), restore.kind.as_str()), ("dump", "restore"));
        assert!(
            dump.rows > Some(1400) && dump.rows == restore.rows,
            "{name}: {:?} {:?}",
            dump.rows,
            restore.rows
        );
        assert_eq!(restore.rows_in_table, restore.rows_expected, "{name}");
        assert!(restore.checksum.is_some() && restore.checksum == restore.checksum_expected, "{name}");
        assert!(dump.payload_bytes > Some(5_000), "{name}: {:?}", dump.payload_bytes);
        assert!(restore.payload_bytes == dump.payload_bytes, "{name}");
        assert!(restore.counters.wal_bytes > Some(10_000), "{name}: {:?}", restore.counters);
        assert!(restore.counters.table_bytes > Some(10_000), "{name}");
        let indexes = restore.parameters.contains("\"with_indexes\":true");
        assert_eq!(restore.counters.index_bytes > Some(0), indexes, "{name}: {:?}", restore.counters);
        assert!(restore.client_cpu_seconds > Some(0.0), "{name}");
        assert!(restore.counters.server_cpu_seconds >= Some(0.0), "{name}");
        assert_eq!((restore.spans.transfer, restore.spans.commit), (None, None));
        assert!(!restore.parameters.contains('/'), "{}", restore.parameters);
        assert_eq!(step(&record, "copy_out").rows, Some(100), "{name}");
    }
    said.ended_with(0);
    assert_eq!(run.records().len(), 6);
}

#[test]
fn dumps_come_back_on_a_local_server() {
    comes_back(Server::Local);
}

#[test]
fn dumps_come_back_in_a_container() {
    comes_back(Server::Container);
}

const OWN_DUMP: &str = r#"
experiment: own_dump
question: Can somebody else's dump be measured?
environment: postgres
design:
  blocks: 1
  factors: {how: [described, counted, wrong, broken]}
tables:
  t:
    ddl: CREATE TABLE t (id bigint, word text)
    rows: 3
    values: {id: {sequence: {start: 1}}, word: {template: "w{{ row }}"}}
steps:
  - restore: {name: restore, when: "{{ how == 'described' }}", from: good.sql, through: psql, tables: [t]}
  - restore: {name: restore, when: "{{ how == 'counted' }}", from: good.sql, through: psql}
  - restore: {name: restore, when: "{{ how == 'wrong' }}", from: wrong.sql, through: psql, tables: [t]}
  - restore: {name: restore, when: "{{ how == 'broken' }}", from: broken.sql, through: psql, tables: [t]}
"#;

const GOOD: &str =
    "CREATE TABLE t (id bigint, word text);\nCOPY t (id, word) FROM stdin;\n1\tw0\n2\tw1\n3\tw2\n\\.\n";

fn own_dump(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.experiment(OWN_DUMP);
    lab.write("good.sql", GOOD);
    lab.write("wrong.sql", &GOOD.replace("w1", "other"));
    lab.write("broken.sql", &format!("SELECT nothing_of_that_name();\n{GOOD}"));
    lab.run(server, &[]).ended_with(1);
    for record in lab.newest().records() {
        let name = record.treatment.as_str();
        let restore = step(&record, "restore");
        let error = record.error.clone().unwrap_or_default();
        match name {
            "how=described" => {
                assert_eq!(record.outcome, Outcome::Ok, "{error}");
                assert_eq!((restore.rows, &restore.content_unverified), (Some(3), &None));
                assert!(restore.checksum.is_some() && restore.checksum == restore.checksum_expected);
            }
            "how=counted" => {
                assert_eq!(record.outcome, Outcome::Ok, "{error}");
                assert_eq!((restore.rows, restore.rows_expected), (Some(3), None));
                assert!(restore.content_unverified.is_some() && restore.checksum_expected.is_none());
            }
            "how=wrong" => assert!(error.contains("the restored table t holds 3 rows"), "{error}"),
            _ => {
                assert_eq!(record.outcome, Outcome::Failed);
                assert!(error.contains("psql ended with exit code 3"), "{error}");
                assert!(error.contains("nothing_of_that_name"), "the server's words: {error}");
            }
        }
    }
}

#[test]
fn a_dump_of_ones_own_is_verified_as_far_as_it_is_described_on_a_local_server() {
    own_dump(Server::Local);
}

#[test]
fn a_dump_of_ones_own_is_verified_as_far_as_it_is_described_in_a_container() {
    own_dump(Server::Container);
}
