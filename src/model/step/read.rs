//! Read steps: how rows get out of a table.

use serde::{Deserialize, Serialize};

use super::CopyFormat;

/// A read step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// Index of the table.
    pub table: usize,
    /// Column names, in the order asked for; never empty.
    pub columns: Vec<String>,
    /// How rows travel.
    pub method: ReadMethod,
    /// What the client does with them.
    pub decode: Decode,
    /// Parallel connections; each reads a share of the table.
    pub clients: u32,
    /// What the shares of several clients are.
    #[serde(default)]
    pub by: By,
    /// State of the caches before the read.
    pub cache: Cache,
    /// State of the table before the read.
    #[serde(default)]
    pub state: State,
}

/// How rows are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadMethod {
    /// SELECT.
    Select {
        /// How much is held at once.
        mode: SelectMode,
        /// Wire format of the values.
        format: TextOrBinary,
    },
    /// COPY (SELECT ...) TO STDOUT.
    CopyOut {
        /// Format of the rows.
        format: CopyFormat,
    },
    /// EXPLAIN (ANALYZE, BUFFERS, WAL) of the SELECT: the server scans, no rows travel.
    Scan,
}

/// How much of a SELECT's result the client holds at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectMode {
    /// All rows before the first is looked at (a driver with autocommit).
    All,
    /// Row by row as they arrive.
    Streamed,
    /// A portal, this many rows per round trip.
    Portal {
        /// Rows per round trip, at least 1.
        fetch_size: u32,
    },
}

/// Wire format of SELECT: binary (extended protocol) or text (simple query).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextOrBinary {
    /// Simple query.
    Text,
    /// Extended protocol.
    Binary,
}

/// What the client does with values it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decode {
    /// Rows and bytes are counted.
    None,
    /// Every value is decoded and folded into a checksum that is stored and verified.
    Values,
    /// Every number of float arrays, and of `bytea` columns made by `floats_of`, is decoded and its bits are folded
    /// into a checksum that is the same for both; the values of other columns are left as they are.
    Floats,
}

/// What the shares of several clients are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Contiguous ranges of the table's pages.
    #[default]
    Pages,
    /// Ranges of an integer column, from its smallest to its largest value.
    Key {
        /// Name of the column.
        column: String,
    },
}

/// State of the caches before a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// As the steps before left them.
    AsIs,
    /// One discarded full scan first.
    Warm,
    /// The server restarted and nothing of its files in the page cache.
    Cold,
}

/// State of the table before a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As the steps before left it.
    #[default]
    AsLoaded,
    /// VACUUM (FREEZE, ANALYZE) and CHECKPOINT first.
    Settled,
}
