//! `captures.parquet`: numbers found in what client programs printed.

use super::{Column, FileSchema, Row, Value, columns, identity};
use crate::model::Captured;

pub(super) const FILE: FileSchema = FileSchema {
    file: "captures.parquet",
    row: "one number that a client program printed and the experiment asked for; join `measurements.parquet` on `run`, `trial` and `step_index`",
    identity: identity::COLUMNS,
    own: COLUMNS,
};

const COLUMNS: &[Column] = columns! {
    step_index Int "" "Place of the step in the trial, from 0" = |r| r.measurement.map_or(Value::Null, |m| m.step_index.into());
    step Text "" "Name of the step" = |r| r.measurement.map_or(Value::Null, |m| (&m.step).into());
    name Text "" "Name of the capture; as a metric it is `<step>.<name>`" = |r| capture(r, |c| (&c.name).into());
    unit Text "" "Unit as declared: `seconds`, `milliseconds`, `microseconds`, `per_second`, `rows_per_second`, `bytes_per_second`, `bytes`, `rows`, `count`, `percent`, `ratio`" = |r| capture(r, |c| c.unit.name().into());
    value Float "" "The number as printed, in its unit" = |r| capture(r, |c| c.value.into());
    valid Bool "" "As in `measurements.parquet`, for the step" = valid;
};

fn capture(row: &Row<'_>, value: fn(&Captured) -> Value) -> Value {
    row.capture.map_or(Value::Null, value)
}

fn valid(row: &Row<'_>) -> Value {
    row.measurement.map_or(Value::Null, |m| row.record.reasons_against(m).is_empty().into())
}
