//! `read` steps.

use schemars::JsonSchema;
use serde::Deserialize;

use super::FormatWord;
use crate::model::{Cache, Decode, State, TextOrBinary};
use crate::spec::units::Span;
use crate::spec::wire::words;

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
    /// How rows travel: `select` or `copy_out`, or a map with its options; `scan`: the server scans, no rows travel.
    pub method: ReadMethodFile,
    /// `none` (default): rows and bytes are counted; `values`: every value is decoded and checked; `floats`: every number
    /// of `float4[]` and `float8[]` columns, and of `bytea` columns made by `floats_of`, is.
    pub decode: Option<DecodeWord>,
    /// Parallel connections, each with a share of the table. Default 1.
    pub clients: Option<u32>,
    /// What the shares of several clients are: ranges of `pages` (default), or ranges of a `key`.
    pub by: Option<ByWord>,
    /// With `by: key`: an integer column. Without an index on it, its smallest and largest value cost a scan before the
    /// clock starts.
    pub key: Option<String>,
    /// `as-is` (default); `warm`: one discarded scan first; `cold`: the server is restarted and its files are dropped from
    /// the page cache, which is checked. All outside the clock.
    pub cache: Option<CacheWord>,
    /// `as-loaded` (default), or `settled`: VACUUM (FREEZE, ANALYZE) and CHECKPOINT first, outside the clock.
    pub state: Option<StateWord>,
    /// How often the read is done, one after another in the same trial, each with its own row in the results. Default 1.
    /// Repetitions are no further trials: they become one number (their geometric mean) before anything is compared.
    pub repeat: Option<u32>,
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
    /// EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF) of the SELECT, after a CHECKPOINT: counts pages found in shared
    /// buffers, read, dirtied and written. Values stored out of line are not fetched.
    Scan(ScanFile),
}

/// A scan has no options.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScanFile {}

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
        /// Every number of float arrays and of bytes that hold the same is decoded and checked.
        Floats => Decode::Floats,
    }
}

words! {
    /// State of the caches before a read.
    CacheWord => Cache {
        /// As the steps before left them.
        AsIs => Cache::AsIs,
        /// One discarded scan first.
        Warm => Cache::Warm,
        /// The server restarted and nothing of its files in the page cache.
        Cold => Cache::Cold,
    }
}

words! {
    /// State of the table before a read.
    StateWord => State {
        /// As the steps before left it.
        AsLoaded => State::AsLoaded,
        /// After VACUUM (FREEZE, ANALYZE) and CHECKPOINT.
        Settled => State::Settled,
    }
}

/// What the shares of several clients are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ByWord {
    /// Ranges of the table's pages.
    Pages,
    /// Ranges of an integer column.
    Key,
}
