//! `settings.parquet`: what the server was told, and what it did with it.

use super::{Column, FileSchema, Row, Value, columns, identity};
use crate::model::EffectiveSetting;

pub(super) const FILE: FileSchema = FileSchema {
    file: "settings.parquet",
    row: "one server setting of one trial that was asked for or differs from the server's default",
    identity: identity::COLUMNS,
    own: COLUMNS,
};

const COLUMNS: &[Column] = columns! {
    name Text "" "Name of the setting" = |r| setting(r, |s| (&s.name).into());
    requested Text "" "As asked for; null when it was not" = |r| setting(r, |s| s.requested.as_ref().into());
    effective Text "" "As the server reports it" = |r| setting(r, |s| (&s.effective).into());
    server_default Text "" "The server's built-in default as its catalogue has it, with the unit: `16384 x 8kB`" = |r| setting(r, |s| s.server_default.as_ref().into());
    source Text "" "Where the server says the value comes from" = |r| setting(r, |s| (&s.source).into());
    in_force Bool "" "False when the requested value is not in force" = |r| setting(r, |s| s.in_force.into());
};

fn setting(row: &Row<'_>, value: fn(&EffectiveSetting) -> Value) -> Value {
    row.setting.map_or(Value::Null, value)
}
