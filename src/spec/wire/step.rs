//! `steps`: what a trial does.

use schemars::JsonSchema;
use serde::Deserialize;

use super::scalar::NameOr;
use super::words;
use crate::model::{Cache, CopyFormat, CopySource, Decode, SameTransaction, TextOrBinary, Until};
use crate::spec::units::{Count, Size, Span};

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
    /// Loads a table's rows.
    Load(LoadFile),
    /// Reads a table.
    Read(ReadFile),
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

/// Loads a table's rows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadFile {
    /// Name of the step, as used in metrics. Default: the method.
    pub name: Option<String>,
    /// Name of the table.
    pub table: String,
    /// How rows travel: `insert` or `copy`, or a map with its options.
    pub method: LoadMethodFile,
    /// Parallel connections; with several copies of the table, client i feeds copy i. Default 1.
    pub clients: Option<u32>,
    /// Which end point is measured as well: `committed` (default), `durable` (and a checkpoint), `settled` (and VACUUM ANALYZE).
    pub until: Option<UntilWord>,
    /// When rows and checksum are verified. `auto` (default): at the end if a later step reads the table, else now.
    pub verify: Option<VerifyWord>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

/// How rows are loaded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadMethodFile {
    /// INSERT statements with bound parameters.
    Insert(InsertFile),
    /// COPY.
    Copy(CopyFile),
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

/// Reads a table.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Name of the step, as used in metrics. Default: the method.
    pub name: Option<String>,
    /// Name of the table.
    pub table: String,
    /// Columns that are read. Default: all.
    pub columns: Option<Vec<String>>,
    /// How rows travel: `select` or `copy_out`, or a map with its options.
    pub method: ReadMethodFile,
    /// `none` (default): rows and bytes are counted; `values`: every value is decoded and checked.
    pub decode: Option<DecodeWord>,
    /// Parallel connections. Default 1.
    pub clients: Option<u32>,
    /// `as-is` (default), or `warm`: one discarded scan first.
    pub cache: Option<CacheWord>,
    /// Longest time the step may take. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

/// How rows are read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadMethodFile {
    /// SELECT.
    Select(SelectFile),
    /// COPY ... TO STDOUT.
    CopyOut(CopyOutFile),
}

/// Options of SELECT.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelectFile {
    /// `all` rows before the first is looked at (default), `streamed`, or `{portal: {fetch_size: 1000}}`.
    pub mode: Option<SelectModeFile>,
    /// `binary` (default) or `text`.
    pub format: Option<TextOrBinaryWord>,
}

/// How much of the result the client holds at once.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelectModeFile {
    /// All rows before the first is looked at.
    All,
    /// Row by row as they arrive.
    Streamed,
    /// So many rows per round trip.
    Portal(PortalFile),
}

/// A portal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortalFile {
    /// Rows per round trip, at least 1.
    pub fetch_size: u32,
}

/// Options of COPY TO.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyOutFile {
    /// `text` (default), `csv` or `binary`.
    pub format: Option<FormatWord>,
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

words! {
    /// Wire format of SELECT.
    TextOrBinaryWord => TextOrBinary {
        /// Simple query.
        Text => TextOrBinary::Text,
        /// Extended protocol.
        Binary => TextOrBinary::Binary,
    }
}

words! {
    /// What the client does with values.
    DecodeWord => Decode {
        /// Rows and bytes are counted.
        None => Decode::None,
        /// Every value is decoded and checked.
        Values => Decode::Values,
    }
}

words! {
    /// State of the caches before a read.
    CacheWord => Cache {
        /// As the steps before left them.
        AsIs => Cache::AsIs,
        /// One discarded scan first.
        Warm => Cache::Warm,
    }
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
