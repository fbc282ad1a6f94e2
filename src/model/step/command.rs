//! A command step: a client program of the user's, and the numbers it prints.

use serde::{Deserialize, Serialize};

/// Runs a client program against the trial's server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments, handed over as they are: no shell reads them. Never empty.
    pub run: Vec<String>,
    /// Working folder, relative to the folder of the experiment file; `.` is that folder.
    pub folder: String,
    /// Numbers to find in its output, each required, in the order of the file.
    pub captures: Vec<Capture>,
}

/// A number to find in what a program prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// Name; the metric is `<step>.<name>`.
    pub name: String,
    /// Where it is looked for.
    pub stream: Stream,
    /// How it is found.
    pub from: CaptureFrom,
    /// What the number means.
    pub unit: Unit,
}

/// How a number is found in text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaptureFrom {
    /// The only group of a regular expression.
    Regex(String),
    /// Keys and list indexes from the top of a JSON document.
    Json(Vec<String>),
}

/// One of a program's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Name in messages and file names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Unit of a captured number. Values are stored as printed, without conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// s
    Seconds,
    /// ms
    Milliseconds,
    /// us
    Microseconds,
    /// Things per second, such as transactions.
    PerSecond,
    /// Rows per second.
    RowsPerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Bytes.
    Bytes,
    /// Rows.
    Rows,
    /// A number of things.
    Count,
    /// 100 is the whole.
    Percent,
    /// A plain ratio.
    Ratio,
}

impl Unit {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
            Self::PerSecond => "per_second",
            Self::RowsPerSecond => "rows_per_second",
            Self::BytesPerSecond => "bytes_per_second",
            Self::Bytes => "bytes",
            Self::Rows => "rows",
            Self::Count => "count",
            Self::Percent => "percent",
            Self::Ratio => "ratio",
        }
    }

    /// As written behind a number or in the head of a table.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::PerSecond => "1/s",
            Self::RowsPerSecond => "rows/s",
            Self::BytesPerSecond => "bytes/s",
            Self::Bytes => "bytes",
            Self::Rows => "rows",
            Self::Count => "count",
            Self::Percent => "%",
            Self::Ratio => "ratio",
        }
    }

    /// Whether a larger number is the faster one; `None` for what says nothing about speed.
    #[must_use]
    pub fn more_is_faster(self) -> Option<bool> {
        match self {
            Self::PerSecond | Self::RowsPerSecond | Self::BytesPerSecond => Some(true),
            Self::Seconds | Self::Milliseconds | Self::Microseconds => Some(false),
            Self::Bytes | Self::Rows | Self::Count | Self::Percent | Self::Ratio => None,
        }
    }
}
