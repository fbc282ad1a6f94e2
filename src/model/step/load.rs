//! Load steps: how rows get into a table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Window;

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
    /// The load ends by the clock; `None`: with the last row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Window>,
    /// Rows per second that all clients together begin to send, at least 1; `None`: each batch follows the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

/// How rows are loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMethod {
    /// INSERT statements with bound parameters.
    Insert(Insert),
    /// COPY.
    Copy(Copy),
    /// INSERT ... SELECT * FROM unnest of bound arrays.
    Unnest(Unnest),
    /// INSERT ... SELECT ... FROM `generate_series`: the server makes the rows.
    Generate(Generate),
    /// A loop in PL/pgSQL, one INSERT per row.
    Procedure(Procedure),
}

impl LoadMethod {
    /// Why the content of the table cannot be compared with the generator, when the experiment's own SQL makes it;
    /// the number of rows always can.
    #[must_use]
    pub fn content_is_its_own(&self) -> Option<&'static str> {
        let (expressions, body) = match self {
            Self::Insert(_) | Self::Copy(_) | Self::Unnest(_) => return None,
            Self::Generate(generate) => (&generate.expressions, false),
            Self::Procedure(procedure) => (&procedure.expressions, procedure.body.is_some()),
        };
        match (body, expressions.is_empty()) {
            (true, _) => Some("a `body` of the experiment makes the rows; only their number is verified"),
            (_, false) => {
                Some("`expressions` of the experiment make values; only the number of rows is verified")
            }
            _ => None,
        }
    }
}

/// Knobs of unnest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unnest {
    /// Rows of one statement: elements of each bound array.
    pub rows_per_batch: u64,
    /// Rows per transaction, looked at after each batch; `None`: one transaction per client.
    pub rows_per_commit: Option<u64>,
}

/// Knobs of generating on the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generate {
    /// Rows per statement and transaction; `None`: one for each client.
    pub rows_per_commit: Option<u64>,
    /// SQL of the variable `row` by column, instead of the column's generator.
    pub expressions: BTreeMap<String, String>,
}

/// Knobs of the loop in the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Procedure {
    /// Rows per transaction; `None`: one transaction for each client.
    pub rows_per_commit: Option<u64>,
    /// SQL of the variable `row` by column, instead of the column's generator.
    pub expressions: BTreeMap<String, String>,
    /// PL/pgSQL statements instead of the loop; may use `first_row` and `last_row`.
    pub body: Option<String>,
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
