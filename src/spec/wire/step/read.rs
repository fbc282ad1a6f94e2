//! `read` steps.

use schemars::JsonSchema;
use serde::Deserialize;

use super::FormatWord;
use crate::model::{Cache, Decode, TextOrBinary};
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
