//! The rows an experiment loads: values as a pure function of (seed, column name, row number).
//!
//! The content of a table is therefore the same whatever the clients, batches, load method, backend, server version or
//! platform, and any row can be made alone: nothing is stored, and a loaded table is verified by
//! making its rows again. Rows may also come from a file: then they are a pure function of its content and the row number. Encoders belong to the engines.

mod calendar;
mod compile;
mod constant;
mod content;
mod decimal;
mod distribution;
mod floats;
mod formula;
mod json;
mod maker;
mod permutation;
mod random;
mod stored;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod value;

pub use calendar::{
    DATE_INFINITY, TIMESTAMP_INFINITY, parse_date, parse_timestamp, write_date, write_timestamp,
};
pub use content::{Content, row_hash, share, share_of};
pub use floats::{FloatHasher, floats_of_rows};
pub use formula::{Formula, Piece};
pub use json::write_uuid;
pub use stored::{Converted, CsvFormat, FileProblem, RowFile, RowFormat, StoredWidth, Wanted, convert};
pub use table::{ColumnGenerator, DataError, Plain, TableGenerator};
pub use value::{ArrayValue, Scratch, Value};
