//! `tables`: DDL, rows and values.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::rows::RowsFromFile;
use super::values::ValueFile;
use super::words;
use crate::model::Persistence;
use crate::spec::units::Count;

/// A table: its DDL, its rows and how their values are made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableFile {
    /// `CREATE TABLE` as SQL, or the name of a `.sql` file beside the experiment. May use `{{ table }}`.
    pub ddl: String,
    /// Columns with their types, for DDL that loadlab cannot parse: `{id: bigint, doc: jsonb}`.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub columns: Option<IndexMap<String, String>>,
    /// Whether the table is logged, for DDL that loadlab cannot parse.
    pub persistence: Option<PersistenceWord>,
    /// Index and constraint statements as SQL, or the name of a `.sql` file.
    pub indexes: Option<String>,
    /// Rows over all copies. With `rows_from` the first so many of the file; left away: all of them.
    pub rows: Option<Count>,
    /// Rows from a file of your own, instead of `values`: `{csv: data/orders.csv}` or `{parquet: data/orders.parquet}`.
    pub rows_from: Option<RowsFromFile>,
    /// Seed of the generated values. Default: the design's seed.
    pub seed: Option<u64>,
    /// Number of tables of this shape, `name_1` to `name_n`; the DDL then uses `{{ table }}`. Default 1.
    pub copies: Option<u32>,
    /// How values are made, by column. A column that is not named gets a plausible generator for its type.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ValueFile>")]
    pub values: IndexMap<String, ValueFile>,
    /// How values are made, by type, for columns that `values` does not name: `{integer: {uniform: {min: 0, max: 9}}, text: same}`.
    /// A type without a length or precision stands for all lengths (`varchar`, `numeric`); with one it goes before it
    /// (`varchar(20)`). Columns of the primary key are left out, and columns that are NOT NULL get no NULLs from it.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ValueFile>")]
    pub values_by_type: IndexMap<String, ValueFile>,
}

words! {
    /// Logged or unlogged.
    PersistenceWord => Persistence {
        /// An ordinary table.
        Logged => Persistence::Logged,
        /// `CREATE UNLOGGED TABLE`.
        Unlogged => Persistence::Unlogged,
    }
}
