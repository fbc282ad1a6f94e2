//! `rows_from`: rows of the user's own.

use schemars::JsonSchema;
use serde::Deserialize;

/// Rows from a CSV or Parquet file, by the types of the table.
///
/// The file is read once, checked to its last row before any server starts, and kept in loadlab's cache as rows of the
/// table's types: `check` takes as long as that (the longer the larger the file; the next time only as long as reading the
/// file). Every method loads these rows, every client its share, and content is verified against the file. Memory stays
/// small however large the file is.
///
/// The columns of the file and of the table must be the same, in any order where the file names them. Values are read as
/// PostgreSQL reads them, but nothing is rounded and no time zone is guessed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowsFromFile {
    /// A CSV file (UTF-8), below the folder of the experiment.
    pub csv: Option<String>,
    /// A Parquet file, below the folder of the experiment.
    pub parquet: Option<String>,
    /// CSV: whether the first line names the columns; else they stand in the order of the table. Default `true`.
    pub header: Option<bool>,
    /// CSV: one character between fields. Default `,`.
    pub delimiter: Option<String>,
    /// CSV: one character around fields that hold delimiters, quotes or line ends; doubled inside. Default `"`.
    pub quote: Option<String>,
    /// CSV: what NULL is written as, without quotes. Default: nothing, as COPY has it; `""` is then an empty text.
    pub null: Option<String>,
}
