//! `samples.parquet`: time series inside steps.

use super::{Column, FileSchema, Row, Value, columns, identity};
use crate::model::Sample;

pub(super) const FILE: FileSchema = FileSchema {
    file: "samples.parquet",
    row: "one point of a time series inside a step: how far one client was at a time",
    identity: identity::COLUMNS,
    own: COLUMNS,
};

const COLUMNS: &[Column] = columns! {
    step_index Int "" "Place of the step in the trial, from 0" = |r| sample(r, |s| s.step_index.into());
    step Text "" "Name of the step" = |r| sample(r, |s| (&s.step).into());
    client Int "" "Client, from 0" = |r| sample(r, |s| s.client.into());
    elapsed_seconds Float "seconds" "Time since the step's clock started" = |r| sample(r, |s| s.elapsed_seconds.into());
    rows Int "rows" "Rows this client had moved by then since the step began; in a load by duration, rows whose COMMIT was acknowledged" = |r| sample(r, |s| s.rows.into());
    phase Text "" "`warm_up`, or `measure`: inside the measured window. The edge is the last point of one and the first of the other" = |r| sample(r, |s| s.phase.name().into());
};

fn sample(row: &Row<'_>, value: fn(&Sample) -> Value) -> Value {
    row.sample.map_or(Value::Null, value)
}
