//! Which row is missing and which is too many, when a table does not hold what the generator says.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;

use crate::data::{Scratch, TableGenerator, row_hash};
use crate::model::ColumnType;

use super::text::Spelling;
use super::{BinaryEncoder, CopyRows, StreamError};

/// Columns shown of a row.
const SHOWN_COLUMNS: usize = 2;
/// Longest text shown of a value, in characters.
const SHOWN_CHARACTERS: usize = 40;

/// What differs between a table and its generator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Rows the generator makes.
    pub expected: u64,
    /// Rows the table holds.
    pub actual: u64,
    /// Expected rows that are not there.
    pub missing: u64,
    /// Rows that should not be there, doubled ones included.
    pub extra: u64,
    /// Number and first columns of the first missing row, in generator order.
    pub first_missing: Option<String>,
    /// First columns of the first extra row, in the order of the stream.
    pub first_extra: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} rows, found {}", self.expected, self.actual)?;
        if let Some(first) = &self.first_missing {
            write!(f, "; {} missing, the first is {first}", self.missing)?;
        }
        if let Some(first) = &self.first_extra {
            write!(f, "; {} too many or changed, the first is ({first})", self.extra)?;
        }
        Ok(())
    }
}

/// Compares a binary COPY stream with generated rows, row by row, in any order.
///
/// Holds 20 bytes a row; made only when two [`crate::data::Content`]s differ.
#[derive(Debug)]
pub struct DifferenceFinder {
    table: Arc<TableGenerator>,
    range: Range<u64>,
    hashes: Vec<u128>,
    /// How often each hash is still to come.
    awaited: Vec<u32>,
    rows: CopyRows,
    found: Difference,
}

impl DifferenceFinder {
    /// Most rows that are compared one by one (200 MB).
    pub const LIMIT: u64 = 10_000_000;

    /// `None` for more rows than [`Self::LIMIT`].
    pub fn new(table: Arc<TableGenerator>, range: Range<u64>) -> Option<Self> {
        let expected = range.end.saturating_sub(range.start);
        if expected > Self::LIMIT {
            return None;
        }
        let mut all = Vec::with_capacity(usize::try_from(expected).ok()?);
        each_hash(&table, range.clone(), |_, hash| {
            all.push(hash);
            true
        });
        all.sort_unstable();
        let mut hashes: Vec<u128> = Vec::with_capacity(all.len());
        let mut awaited: Vec<u32> = Vec::with_capacity(all.len());
        for hash in all {
            match awaited.last_mut() {
                Some(count) if hashes.last() == Some(&hash) => *count += 1,
                _ => {
                    hashes.push(hash);
                    awaited.push(1);
                }
            }
        }
        let found = Difference { expected, ..Difference::default() };
        Some(Self { table, range, hashes, awaited, rows: CopyRows::default(), found })
    }

    /// Takes the next bytes of the stream, cut anywhere; its columns are those of the generator.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), StreamError> {
        let Self { table, hashes, awaited, rows, found, .. } = self;
        rows.push(chunk, |body| {
            found.actual += 1;
            let place = hashes.binary_search(&row_hash(body)).ok();
            if let Some(count) = place.map(|place| &mut awaited[place]).filter(|count| **count > 0) {
                *count -= 1;
                return;
            }
            found.extra += 1;
            found.first_extra.get_or_insert_with(|| show_fields(table, body));
        })
    }

    /// The difference, also after a stream that ended early.
    pub fn finish(mut self) -> Difference {
        self.found.missing = self.awaited.iter().map(|count| u64::from(*count)).sum();
        let mut first = None;
        if self.found.missing > 0 {
            each_hash(&self.table, self.range, |row, hash| {
                let awaited = self.hashes.binary_search(&hash).is_ok_and(|place| self.awaited[place] > 0);
                first = awaited.then_some(row);
                !awaited
            });
        }
        self.found.first_missing = first.map(|row| show_row(&self.table, row));
        self.found
    }
}

/// Hashes of rows in order, as long as `visit` says so.
fn each_hash(table: &Arc<TableGenerator>, rows: Range<u64>, mut visit: impl FnMut(u64, u128) -> bool) {
    let mut encoder = BinaryEncoder::new(Arc::clone(table));
    let mut buffer = BytesMut::new();
    for row in rows {
        buffer.clear();
        encoder.row(row, &mut buffer);
        if !visit(row, row_hash(&buffer[2..])) {
            return;
        }
    }
}

/// `row 17 (id = 17, name = x)`, rows counted from 0.
fn show_row(table: &TableGenerator, row: u64) -> String {
    let (mut scratch, mut spelling) = (Scratch::default(), Spelling::default());
    let mut shown = Vec::new();
    for column in table.columns().iter().take(SHOWN_COLUMNS) {
        let text = spelling.of(column.value(row, &mut scratch), column.kind()).map(|spelled| spelled.text);
        shown.push(show_value(column.name(), text));
    }
    format!("row {row} ({})", shown.join(", "))
}

fn show_fields(table: &TableGenerator, body: &[u8]) -> String {
    let mut rest = body;
    let mut shown = Vec::new();
    for column in table.columns().iter().take(SHOWN_COLUMNS) {
        let Some((length, after)) = rest.split_first_chunk::<4>() else { break };
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (field, after) = after.split_at_checked(length.unwrap_or(0)).unwrap_or((after, &[]));
        rest = after;
        let text = length.map(|_| spell_field(column.kind(), field));
        shown.push(show_value(column.name(), text.as_deref()));
    }
    shown.join(", ")
}

fn show_value(name: &str, text: Option<&str>) -> String {
    let text = text.unwrap_or("NULL");
    let short: String = text.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(SHOWN_CHARACTERS).is_some() { "..." } else { "" };
    format!("{name} = {short}{more}")
}

/// A binary field as text where its key-like types are concerned, else in hexadecimal.
fn spell_field(kind: &ColumnType, field: &[u8]) -> String {
    match kind {
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => signed(field).to_string(),
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) | ColumnType::Json => {
            String::from_utf8_lossy(field).into_owned()
        }
        _ => field.iter().fold(String::from("\\x"), |text, byte| text + &format!("{byte:02x}")),
    }
}

/// A signed big-endian integer of up to eight bytes.
fn signed(field: &[u8]) -> i64 {
    let start = if field.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    field.iter().take(8).fold(start, |number, byte| (number << 8) | i64::from(*byte))
}
