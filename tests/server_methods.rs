//! Every way to load and to read, a small trial each, on both backends: always the same content.

use std::fmt::Write;

use loadlab::data::Content;
use loadlab::engine::postgres::encode::expected_content;
use loadlab::model::{Outcome, TrialRecord};
use loadlab::spec::{LoadOptions, load};

use crate::lab::{Lab, Server, step};

/// A way to load: name, keys of the load step, and what it needs of the trial.
struct Way {
    name: &'static str,
    load: &'static str,
    copies: u32,
    /// `create` step before; the load that creates has none.
    created: bool,
    /// Whether the rows are frozen after the load; `None`: not looked at.
    frozen: Option<bool>,
}

const fn way(name: &'static str, load: &'static str) -> Way {
    Way { name, load, copies: 1, created: true, frozen: None }
}

/// 203 rows: every size below leaves a short rest.
const WAYS: &[Way] = &[
    way("insert", "method: {insert: {}}"),
    way("insert statements", "method: {insert: {rows_per_statement: 10}}"),
    way("insert batches", "method: {insert: {rows_per_batch: 50}}"),
    way("insert statements in batches", "method: {insert: {rows_per_statement: 5, rows_per_batch: 20}}"),
    way("insert commits", "method: {insert: {rows_per_batch: 30, rows_per_commit: 60}}"),
    way("insert autocommit", "method: {insert: {rows_per_commit: 1}}"),
    way("insert literals", "method: {insert: {prepared: false}}"),
    way(
        "insert many literals",
        "method: {insert: {prepared: false, rows_per_statement: 10, rows_per_batch: 50}}",
    ),
    way("insert literals autocommit", "method: {insert: {prepared: false, rows_per_commit: 1}}"),
    Way { copies: 2, ..way("insert clients", "method: {insert: {rows_per_batch: 10}}, clients: 5") },
    Way { frozen: Some(false), ..way("copy text", "method: {copy: {format: text}}") },
    way("copy csv", "method: {copy: {format: csv}}"),
    way("copy csv header", "method: {copy: {format: csv, header: true}}"),
    way("copy binary", "method: {copy: {format: binary}}"),
    way("copy commits", "method: {copy: {format: csv, header: true, rows_per_commit: 40}}"),
    way("copy small chunks", "method: {copy: {format: binary, chunk: 1kB}}"),
    way("copy one chunk", "method: {copy: {format: text, chunk: 64MB}}"),
    Way { frozen: Some(false), ..way("copy truncate", "method: {copy: {same_transaction: truncate}}") },
    Way {
        frozen: Some(true),
        ..way("copy freeze", "method: {copy: {same_transaction: truncate, freeze: true}}")
    },
    Way {
        frozen: Some(true),
        created: false,
        ..way(
            "copy freeze create",
            "method: {copy: {format: binary, same_transaction: create, freeze: true}}",
        )
    },
    Way {
        copies: 2,
        created: false,
        ..way("copy create clients", "method: {copy: {format: csv, same_transaction: create}}, clients: 2")
    },
    way("copy server text", "method: {copy: {source: server}}"),
    way(
        "copy server csv",
        "method: {copy: {source: server, format: csv, header: true, rows_per_commit: 90}}",
    ),
    Way {
        copies: 3,
        ..way("copy server binary", "method: {copy: {source: server, format: binary}}, clients: 3")
    },
    Way { copies: 3, ..way("copy clients", "method: {copy: {format: text}}, clients: 4") },
    way("copy durable", "method: {copy: {}}, until: durable"),
    way("copy settled", "method: {copy: {}}, until: settled, verify: end"),
];

/// Ways to read; one follows each load, in turn. `values` are decoded and compared with the generator.
const READS: &[(&str, bool)] = &[
    ("method: {select: {mode: all}}", false),
    ("method: {select: {mode: streamed}}, decode: values", true),
    ("method: {select: {mode: {portal: {fetch_size: 7}}}}, decode: values", true),
    ("method: {select: {format: text}}, decode: values", true),
    ("method: {select: {mode: streamed, format: text}}, decode: values, clients: 2", true),
    ("method: {copy_out: {format: text}}, decode: values", true),
    ("method: {copy_out: {format: csv}}, decode: values, clients: 3", true),
    ("method: {copy_out: {}}", false),
    ("method: {select: {format: text}}, decode: values, clients: 3, by: key, key: c_int8", true),
    ("method: {copy_out: {format: binary}}, decode: values, clients: 2", true),
    ("method: {select: {}}, decode: values, clients: 7, cache: warm", true),
    ("method: {select: {}}, decode: values, columns: [c_int8, c_text]", false),
    ("method: {copy_out: {format: binary}}, columns: [c_texts, c_bool]", false),
    ("method: {select: {mode: {portal: {fetch_size: 1000}}}}, decode: values, clients: 3", true),
];

/// The read after a load; copies of a table each need a client.
fn read_after(place: usize) -> (&'static str, bool) {
    if WAYS[place].copies > 1 {
        return ("method: {copy_out: {format: binary}}, decode: values, clients: 5", true);
    }
    READS[place % READS.len()]
}

/// Every column type with every generator that fits, with nulls and with what breaks encoders.
const TABLE: &str = r#"
    ddl: |
      CREATE TABLE {{ table }} (
        c_bool boolean, c_int2 smallint, c_int4 integer, c_int8 bigint NOT NULL, c_float4 real, c_float8 double precision,
        c_numeric numeric(12,3), c_text text, c_varchar varchar(40), c_char char(8), c_bytea bytea, c_date date,
        c_timestamp timestamp, c_timestamptz timestamptz, c_uuid4 uuid, c_uuid7 uuid, c_jsonb jsonb, c_json json,
        c_ints integer[], c_texts text[], c_zipf integer, c_normal double precision, c_choice text, c_weighted integer,
        c_shuffled bigint, c_constant text, c_template text, c_null text)
    indexes: CREATE UNIQUE INDEX ON {{ table }} (c_int8)
    rows: 203
    copies: "{{ way.copies }}"
    values:
      c_bool: {choice: [true, false], nulls: 10%}
      c_int2: {uniform: {min: -100, max: 100}, nulls: 10%}
      c_int4: {uniform: {min: -2147483648, max: 2147483647}, nulls: 10%}
      c_int8: {sequence: {start: -100, step: 3}}
      c_float4: {uniform: {min: -1.5, max: 2.5}, nulls: 10%}
      c_float8: {uniform: {min: -1e9, max: 1e9}, nulls: 10%}
      c_numeric: {uniform: {min: -1000, max: 1000}, nulls: 10%}
      c_text: {text: {length: {min: 0, max: 60}, compressibility: 0.5}, nulls: 10%}
      c_varchar: {text: {length: 40}, nulls: 10%}
      c_char: {text: {length: {min: 1, max: 8}}, nulls: 10%}
      c_bytea: {bytes: {length: {min: 0, max: 30}}, nulls: 10%}
      c_date: {sequence: {start: 1969-12-30, step: 1}, nulls: 10%}
      c_timestamp: {uniform: {min: "1901-01-01 00:00:00", max: "2130-01-01 00:00:00"}, nulls: 10%}
      c_timestamptz: {sequence: {start: 2024-02-28T23:59:00Z, step: 0.5}, nulls: 10%}
      c_uuid4: {uuid: v4, nulls: 10%}
      c_uuid7: {uuid: v7, nulls: 10%}
      c_jsonb: {object: {n: {uniform: {min: 0, max: 9}}, t: {choice: [x, "y\"z", "t\tb"]}, f: true}, nulls: 10%}
      c_json: {object: {n: {normal: {mean: 0, deviation: 1}}}, nulls: 10%}
      c_ints: {array: {length: {min: 0, max: 4}, of: {uniform: {min: -9, max: 9}}}, nulls: 10%}
      c_texts: {array: {length: {min: 0, max: 4}, of: {choice: [a, "b,c", "d\"e", "", "null", "{}"]}}, nulls: 10%}
      c_zipf: {zipf: {n: 100, exponent: 1.2}}
      c_normal: {normal: {mean: 20, deviation: 5}}
      c_choice: {choice: ["it's", "tab\there", "back\\slash", "\\.", "", "line\nfeed", "\r", "\\N", "NULL", "ünï"]}
      c_weighted: {choice: {1: 5, 2: 1}}
      c_shuffled: {shuffle: {start: 10}}
      c_constant: same
      c_template: {template: "row {{ row }} of {{ row % 10 | pad(3) }}"}
      c_null: null
"#;

fn experiment() -> String {
    let mut text = "experiment: methods\nquestion: Does every way to load and read give the same rows?\nenvironment: postgres\n\
                    design:\n  blocks: 1\n  factors:\n    way:\n"
        .to_owned();
    for way in WAYS {
        let frozen = way.frozen.map_or("unknown".to_owned(), |frozen| frozen.to_string());
        writeln!(
            text,
            "      {}: {{copies: {}, created: {}, frozen: \"{frozen}\"}}",
            way.name, way.copies, way.created
        )
        .unwrap();
    }
    write!(text, "tables:\n  every_type:{TABLE}steps:\n").unwrap();
    text += "  - create: {table: every_type, without: indexes, when: \"{{ way.created }}\"}\n";
    for (place, way) in WAYS.iter().enumerate() {
        let (read, _) = read_after(place);
        let when = format!("when: \"{{{{ way.name == '{}' }}}}\"", way.name);
        writeln!(text, "  - load: {{{when}, name: load, table: every_type, {}}}", way.load).unwrap();
        writeln!(text, "  - read: {{{when}, name: read, table: every_type, {read}}}").unwrap();
    }
    text += "  - sql: {name: frozen, run: frozen.sql, when: \"{{ way.frozen != 'unknown' }}\"}\n";
    text += "  - index: every_type\n";
    text += "  - sql: {name: together, run: \"CREATE TABLE a (n int); INSERT INTO a VALUES (1); DROP TABLE a\", transaction: true}\n";
    text
}

/// COPY FREEZE alone sets the visibility map while it loads.
const FROZEN: &str = r"
DO $$ BEGIN
  IF (pg_relation_size('every_type', 'vm') > 0) <> {{ way.frozen }} THEN
    RAISE EXCEPTION 'visibility map of % bytes, frozen: {{ way.frozen }}', pg_relation_size('every_type', 'vm');
  END IF;
END $$;
";

/// Content of the table, computed here and without any server.
fn expected(lab: &Lab) -> Content {
    let options = LoadOptions { environments: Some(lab.folder().join("local")), ..LoadOptions::default() };
    let spec = load(&lab.folder().join("experiment.yaml"), &options).unwrap();
    let treatment = loadlab::model::Treatment { levels: vec![0] };
    expected_content(&spec.bind(&treatment).unwrap().tables[0], 0).unwrap()
}

fn every_method(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.write("frozen.sql", FROZEN);
    lab.experiment(&experiment());
    let said = lab.run(server, &[]);
    let run = lab.newest();
    for record in run.records() {
        assert_eq!(record.outcome, Outcome::Ok, "{}: {:?}", record.treatment, record.error);
    }
    said.ended_with(0);
    let expected = expected(&lab);
    assert_eq!(expected.rows, 203);
    let checksum = format!("{:032x}", expected.checksum);
    assert_eq!(run.records().len(), WAYS.len());
    for record in run.records() {
        let place = usize::try_from(record.trial.treatment_index).unwrap();
        let way = &WAYS[place];
        assert_eq!(record.treatment, format!("way={}", way.name));
        loaded(&record, way, &checksum);
        read(&record, read_after(place).1, &checksum);
    }
}

fn loaded(record: &TrialRecord, way: &Way, checksum: &str) {
    let load = step(record, "load");
    let name = way.name;
    assert_eq!(
        (load.rows, load.rows_in_table, load.rows_expected),
        (Some(203), Some(203), Some(203)),
        "{name}"
    );
    assert_eq!(load.checksum.as_deref(), Some(checksum), "{name}");
    assert_eq!(load.checksum_expected.as_deref(), Some(checksum), "{name}");
    assert!(load.payload_bytes > Some(10_000), "{name}: {:?}", load.payload_bytes);
    assert!(load.counters.wal_bytes > Some(10_000), "{name}: {:?}", load.counters);
    assert!(load.counters.table_bytes > Some(10_000), "{name}: {:?}", load.counters);
    assert_eq!(load.counters.index_bytes, Some(0), "{name}: indexes come later");
    assert!(load.spans.seconds > 0.0 && load.spans.verify > Some(0.0), "{name}: {:?}", load.spans);
    assert_eq!(load.spans.flush.is_some(), way.load.contains("until"), "{name}");
    assert_eq!(load.spans.settle.is_some(), way.load.contains("settled"), "{name}");
    assert!(load.batch_latency.is_some(), "{name}");
    assert!(step(record, "index").counters.index_bytes > Some(0), "{name}");
}

fn read(record: &TrialRecord, values: bool, checksum: &str) {
    let read = step(record, "read");
    let name = &read.parameters;
    assert_eq!((read.rows, read.rows_expected), (Some(203), Some(203)), "{name}");
    assert!(read.payload_bytes > Some(500), "{name}: {:?}", read.payload_bytes);
    assert!(read.spans.first_row <= Some(read.spans.seconds), "{name}: {:?}", read.spans);
    assert!(read.spans.first_row > Some(0.0), "{name}: {:?}", read.spans);
    if values {
        assert_eq!(read.checksum.as_deref(), Some(checksum), "{name}");
    }
}

#[test]
fn every_method_gives_the_same_rows_on_a_local_server() {
    every_method(Server::Local);
}

#[test]
fn every_method_gives_the_same_rows_in_a_container() {
    every_method(Server::Container);
}
