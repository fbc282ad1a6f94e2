//! `steps`: what a trial does.

mod command;
mod dump;
mod load;
mod read;

use schemars::JsonSchema;
use serde::Deserialize;

use super::scalar::NameOr;
use crate::spec::units::Span;

pub use command::{CaptureFile, CommandFile};
pub use dump::{DumpFile, RestoreFile};
pub use load::{
    CopyFile, FormatWord, GenerateFile, InsertFile, LoadFile, LoadMethodFile, ProcedureFile, UnnestFile,
    VerifyWord, WindowFile,
};
pub use read::{ByWord, ReadFile, ReadMethodFile, SelectModeFile};

/// One thing a trial does; a map with one key that says what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepFile {
    /// Creates a table, with its indexes: the table's name, or `{table, without: indexes}`.
    Create(NameOr<CreateFile>),
    /// Creates the indexes of a table that was created without them.
    Index(NameOr<IndexFile>),
    /// Runs SQL: text, a `.sql` file, or `{run, transaction}`.
    Sql(NameOr<SqlFile>),
    /// Runs a client program of your own; only with `--allow-commands`.
    Command(CommandFile),
    /// Loads a table's rows.
    Load(LoadFile),
    /// Reads a table.
    Read(ReadFile),
    /// Writes tables into a dump: `{}`, or a map with its options.
    Dump(DumpFile),
    /// Brings tables back from a dump.
    Restore(RestoreFile),
}

/// Creates a table.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFile {
    /// Name of the table.
    pub table: String,
    /// `indexes`: they are left for a later `index` step.
    pub without: Option<WithoutWord>,
    /// Name of the step. Default `create`.
    pub name: Option<String>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

/// What a `create` step leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WithoutWord {
    /// The table's index statements.
    Indexes,
}

/// Creates indexes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexFile {
    /// Name of the table.
    pub table: String,
    /// Name of the step. Default `index`.
    pub name: Option<String>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

/// Runs SQL.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlFile {
    /// SQL text, or the name of a `.sql` file beside the experiment.
    pub run: String,
    /// All statements in one transaction. Default: each on its own.
    pub transaction: Option<bool>,
    /// Name of the step. Default `sql`.
    pub name: Option<String>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

impl From<String> for CreateFile {
    fn from(table: String) -> Self {
        Self { table, without: None, name: None, timeout: None, when: None }
    }
}

impl From<String> for IndexFile {
    fn from(table: String) -> Self {
        Self { table, name: None, timeout: None, when: None }
    }
}

impl From<String> for SqlFile {
    fn from(run: String) -> Self {
        Self { run, transaction: None, name: None, timeout: None, when: None }
    }
}
