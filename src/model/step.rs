//! The steps of a trial.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One thing a trial does, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Unique in the trial; the name metrics are asked by (`insert.rows_per_second`).
    pub name: String,
    /// Longest time the step may take before the trial is ended as timed out.
    pub timeout: Duration,
    /// What is done.
    pub kind: StepKind,
}

/// What a step does. `table` fields are indexes into the trial's tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Runs a table's DDL, with or without its indexes.
    Create {
        /// Index of the table.
        table: usize,
        /// Whether the index statements are run as well.
        with_indexes: bool,
    },
    /// Runs a table's index statements.
    Index {
        /// Index of the table.
        table: usize,
    },
    /// Runs SQL as the owner of the trial's database.
    Sql {
        /// Statements, split; each runs on its own unless `transaction`.
        statements: Vec<String>,
        /// All in one transaction.
        transaction: bool,
    },
    /// Loads generated rows.
    Load(Load),
    /// Reads rows.
    Read(Read),
}

/// A load step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Index of the table.
    pub table: usize,
    /// How rows travel.
    pub method: LoadMethod,
    /// Parallel connections; client `i` feeds copy `i % copies`.
    pub clients: u32,
    /// Which end points are measured after the commit.
    pub until: Until,
    /// When rows and checksum are verified.
    pub verify: Verify,
}

/// How rows are loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMethod {
    /// INSERT statements with bound parameters.
    Insert(Insert),
    /// COPY.
    Copy(Copy),
}

/// Knobs of INSERT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insert {
    /// Rows of one multi-row VALUES statement.
    pub rows_per_statement: u64,
    /// Rows sent in one round trip (pipelined statements); a multiple of `rows_per_statement`.
    pub rows_per_batch: u64,
    /// Rows per transaction, looked at after each batch; `None`: one transaction per client.
    pub rows_per_commit: Option<u64>,
    /// Prepare once, or send SQL text with literals each time (simple query).
    pub prepared: bool,
}

/// Knobs of COPY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// Wire or file format.
    pub format: CopyFormat,
    /// COPY ... (FREEZE).
    pub freeze: bool,
    /// Where the rows come from.
    pub source: CopySource,
    /// What happens to the table in the same transaction before COPY.
    pub same_transaction: SameTransaction,
    /// Rows per transaction; `None`: one transaction per client.
    pub rows_per_commit: Option<u64>,
    /// Bytes of one `CopyData` message.
    pub chunk_bytes: u32,
    /// CSV only: send and declare a header line.
    pub header: bool,
}

/// Formats of COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyFormat {
    /// Tab-separated text.
    Text,
    /// Comma-separated values.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
}

impl CopyFormat {
    /// The word COPY wants after FORMAT.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Csv => "csv",
            Self::Binary => "binary",
        }
    }
}

/// Where COPY's rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopySource {
    /// COPY FROM STDIN, generated while it is sent.
    Client,
    /// A file on the server, written before the clock starts.
    Server,
}

/// What happens to the table in COPY's own transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SameTransaction {
    /// Nothing: the table exists and stays.
    None,
    /// TRUNCATE first.
    Truncate,
    /// The table is created in it (no `create` step before).
    Create,
}

/// End points measured after the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// The server acknowledged the commit.
    Committed,
    /// And a CHECKPOINT was done.
    Durable,
    /// And VACUUM (ANALYZE) was done.
    Settled,
}

/// When a load is verified (row count and content checksum against the generator).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// Right after the step, outside the clock.
    Now,
    /// After the last step: a later read wants the table as it was loaded.
    End,
}

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
    /// Parallel connections; each reads one contiguous share of the table's pages.
    pub clients: u32,
    /// State of the caches before the read.
    pub cache: Cache,
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
}

/// State of the caches before a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// As the steps before left them.
    AsIs,
    /// One discarded full scan first.
    Warm,
}
