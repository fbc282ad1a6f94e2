//! One value in PostgreSQL's text form into its binary form, by way of the value itself.

use std::hint::black_box;

use bytes::{BufMut, BytesMut};

use super::array;
use crate::data::{Scratch, Value, parse_date, parse_timestamp};
use crate::engine::postgres::encode::field::{measured, put_field};
use crate::model::ColumnType;

/// Appends length and bytes of the value that a text stands for.
///
/// # Errors
/// Says what cannot be understood.
pub(super) fn put(kind: &ColumnType, bytes: &[u8], out: &mut BytesMut) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let wrong = || format!("{:?} is no value of its type", shortened(text));
    let value = match kind {
        ColumnType::Bool => match text {
            "t" => Value::Bool(true),
            "f" => Value::Bool(false),
            _ => return Err(wrong()),
        },
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => {
            let number: i64 = text.parse().map_err(|_| wrong())?;
            if !fits(kind, number) {
                return Err(wrong());
            }
            Value::Int(number)
        }
        // NaN, Infinity and -Infinity are read as well.
        ColumnType::Float4 => Value::Float4(text.parse().map_err(|_| wrong())?),
        ColumnType::Float8 => Value::Float8(text.parse().map_err(|_| wrong())?),
        ColumnType::Numeric { .. } if is_numeric(text) => Value::Numeric(text),
        ColumnType::Numeric { .. } => return Err(wrong()),
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) => {
            // A client has a string of its own in the end.
            drop(black_box(text.to_owned()));
            Value::Text(text)
        }
        ColumnType::Date => Value::Date(parse_date(text).ok_or_else(wrong)?),
        ColumnType::Timestamp => Value::Timestamp(parse_timestamp(text, false).ok_or_else(wrong)?),
        ColumnType::Timestamptz => Value::Timestamp(parse_timestamp(text, true).ok_or_else(wrong)?),
        ColumnType::Uuid => Value::Uuid(uuid(text).ok_or_else(wrong)?),
        ColumnType::Json | ColumnType::Jsonb => Value::Json(text),
        ColumnType::Bytea => {
            let mut complete = true;
            measured(out, |out| complete = bytea(bytes, |byte| out.put_u8(byte)));
            return if complete { Ok(()) } else { Err(wrong()) };
        }
        ColumnType::Array(element) => return array::put(element, text, out),
    };
    put_field(value, kind, out, &mut Scratch::default());
    Ok(())
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

fn fits(kind: &ColumnType, number: i64) -> bool {
    match kind {
        ColumnType::Int2 => i16::try_from(number).is_ok(),
        ColumnType::Int4 => i32::try_from(number).is_ok(),
        _ => true,
    }
}

/// Whether a text is as the server prints a numeric: never with an exponent.
fn is_numeric(text: &str) -> bool {
    if matches!(text, "NaN" | "Infinity" | "-Infinity") {
        return true;
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0_u8; 16];
    let mut digits = text.bytes().filter(|byte| *byte != b'-');
    for byte in &mut bytes {
        *byte = (nibble(digits.next()?)? << 4) | nibble(digits.next()?)?;
    }
    digits.next().is_none().then_some(bytes)
}

#[inline]
fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Hands out the bytes of a `bytea`, in either setting of `bytea_output`; false when the text is damaged.
#[inline]
pub(super) fn bytea(text: &[u8], mut take: impl FnMut(u8)) -> bool {
    if let Some(digits) = text.strip_prefix(b"\\x") {
        let (pairs, rest) = digits.as_chunks::<2>();
        for [high, low] in pairs {
            let (Some(high), Some(low)) = (nibble(*high), nibble(*low)) else { return false };
            take((high << 4) | low);
        }
        return rest.is_empty();
    }
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return true,
            [b'\\', b'\\', after @ ..] => {
                take(b'\\');
                after
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                take(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                after
            }
            [b'\\', ..] => return false,
            [byte, after @ ..] => {
                take(*byte);
                after
            }
        };
    }
}
