//! Steps that write tables into a dump and bring them back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Verify;

/// A `dump` step: `pg_dump` of tables into the trial's exchange folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    /// Indexes of the tables; never empty.
    pub tables: Vec<usize>,
    /// Format of the dump.
    pub format: DumpFormat,
    /// Parallel workers.
    pub jobs: u32,
    /// Compression level 0 to 9; `None`: the format's default.
    pub compress: Option<u8>,
    /// Whether the tables are dropped afterwards, outside the clock.
    pub drop: bool,
}

/// Formats of `pg_dump`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DumpFormat {
    /// A folder with a file for each table.
    Directory,
    /// One file that `pg_restore` can read in any order.
    Custom,
    /// An SQL script.
    Plain,
}

impl DumpFormat {
    /// Its name in files and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Custom => "custom",
            Self::Plain => "plain",
        }
    }
}

/// A `restore` step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Restore {
    /// Where the dump comes from.
    pub from: DumpSource,
    /// Format of the dump.
    pub format: DumpFormat,
    /// Tables of the trial that it brings; empty when no table describes it.
    pub tables: Vec<usize>,
    /// How the rows reach the server.
    pub through: Through,
    /// Parallel connections of `pg_restore`.
    pub jobs: u32,
    /// Whether indexes, constraints and triggers are restored as well.
    pub with_indexes: bool,
    /// When the restored tables are verified.
    pub verify: Verify,
}

/// Where a dump comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DumpSource {
    /// The `dump` step of this name.
    Step(String),
    /// A folder or file of the user.
    Path {
        /// As written.
        name: String,
        /// Where it is; not for results.
        #[serde(skip)]
        path: PathBuf,
    },
}

/// How a dump reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Through {
    /// `pg_restore` connects itself.
    Direct,
    /// A script into `psql`: one connection.
    Psql,
}
