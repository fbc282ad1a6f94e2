//! `load` steps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::{CopyFormat, CopySource, SameTransaction, Until};
use crate::spec::units::{Count, Size, Span};
use crate::spec::wire::words;

/// Loads a table's rows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadFile {
    /// Name of the step, as used in metrics. Default: the method.
    pub name: Option<String>,
    /// Name of the table.
    pub table: String,
    /// How rows travel: `insert`, `copy`, `unnest`, `generate` or `procedure`, or a map with its options.
    pub method: LoadMethodFile,
    /// Parallel connections; with several copies of the table, client i feeds copy i. Default 1.
    pub clients: Option<u32>,
    /// The load ends by the clock, not with the last row: `{warm_up: 5s, measure: 30s, sample_every: 250ms}`. Clients take
    /// batches of row numbers from a counter of their table, so there are no holes; `rows` of the table is then the most it
    /// may load. For `insert` and `unnest`, and `copy` from the client, with `rows_per_commit`: a row counts in the phase in
    /// which its COMMIT was acknowledged.
    pub duration: Option<WindowFile>,
    /// Rows per second over all clients together; each batch has a time at which it is to begin, and latency counts from that
    /// time, so waiting behind a stall is part of it. Default: each client begins a batch when its last one is answered.
    pub rate: Option<Count>,
    /// Which end point is measured as well: `committed` (default), `durable` (and a checkpoint), `settled` (and VACUUM ANALYZE).
    pub until: Option<UntilWord>,
    /// When rows and checksum are verified. `auto` (default): at the end if a later step reads the table, else now.
    pub verify: Option<VerifyWord>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

/// A load by duration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowFile {
    /// Work before the measured window, by the same clients on the same tables. Its rows stay in the table and its samples
    /// in the results. Default: none.
    pub warm_up: Option<Span>,
    /// Length of the measured window. No batch is begun after it; open transactions are then committed.
    pub measure: Span,
    /// Distance of the samples in `samples.parquet`, `10ms` to `1m`. Default: `250ms`, or a 480th of the whole time where
    /// that is longer.
    pub sample_every: Option<Span>,
}

/// How rows are loaded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadMethodFile {
    /// INSERT statements with bound parameters.
    Insert(InsertFile),
    /// COPY.
    Copy(CopyFile),
    /// INSERT ... SELECT * FROM unnest(...): one bound array for each column.
    Unnest(UnnestFile),
    /// INSERT ... SELECT ... FROM `generate_series`: the server makes the rows, none travel.
    Generate(GenerateFile),
    /// A loop in PL/pgSQL in the server, one INSERT per row.
    Procedure(ProcedureFile),
}

/// Options of INSERT.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertFile {
    /// Rows of one multi-row VALUES statement. Default 1.
    pub rows_per_statement: Option<Count>,
    /// Rows sent in one round trip; a multiple of `rows_per_statement`. Default: one statement.
    pub rows_per_batch: Option<Count>,
    /// Rows per transaction. It is looked at after each batch, so a transaction ends with the first batch that reaches
    /// this number. Default: one transaction per client.
    pub rows_per_commit: Option<Count>,
    /// Prepare the statement once (default), or send text with literals each time.
    pub prepared: Option<bool>,
}

/// Options of COPY.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyFile {
    /// `text` (default), `csv` or `binary`.
    pub format: Option<FormatWord>,
    /// `COPY ... (FREEZE)`; needs `same_transaction: truncate` or `create`. Default false.
    pub freeze: Option<bool>,
    /// Rows come from the `client` (default) or from a file on the `server`.
    pub source: Option<SourceWord>,
    /// What happens to the table in the same transaction first: `none` (default), `truncate`, `create`.
    pub same_transaction: Option<SameTransactionWord>,
    /// Rows per transaction. Default: one transaction per client.
    pub rows_per_commit: Option<Count>,
    /// Size of one message to the server. Default `64kB`.
    pub chunk: Option<Size>,
    /// CSV only: with a header line. Default false.
    pub header: Option<bool>,
}

/// Options of unnest.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnnestFile {
    /// Rows of one statement: elements of each array. Default 1000.
    pub rows_per_batch: Option<Count>,
    /// Rows per transaction; a transaction ends with the first batch that reaches this number. Default: one
    /// transaction per client.
    pub rows_per_commit: Option<Count>,
}

/// Options of generate. Constants, sequences and templates are computed by the server with the very same values, which
/// are verified; a column whose values are drawn at random needs an expression.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateFile {
    /// Rows per statement, each in its own transaction. Default: one for each client.
    pub rows_per_commit: Option<Count>,
    /// SQL by column instead of its generator, such as `{id: "row + 1"}`; `row` is the number of the row, a bigint from
    /// 0. Then only the number of rows is verified.
    pub expressions: Option<BTreeMap<String, String>>,
}

/// Options of procedure. What the server can compute is as with `generate`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcedureFile {
    /// Rows per transaction: the loop commits after so many. Default: one transaction for each client.
    pub rows_per_commit: Option<Count>,
    /// SQL by column instead of its generator; `row` is the number of the row, a bigint from 0. Then only the number of
    /// rows is verified.
    pub expressions: Option<BTreeMap<String, String>>,
    /// PL/pgSQL statements instead of the loop, or the name of a `.sql` file. They insert the rows `first_row` to
    /// `last_row` (bigint, both included, from 0: the client's share) and may COMMIT; `row` is a variable of theirs. Only
    /// the number of rows is verified.
    pub body: Option<String>,
}

/// When a load is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerifyWord {
    /// At the end when a later step reads the table, else now.
    Auto,
    /// Right after the step, outside the clock.
    Now,
    /// After the last step.
    End,
}

words! {
    /// End points of a load.
    UntilWord => Until {
        /// The server acknowledged the commit.
        Committed => Until::Committed,
        /// And a checkpoint was done.
        Durable => Until::Durable,
        /// And VACUUM ANALYZE was done.
        Settled => Until::Settled,
    }
}

words! {
    /// Formats of COPY.
    FormatWord => CopyFormat {
        /// Tab-separated text.
        Text => CopyFormat::Text,
        /// Comma-separated values.
        Csv => CopyFormat::Csv,
        /// PostgreSQL's binary format.
        Binary => CopyFormat::Binary,
    }
}

words! {
    /// Where COPY's rows come from.
    SourceWord => CopySource {
        /// Sent by the client while they are made.
        Client => CopySource::Client,
        /// A file on the server, written before the clock starts.
        Server => CopySource::Server,
    }
}

words! {
    /// What happens to the table in COPY's transaction.
    SameTransactionWord => SameTransaction {
        /// Nothing.
        None => SameTransaction::None,
        /// TRUNCATE first.
        Truncate => SameTransaction::Truncate,
        /// The table is created in it.
        Create => SameTransaction::Create,
    }
}
