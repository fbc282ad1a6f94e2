//! `dump` and `restore` steps.

use schemars::JsonSchema;
use serde::Deserialize;

use super::VerifyWord;
use crate::model::{DumpFormat, Through};
use crate::spec::units::Span;
use crate::spec::wire::words;

/// Writes tables into a dump with `pg_dump` and drops them. Its time is its own and no part of a later restore.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DumpFile {
    /// Name of the step, by which a `restore` step refers to it. Default `dump`.
    pub name: Option<String>,
    /// Names of the tables. Default: all tables of the file.
    pub tables: Option<Vec<String>>,
    /// `directory` (default), `custom` or `plain`.
    pub format: Option<DumpFormatWord>,
    /// Parallel workers of `pg_dump`; format `directory` only. Default 1.
    pub jobs: Option<u32>,
    /// Compression level, 0 (none) to 9. Default: that of the format.
    pub compress: Option<u8>,
    /// Whether the tables are dropped afterwards, so that a `restore` can bring them back. Default true.
    pub drop: Option<bool>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

/// Brings tables back from a dump with `pg_restore`, directly or as a script piped into `psql`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreFile {
    /// Name of the step, as used in metrics. Default `restore`.
    pub name: Option<String>,
    /// Name of a `dump` step, or path of a dump (folder or file) from the experiment's folder.
    pub from: String,
    /// Tables of this file that the dump at a path holds; they are verified against their generators. Without them
    /// rows are only counted. A `dump` step knows its tables by itself.
    pub tables: Option<Vec<String>>,
    /// `direct` (default): `pg_restore` connects itself; `psql`: its script is piped into `psql`, over one connection.
    pub through: Option<ThroughWord>,
    /// Parallel connections of `pg_restore`; only with `through: direct`. Default 1.
    pub jobs: Option<u32>,
    /// Whether indexes, constraints and triggers are restored too. Default true.
    pub with_indexes: Option<bool>,
    /// When the tables are verified. `auto` (default): at the end if a later step reads one, else now.
    pub verify: Option<VerifyWord>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

words! {
    /// Formats of a dump.
    DumpFormatWord => DumpFormat {
        /// A folder with a file for each table.
        Directory => DumpFormat::Directory,
        /// One file that `pg_restore` reads in any order.
        Custom => DumpFormat::Custom,
        /// An SQL script.
        Plain => DumpFormat::Plain,
    }
}

words! {
    /// How a dump reaches the server.
    ThroughWord => Through {
        /// `pg_restore` connects itself.
        Direct => Through::Direct,
        /// A script into `psql`.
        Psql => Through::Psql,
    }
}
