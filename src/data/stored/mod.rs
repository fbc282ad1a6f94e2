//! Rows of a file of the user's, ready to be asked for by their number.
//!
//! A CSV or Parquet file is read once, checked against the table's types, and written into a row store in the cache:
//! pages of whole rows, and a list of where each page begins. A store is named by the content of its file and by all that
//! decides how it is read. Memory holds one page per reader and 16 bytes for every 64 KiB of rows, however large the
//! file is.

mod csv;
pub(in crate::data) mod field;
mod parquet;
mod read;
mod write;

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::model::ColumnType;

pub(in crate::data) use self::read::Cursor;
pub(in crate::data) use self::read::RowStore;
pub use self::write::{Converted, StoredWidth};

/// Mistakes told of one file; the others are most likely of the same kind.
const MOST_PROBLEMS: usize = 10;

/// A file with rows, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub format: RowFormat,
}

/// Formats of files with rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowFormat {
    /// Comma-separated values.
    Csv(CsvFormat),
    /// Parquet; columns go by name.
    Parquet,
}

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFormat {
    /// Whether the first line names the columns; else they stand in the order of the table.
    pub header: bool,
    /// Between fields.
    pub delimiter: u8,
    /// Around fields that hold delimiters, quotes or line ends; doubled inside.
    pub quote: u8,
    /// A field that is written so, without quotes, is NULL.
    pub null: String,
}

/// A column that the file has to fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name.
    pub name: String,
    /// Type as the generator and the encoders know it.
    pub kind: ColumnType,
    /// Type as written.
    pub sql_type: String,
    /// Whether NULL is refused.
    pub not_null: bool,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// Where: `line 7`, `row 7`; empty for the file as a whole.
    pub place: String,
    /// Column, where it is about one.
    pub column: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What was expected.
    pub expected: Option<String>,
    /// A name that was probably meant.
    pub unknown: Option<String>,
}

impl FileProblem {
    fn of_file(message: impl Into<String>) -> Self {
        Self { place: String::new(), column: None, message: message.into(), expected: None, unknown: None }
    }
}

/// Reads a file into a store below `cache`, or finds the one that was made before.
///
/// # Errors
/// Everything that is wrong with the file, up to ten mistakes.
pub fn convert(file: &RowFile, wanted: &[Wanted], cache: &Path) -> Result<Converted, Vec<FileProblem>> {
    write::convert(file, wanted, cache)
}

/// For each wanted column its place in the file, by name.
///
/// Every column must be there and nothing else: a misspelt one would silently be NULL or be left out.
fn by_name(names: &[String], wanted: &[Wanted]) -> Result<Vec<usize>, Vec<FileProblem>> {
    let mut problems = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            problems.push(FileProblem::of_file(format!("two columns are called `{name}`")));
        }
        if !wanted.iter().any(|column| column.name == *name) {
            problems.push(FileProblem {
                unknown: Some(name.clone()),
                ..FileProblem::of_file(format!("the table has no column `{name}`"))
            });
        }
    }
    let places = wanted.iter().map(|column| {
        let place = names.iter().position(|name| *name == column.name);
        if place.is_none() {
            problems.push(FileProblem::of_file(format!("the column `{}` is missing", column.name)));
        }
        place.unwrap_or_default()
    });
    let places: Vec<usize> = places.collect();
    problems.truncate(MOST_PROBLEMS);
    if problems.is_empty() { Ok(places) } else { Err(problems) }
}

#[cfg(test)]
mod tests;

/// A page of a store: which rows, where in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    rows: Range<u64>,
    bytes: Range<u64>,
}
