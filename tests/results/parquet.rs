//! Parquet files: one schema for all experiments, whole or not there, no secret in them.

use std::fs::{self, File};
use std::path::Path;

use loadlab::store::{RunFolder, file_schemas, results_document};
use polars::prelude::{DataFrame, DataType, ParquetReader, SerReader};

use super::fixture::{Example, complete, formats, unlogged};

fn read(path: &Path) -> DataFrame {
    ParquetReader::new(File::open(path).unwrap()).finish().unwrap()
}

#[test]
fn all_experiments_have_the_documented_columns() {
    let results = tempfile::tempdir().unwrap();
    let empty = Example { records: Vec::new(), ..unlogged(1) };
    let mut other = formats(2);
    "20260102-000000-cccccc".clone_into(&mut other.manifest.run);
    let runs = [empty.write(results.path()), formats(1).write(results.path()), other.write(results.path())];
    for file in file_schemas() {
        let expected: Vec<&str> = file.columns().map(|column| column.name).collect();
        let frames = runs.each_ref().map(|run| read(&run.path().join(file.file)));
        for frame in &frames {
            assert_eq!(frame.get_column_names(), expected, "{}", file.file);
            assert_eq!(frame.dtypes(), frames[0].dtypes(), "{}", file.file);
        }
        assert_eq!(frames[0].height(), 0);
    }
}

#[test]
fn rows_say_what_the_records_say() {
    let results = tempfile::tempdir().unwrap();
    let example = unlogged(2);
    let run = example.write(results.path());
    let frame = read(&run.path().join("measurements.parquet"));
    // Eight trials with two steps each, but one that failed before its first step.
    assert_eq!(frame.height(), 15);
    let column = |name: &str| frame.column(name).unwrap();
    assert_eq!(column("step").null_count(), 1);
    assert_eq!(column("backend").null_count(), 1);
    assert_eq!(column("valid").bool().unwrap().sum(), Some(13));
    assert_eq!(column("factors").str().unwrap().get(0), Some("{\"storage\":\"logged\",\"batch\":1}"));
    assert_eq!(column("guards").dtype(), &DataType::List(Box::new(DataType::String)));
    let speed = column("rows_per_second").f64().unwrap().get(1).unwrap();
    assert!((speed - 5_000.0).abs() < 200.0, "{speed}");
    assert_eq!(column("rows_per_second").f64().unwrap().get(0), None);
    let treatments = read(&run.path().join("treatments.parquet"));
    assert_eq!(treatments.get_column_names(), ["experiment", "run", "treatment", "storage", "batch"]);
    assert_eq!(treatments.column("batch").unwrap().dtype(), &DataType::Int64);
    assert_eq!(read(&run.path().join("settings.parquet")).height(), 8);
    assert_eq!(read(&run.path().join("samples.parquet")).height(), 21);
}

#[test]
fn values_of_named_levels_are_columns() {
    let results = tempfile::tempdir().unwrap();
    let run = formats(1).write(results.path());
    let treatments = read(&run.path().join("treatments.parquet"));
    let names = ["experiment", "run", "treatment", "format", "load", "load.clients"];
    assert_eq!(treatments.get_column_names(), names);
    assert_eq!(treatments.column("load.clients").unwrap().dtype(), &DataType::Int64);
}

/// Every column's value must be of the column's kind: a value of another kind would silently become null.
#[test]
fn no_column_is_null_where_the_record_has_everything() {
    let results = tempfile::tempdir().unwrap();
    let run = complete().write(results.path());
    for file in file_schemas() {
        let frame = read(&run.path().join(file.file));
        // A window ends by the clock, so a load by duration has no time until its rows were durable.
        for column in file.columns().filter(|column| column.name != "durable_seconds") {
            assert_eq!(frame.column(column.name).unwrap().null_count(), 0, "{}: {}", file.file, column.name);
        }
    }
}

/// Nothing that is not finite reaches a file; the journal refuses most of it, a rate over no time is the rest.
#[test]
fn a_rate_over_no_time_is_null() {
    let results = tempfile::tempdir().unwrap();
    let mut example = unlogged(1);
    example.records[0].measurements[1].spans.seconds = 0.0;
    let frame = read(&example.write(results.path()).path().join("measurements.parquet"));
    assert_eq!(frame.column("rows_per_second").unwrap().f64().unwrap().get(1), None);
}

#[test]
fn no_secret_is_in_any_file() {
    let results = tempfile::tempdir().unwrap();
    let mut example = unlogged(2);
    "steps: [{sql: \"CREATE ROLE x PASSWORD 'canary'\"}]".clone_into(&mut example.manifest.spec.text);
    let run = example.write(results.path());
    for entry in fs::read_dir(run.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "{}", path.display());
    }
    let frame = read(&run.path().join("measurements.parquet"));
    let errors = frame.column("trial_error").unwrap().str().unwrap();
    let errors: Vec<&str> = errors.iter().flatten().collect();
    assert_eq!(errors, ["cannot connect: postgres://loadlab:***@localhost/loadlab password=***"]);
}

/// Writing was killed: under the final name stands the old whole file, and the leftover goes away.
#[test]
fn leftovers_of_a_killed_write_are_ignored_and_removed() {
    let results = tempfile::tempdir().unwrap();
    let run = formats(1).write(results.path());
    let path = run.path().to_owned();
    let whole = fs::read(path.join("measurements.parquet")).unwrap();
    drop(run);
    let leftover = path.join(".measurements.parquet.tmp");
    for end in (0..whole.len()).step_by(whole.len() / 8) {
        fs::write(&leftover, &whole[..end]).unwrap();
        assert_eq!(read(&path.join("measurements.parquet")).height(), 18);
        let run = RunFolder::open(&path).unwrap();
        assert!(!leftover.exists());
        run.write_parquet().unwrap();
    }
    let names = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let expected = [
        ".lock",
        "captures.parquet",
        "journal.jsonl",
        "measurements.parquet",
        "run.json",
        "samples.parquet",
        "settings.parquet",
        "treatments.parquet",
    ];
    assert_eq!(names, expected);
}

/// `just schema` rewrites the file.
#[test]
fn results_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/RESULTS.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, results_document()).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == results_document(), "docs/RESULTS.md is old: run `just schema`");
}

#[test]
fn every_metric_of_claims_is_a_column_of_the_results() {
    let document = results_document();
    for metric in loadlab::model::METRICS {
        assert!(document.contains(&format!("| `{}` |", metric.name)), "{} is no column", metric.name);
    }
}
