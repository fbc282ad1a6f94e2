//! Rows of a [`crate::data::TableGenerator`] in every form PostgreSQL takes them, and the content of what it gives back.
//!
//! All encoders write the value that the server stores, so that a row read back in binary is, byte for byte,
//! the row [`BinaryEncoder`] makes: that is what [`expected_content`] and [`ContentReader`] compare.

mod arrays;
mod binary;
mod content;
mod copy;
mod csv;
mod difference;
mod expression;
pub(super) mod field;
mod ident;
mod image;
mod layout;
mod literal;
mod parameters;
mod reader;
#[cfg(test)]
mod tests;
mod text;

pub use arrays::ArrayParameters;
pub use binary::{BinaryEncoder, COPY_HEADER, COPY_TRAILER};
pub use content::{ContentReader, RawField, RowHasher, content_of, expected_content};
pub use copy::{CopyEncoder, TextEncoder};
pub use csv::CsvEncoder;
pub use difference::{Difference, DifferenceFinder};
pub use expression::{expressions, type_name};
pub use ident::{column_list, quote_ident};
pub use literal::LiteralEncoder;
pub use parameters::{Parameters, RawParameter, RawParameters};
pub use reader::{CopyRows, StreamError};
