//! The columns of every Parquet file: name, type, unit, meaning and where the value comes from, in one table per file.
//!
//! Files and `docs/RESULTS.md` are made from these tables, so they cannot disagree. Columns are only ever added; a change of
//! meaning is a new name. Both raise [`SCHEMA_VERSION`].

mod captures;
pub(super) mod ceilings;
mod identity;
mod measurements;
mod samples;
mod settings;

use jiff::Timestamp;

use super::manifest::RunManifest;
use crate::model::{Captured, EffectiveSetting, Measurement, Sample, TrialRecord};

/// Version of the results schema; stored in `run.json`, in every row and in every file's metadata.
pub const SCHEMA_VERSION: u32 = 1;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// true or false
    Bool,
    /// 64-bit signed
    Int,
    /// 64-bit unsigned
    Unsigned,
    /// 64-bit float, never NaN or infinite
    Float,
    /// UTF-8
    Text,
    /// microseconds, UTC
    Time,
    /// list of UTF-8
    Texts,
}

impl Kind {
    /// Name in the documentation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Int => "int64",
            Self::Unsigned => "uint64",
            Self::Float => "float64",
            Self::Text => "string",
            Self::Time => "timestamp[us, UTC]",
            Self::Texts => "list of string",
        }
    }
}

/// One value of a column; it must be of the column's kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not known, or not applicable.
    Null,
    /// [`Kind::Bool`].
    Bool(bool),
    /// [`Kind::Int`].
    Int(i64),
    /// [`Kind::Unsigned`].
    Unsigned(u64),
    /// [`Kind::Float`]; what is not finite becomes null.
    Float(f64),
    /// [`Kind::Text`].
    Text(String),
    /// [`Kind::Time`].
    Time(Timestamp),
    /// [`Kind::Texts`].
    Texts(Vec<String>),
}

/// What a row is made of; a file uses the parts it needs.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The run.
    pub(crate) run: &'a RunManifest,
    /// The trial.
    pub(crate) record: &'a TrialRecord,
    /// The step; `None` for a trial that ended before its first step.
    pub(crate) measurement: Option<&'a Measurement>,
    /// The point, in `samples.parquet`.
    pub(crate) sample: Option<&'a Sample>,
    /// The setting, in `settings.parquet`.
    pub(crate) setting: Option<&'a EffectiveSetting>,
    /// The number, in `captures.parquet`.
    pub(crate) capture: Option<&'a Captured>,
}

/// Makes a column's value.
type Of = fn(&Row<'_>) -> Value;

/// A column of a file, made from rows by functions of type `V`.
#[derive(Debug, Clone, Copy)]
pub struct Column<V = Of> {
    /// Name, with its unit where it has one.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Unit; empty for none.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    pub(crate) value: V,
}

/// A Parquet file of a run.
#[derive(Debug, Clone, Copy)]
pub struct FileSchema {
    /// Name of the file.
    pub file: &'static str,
    /// What one row is.
    pub row: &'static str,
    /// Columns every file begins with.
    pub identity: &'static [Column],
    /// The file's own columns.
    pub own: &'static [Column],
}

impl FileSchema {
    /// All columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> + Clone + use<> {
        self.identity.iter().chain(self.own)
    }
}

/// `measurements.parquet`, `samples.parquet`, `settings.parquet`, `captures.parquet`.
#[must_use]
pub fn files() -> [FileSchema; 4] {
    [measurements::FILE, samples::FILE, settings::FILE, captures::FILE]
}

/// `controls.parquet`, which only runs with controls have: the columns of `measurements.parquet`.
pub(super) const CONTROLS: FileSchema = FileSchema {
    file: "controls.parquet",
    row: "one step of one control trial, the second trial of a treatment in its block",
    ..measurements::FILE
};

/// Writes a table of columns: `name Kind "unit" "meaning" = |row| value;`
macro_rules! columns {
    ($($name:ident $kind:ident $unit:literal $meaning:literal = $value:expr;)*) => {
        &[$($crate::store::schema::Column {
            name: stringify!($name),
            kind: $crate::store::schema::Kind::$kind,
            unit: $unit,
            meaning: $meaning,
            value: $value,
        }),*]
    };
}
use columns;

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

/// Counters beyond 2^63 do not happen; they would be shown as the largest number, not as a negative one.
impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Float(value) } else { Self::Null }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
