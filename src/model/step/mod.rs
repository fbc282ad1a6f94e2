//! The steps of a trial.

mod command;
mod dump;
mod load;
mod read;
mod window;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use command::{Capture, CaptureFrom, Command, Stream, Unit};
pub use dump::{Dump, DumpFormat, DumpSource, Restore, Through};
pub use load::{
    Copy, CopyFormat, CopySource, Generate, Insert, Load, LoadMethod, Procedure, SameTransaction, Unnest,
    Until, Verify,
};
pub use read::{By, Cache, Decode, Read, ReadMethod, SelectMode, State, TextOrBinary};
pub use window::Window;

/// One thing a trial does, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Unique in the trial; the name metrics are asked by (`insert.rows_per_second`).
    pub name: String,
    /// How often it is done in a row, at least 1.
    pub repeat: u32,
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
    /// Runs a client program.
    Command(Command),
    /// Loads generated rows.
    Load(Load),
    /// Reads rows.
    Read(Read),
    /// Writes tables into a dump.
    Dump(Dump),
    /// Brings tables back from a dump.
    Restore(Restore),
}
