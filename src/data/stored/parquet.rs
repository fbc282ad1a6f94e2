//! Parquet files, some ten thousand rows at a time.
//!
//! Values go through their text, so that one set of rules decides what fits a column, for CSV and Parquet alike.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use polars::prelude::{AnyValue, DataFrame, ParquetReader, SerReader, TimeUnit};

use super::write::Writer;
use super::{FileProblem, Wanted, by_name};
use crate::data::calendar::{write_date, write_timestamp};

/// Values that are in memory at once, roughly, and the fewest and most rows that may be.
const VALUES: usize = 4_000_000;
const ROWS: (usize, usize) = (1_024, 131_072);
/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;

/// Reads all rows into a store; what is wrong is noted there.
pub(super) fn read(path: &Path, wanted: &[Wanted], writer: &mut Writer<'_>) {
    // A row group is decoded for each slice of it, so slices are as long as memory allows.
    let most = (VALUES / wanted.len().max(1)).clamp(ROWS.0, ROWS.1);
    let mut first = 0;
    loop {
        let frame = match slice(path, first, most) {
            Ok(frame) => frame,
            Err(error) => {
                writer.problem(FileProblem::of_file(format!("it cannot be read as Parquet: {error}")));
                return;
            }
        };
        let names: Vec<String> = frame.get_column_names().iter().map(ToString::to_string).collect();
        let places = match by_name(&names, wanted) {
            Ok(places) => places,
            Err(problems) => {
                for problem in problems {
                    writer.problem(problem);
                }
                return;
            }
        };
        if !rows(&frame, &places, first, writer) || frame.height() < most {
            return;
        }
        first += most;
    }
}

fn slice(path: &Path, first: usize, rows: usize) -> Result<DataFrame, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = ParquetReader::new(file).with_slice(Some((first, rows)));
    reader.finish().map_err(|error| error.to_string())
}

/// False when reading may end.
fn rows(frame: &DataFrame, places: &[usize], first: usize, writer: &mut Writer<'_>) -> bool {
    let columns = frame.columns();
    let mut texts: Vec<Option<String>> = vec![None; places.len()];
    for row in 0..frame.height() {
        for (text, place) in texts.iter_mut().zip(places) {
            let value = columns[*place].get(row).unwrap_or(AnyValue::Null);
            *text = match in_words(&value) {
                Ok(text) => text,
                Err(kind) => {
                    let name = columns[*place].name();
                    writer.problem(FileProblem::of_file(format!(
                        "the column `{name}` has the type {kind}, which no column of a table takes"
                    )));
                    return false;
                }
            };
        }
        let place = move || format!("row {}", first + row + 1);
        if !writer.row(&place, |column| texts[column].as_deref()) {
            return false;
        }
    }
    true
}

/// A value as PostgreSQL would write it; `None` for NULL. The type's name when there is no such text.
fn in_words(value: &AnyValue<'_>) -> Result<Option<String>, String> {
    let text = match value {
        AnyValue::Null => return Ok(None),
        AnyValue::Boolean(value) => value.to_string(),
        AnyValue::String(text) => (*text).to_owned(),
        AnyValue::StringOwned(text) => text.to_string(),
        AnyValue::Int8(value) => value.to_string(),
        AnyValue::Int16(value) => value.to_string(),
        AnyValue::Int32(value) => value.to_string(),
        AnyValue::Int64(value) => value.to_string(),
        AnyValue::UInt8(value) => value.to_string(),
        AnyValue::UInt16(value) => value.to_string(),
        AnyValue::UInt32(value) => value.to_string(),
        AnyValue::UInt64(value) => value.to_string(),
        // Rust writes the shortest text that gives the same bits.
        AnyValue::Float32(value) => value.to_string(),
        AnyValue::Float64(value) => value.to_string(),
        AnyValue::Decimal(digits, _, scale) => decimal(*digits, *scale),
        AnyValue::Binary(bytes) => hex(bytes),
        AnyValue::BinaryOwned(bytes) => hex(bytes),
        AnyValue::Date(days) => {
            let mut text = String::new();
            write_date(days.saturating_sub(EPOCH_DAYS), &mut text);
            text
        }
        AnyValue::Datetime(count, unit, zone) => timestamp(*count, *unit, zone.is_some())?,
        AnyValue::DatetimeOwned(count, unit, zone) => timestamp(*count, *unit, zone.is_some())?,
        AnyValue::List(elements) => {
            let mut text = String::from("{");
            for index in 0..elements.len() {
                if index > 0 {
                    text.push(',');
                }
                match in_words(&elements.get(index).unwrap_or(AnyValue::Null))? {
                    None => text.push_str("NULL"),
                    Some(element) => {
                        let _ = write!(text, "\"{}\"", element.replace('\\', "\\\\").replace('"', "\\\""));
                    }
                }
            }
            text.push('}');
            text
        }
        other => return Err(other.dtype().to_string()),
    };
    Ok(Some(text))
}

/// A whole number of units of `10^-scale`.
fn decimal(digits: i128, scale: usize) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let text = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = text.split_at(text.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A moment counted from 1970. What is finer than PostgreSQL's microseconds is refused, not rounded.
fn timestamp(count: i64, unit: TimeUnit, zoned: bool) -> Result<String, String> {
    let micros = match unit {
        TimeUnit::Nanoseconds if count % 1_000 != 0 => None,
        TimeUnit::Nanoseconds => Some(count / 1_000),
        TimeUnit::Microseconds => Some(count),
        TimeUnit::Milliseconds => count.checked_mul(1_000),
    };
    let micros = micros.and_then(|micros| micros.checked_sub(i64::from(EPOCH_DAYS) * 86_400_000_000));
    let micros = micros.ok_or("timestamp with parts of microseconds, or beyond the year 294276")?;
    let mut text = String::new();
    write_timestamp(micros, zoned, &mut text);
    Ok(text)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::from("\\x");
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
