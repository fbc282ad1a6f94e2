//! The columns every file begins with: which run, which trial, which treatment. Join files on `run` and `trial`.

use serde_json::Map;

use super::{Column, Row, SCHEMA_VERSION, columns};

pub(super) const COLUMNS: &[Column] = columns! {
    schema_version Int "" "Version of this schema" = |_| SCHEMA_VERSION.into();
    experiment Text "" "Name of the experiment" = |r| (&r.run.experiment).into();
    run Text "" "Identity of the run; sorts by time" = |r| (&r.run.run).into();
    trial Int "" "Number of the trial in the run, from 0, in planned order" = |r| r.record.trial.number.into();
    attempt Int "" "0, or more when the trial had to be repeated after a kill; only the latest attempt is here" = |r| r.record.attempt.into();
    block Int "" "Block, from 0: one trial of every treatment" = |r| r.record.trial.block.into();
    position Int "" "Place inside the block, from 0" = |r| r.record.trial.position.into();
    treatment Text "" "One level for every factor, as text; joins `treatments.parquet` of the same run" = |r| (&r.record.treatment).into();
    treatment_index Int "" "Its place in the plan's list of treatments, from 0; sort by it" = |r| r.record.trial.treatment_index.into();
    factors Text "" "The same as a JSON object: factor to level, in the order of the file" = |r| factors(r).into();
};

/// JSON, so that experiments with different factors share one schema.
fn factors(row: &Row<'_>) -> String {
    let levels = row.record.factors.iter();
    let members = levels.map(|(name, level)| (name.clone(), serde_json::to_value(level).unwrap_or_default()));
    serde_json::Value::Object(members.collect::<Map<_, _>>()).to_string()
}
