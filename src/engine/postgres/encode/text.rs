//! Values as text, spelled as PostgreSQL spells them.

use std::fmt::{Display, LowerExp, Write as _};

use crate::data::{ArrayValue, Scratch, Value, write_date, write_timestamp, write_uuid};
use crate::model::ColumnType;

/// A value as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelled<'a> {
    /// The text.
    pub(super) text: &'a str,
    /// Whether it can hold any character; otherwise only letters, digits, blanks and `+ - . :`.
    pub(super) free: bool,
}

/// Memory for one encoder's rows.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// Values are made here.
    pub(super) value: Scratch,
    /// Text of values that are none.
    pub(super) spelling: Spelling,
}

/// Memory for the text of a value.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    text: String,
    element: Scratch,
}

impl Spelling {
    /// The text of a value; `None` for NULL.
    pub(super) fn of<'t>(&'t mut self, value: Value<'t>, kind: &ColumnType) -> Option<Spelled<'t>> {
        let free = match value {
            Value::Null => return None,
            Value::Text(text) | Value::Json(text) => return Some(Spelled { text, free: true }),
            Value::Numeric(text) => return Some(Spelled { text, free: false }),
            Value::Bytes(_) | Value::Array(_) => true,
            _ => false,
        };
        self.text.clear();
        write_value(value, kind, &mut self.text, &mut self.element);
        Some(Spelled { text: &self.text, free })
    }
}

fn write_value(value: Value<'_>, kind: &ColumnType, out: &mut String, element: &mut Scratch) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Bool(truth) => out.push(if truth { 't' } else { 'f' }),
        Value::Int(number) => out.push_str(itoa::Buffer::new().format(number)),
        Value::Float4(number) => write_float(number, f64::from(number), out),
        Value::Float8(number) => write_float(number, number, out),
        Value::Numeric(text) | Value::Text(text) | Value::Json(text) => out.push_str(text),
        Value::Bytes(bytes) => write_bytes(bytes, out),
        Value::Date(days) => write_date(days, out),
        Value::Timestamp(micros) => write_timestamp(micros, *kind == ColumnType::Timestamptz, out),
        Value::Uuid(bytes) => write_uuid(bytes, out),
        Value::Array(array) => write_array(array, out, element),
    }
}

/// The shortest digits that read back as the same number, with an exponent where they would be long.
fn write_float<F: Display + LowerExp>(number: F, wide: f64, out: &mut String) {
    let size = wide.abs();
    let written = if wide.is_nan() {
        out.write_str("NaN")
    } else if wide.is_infinite() {
        out.write_str(if wide > 0.0 { "Infinity" } else { "-Infinity" })
    } else if size == 0.0 || (1e-4..1e15).contains(&size) {
        write!(out, "{number}")
    } else {
        write!(out, "{number:e}")
    };
    written.expect("a String takes any text");
}

fn write_bytes(bytes: &[u8], out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push_str("\\x");
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
}

fn write_array(array: ArrayValue<'_>, out: &mut String, element: &mut Scratch) {
    let mut spelling = Spelling::default();
    out.push('{');
    for index in 0..array.len() {
        out.push_str(if index == 0 { "" } else { "," });
        let value = array.element(index, element);
        let bare = matches!(value, Value::Int(_) | Value::Bool(_) | Value::Numeric(_) | Value::Uuid(_));
        match spelling.of(value, array.kind) {
            None => out.push_str("NULL"),
            Some(spelled) if bare => out.push_str(spelled.text),
            Some(spelled) => {
                out.push('"');
                for character in spelled.text.chars() {
                    if matches!(character, '"' | '\\') {
                        out.push('\\');
                    }
                    out.push(character);
                }
                out.push('"');
            }
        }
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_short_and_exact() {
        for (number, text) in [
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e300, "1e300"),
            (5e-324, "5e-324"),
            (1e15, "1e15"),
            (123_456.75, "123456.75"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut out = String::new();
            write_float(number, number, &mut out);
            assert_eq!(out, text);
        }
        let mut out = String::new();
        write_float(0.1_f32, f64::from(0.1_f32), &mut out);
        assert_eq!(out, "0.1");
    }
}
