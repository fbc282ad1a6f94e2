//! Loads whose rows the server takes apart or makes itself, on both backends: the very rows of the generator.

use std::fmt::Write;

use loadlab::model::Outcome;

use crate::lab::{Lab, Server, step};

/// Loads of the table whose values follow from the row number.
const WAYS: &[(&str, &str, u32)] = &[
    ("copy", "method: copy", 1),
    ("unnest", "method: unnest", 1),
    ("unnest batches", "method: {unnest: {rows_per_batch: 50, rows_per_commit: 120}}", 1),
    ("unnest autocommit", "method: {unnest: {rows_per_batch: 1, rows_per_commit: 1}}", 1),
    ("unnest clients", "method: {unnest: {rows_per_batch: 20}}, clients: 3", 2),
    ("generate", "method: generate", 1),
    ("generate commits", "method: {generate: {rows_per_commit: 100}}, until: settled", 1),
    ("generate clients", "method: {generate: {rows_per_commit: 50}}, clients: 3", 2),
    ("procedure", "method: procedure", 1),
    ("procedure commits", "method: {procedure: {rows_per_commit: 60}}, clients: 2", 1),
];

/// Every type by generators that the server can compute, with values that break translations.
const COMPUTED: &str = r#"
    ddl: |
      CREATE TABLE {{ table }} (
        c_bool boolean, c_int2 smallint, c_int4 integer, c_int8 bigint, c_float4 real, c_float8 double precision,
        c_numeric numeric(12,3), c_any numeric, c_text text, c_varchar varchar(60), c_char char(30), c_bytea bytea, c_date date,
        c_timestamp timestamp, c_timestamptz timestamptz, c_long timestamptz, c_uuid uuid, c_jsonb jsonb, c_json json, c_null text,
        c_extreme bigint, c_backslash text)
    rows: 203
    copies: "{{ way.copies }}"
    values:
      c_bool: true
      c_int2: {sequence: {start: -100, step: 1}}
      c_int4: {sequence: {start: 2147483000, step: -7}}
      c_int8: {sequence: {start: 9223372036854775807, step: -9000000000000000}}
      c_float4: {sequence: {start: 0.1, step: 0.3}}
      c_float8: {sequence: {start: -1e300, step: 1.1e298}}
      c_numeric: {sequence: {start: -10.5, step: 0.125}}
      c_any: {sequence: {start: 1, step: 0.5}}
      c_text: {template: "it's {{ row }} of {{ row * 7 + 3 | pad(2) }} \\ {{ row // 10 % 7 | pad(3) }}"}
      c_varchar: {template: "{{ row % 10 * 3 - 15 | pad(4) }}|{{ row * 9223372036854775807 }}"}
      c_char: {template: "{{ row * 1000 | pad(8) }}é"}
      c_bytea: "\\x00ff5c27"
      c_date: {sequence: {start: 1969-12-30, step: -3}}
      c_timestamp: {sequence: {start: 2024-02-28T23:59:00, step: 0.000001}}
      c_timestamptz: {sequence: {start: 2024-03-30T23:59:00Z, step: 1800}}
      c_long: {sequence: {start: 1900-01-01T00:00:00Z, step: 400000000.5}}
      c_uuid: 01234567-89ab-cdef-0123-456789abcdef
      c_jsonb: {object: {n: {sequence: {start: 5, step: 2}}, deep: {object: {t: {template: "a\"{{ row }}\t"}}}, f: true, x: null}}
      c_json: {object: {half: {sequence: {start: 5, step: -25}}, text: "q\"\\"}}
      c_null: null
      c_extreme: -9223372036854775808
      c_backslash: "a\\b'c\n\\."
"#;

fn experiment() -> String {
    let mut text = "experiment: loads\nquestion: Does the server make the same rows?\nenvironment: postgres\n\
                    server: {settings: {timezone: America/New_York}}\ndesign:\n  blocks: 1\n  factors:\n    way:\n"
        .to_owned();
    for (name, _, copies) in WAYS {
        writeln!(text, "      {name}: {{copies: {copies}}}").unwrap();
    }
    write!(text, "tables:\n  computed:{COMPUTED}steps:\n  - create: computed\n").unwrap();
    for (name, load, _) in WAYS {
        let when = format!("when: \"{{{{ way.name == '{name}' }}}}\"");
        writeln!(text, "  - load: {{{when}, name: load, table: computed, {load}}}").unwrap();
    }
    text
}

fn the_same_rows(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.experiment(&experiment());
    let said = lab.run(server, &[]);
    let run = lab.find().unwrap_or_else(|| panic!("{}", said.stderr));
    for record in run.records() {
        assert_eq!(record.outcome, Outcome::Ok, "{}: {:?}", record.treatment, record.error);
    }
    said.ended_with(0);
    assert_eq!(run.records().len(), WAYS.len());
    for record in run.records() {
        let load = step(&record, "load");
        let (name, _, copies) = WAYS[usize::try_from(record.trial.treatment_index).unwrap()];
        assert_eq!((load.rows, load.rows_in_table), (Some(203), Some(203)), "{name}");
        assert!(load.checksum.is_some() && load.checksum == load.checksum_expected, "{name}");
        assert_eq!(load.content_unverified, None, "{name}");
        let in_server = name.starts_with("generate") || name.starts_with("procedure");
        assert_eq!(load.payload_bytes == Some(0), in_server, "{name}: {:?}", load.payload_bytes);
        assert_eq!(load.spans.transfer.is_none(), name.starts_with("procedure"), "{name}");
        let commits = load.commit_latency.map_or(0, |commits| commits.count);
        let expected = match name {
            "unnest autocommit" | "procedure" | "procedure commits" => 0,
            "unnest batches" => 2,
            "generate commits" | "unnest clients" => 3,
            "generate clients" => 6,
            _ => u64::from(copies),
        };
        assert_eq!(commits, expected, "{name}");
    }
}

#[test]
fn the_server_makes_the_rows_of_the_generator_on_a_local_server() {
    the_same_rows(Server::Local);
}

#[test]
fn the_server_makes_the_rows_of_the_generator_in_a_container() {
    the_same_rows(Server::Container);
}

const OWN: &str = r#"
experiment: own_sql
question: Are rows of one's own SQL counted?
environment: postgres
design:
  blocks: 1
  factors: {how: [expressions, looped, body, few, misspelt]}
tables:
  t:
    ddl: CREATE TABLE t (id bigint, mark double precision, word text)
    rows: 1000
    values:
      id: {sequence: {start: 1}}
      mark: {uniform: {min: 0, max: 1}}
      word: {template: "w{{ row }}"}
steps:
  - create: t
  - load: {name: load, when: "{{ how == 'expressions' }}", table: t, method: {generate: {expressions: {mark: random()}}}}
  - load: {name: load, when: "{{ how == 'looped' }}", table: t, clients: 2, method: {procedure: {rows_per_commit: 100, expressions: {mark: row / 7.0}}}}
  - load: {name: load, when: "{{ how == 'body' }}", table: t, clients: 3, method: {procedure: {body: body.sql}}}
  - load: {name: load, when: "{{ how == 'few' }}", table: t, method: {procedure: {body: "INSERT INTO t SELECT i FROM generate_series(first_row + 1, last_row) i;"}}}
  - load: {name: load, when: "{{ how == 'misspelt' }}", table: t, method: {generate: {expressions: {mark: "rwo * 2"}}}}
  - read: {table: t, method: select, decode: values}
"#;

/// Two transactions; the names are those the documentation promises.
const BODY: &str = "FOR number IN first_row .. last_row LOOP
  INSERT INTO t VALUES (number, {{ 0.5 }}, 'own');
  IF number = first_row THEN COMMIT; END IF;
END LOOP;
row := last_row;";

#[test]
fn rows_of_own_sql_are_counted_and_said_to_be_only_counted() {
    let lab = Lab::new();
    lab.write("body.sql", BODY);
    lab.experiment(OWN);
    let said = lab.run(Server::Local, &[]).ended_with(1);
    for record in lab.newest().records() {
        let name = record.treatment.as_str();
        let load = step(&record, "load");
        match name {
            "how=few" => {
                assert_eq!(record.outcome, Outcome::Failed);
                assert_eq!((load.rows, load.rows_in_table), (Some(999), Some(999)));
                assert!(
                    record.error.as_ref().is_some_and(|error| error.contains("holds 999 rows")),
                    "{record:?}"
                );
            }
            "how=misspelt" => {
                assert_eq!(record.error_sqlstate.as_deref(), Some("42703"), "{:?}", record.error);
                assert!(load.spans.seconds == 0.0, "found before the clock");
            }
            _ => {
                assert_eq!(record.outcome, Outcome::Ok, "{name}: {:?}", record.error);
                assert_eq!((load.rows, load.rows_in_table), (Some(1000), Some(1000)), "{name}");
                assert_eq!(load.checksum_expected, None, "{name}");
                assert!(load.checksum.is_some() && load.content_unverified.is_some(), "{name}");
                let read = step(&record, "select");
                assert_eq!((read.rows_expected, &read.checksum_expected), (Some(1000), &None), "{name}");
                assert_eq!(read.checksum, load.checksum, "{name}: what is stored is what is read");
            }
        }
    }
    assert!(
        !said.stderr.contains("refuses the experiment's SQL"),
        "other treatments are fine: {}",
        said.stderr
    );
}
