//! Rows of the user's own, from CSV and Parquet, loaded by every method and compared to the last byte.

use std::fmt::Write;
use std::fs;

use polars::prelude::{DataFrame, IntoColumn, NamedFrom, ParquetWriter, Series};

use crate::lab::{Lab, Server, step};

const OWN: &str = r#"
experiment: own-data
question: Are own rows the same by every path?
environment: postgres
design:
  blocks: 1
  factors:
    way: [insert, batches, text, csv, binary, unnest]
    file: [csv, parquet]
tables:
  t:
    copies: 2
    ddl: CREATE TABLE {{ table }} (id bigint PRIMARY KEY, note text, share double precision)
    rows_from: {csv: "{{ 'data/rows.csv' if file == 'csv' else none }}", parquet: "{{ 'data/rows.parquet' if file == 'parquet' else none }}"}
steps:
  - create: t
  - load: {name: load, table: t, clients: 3, when: "{{ way == 'insert' }}", method: {insert: {rows_per_commit: 100}}}
  - load: {name: load, table: t, clients: 3, when: "{{ way == 'batches' }}", method: {insert: {rows_per_statement: 7, rows_per_batch: 70}}}
  - load: {name: load, table: t, clients: 3, when: "{{ way in ['text', 'csv', 'binary'] }}", method: {copy: {format: "{{ way if way in ['text', 'csv', 'binary'] else 'text' }}"}}}
  - load: {name: load, table: t, clients: 3, when: "{{ way == 'unnest' }}", method: {unnest: {rows_per_batch: 100}}}
  - read: {name: back, table: t, method: {select: {}}, decode: values, clients: 2}
"#;

const ROWS: i64 = 1_003;

/// Notes with everything that a format has to escape.
fn note(id: i64) -> Option<String> {
    let nasty = ["", "\\.", "\\N", "a,b", "say \"it\"", "tab\there", "line\nend", " größe 🐘 ", "NULL", "{}"];
    (id % 11 != 0).then(|| nasty[usize::try_from(id).unwrap() % nasty.len()].to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn share(id: i64) -> f64 {
    id as f64 / 7.0
}

fn write_files(lab: &Lab) {
    let mut csv = "share,id,note\n".to_owned();
    for id in 0..ROWS {
        let note = note(id).map_or_else(String::new, |note| format!("\"{}\"", note.replace('"', "\"\"")));
        let _ = writeln!(csv, "{},{id},{note}", share(id));
    }
    lab.write("data/rows.csv", &csv);
    let columns = vec![
        Series::new("note".into(), (0..ROWS).map(note).collect::<Vec<_>>()).into_column(),
        Series::new("share".into(), (0..ROWS).map(share).collect::<Vec<_>>()).into_column(),
        Series::new("id".into(), (0..ROWS).collect::<Vec<_>>()).into_column(),
    ];
    let mut frame = DataFrame::new(columns[0].len(), columns).unwrap();
    let file = fs::File::create(lab.folder().join("data/rows.parquet")).unwrap();
    ParquetWriter::new(file).finish(&mut frame).unwrap();
}

#[test]
fn own_rows_are_the_same_by_every_path() {
    let lab = Lab::new();
    write_files(&lab);
    lab.experiment(OWN).run(Server::Local, &[]).ended_with(0);
    let records = lab.newest().records();
    assert_eq!(records.len(), 12);
    let mut checksums = Vec::new();
    for record in records {
        let load = step(&record, "load");
        assert_eq!(load.rows_in_table, Some(1_003), "{}", record.treatment);
        assert_eq!(load.checksum, load.checksum_expected, "{}", record.treatment);
        assert_eq!(step(&record, "back").checksum, load.checksum, "{}", record.treatment);
        checksums.push(load.checksum.clone());
    }
    checksums.dedup();
    assert_eq!(checksums.len(), 1, "CSV and Parquet hold the same rows");
}

#[test]
fn a_file_that_has_changed_is_another_experiment() {
    let lab = Lab::new();
    write_files(&lab);
    let only = ["--only", "way=text", "--only", "file=csv"];
    lab.experiment(OWN).run(Server::Local, &only).ended_with(0);
    let before = lab.newest().stored.manifest.spec.hash;
    lab.write("data/rows.csv", "id,note,share\n1,x,0.5\n");
    lab.run(Server::Local, &only).ended_with(0);
    let run = lab.newest();
    assert_eq!(step(&run.record(), "load").rows_in_table, Some(1));
    assert_ne!(run.stored.manifest.spec.hash, before);
    lab.write("data/rows.csv", "id,note,share\n1,x,half\n");
    lab.run(Server::Local, &only).ended_with(2).complained(&["`data/rows.csv`, line 2, column `share`"]);
}
