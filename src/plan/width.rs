//! How many bytes generated rows take: as heap tuples, as index entries, as text.
//!
//! Sizes of types, alignment and headers are those of PostgreSQL 14 to 18 on 64-bit machines
//! (documentation, "Database Page Layout" and "TOAST"; `src/include/access/htup_details.h`). Widths of text
//! follow from the generators. Compression is not looked at, so these are sizes before TOAST saves any.

#![expect(clippy::cast_precision_loss, reason = "sizes are estimates")]

use crate::model::{Column, ColumnType, Generator, Scalar, TemplatePart};

/// Heap tuple header with its padding.
const TUPLE_HEADER: f64 = 24.0;
/// Line pointer of a tuple on its page.
const ITEM_POINTER: f64 = 4.0;
/// A value that was moved out of line leaves this much.
const TOAST_POINTER: f64 = 18.0;
/// Values up to this size stay in the row, however large it is: `MAXALIGN(TOAST_POINTER_SIZE)` in
/// `toast_tuple_find_biggest_attribute` (`src/backend/access/table/toast_helper.c`).
const SMALLEST_MOVED: f64 = 24.0;
/// Header of an index tuple.
const INDEX_HEADER: f64 = 8.0;
/// Share of an index page that is filled when rows arrive in any order.
const INDEX_FILL: f64 = 0.7;
/// Header of a one-dimensional array without NULLs.
const ARRAY_HEADER: f64 = 21.0;

/// Widths of the values of a column in bytes, NULLs not counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Width {
    /// On average, inside a heap tuple.
    pub average: f64,
    /// Alignment inside a heap tuple.
    pub align: f64,
    /// Longest, as text on the wire (COPY text or a literal).
    pub most_text: f64,
    /// Whether long values are moved out of line.
    pub toastable: bool,
}

/// Widths of a column's generated values.
#[must_use]
pub fn column_width(column: &Column) -> Width {
    width(&column.kind, &column.generator)
}

/// Widths of a column's values among those of its table: bytes of another column's numbers follow from that.
fn width_among(column: &Column, columns: &[Column]) -> Width {
    let Generator::FloatsOf(source) = &column.generator else { return column_width(column) };
    let source = columns.iter().find(|other| other.name == *source);
    let Some((ColumnType::Array(element), Generator::Array { min, max, .. })) =
        source.map(|source| (&source.kind, &source.generator))
    else {
        return column_width(column);
    };
    let number = if **element == ColumnType::Float4 { 4.0 } else { 8.0 };
    varlena(f64::midpoint(f64::from(*min), f64::from(*max)) * number, f64::from(*max) * number * 2.0 + 2.0)
}

/// Average bytes of a row in the heap: header, values with their alignment, padding, line pointer.
#[must_use]
pub fn row_bytes(columns: &[Column]) -> f64 {
    tuple(columns, |width| width.average) + ITEM_POINTER
}

/// Average bytes of a heap tuple when every value that can be moved out of line has been: a row whose
/// smallest size exceeds a page cannot be stored.
#[must_use]
pub fn smallest_row_bytes(columns: &[Column]) -> f64 {
    let smallest = |width: &Width| {
        let moves = width.toastable && width.average > SMALLEST_MOVED;
        if moves { TOAST_POINTER } else { width.average }
    };
    tuple(columns, smallest)
}

fn tuple(columns: &[Column], size: impl Fn(&Width) -> f64) -> f64 {
    let nullable = columns.iter().any(|column| column.nulls > 0.0);
    let bitmap = if nullable { aligned(columns.len() as f64 / 8.0, 8.0) } else { 0.0 };
    let data = columns.iter().fold(0.0, |end, column| {
        let width = width_among(column, columns);
        // NULLs take no space; their share of the padding goes with them.
        let padding = aligned(end, width.align) - end;
        end + (padding + size(&width)) * (1.0 - column.nulls)
    });
    TUPLE_HEADER + bitmap + aligned(data, 8.0)
}

fn aligned(bytes: f64, to: f64) -> f64 {
    (bytes / to).ceil() * to
}

/// Bytes an index with these key columns takes per row.
#[must_use]
pub fn index_entry_bytes(keys: &[&Column]) -> f64 {
    let data: f64 = keys.iter().map(|column| column_width(column).average).sum();
    (INDEX_HEADER + aligned(data, 8.0) + ITEM_POINTER) / INDEX_FILL
}

/// Bytes of the longest row as text, with one separator for each value.
#[must_use]
pub fn text_row_bytes(columns: &[Column]) -> f64 {
    columns.iter().map(|column| width_among(column, columns).most_text + 1.0).sum()
}

fn width(kind: &ColumnType, generator: &Generator) -> Width {
    let fixed =
        |bytes: f64, align: f64, most_text: f64| Width { average: bytes, align, most_text, toastable: false };
    match kind {
        ColumnType::Bool => fixed(1.0, 1.0, 5.0),
        ColumnType::Int2 => fixed(2.0, 2.0, 6.0),
        ColumnType::Int4 => fixed(4.0, 4.0, 11.0),
        ColumnType::Int8 => fixed(8.0, 8.0, 20.0),
        ColumnType::Float4 => fixed(4.0, 4.0, 16.0),
        ColumnType::Float8 => fixed(8.0, 8.0, 25.0),
        ColumnType::Date => fixed(4.0, 4.0, 14.0),
        ColumnType::Timestamp | ColumnType::Timestamptz => fixed(8.0, 8.0, 33.0),
        ColumnType::Uuid => fixed(16.0, 1.0, 36.0),
        ColumnType::Numeric { scale, .. } => numeric(*scale, generator),
        ColumnType::Char(length) => varlena(f64::from(*length), f64::from(*length) * 4.0),
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Json => {
            let (average, most) = text(generator);
            varlena(average, most)
        }
        ColumnType::Bytea => {
            let (average, most) = text(generator);
            varlena(average, 2.0 * most + 2.0)
        }
        ColumnType::Jsonb => {
            let (average, most) = text(generator);
            // jsonb keeps keys and values as text or numeric with a four-byte entry for each.
            varlena(average * 1.2 + 4.0, most)
        }
        ColumnType::Array(element) => array(element, generator),
    }
}

/// A value with a length word: one byte up to 126 bytes, else four with alignment.
fn varlena(average: f64, most_text: f64) -> Width {
    let short = average <= 126.0;
    Width {
        average: average + if short { 1.0 } else { 4.0 },
        align: if short { 1.0 } else { 4.0 },
        most_text,
        toastable: true,
    }
}

/// A numeric takes two bytes for every four digits on each side of the point, and three before them.
fn numeric(scale: u32, generator: &Generator) -> Width {
    if let Generator::Stored(stored) = generator {
        let groups = (stored.average_bytes / 4.0).ceil();
        let most_text = f64::from(stored.most_bytes) + 1.0;
        return Width { average: 3.0 + 2.0 * groups, align: 1.0, most_text, toastable: true };
    }
    let digits = largest(generator).abs().max(1.0).log10().floor() + 1.0;
    let groups = (digits / 4.0).ceil() + (f64::from(scale) / 4.0).ceil();
    Width {
        average: 3.0 + 2.0 * groups,
        align: 1.0,
        most_text: digits + f64::from(scale) + 2.0,
        toastable: true,
    }
}

/// A number of the size of the generator's largest.
fn largest(generator: &Generator) -> f64 {
    match generator {
        Generator::Constant(value) | Generator::Uniform { max: value, .. } => number(value),
        Generator::Sequence { start, step } => number(start).abs() + step.abs() * 1e6,
        Generator::Shuffle { start } => number(start).abs() + 1e6,
        Generator::Zipf { start, n, .. } => *start as f64 + *n as f64,
        Generator::Normal { mean, deviation } => mean.abs() + 3.0 * deviation,
        Generator::Choice { values, .. } => {
            values.iter().map(number).fold(0.0, |most, value| value.abs().max(most))
        }
        _ => 1e6,
    }
}

fn number(value: &Scalar) -> f64 {
    match value {
        Scalar::Int(value) => *value as f64,
        Scalar::Float(value) => *value,
        other => other.to_string().parse().unwrap_or(1e6),
    }
}

/// Average and longest text of a generator.
fn text(generator: &Generator) -> (f64, f64) {
    let both = |bytes: f64| (bytes, bytes);
    match generator {
        Generator::Constant(value) => both(value.to_string().len() as f64),
        Generator::Choice { values, weights } => choice(values, weights),
        Generator::Template(parts) => {
            parts.iter().map(part).fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
        }
        Generator::Random(shape) => {
            let (least, most) = (f64::from(shape.min_length), f64::from(shape.max_length));
            (f64::midpoint(least, most), most)
        }
        Generator::Stored(stored) => (stored.average_bytes, f64::from(stored.most_bytes)),
        Generator::UuidV4 | Generator::UuidV7 { .. } => both(36.0),
        Generator::Object(fields) => fields.iter().fold((2.0, 2.0), |sum, (key, kind, generator)| {
            // "key": value, with quotes and separators.
            let value = width(kind, generator);
            let around = key.len() as f64 + 8.0;
            (sum.0 + around + value.average, sum.1 + around + value.most_text)
        }),
        Generator::Array { min, max, element } => {
            let (average, most) = text(element);
            (
                f64::midpoint(f64::from(*min), f64::from(*max)) * (average + 1.0) + 2.0,
                f64::from(*max) * (most + 1.0) + 2.0,
            )
        }
        Generator::Sequence { .. }
        | Generator::Shuffle { .. }
        | Generator::Uniform { .. }
        | Generator::Zipf { .. }
        | Generator::Normal { .. }
        | Generator::FloatsOf(_) => (8.0, 25.0),
    }
}

fn choice(values: &[Scalar], weights: &[f64]) -> (f64, f64) {
    let weight = |index: usize| weights.get(index).copied().unwrap_or(1.0);
    let lengths: Vec<f64> = values.iter().map(|value| value.to_string().len() as f64).collect();
    let total: f64 = (0..values.len()).map(weight).sum();
    let sum: f64 = lengths.iter().enumerate().map(|(index, length)| length * weight(index)).sum();
    let most = lengths.iter().copied().fold(0.0, f64::max);
    (if total > 0.0 { sum / total } else { most }, most)
}

fn part(part: &TemplatePart) -> (f64, f64) {
    match part {
        TemplatePart::Text(text) => (text.len() as f64, text.len() as f64),
        TemplatePart::Row { pad, .. } => (f64::from(*pad).max(6.0), f64::from(*pad).max(20.0)),
    }
}

fn array(element: &ColumnType, generator: &Generator) -> Width {
    if let Generator::Stored(stored) = generator {
        // A store has eight bytes around all elements and four before each, much as the server has.
        let most_text = f64::from(stored.most_bytes) * 3.0;
        return Width {
            average: ARRAY_HEADER + stored.average_bytes,
            align: 4.0,
            most_text,
            toastable: true,
        };
    }
    let (least, most, of) = match generator {
        Generator::Array { min, max, element } => (f64::from(*min), f64::from(*max), element.as_ref()),
        other => (1.0, 1.0, other),
    };
    let one = width(element, of);
    let average = ARRAY_HEADER + f64::midpoint(least, most) * aligned(one.average, one.align);
    Width { average, align: 4.0, most_text: most * (one.most_text + 3.0) + 2.0, toastable: true }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::TextShape;

    pub(in crate::plan) fn column(kind: ColumnType, generator: Generator) -> Column {
        Column { name: "c".to_owned(), kind, sql_type: String::new(), not_null: false, nulls: 0.0, generator }
    }

    fn sequence() -> Generator {
        Generator::Sequence { start: Scalar::Int(0), step: 1.0 }
    }

    fn random(length: u32) -> Generator {
        Generator::Random(TextShape { min_length: length, max_length: length, compressibility: 0.0 })
    }

    #[track_caller]
    fn assert_bytes(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn rows_have_the_size_pg_column_size_gives() {
        // SELECT pg_column_size(t) FROM (VALUES (1)) t(c): 28, padded to 32 on the page.
        assert_bytes(row_bytes(&[column(ColumnType::Int4, sequence())]), 36.0);
        // bigint after integer is aligned to 8.
        let columns = [column(ColumnType::Int4, sequence()), column(ColumnType::Int8, sequence())];
        assert_bytes(row_bytes(&columns), 24.0 + 16.0 + 4.0);
        // text of 10 characters takes 11 bytes, of 200 characters 204.
        assert_bytes(row_bytes(&[column(ColumnType::Text, random(10))]), 24.0 + 16.0 + 4.0);
        assert_bytes(row_bytes(&[column(ColumnType::Text, random(200))]), 24.0 + 208.0 + 4.0);
    }

    /// Measured with PostgreSQL 15: `pg_relation_size` over the number of rows is 84.46 and 204.8, a little of
    /// it free space at the end of pages.
    #[test]
    fn real_tables_have_the_estimated_size() {
        let template =
            Generator::Template(vec![TemplatePart::Text("boe1000000kingdetail1000000".to_owned())]);
        let narrow = [
            column(ColumnType::Int4, sequence()),
            column(ColumnType::Int4, sequence()),
            column(ColumnType::Int4, sequence()),
            column(ColumnType::Timestamptz, sequence()),
            column(ColumnType::Varchar(Some(255)), template),
        ];
        assert_bytes(row_bytes(&narrow), 84.0);
        let uniform = Generator::Uniform { min: Scalar::Int(0), max: Scalar::Int(9999) };
        let three = Generator::Array { min: 3, max: 3, element: Box::new(sequence()) };
        let wide = [
            column(ColumnType::Int8, sequence()),
            column(ColumnType::Numeric { precision: Some(12), scale: 2 }, uniform),
            column(ColumnType::Text, random(100)),
            column(ColumnType::Uuid, Generator::UuidV4),
            column(ColumnType::Bool, sequence()),
            column(ColumnType::Date, sequence()),
            column(ColumnType::Array(Box::new(ColumnType::Int4)), three),
        ];
        assert_bytes(row_bytes(&wide), 204.0);
    }

    #[test]
    fn nulls_take_a_bitmap_and_no_value() {
        let mut all_null = column(ColumnType::Int8, sequence());
        all_null.nulls = 1.0;
        assert_bytes(row_bytes(&[all_null]), 24.0 + 8.0 + 4.0);
    }

    #[test]
    fn long_values_count_as_pointers_in_the_smallest_row() {
        let wide: Vec<Column> = (0..10).map(|_| column(ColumnType::Text, random(5000))).collect();
        assert!(row_bytes(&wide) > 50_000.0);
        assert!(smallest_row_bytes(&wide) < 300.0);
    }

    #[test]
    fn text_is_measured_at_its_longest() {
        assert_bytes(
            text_row_bytes(&[column(ColumnType::Int4, sequence()), column(ColumnType::Bytea, random(10))]),
            12.0 + 23.0,
        );
        let choice = Generator::Choice {
            values: vec![Scalar::Text("a".to_owned()), Scalar::Text("abc".to_owned())],
            weights: vec![3.0, 1.0],
        };
        let width = column_width(&column(ColumnType::Text, choice));
        assert_bytes(width.average, 2.5);
        assert_bytes(width.most_text, 3.0);
    }
}
