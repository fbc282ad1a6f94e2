//! Whether a value written in a file is a value of a column's type.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use crate::model::{ColumnType, Scalar};

/// Message and expectation.
type Misfit = (String, String);

/// The value as the type wants it (times in one spelling, numbers as numbers).
///
/// # Errors
/// Why it does not fit, and what would.
pub fn fits(value: &Scalar, kind: &ColumnType) -> Result<Scalar, Misfit> {
    let misfit = || (format!("`{value}` is not a value of type {}", type_name(kind)), example(kind));
    let fitting = match (kind, value) {
        (ColumnType::Bool, Scalar::Bool(_))
        | (ColumnType::Float4 | ColumnType::Float8, Scalar::Int(_) | Scalar::Float(_)) => Some(value.clone()),
        (ColumnType::Bool, Scalar::Text(text)) => match text.to_lowercase().as_str() {
            "on" | "yes" | "true" => Some(Scalar::Bool(true)),
            "off" | "no" | "false" => Some(Scalar::Bool(false)),
            _ => None,
        },
        (ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8, Scalar::Int(number)) => {
            let (min, max) = number_range(kind).ok_or_else(misfit)?;
            if !(min..=max).contains(&i128::from(*number)) {
                let message = format!("{number} does not fit into {}", type_name(kind));
                return Err((message, format!("a whole number from {min} to {max}")));
            }
            Some(value.clone())
        }
        (ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8, Scalar::Text(text)) => {
            return text
                .trim()
                .parse()
                .map_err(|_| misfit())
                .and_then(|number| fits(&Scalar::Int(number), kind));
        }
        (ColumnType::Float4 | ColumnType::Float8, Scalar::Text(text)) => {
            text.trim().parse().ok().filter(|number: &f64| number.is_finite()).map(Scalar::Float)
        }
        (ColumnType::Numeric { precision, scale }, Scalar::Int(_) | Scalar::Float(_) | Scalar::Text(_)) => {
            numeric(&value.to_string(), *precision, *scale)?.then(|| value.clone())
        }
        (kind, _) if is_text(kind) => return text(value, kind).ok_or_else(misfit)?,
        (ColumnType::Bytea, Scalar::Text(text)) => {
            let digits = text.strip_prefix("\\x").unwrap_or("?");
            let hex = digits.len().is_multiple_of(2) && digits.chars().all(|c| c.is_ascii_hexdigit());
            hex.then(|| value.clone())
        }
        (ColumnType::Date, Scalar::Text(text)) => {
            text.parse::<Date>().ok().map(|date| Scalar::Text(date.to_string()))
        }
        (ColumnType::Timestamp, Scalar::Text(text)) => {
            local_time(text).map(|time| Scalar::Text(time.to_string()))
        }
        (ColumnType::Timestamptz, Scalar::Text(text)) => {
            let utc = || jiff::tz::Offset::UTC.to_timestamp(local_time(text)?).ok();
            text.parse::<Timestamp>().ok().or_else(utc).map(|time| Scalar::Text(time.to_string()))
        }
        (ColumnType::Uuid, Scalar::Text(text)) => {
            let shape: Vec<usize> = text.split('-').map(str::len).collect();
            let hex = text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
            (hex && shape == [8, 4, 4, 4, 12]).then(|| value.clone())
        }
        (ColumnType::Jsonb | ColumnType::Json, Scalar::Text(text)) => {
            serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok().then(|| value.clone())
        }
        (ColumnType::Jsonb | ColumnType::Json, other) => Some(Scalar::Text(other.to_string())),
        _ => None,
    };
    fitting.ok_or_else(misfit)
}

/// A date, or a date and time without zone.
fn local_time(text: &str) -> Option<DateTime> {
    if text.ends_with(['Z', 'z']) || text.rfind('+').is_some() {
        return None;
    }
    text.parse::<DateTime>().ok()
}

fn text(value: &Scalar, kind: &ColumnType) -> Option<Result<Scalar, Misfit>> {
    if *value == Scalar::Null {
        return None;
    }
    let text = value.to_string();
    let length = text.chars().count();
    let max = match kind {
        ColumnType::Varchar(length) => *length,
        ColumnType::Char(length) => Some(*length),
        _ => None,
    };
    Some(match max {
        _ if text.contains('\0') => {
            Err(("PostgreSQL text cannot contain NUL".to_owned(), "text without NUL".to_owned()))
        }
        Some(max) if length > max as usize => Err((
            format!("a text of {length} characters does not fit into {}", type_name(kind)),
            format!("at most {max} characters"),
        )),
        _ => Ok(Scalar::Text(text)),
    })
}

/// Whether a text is a decimal number that fits a numeric.
fn numeric(text: &str, precision: Option<u32>, scale: u32) -> Result<bool, Misfit> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Ok(false);
    }
    let whole = whole.trim_start_matches('0').len();
    match precision {
        Some(precision) if whole > precision.saturating_sub(scale) as usize => Err((
            format!("{text} does not fit into numeric({precision},{scale})"),
            format!("at most {} digits before the point", precision.saturating_sub(scale)),
        )),
        _ => Ok(true),
    }
}

/// Whether the last of `rows` values from `start` in steps of `step` is still of the type.
///
/// # Errors
/// A message with the last value.
pub fn check_number(start: &Scalar, step: f64, rows: u64, kind: &ColumnType) -> Result<(), String> {
    let (Some((min, max)), Scalar::Int(start)) = (number_range(kind), start) else { return Ok(()) };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "steps of integers were checked to be whole; the cast saturates"
    )]
    let last =
        i128::from(rows.saturating_sub(1)).saturating_mul(step as i128).saturating_add(i128::from(*start));
    if (min..=max).contains(&last) {
        return Ok(());
    }
    Err(format!("the last of {rows} rows would be {last}, which does not fit into {}", type_name(kind)))
}

/// Smallest and largest value of an integer type.
#[must_use]
pub fn number_range(kind: &ColumnType) -> Option<(i128, i128)> {
    match kind {
        ColumnType::Int2 => Some((i16::MIN.into(), i16::MAX.into())),
        ColumnType::Int4 => Some((i32::MIN.into(), i32::MAX.into())),
        ColumnType::Int8 => Some((i64::MIN.into(), i64::MAX.into())),
        _ => None,
    }
}

/// Whether values are text.
#[must_use]
pub fn is_text(kind: &ColumnType) -> bool {
    matches!(kind, ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_))
}

/// The type's name in SQL.
#[must_use]
pub fn type_name(kind: &ColumnType) -> String {
    match kind {
        ColumnType::Bool => "boolean".to_owned(),
        ColumnType::Int2 => "smallint".to_owned(),
        ColumnType::Int4 => "integer".to_owned(),
        ColumnType::Int8 => "bigint".to_owned(),
        ColumnType::Float4 => "real".to_owned(),
        ColumnType::Float8 => "double precision".to_owned(),
        ColumnType::Numeric { precision: Some(precision), scale } => format!("numeric({precision},{scale})"),
        ColumnType::Numeric { .. } => "numeric".to_owned(),
        ColumnType::Text => "text".to_owned(),
        ColumnType::Varchar(Some(length)) => format!("varchar({length})"),
        ColumnType::Varchar(None) => "varchar".to_owned(),
        ColumnType::Char(length) => format!("char({length})"),
        ColumnType::Bytea => "bytea".to_owned(),
        ColumnType::Date => "date".to_owned(),
        ColumnType::Timestamp => "timestamp".to_owned(),
        ColumnType::Timestamptz => "timestamptz".to_owned(),
        ColumnType::Uuid => "uuid".to_owned(),
        ColumnType::Jsonb => "jsonb".to_owned(),
        ColumnType::Json => "json".to_owned(),
        ColumnType::Array(element) => format!("{}[]", type_name(element)),
    }
}

/// What a value of the type looks like.
fn example(kind: &ColumnType) -> String {
    match kind {
        ColumnType::Bool => "`true` or `false`".to_owned(),
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => "a whole number".to_owned(),
        ColumnType::Float4 | ColumnType::Float8 | ColumnType::Numeric { .. } => "a number".to_owned(),
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) => "a text".to_owned(),
        ColumnType::Bytea => "hexadecimal digits such as `\\x00ff`".to_owned(),
        ColumnType::Date => "a date such as `2024-01-31`".to_owned(),
        ColumnType::Timestamp => "a date and time such as `2024-01-31T12:00:00`".to_owned(),
        ColumnType::Timestamptz => "a time with zone such as `2024-01-31T12:00:00Z`".to_owned(),
        ColumnType::Uuid => "a UUID".to_owned(),
        ColumnType::Jsonb | ColumnType::Json => "JSON text".to_owned(),
        ColumnType::Array(_) => "a generator such as `{array: {length: 3, of: ...}}`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Scalar {
        Scalar::Text(value.to_owned())
    }

    #[test]
    fn values_are_checked_against_types() {
        assert_eq!(
            fits(&text("2017-06-08T00:00:00Z"), &ColumnType::Timestamptz),
            Ok(text("2017-06-08T00:00:00Z"))
        );
        assert_eq!(fits(&text("2017-06-08"), &ColumnType::Timestamptz), Ok(text("2017-06-08T00:00:00Z")));
        assert_eq!(fits(&text("2017-06-08 10:00"), &ColumnType::Timestamp), Ok(text("2017-06-08T10:00:00")));
        assert_eq!(fits(&Scalar::Int(5), &ColumnType::Text), Ok(text("5")));
        assert_eq!(fits(&text("off"), &ColumnType::Bool), Ok(Scalar::Bool(false)));
        for (value, kind) in [
            (Scalar::Int(40_000), ColumnType::Int2),
            (text("x"), ColumnType::Int4),
            (text("abcd"), ColumnType::Varchar(Some(3))),
            (text("2017-02-30"), ColumnType::Date),
            (text("{"), ColumnType::Jsonb),
            (Scalar::Int(1000), ColumnType::Numeric { precision: Some(4), scale: 2 }),
            (Scalar::Int(1), ColumnType::Bool),
            (Scalar::Int(1), ColumnType::Uuid),
        ] {
            assert!(fits(&value, &kind).is_err(), "{value} {kind:?}");
        }
    }

    #[test]
    fn sequences_must_end_inside_the_type() {
        assert!(check_number(&Scalar::Int(1), 1.0, 32_767, &ColumnType::Int2).is_ok());
        assert!(check_number(&Scalar::Int(1), 1.0, 32_768, &ColumnType::Int2).is_err());
        assert!(check_number(&Scalar::Int(1), 1.0, u64::MAX, &ColumnType::Int8).is_err());
    }
}
