//! One value in PostgreSQL's binary format, after its length: the field of a binary COPY row.

use bytes::{BufMut, BytesMut};

use crate::data::{ArrayValue, Scratch, Value};
use crate::model::ColumnType;

/// Length of a NULL.
const NULL: i32 = -1;
/// Sign words of `numeric` (`src/backend/utils/adt/numeric.c`).
const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NOT_A_NUMBER: u16 = 0xC000;
const PLUS_INFINITY: u16 = 0xD000;
const MINUS_INFINITY: u16 = 0xF000;
/// Display scale the server happens to send with an infinity (its bits overlap the sign word).
const INFINITY_SCALE: u16 = 32;

/// Appends length and bytes of a value; `element` is memory for elements of arrays.
#[inline]
pub(in crate::engine::postgres) fn put_field(
    value: Value<'_>,
    kind: &ColumnType,
    out: &mut BytesMut,
    element: &mut Scratch,
) {
    match value {
        Value::Null => out.put_i32(NULL),
        Value::Int(number) => put_integer(number, kind, out),
        Value::Timestamp(micros) => put_fixed(micros.to_be_bytes(), out),
        Value::Bool(truth) => put_fixed([u8::from(truth)], out),
        Value::Float4(number) => put_fixed(number.to_be_bytes(), out),
        Value::Float8(number) => put_fixed(number.to_be_bytes(), out),
        Value::Bytes(bytes) => put_bytes(bytes, out),
        Value::Date(days) => put_fixed(days.to_be_bytes(), out),
        Value::Uuid(bytes) => put_fixed(bytes, out),
        Value::Json(text) if *kind == ColumnType::Jsonb => measured(out, |out| {
            // Version of the format, the only one there is.
            out.put_u8(1);
            out.put_slice(text.as_bytes());
        }),
        Value::Text(text) | Value::Json(text) => put_bytes(text.as_bytes(), out),
        Value::Numeric(text) => measured(out, |out| put_numeric(text, out)),
        Value::Array(array) => measured(out, |out| put_array(array, out, element)),
    }
}

#[inline]
fn put_fixed<const N: usize>(bytes: [u8; N], out: &mut BytesMut) {
    out.put_i32(length(N));
    out.put_slice(&bytes);
}

#[inline]
fn put_bytes(bytes: &[u8], out: &mut BytesMut) {
    out.put_i32(length(bytes.len()));
    out.put_slice(bytes);
}

/// A generated value never comes near 2 GiB; the server refuses fields above 1 GiB.
#[inline]
fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Writes the length of what `write` appends before it.
pub(in crate::engine::postgres) fn measured(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_i32(0);
    write(out);
    let bytes = length(out.len() - start - 4);
    out[start..start + 4].copy_from_slice(&bytes.to_be_bytes());
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the generator keeps integers inside the type's range")]
fn put_integer(number: i64, kind: &ColumnType, out: &mut BytesMut) {
    match kind {
        ColumnType::Int2 => put_fixed((number as i16).to_be_bytes(), out),
        ColumnType::Int4 => {
            // Length and number in one write.
            let word = (4_u64 << 32) | u64::from((number as i32).cast_unsigned());
            out.put_slice(&word.to_be_bytes());
        }
        _ => put_fixed(number.to_be_bytes(), out),
    }
}

/// Groups of four decimal digits, aligned to the point, without zero groups at either end.
fn put_numeric(text: &str, out: &mut BytesMut) {
    let special = match text {
        "NaN" => Some((NOT_A_NUMBER, 0)),
        "Infinity" => Some((PLUS_INFINITY, INFINITY_SCALE)),
        "-Infinity" => Some((MINUS_INFINITY, INFINITY_SCALE)),
        _ => None,
    };
    if let Some((sign, scale)) = special {
        put_numeric_head(0, 0, sign, scale, out);
        return;
    }
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (NEGATIVE, rest),
        None => (POSITIVE, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let head = out.len();
    put_numeric_head(0, 0, sign, u16::try_from(fraction.len()).unwrap_or(u16::MAX), out);
    let digits = out.len();
    let mut weight = i16::try_from(whole.len().div_ceil(4)).unwrap_or(i16::MAX) - 1;
    let (first, rest) = whole.as_bytes().split_at(whole.len() % 4);
    let groups = std::iter::once(first).filter(|first| !first.is_empty()).chain(rest.chunks(4));
    for group in groups {
        put_group(group, 0, &mut weight, digits, out);
    }
    for group in fraction.as_bytes().chunks(4) {
        put_group(group, 4 - group.len(), &mut weight, digits, out);
    }
    while out.len() > digits && out[out.len() - 2..] == [0, 0] {
        out.truncate(out.len() - 2);
    }
    let count = u16::try_from((out.len() - digits) / 2).unwrap_or(u16::MAX);
    if count == 0 {
        weight = 0;
    }
    out[head..head + 2].copy_from_slice(&count.to_be_bytes());
    out[head + 2..head + 4].copy_from_slice(&weight.to_be_bytes());
}

fn put_numeric_head(count: u16, weight: i16, sign: u16, scale: u16, out: &mut BytesMut) {
    out.put_u16(count);
    out.put_i16(weight);
    out.put_u16(sign);
    out.put_u16(scale);
}

/// Appends a group; a zero group before the first other one only lowers the weight.
fn put_group(group: &[u8], zeros: usize, weight: &mut i16, digits: usize, out: &mut BytesMut) {
    let number = group.iter().fold(0_u16, |number, digit| number * 10 + u16::from(digit - b'0'));
    let number = (0..zeros).fold(number, |number, _| number * 10);
    if number == 0 && out.len() == digits {
        *weight -= 1;
    } else {
        out.put_u16(number);
    }
}

fn put_array(array: ArrayValue<'_>, out: &mut BytesMut, element: &mut Scratch) {
    let dimensions = i32::from(!array.is_empty());
    out.put_i32(dimensions);
    out.put_i32(i32::from(array.has_null() && any_null(array, element)));
    out.put_u32(type_oid(array.kind));
    if array.is_empty() {
        return;
    }
    out.put_i32(i32::try_from(array.len()).unwrap_or(i32::MAX));
    // Index of the first element.
    out.put_i32(1);
    let mut deeper = Scratch::default();
    for index in 0..array.len() {
        put_field(array.element(index, element), array.kind, out, &mut deeper);
    }
}

fn any_null(array: ArrayValue<'_>, element: &mut Scratch) -> bool {
    (0..array.len()).any(|index| matches!(array.element(index, element), Value::Null))
}

/// The type's OID (`src/include/catalog/pg_type.dat`; fixed for all versions).
pub(in crate::engine::postgres) fn type_oid(kind: &ColumnType) -> u32 {
    match kind {
        ColumnType::Bool => 16,
        ColumnType::Bytea => 17,
        ColumnType::Int8 => 20,
        ColumnType::Int2 => 21,
        ColumnType::Int4 => 23,
        ColumnType::Text => 25,
        ColumnType::Json => 114,
        ColumnType::Float4 => 700,
        ColumnType::Float8 => 701,
        ColumnType::Char(_) => 1042,
        ColumnType::Varchar(_) => 1043,
        ColumnType::Date => 1082,
        ColumnType::Timestamp => 1114,
        ColumnType::Timestamptz => 1184,
        ColumnType::Numeric { .. } => 1700,
        ColumnType::Uuid => 2950,
        ColumnType::Jsonb => 3802,
        // An array of arrays is an array of the innermost type with more dimensions.
        ColumnType::Array(element) => type_oid(element),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Vec<u16> {
        let mut out = BytesMut::new();
        put_numeric(text, &mut out);
        out.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn numerics_are_groups_of_four() {
        assert_eq!(numeric("5.00"), [1, 0, 0, 2, 5]);
        assert_eq!(numeric("0.00"), [0, 0, 0, 2]);
        assert_eq!(numeric("-12345.678"), [3, 1, NEGATIVE, 3, 1, 2345, 6780]);
        assert_eq!(numeric("10000"), [1, 1, 0, 0, 1]);
        assert_eq!(numeric("0.00012"), [2, 0xFFFF, 0, 5, 1, 2000]);
        assert_eq!(numeric("0.00001"), [1, 0xFFFE, 0, 5, 1000]);
        assert_eq!(numeric("NaN"), [0, 0, NOT_A_NUMBER, 0]);
    }
}
