//! Constants: a scalar of the file as a value of a column's type.

use std::iter::Peekable;
use std::str::Chars;

use crate::model::{ColumnType, Scalar};

use super::value::OwnedValue;
use super::{calendar, decimal, json};

/// The scalar as a value of the type, stored as the server would store it; the reason when it is none.
pub(super) fn constant(scalar: &Scalar, kind: &ColumnType) -> Result<OwnedValue, String> {
    if *scalar == Scalar::Null {
        return Ok(OwnedValue::Null);
    }
    let text = scalar.to_string();
    let value = match kind {
        ColumnType::Bool => boolean(&text).map(OwnedValue::Bool),
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => return integer(&text, kind),
        ColumnType::Float4 => float(&text).and_then(|text| text.parse().ok()).map(OwnedValue::Float4),
        ColumnType::Float8 => float(&text).and_then(|text| text.parse().ok()).map(OwnedValue::Float8),
        ColumnType::Numeric { precision, scale } => return numeric(&text, *precision, *scale),
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) => return character(&text, kind),
        ColumnType::Bytea => bytes(&text).map(OwnedValue::Bytes),
        ColumnType::Date => calendar::parse_date(&text).map(OwnedValue::Date),
        ColumnType::Timestamp => calendar::parse_timestamp(&text, false).map(OwnedValue::Timestamp),
        ColumnType::Timestamptz => calendar::parse_timestamp(&text, true).map(OwnedValue::Timestamp),
        ColumnType::Uuid => uuid(&text).map(OwnedValue::Uuid),
        ColumnType::Jsonb => json::canonical(&text).map(OwnedValue::Json),
        ColumnType::Json => json::is_valid(&text).then(|| OwnedValue::Json(text.clone())),
        ColumnType::Array(element) => return array(&text, element),
    };
    value.ok_or_else(|| format!("{text:?} is no value of this type"))
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Smallest and largest value of an integer type.
pub(super) fn integer_bounds(kind: &ColumnType) -> Option<(i64, i64)> {
    match kind {
        ColumnType::Int2 => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        ColumnType::Int4 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        ColumnType::Int8 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

fn integer(text: &str, kind: &ColumnType) -> Result<OwnedValue, String> {
    let exact = decimal::canonical(text, None).and_then(|text| match text.split_once('.') {
        Some((whole, fraction)) => fraction.bytes().all(|digit| digit == b'0').then(|| whole.to_owned()),
        None => Some(text),
    });
    let number: i64 = exact
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("{text:?} is no whole number of 64 bits"))?;
    let (min, max) = integer_bounds(kind).unwrap_or((i64::MIN, i64::MAX));
    if (min..=max).contains(&number) {
        Ok(OwnedValue::Int(number))
    } else {
        Err(format!("{number} is outside of {min} to {max}"))
    }
}

/// The spelling Rust reads; its own reader takes the words in any case.
fn float(text: &str) -> Option<&str> {
    let text = text.trim();
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let finite = text.parse::<f64>().ok()?.is_finite();
    // A finite number that overflows to infinity is refused, as the server refuses it.
    (!digits || finite).then_some(text)
}

fn numeric(text: &str, precision: Option<u32>, scale: u32) -> Result<OwnedValue, String> {
    let no_number = || format!("{text:?} is no decimal number");
    let wanted = match precision {
        Some(_) => Some(scale),
        None => decimal::written_scale(text).map(|written| written.max(scale)),
    };
    let stored = decimal::canonical(text, wanted).ok_or_else(no_number)?;
    let digits = stored.split('.').next().unwrap_or_default().trim_start_matches(['-', '0']).len();
    match precision {
        Some(_) if stored.ends_with("Infinity") => {
            Err("a numeric with a precision holds no infinity".to_owned())
        }
        Some(precision) if stored != "NaN" && digits > precision.saturating_sub(scale) as usize => {
            Err(format!("{text} has more than {} digits before the point", precision.saturating_sub(scale)))
        }
        _ => Ok(OwnedValue::Numeric(stored)),
    }
}

/// Longest text of a type in characters, if limited.
pub(super) fn width(kind: &ColumnType) -> Option<u32> {
    match kind {
        ColumnType::Varchar(limit) => *limit,
        ColumnType::Char(length) => Some(*length),
        _ => None,
    }
}

fn character(text: &str, kind: &ColumnType) -> Result<OwnedValue, String> {
    if text.contains('\0') {
        return Err("text cannot hold the character NUL".to_owned());
    }
    let mut stored = text.to_owned();
    let length = stored.chars().count();
    if let Some(width) = width(kind) {
        let width = width as usize;
        if length > width {
            return Err(format!("{length} characters do not fit into {width}"));
        }
        if matches!(kind, ColumnType::Char(_)) {
            stored.extend(std::iter::repeat_n(' ', width - length));
        }
    }
    Ok(OwnedValue::Text(stored))
}

/// `\x` and hexadecimal digits, else the bytes of the text itself (UTF-8, no escapes).
fn bytes(text: &str) -> Option<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(digits) => hex(digits),
        None => Some(text.as_bytes().to_vec()),
    }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let bare = text.trim().trim_start_matches('{').trim_end_matches('}').replace('-', "");
    hex(&bare)?.try_into().ok()
}

fn array(text: &str, kind: &ColumnType) -> Result<OwnedValue, String> {
    if matches!(kind, ColumnType::Array(_)) {
        return Err("only arrays of one dimension can be generated".to_owned());
    }
    let parts = array_parts(text).ok_or_else(|| format!("{text:?} is no array such as {{1,2,NULL}}"))?;
    let elements: Result<Vec<OwnedValue>, String> = parts
        .into_iter()
        .map(|part| part.map_or(Ok(OwnedValue::Null), |part| constant(&Scalar::Text(part), kind)))
        .collect();
    Ok(OwnedValue::Array(kind.clone(), elements?))
}

/// Splits an array literal of one dimension; `None` elements are NULL.
fn array_parts(text: &str) -> Option<Vec<Option<String>>> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut parts = Vec::new();
    if inside.trim().is_empty() {
        return Some(parts);
    }
    let mut characters = inside.chars().peekable();
    loop {
        skip_blanks(&mut characters);
        let part = if characters.next_if_eq(&'"').is_some() {
            Some(quoted_part(&mut characters)?)
        } else {
            Some(bare_part(&mut characters)?).filter(|part| !part.eq_ignore_ascii_case("null"))
        };
        parts.push(part);
        skip_blanks(&mut characters);
        match characters.next() {
            None => return Some(parts),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

type Characters<'a> = Peekable<Chars<'a>>;

fn skip_blanks(characters: &mut Characters<'_>) {
    while characters.next_if(char::is_ascii_whitespace).is_some() {}
}

/// Up to and with the closing quote.
fn quoted_part(characters: &mut Characters<'_>) -> Option<String> {
    let mut part = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(part),
            '\\' => part.push(characters.next()?),
            other => part.push(other),
        }
    }
}

/// Up to the next comma; not empty.
fn bare_part(characters: &mut Characters<'_>) -> Option<String> {
    let mut part = String::new();
    while let Some(character) = characters.next_if(|character| *character != ',') {
        match character {
            '{' | '}' | '"' => return None,
            '\\' => part.push(characters.next()?),
            other => part.push(other),
        }
    }
    part.truncate(part.trim_end().len());
    (!part.is_empty()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str, kind: &ColumnType) -> Result<OwnedValue, String> {
        constant(&Scalar::Text(value.to_owned()), kind)
    }

    #[test]
    fn scalars_become_what_the_server_stores() {
        let money = ColumnType::Numeric { precision: Some(10), scale: 2 };
        assert_eq!(constant(&Scalar::Int(5), &money), Ok(OwnedValue::Numeric("5.00".into())));
        assert_eq!(text("NaN", &money), Ok(OwnedValue::Numeric("NaN".into())));
        assert_eq!(constant(&Scalar::Float(2.0), &ColumnType::Int2), Ok(OwnedValue::Int(2)));
        assert_eq!(text("ab", &ColumnType::Char(4)), Ok(OwnedValue::Text("ab  ".into())));
        assert_eq!(text("\\xdeAD", &ColumnType::Bytea), Ok(OwnedValue::Bytes(vec![0xde, 0xad])));
        assert_eq!(text("-Infinity", &ColumnType::Float8), Ok(OwnedValue::Float8(f64::NEG_INFINITY)));
        assert_eq!(constant(&Scalar::Null, &ColumnType::Int2), Ok(OwnedValue::Null));
        let array = text(r#"{a,"b,\"c",NULL,"NULL"}"#, &ColumnType::Array(Box::new(ColumnType::Text)));
        let element = |word: &str| OwnedValue::Text(word.to_owned());
        let expected = vec![element("a"), element("b,\"c"), OwnedValue::Null, element("NULL")];
        assert_eq!(array, Ok(OwnedValue::Array(ColumnType::Text, expected)));
    }

    #[test]
    fn what_the_server_would_refuse_is_refused() {
        let money = ColumnType::Numeric { precision: Some(4), scale: 2 };
        for (value, kind) in [
            ("32768", ColumnType::Int2),
            ("1.5", ColumnType::Int4),
            ("100", money.clone()),
            ("99.995", money.clone()),
            ("Infinity", money),
            ("abc", ColumnType::Varchar(Some(2))),
            ("a\0b", ColumnType::Text),
            ("1e999", ColumnType::Float8),
            ("\\xabc", ColumnType::Bytea),
            ("123", ColumnType::Uuid),
            ("{1,{2}}", ColumnType::Array(Box::new(ColumnType::Int4))),
            ("{1,}", ColumnType::Array(Box::new(ColumnType::Int4))),
            ("maybe", ColumnType::Bool),
        ] {
            assert!(text(value, &kind).is_err(), "{value} {kind:?}");
        }
    }
}
