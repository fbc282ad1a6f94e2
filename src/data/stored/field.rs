//! How a value lies in a row store: what its [`Value`] needs, without parsing.

use crate::data::value::{ArrayValue, OwnedValue, Value};
use crate::model::ColumnType;

/// Length that stands for NULL.
const NULL: u32 = u32::MAX;
/// Length word of a field, and both head words of an array.
const WORD: usize = 4;

/// Appends a field: its length, then its bytes.
pub(super) fn put(value: &OwnedValue, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&NULL.to_le_bytes());
    match value {
        OwnedValue::Null => return,
        OwnedValue::Bool(value) => out.push(u8::from(*value)),
        OwnedValue::Int(value) | OwnedValue::Timestamp(value) => out.extend_from_slice(&value.to_le_bytes()),
        OwnedValue::Float4(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
        OwnedValue::Float8(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
        OwnedValue::Date(value) => out.extend_from_slice(&value.to_le_bytes()),
        OwnedValue::Numeric(text) | OwnedValue::Text(text) | OwnedValue::Json(text) => {
            out.extend_from_slice(text.as_bytes());
        }
        OwnedValue::Bytes(bytes) => out.extend_from_slice(bytes),
        OwnedValue::Uuid(bytes) => out.extend_from_slice(bytes),
        OwnedValue::Array(_, elements) => put_array(elements, out),
    }
    let length = u32::try_from(out.len() - start - WORD).unwrap_or(NULL - 1);
    out[start..start + WORD].copy_from_slice(&length.to_le_bytes());
}

/// Number of elements, bytes from one element to the next (0 when they differ), elements as fields.
fn put_array(elements: &[OwnedValue], out: &mut Vec<u8>) {
    let count = u32::try_from(elements.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_le_bytes());
    let stride_at = out.len();
    out.extend_from_slice(&0_u32.to_le_bytes());
    let mut lengths = Vec::with_capacity(elements.len());
    for element in elements {
        let start = out.len();
        put(element, out);
        lengths.push(out.len() - start);
    }
    if let Some(first) = lengths.first().filter(|first| lengths.iter().all(|length| length == *first)) {
        let stride = u32::try_from(*first).unwrap_or(0);
        out[stride_at..stride_at + WORD].copy_from_slice(&stride.to_le_bytes());
    }
}

/// The field at the start of `bytes` (`None` for NULL) and what follows it.
pub(super) fn split(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<WORD>()?;
    match u32::from_le_bytes(*length) {
        NULL => Some((None, rest)),
        length => {
            let (field, rest) = rest.split_at_checked(length as usize)?;
            Some((Some(field), rest))
        }
    }
}

/// A field as a value of its type; `None` when the bytes are damaged.
pub(in crate::data) fn value<'a>(field: Option<&'a [u8]>, kind: &'a ColumnType) -> Option<Value<'a>> {
    let Some(bytes) = field else { return Some(Value::Null) };
    let text = || std::str::from_utf8(bytes).ok();
    let long = || bytes.try_into().ok().map(i64::from_le_bytes);
    Some(match kind {
        ColumnType::Bool => Value::Bool(*bytes.first()? != 0),
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => Value::Int(long()?),
        ColumnType::Float4 => Value::Float4(f32::from_bits(u32::from_le_bytes(bytes.try_into().ok()?))),
        ColumnType::Float8 => Value::Float8(f64::from_bits(u64::from_le_bytes(bytes.try_into().ok()?))),
        ColumnType::Numeric { .. } => Value::Numeric(text()?),
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) => Value::Text(text()?),
        ColumnType::Bytea => Value::Bytes(bytes),
        ColumnType::Date => Value::Date(i32::from_le_bytes(bytes.try_into().ok()?)),
        ColumnType::Timestamp | ColumnType::Timestamptz => Value::Timestamp(long()?),
        ColumnType::Uuid => Value::Uuid(bytes.try_into().ok()?),
        ColumnType::Jsonb | ColumnType::Json => Value::Json(text()?),
        ColumnType::Array(element) => Value::Array(ArrayValue::stored(element, bytes)),
    })
}

/// Number of elements of a stored array.
pub(in crate::data) fn count(array: &[u8]) -> u32 {
    array.first_chunk::<WORD>().map_or(0, |count| u32::from_le_bytes(*count))
}

/// Whether an element of a stored array is NULL.
pub(in crate::data) fn has_null(array: &[u8]) -> bool {
    (0..count(array)).any(|index| element(array, index).is_none_or(|field| field.is_none()))
}

/// The field of an element; `None` beyond the end.
#[expect(clippy::option_option, reason = "beyond the end, NULL, and a value are three things")]
pub(in crate::data) fn element(array: &[u8], index: u32) -> Option<Option<&[u8]>> {
    if index >= count(array) {
        return None;
    }
    let stride = u32::from_le_bytes(*array.get(WORD..)?.first_chunk::<WORD>()?) as usize;
    let mut rest = array.get(2 * WORD..)?;
    if stride > 0 {
        return split(rest.get(stride * index as usize..)?).map(|(field, _)| field);
    }
    for _ in 0..index {
        rest = split(rest)?.1;
    }
    split(rest).map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::constant::constant;
    use crate::model::Scalar;

    /// A value goes into a store and comes out the same.
    fn same(text: &str, kind: &ColumnType) {
        let owned =
            constant(&Scalar::Text(text.to_owned()), kind).unwrap_or_else(|why| panic!("{text}: {why}"));
        let mut bytes = Vec::new();
        put(&owned, &mut bytes);
        let (field, rest) = split(&bytes).expect("whole");
        assert!(rest.is_empty());
        let stored = value(field, kind).expect("whole");
        let mut scratch = crate::data::Scratch::default();
        let shown = |value: Value<'_>, scratch: &mut crate::data::Scratch| match value {
            Value::Array(array) => {
                let each = (0..array.len()).map(|index| format!("{:?}", array.element(index, scratch)));
                format!("{} {}", array.has_null(), each.collect::<Vec<_>>().join(","))
            }
            other => format!("{other:?}"),
        };
        assert_eq!(shown(stored, &mut scratch), shown(owned.borrow(), &mut scratch), "{text}");
    }

    #[test]
    fn every_type_comes_back() {
        let array = |kind: ColumnType| ColumnType::Array(Box::new(kind));
        for (text, kind) in [
            ("t", ColumnType::Bool),
            ("-32768", ColumnType::Int2),
            ("9223372036854775807", ColumnType::Int8),
            ("NaN", ColumnType::Float4),
            ("-0", ColumnType::Float8),
            ("-12.50", ColumnType::Numeric { precision: Some(6), scale: 2 }),
            ("größe \t\"x\" \\.", ColumnType::Text),
            ("", ColumnType::Varchar(Some(3))),
            ("ab", ColumnType::Char(4)),
            ("\\x00ff", ColumnType::Bytea),
            ("-infinity", ColumnType::Date),
            ("2026-01-01 12:00:00.000001", ColumnType::Timestamp),
            ("2026-01-01T12:00:00+02", ColumnType::Timestamptz),
            ("00000000-0000-4000-8000-000000000001", ColumnType::Uuid),
            ("{\"b\": 1, \"a\": [null]}", ColumnType::Jsonb),
            ("{\"b\":1}", ColumnType::Json),
            ("{1,2,3}", array(ColumnType::Int4)),
            ("{1,NULL,3}", array(ColumnType::Float8)),
            ("{a,\"b c\",\"\",NULL,ddd}", array(ColumnType::Text)),
            ("{}", array(ColumnType::Text)),
        ] {
            same(text, &kind);
        }
    }

    #[test]
    fn damaged_bytes_are_no_value() {
        assert!(value(Some(b"abc"), &ColumnType::Int8).is_none());
        assert!(value(Some(b"\xff"), &ColumnType::Text).is_none());
        assert!(split(&[9, 0, 0, 0, 1]).is_none());
        assert!(element(&[2, 0, 0, 0], 1).is_none());
    }
}
