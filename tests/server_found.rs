//! Faults that were found by trying to break loadlab, each named after what went wrong.

use loadlab::model::Guard;

use crate::lab::{Lab, Server, step};

/// One treatment, one block.
fn experiment(more: &str, tables: &str, steps: &str) -> String {
    format!(
        "experiment: found\nquestion: Is it noticed?\nenvironment: postgres\ndesign: {{blocks: 1}}\n{more}\n\
         tables:\n{tables}\nsteps:\n{steps}\n"
    )
}

const PLAIN: &str =
    "  t: {ddl: 'CREATE TABLE t (id bigint, name text)', rows: 20_000, values: {id: {sequence: {start: 1}}}}";

/// The position that is written lags behind what was inserted as long as nobody waits for a commit.
#[test]
fn wal_of_a_read_that_sets_hint_bits_is_counted() {
    let lab = Lab::new();
    let steps = "  - create: t\n  - load: {name: load, table: t, method: {copy: {}}, until: durable}\n  \
                 - read: {name: read, table: t, method: {copy_out: {format: binary}}}";
    lab.experiment(&experiment("server: {settings: {autovacuum: off}}", PLAIN, steps));
    lab.run(Server::Local, &[]).ended_with(0);
    let record = lab.newest().record();
    let counters = step(&record, "read").counters;
    // Checksums are on, so a page whose hint bits change is logged whole.
    assert!(counters.wal_full_page_images.unwrap() > 50, "{counters:?}");
    assert!(counters.wal_bytes.unwrap() > 50 * 1000, "{counters:?}");
}

#[test]
fn sizes_of_a_partitioned_table_are_those_of_its_partitions() {
    let lab = Lab::new();
    let table = "  t:\n    ddl: |\n      CREATE TABLE t (id bigint PRIMARY KEY, name text) PARTITION BY HASH (id);\n      \
                 CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);\n      \
                 CREATE TABLE t_1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);\n    rows: 5_000";
    let steps = "  - create: t\n  - load: {name: load, table: t, method: {copy: {}}}";
    lab.experiment(&experiment("", table, steps));
    lab.run(Server::Local, &[]).ended_with(0);
    let record = lab.newest().record();
    let counters = step(&record, "load").counters;
    assert!(
        counters.table_bytes.unwrap() > 100_000 && counters.index_bytes.unwrap() > 50_000,
        "{counters:?}"
    );
}

/// The sum over all copies did not change.
#[test]
fn rows_that_land_in_the_wrong_copy_are_noticed() {
    let lab = Lab::new();
    let table = "  t: {ddl: 'CREATE TABLE {{ table }} (id bigint)', rows: 200, copies: 2, values: {id: {sequence: {start: 1}}}}";
    let steps = "  - create: t\n  - sql: |\n      CREATE FUNCTION astray() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n        \
                 INSERT INTO t_2 VALUES (NEW.id); RETURN NULL; END $$;\n      \
                 CREATE TRIGGER astray BEFORE INSERT ON t_1 FOR EACH ROW EXECUTE FUNCTION astray();\n  \
                 - load: {name: load, table: t, method: {insert: {}}, clients: 2}";
    lab.experiment(&experiment("", table, steps));
    lab.run(Server::Local, &[]).ended_with(1);
    let record = lab.newest().record();
    assert!(step(&record, "load").guards.contains(&Guard::ChecksumWrong), "{record:?}");
}

#[test]
fn decoded_values_of_some_columns_are_verified_too() {
    let lab = Lab::new();
    let steps = "  - create: t\n  - load: {name: load, table: t, method: {copy: {}}}\n  \
                 - read: {name: read, table: t, columns: [name], method: {select: {mode: streamed}}, decode: values}";
    lab.experiment(&experiment("", PLAIN, steps));
    lab.run(Server::Local, &[]).ended_with(0);
    let record = lab.newest().record();
    let read = step(&record, "read");
    assert!(read.checksum.is_some());
    assert_eq!(read.checksum, read.checksum_expected);
}

/// The server's names are not case-sensitive, and it shows values in a spelling of its own.
#[test]
fn settings_in_another_spelling_are_in_force() {
    let lab = Lab::new();
    let settings = "server: {settings: {WORK_MEM: 1024kB, DateStyle: german, TimeZone: europe/berlin, my.thing: yes please}}";
    let steps = "  - create: t\n  - load: {name: load, table: t, method: {copy: {}}}";
    lab.experiment(&experiment(settings, PLAIN, steps));
    lab.run(Server::Local, &[]).ended_with(0);
    let record = lab.newest().record();
    let ineffective: Vec<_> = record.settings.iter().filter(|setting| !setting.in_force).collect();
    assert!(ineffective.is_empty(), "{ineffective:?}");
}

#[test]
fn a_run_is_not_resumed_on_another_backend() {
    let lab = Lab::new();
    let steps = "  - create: t\n  - load: {name: load, table: t, method: {copy: {}}}";
    lab.experiment(&experiment("", PLAIN, steps));
    lab.run(Server::Local, &[]).ended_with(0);
    lab.loadlab(&["run", "experiment.yaml", "--on", "external", "--environments", "local", "--resume"])
        .ended_with(2)
        .complained(&["was begun", "on backend local"]);
    lab.loadlab(&["run", "experiment.yaml", "--environments", "local", "--resume"])
        .ended_with(0)
        .complained(&["nothing is left to resume"]);
}
