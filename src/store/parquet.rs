//! The Parquet files of a run, each whole or not there.

use std::path::Path;

use polars::error::PolarsError;
use polars::prelude::{
    Column as Series, CompatLevel, DataFrame, KeyValueMetadata, ParquetCompression, ParquetWriter,
    PolarsResult, SchemaExt,
};
use polars_parquet::write::schema_to_metadata_key;

use super::error::StoreError;
use super::files::write_bytes;
use super::frame::{frame, series};
use super::manifest::RunManifest;
use super::schema::{CONTROLS, Column, FileSchema, Kind, Row, Value, ceilings, files};
use crate::model::{Design, Scalar, Treatment, TrialRecord};

/// Name of the file with one row per treatment, factors under their own names.
const TREATMENTS: &str = "treatments.parquet";

/// Writes all files of a run. Control trials have a file of their own, so that nobody averages them with the others.
pub(super) fn write_all(folder: &Path, run: &RunManifest, records: &[TrialRecord]) -> Result<(), StoreError> {
    let (controls, trials): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.trial.control);
    for file in files() {
        write_file(folder, run, file, &rows(&file, run, &trials))?;
    }
    let path = folder.join(TREATMENTS);
    let frame = treatments(run, &trials).map_err(|error| parquet_error(&path, error))?;
    let metadata = metadata(&frame, run, std::iter::empty::<&Column>());
    write(&path, frame, metadata)?;
    if run.controls.is_none() {
        return Ok(());
    }
    write_file(folder, run, CONTROLS, &rows(&CONTROLS, run, &controls))?;
    write_table(&folder.join(ceilings::CEILINGS), run, ceilings::COLUMNS.iter(), &ceilings::rows(run))
}

fn write_file(
    folder: &Path,
    run: &RunManifest,
    file: FileSchema,
    rows: &[Row<'_>],
) -> Result<(), StoreError> {
    write_table(&folder.join(file.file), run, file.columns(), rows)
}

fn write_table<'c, R, V: Fn(&R) -> Value + 'c>(
    path: &Path,
    run: &RunManifest,
    columns: impl Iterator<Item = &'c Column<V>> + Clone,
    rows: &[R],
) -> Result<(), StoreError> {
    let frame = frame(columns.clone(), rows).map_err(|error| parquet_error(path, error))?;
    let metadata = metadata(&frame, run, columns);
    write(path, frame, metadata)
}

fn rows<'a>(file: &FileSchema, run: &'a RunManifest, records: &[&'a TrialRecord]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for record in records {
        let row = Row { run, record, measurement: None, sample: None, setting: None, capture: None };
        match file.file {
            "samples.parquet" => rows.extend(record.samples.iter().map(|s| Row { sample: Some(s), ..row })),
            "settings.parquet" => {
                rows.extend(record.settings.iter().map(|s| Row { setting: Some(s), ..row }));
            }
            "captures.parquet" => {
                let steps = record.measurements.iter();
                let captures =
                    steps.flat_map(|step| step.captures.iter().map(move |capture| (step, capture)));
                rows.extend(captures.map(|(m, c)| Row { measurement: Some(m), capture: Some(c), ..row }));
            }
            _ if record.measurements.is_empty() => rows.push(row),
            _ => rows.extend(record.measurements.iter().map(|m| Row { measurement: Some(m), ..row })),
        }
    }
    rows
}

/// Per-file metadata; a rewrite by another tool loses it, which is why the versions are columns as well.
///
/// The Arrow schema among it is the compatible one: by default polars declares view types there, and pandas cannot read a list of
/// string views (`ArrowNotImplementedError`). The data is stored the same way either way.
fn metadata<'c, V: 'c>(
    frame: &DataFrame,
    run: &RunManifest,
    columns: impl Iterator<Item = &'c Column<V>>,
) -> KeyValueMetadata {
    let units = columns.filter(|column| !column.unit.is_empty());
    let units =
        units.map(|column| (column.name.to_owned(), column.unit.into())).collect::<serde_json::Map<_, _>>();
    let schema = schema_to_metadata_key(&frame.schema().to_arrow(CompatLevel::oldest()));
    KeyValueMetadata::from_static(vec![
        (schema.key, schema.value.unwrap_or_default()),
        ("loadlab.schema_version".to_owned(), run.schema_version.to_string()),
        ("loadlab.tool_version".to_owned(), run.tool.version.clone()),
        ("loadlab.tool_commit".to_owned(), run.tool.commit.clone()),
        ("loadlab.units".to_owned(), serde_json::Value::Object(units).to_string()),
    ])
}

/// Made in memory first: an error of the disk then arrives as such and not as text inside an error of polars.
fn write(path: &Path, mut frame: DataFrame, metadata: KeyValueMetadata) -> Result<(), StoreError> {
    let mut bytes = Vec::new();
    let writer = ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Zstd(None))
        .with_key_value_metadata(Some(metadata));
    writer.finish(&mut frame).map_err(|error| parquet_error(path, error))?;
    write_bytes(path, &bytes)
}

fn parquet_error(path: &Path, error: PolarsError) -> StoreError {
    StoreError::Parquet { path: path.to_owned(), source: Box::new(error) }
}

/// One row per treatment that has a record, in the plan's order. Factors have their own names and types; the values of a named
/// level are columns `factor.key`. A name the identity columns use gets `factor_` in front.
fn treatments(run: &RunManifest, records: &[&TrialRecord]) -> PolarsResult<DataFrame> {
    let known = records.iter().filter(|record| fits(&run.design, &record.trial.treatment));
    let mut treatments: Vec<_> = known
        .map(|record| (record.trial.treatment_index, &record.treatment, &record.trial.treatment))
        .collect();
    treatments.sort_unstable();
    treatments.dedup();
    let fixed = |value: &String| vec![Value::Text(value.clone()); treatments.len()];
    let labels = treatments.iter().map(|(_, label, _)| Value::from(*label)).collect::<Vec<_>>();
    let mut columns: Vec<Series> = vec![
        series("experiment", Kind::Text, &fixed(&run.experiment)),
        series("run", Kind::Text, &fixed(&run.run)),
        series("treatment", Kind::Text, &labels),
    ];
    for (index, factor) in run.design.factors.iter().enumerate() {
        let chosen = || treatments.iter().map(|(_, _, treatment)| &factor.levels[treatment.levels[index]]);
        let plain =
            chosen().map(|level| level.value.clone().unwrap_or_else(|| Scalar::Text(level.name.clone())));
        columns.push(scalars(&free_name(&columns, &factor.name), &plain.collect::<Vec<_>>()));
        let mut keys: Vec<&String> = factor.levels.iter().flat_map(|level| level.values.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let values = chosen().map(|level| level.values.get(key).cloned().unwrap_or(Scalar::Null));
            let name = free_name(&columns, &format!("{}.{key}", factor.name));
            columns.push(scalars(&name, &values.collect::<Vec<_>>()));
        }
    }
    DataFrame::new(treatments.len(), columns)
}

/// A journal and a manifest that do not belong together must not end in a panic.
fn fits(design: &Design, treatment: &Treatment) -> bool {
    design.factors.len() == treatment.levels.len()
        && design.factors.iter().zip(&treatment.levels).all(|(factor, level)| *level < factor.levels.len())
}

fn free_name(taken: &[Series], name: &str) -> String {
    let mut name = name.to_owned();
    while taken.iter().any(|column| column.name().as_str() == name) {
        name.insert_str(0, "factor_");
    }
    name
}

/// A column of the narrowest type that holds all values: boolean, int64, float64, else text.
fn scalars(name: &str, values: &[Scalar]) -> Series {
    let kind = scalar_kind(values);
    let convert = |value: &Scalar| match (value, kind) {
        (Scalar::Null, _) => Value::Null,
        (Scalar::Bool(value), Kind::Bool) => Value::Bool(*value),
        (Scalar::Int(value), Kind::Int) => Value::Int(*value),
        #[expect(clippy::cast_precision_loss, reason = "levels beside fractions are small")]
        (Scalar::Int(value), Kind::Float) => Value::Float(*value as f64),
        (Scalar::Float(value), Kind::Float) => Value::from(*value),
        (value, _) => Value::Text(value.to_string()),
    };
    series(name, kind, &values.iter().map(convert).collect::<Vec<_>>())
}

fn scalar_kind(values: &[Scalar]) -> Kind {
    let mut known = values.iter().filter(|value| **value != Scalar::Null).peekable();
    let all = |test: fn(&Scalar) -> bool| values.iter().all(|value| *value == Scalar::Null || test(value));
    if known.peek().is_none() {
        Kind::Text
    } else if all(|value| matches!(value, Scalar::Bool(_))) {
        Kind::Bool
    } else if all(|value| matches!(value, Scalar::Int(_))) {
        Kind::Int
    } else if all(|value| matches!(value, Scalar::Int(_) | Scalar::Float(_))) {
        Kind::Float
    } else {
        Kind::Text
    }
}
