//! `ceilings.parquet`: what the client does without a server. Its rows are not trials, so it has no identity of trials.

use super::{Column, SCHEMA_VERSION, Value, columns};
use crate::model::Ceiling;
use crate::store::manifest::RunManifest;

/// Name of the file.
pub(crate) const CEILINGS: &str = "ceilings.parquet";

/// What a row is.
pub(crate) const ROW: &str = "one load step of one treatment with the ceiling of its client; join `measurements.parquet` on `run`, `treatment_index` and `step`. \
     Steps whose rows are made in the same way share a `ceiling` and its numbers";

/// What a row is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CeilingRow<'a> {
    run: &'a RunManifest,
    number: u64,
    ceiling: &'a Ceiling,
    step: &'a str,
    treatment: u64,
}

/// The rows of a run, in the order in which ceilings were measured.
pub(crate) fn rows(run: &RunManifest) -> Vec<CeilingRow<'_>> {
    let ceilings = run.controls.iter().flat_map(|controls| &controls.ceilings);
    let rows = (0..).zip(ceilings).flat_map(|(number, ceiling)| {
        let steps = ceiling.steps.iter();
        let pairs =
            steps.flat_map(|(step, treatments)| treatments.iter().map(move |treatment| (step, *treatment)));
        pairs.map(move |(step, treatment)| CeilingRow { run, number, ceiling, step, treatment })
    });
    rows.collect()
}

/// Makes a column's value.
type Of = fn(&CeilingRow<'_>) -> Value;

pub(crate) const COLUMNS: &[Column<Of>] = columns! {
    schema_version Int "" "Version of this schema" = |_| SCHEMA_VERSION.into();
    experiment Text "" "Name of the experiment" = |r| (&r.run.experiment).into();
    run Text "" "Identity of the run" = |r| (&r.run.run).into();
    treatment_index Int "" "Place of the treatment in the plan's list, from 0" = |r| r.treatment.into();
    step Text "" "Name of the step" = |r| r.step.into();
    ceiling Int "" "Number of the measurement, from 0" = |r| r.number.into();
    method Text "" "`insert`, `copy` or `unnest`" = |r| (&r.ceiling.method).into();
    method_words Text "" "Method, format and batch in words" = |r| (&r.ceiling.words).into();
    parameters Text "" "Knobs of the method that the encoder knows of, as JSON" = |r| (&r.ceiling.parameters).into();
    table Text "" "Name of the table in the experiment" = |r| (&r.ceiling.table).into();
    table_rows Int "rows" "Rows of the table" = |r| r.ceiling.table_rows.into();
    repetitions Int "" "How often it was measured; the other numbers are of the repetition in the middle" = |r| r.ceiling.repetitions.into();
    rows Int "rows" "Rows made and encoded; those of a small table again and again" = |r| r.ceiling.rows.into();
    payload_bytes Int "bytes" "Bytes encoded" = |r| r.ceiling.payload_bytes.into();
    seconds Float "seconds" "Time that took" = |r| r.ceiling.seconds.into();
    client_cpu_seconds Float "seconds" "CPU time of loadlab, all threads; less than `seconds` where others had the CPU" = |r| r.ceiling.cpu_seconds.into();
    rows_per_second Float "rows/second" "`rows` / `seconds`: what one client can send at most" = |r| r.ceiling.rows_per_second().into();
    payload_bytes_per_second Float "bytes/second" "`payload_bytes` / `seconds`" = |r| r.ceiling.bytes_per_second().into();
    rows_per_second_least Float "rows/second" "The slowest repetition" = |r| r.ceiling.range.0.into();
    rows_per_second_most Float "rows/second" "The fastest repetition" = |r| r.ceiling.range.1.into();
};
