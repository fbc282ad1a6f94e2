//! `command` steps.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::{Stream, Unit};
use crate::spec::units::Span;

/// Runs a client program against the trial's server, such as pgbench or psql. Only with `--allow-commands`.
///
/// It finds the server by the variables every client of PostgreSQL reads: `PGHOST` (folder of the socket, or address),
/// `PGPORT`, `PGUSER`, `PGDATABASE` and `PGPASSFILE` (a private file, removed afterwards; the password is nowhere else).
/// `LOADLAB_EXPERIMENT`, `LOADLAB_STEP`, `LOADLAB_TRIAL`, `LOADLAB_BLOCK`, `LOADLAB_FACTOR_<NAME>` for each factor and
/// `LOADLAB_ROWS_<TABLE>` for each table say what is run; `LOADLAB_SCRATCH` is a private folder of the trial, removed with it. Of the host's own variables only `PATH`, `HOME`, `LANG`, `LC_ALL`,
/// `TZ` and `TMPDIR` are passed on; give others with `[env, NAME=value, program]`.
///
/// `--smoke` cannot make a program do less; templates have the name `smoke` for that: `"--time={{ 1 if smoke else 60 }}"`.
///
/// The clock runs from the program's start to its end. An exit code other than 0, a missing capture, or the timeout fails the
/// trial. What the program leaves running is ended. Each output is kept in the run's folder under `output/`: all of it up to
/// 4 MiB, of a longer one the first 1 MiB and the last 3 MiB.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandFile {
    /// Name of the step, as used in metrics (`<step>.<capture>`). Default `command`.
    pub name: Option<String>,
    /// Program and arguments, as a list: `[pgbench, -n, -T, 10]`. No shell reads them; `[sh, -c, "..."]` asks for one.
    /// A program without `/` is looked for in `PATH`; one with `/` is relative to the working folder.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub run: Vec<Word>,
    /// Working folder, relative to the folder of the experiment file. Default: that folder.
    pub folder: Option<String>,
    /// Numbers to find in the output, by name; each is required. One called `rows` (`unit: rows`) is the number of rows the
    /// program moved, from which its `rows_per_second` is made.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, CaptureFile>")]
    pub captures: IndexMap<String, CaptureFile>,
    /// Longest time the program may take; then it is ended with everything it started. Default `1h`.
    pub timeout: Option<Span>,
    /// The step is left out of treatments for which this is false, such as `"{{ method == 'copy' }}"`.
    pub when: Option<bool>,
}

/// A program or argument: text, or a number as it is written.
#[derive(Debug)]
pub struct Word(pub String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::spec::wire::scalar::Single::deserialize(deserializer).map(|single| Self(single.0.to_string()))
    }
}

/// A number to find in what the program prints: by `regex` or by `json`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureFile {
    /// Regular expression with exactly one group, which is the number: `"tps = ([0-9.]+)"`. `^` and `$` stand at the ends of
    /// lines. Where it matches several times, all must give the same number.
    pub regex: Option<String>,
    /// Path in a JSON document that is the whole output: keys and list indexes (from 0) between dots, `runs.0.seconds`.
    pub json: Option<String>,
    /// Where it is looked for. Default `stdout`.
    pub stream: Option<StreamWord>,
    /// What the number means. It is stored as it is printed.
    pub unit: UnitWord,
}

crate::spec::wire::words! {
    /// One of a program's two outputs.
    StreamWord => Stream {
        /// Standard output.
        Stdout => Stream::Stdout,
        /// Standard error.
        Stderr => Stream::Stderr,
    }
}

/// Unit of a captured number. Rates and times of the first capture are what treatments are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnitWord {
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

impl From<UnitWord> for Unit {
    fn from(word: UnitWord) -> Self {
        match word {
            UnitWord::Seconds => Self::Seconds,
            UnitWord::Milliseconds => Self::Milliseconds,
            UnitWord::Microseconds => Self::Microseconds,
            UnitWord::PerSecond => Self::PerSecond,
            UnitWord::RowsPerSecond => Self::RowsPerSecond,
            UnitWord::BytesPerSecond => Self::BytesPerSecond,
            UnitWord::Bytes => Self::Bytes,
            UnitWord::Rows => Self::Rows,
            UnitWord::Count => Self::Count,
            UnitWord::Percent => Self::Percent,
            UnitWord::Ratio => Self::Ratio,
        }
    }
}
