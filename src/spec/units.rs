//! Sizes, durations, counts and shares as people write them.
//!
//! Units follow PostgreSQL: case-sensitive, powers of 1024 for sizes (`kB`, `MB`, `GB`, `TB`).
//! Source: PostgreSQL documentation, section 20.1.1 "Parameter Names and Values".

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::spec::bind::complaint;

/// A number of bytes: `8GB`, `64MB`, `16kB`, or a bare number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// A span of time: `500ms`, `30s`, `10m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A whole number of things, at least 0: `1_000_000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

/// A part of a whole: `10%` or `0.1`; from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

/// Why a text is not a quantity: message, expectation, hint.
type Complaint = (String, &'static str, Option<String>);

const SIZE: &str =
    "a size such as `64MB`: a whole number with `B`, `kB`, `MB`, `GB` or `TB`, or a number of bytes";
const SPAN: &str = "a duration such as `30s`: a number with `ms`, `s`, `m` (minutes), `h` or `d`";
const COUNT: &str = "a whole number of 0 or more, such as `1_000_000`";
const SHARE: &str = "a share such as `10%`, or a number from 0 to 1";

/// Reads a size.
///
/// # Errors
/// Message, expectation and hint.
pub fn parse_size(text: &str) -> Result<u64, Complaint> {
    let (number, unit) = split_unit(text);
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        other => {
            let right = ["kB", "MB", "GB", "TB"].into_iter().find(|known| {
                known.eq_ignore_ascii_case(other)
                    || known[..1].eq_ignore_ascii_case(other)
                    || format!("{}iB", &known[..1]).eq_ignore_ascii_case(other)
            });
            let hint = right.map(|right| format!("units are case-sensitive; write `{number}{right}`"));
            return Err((format!("`{}` is not a size: unknown unit `{other}`", text.trim()), SIZE, hint));
        }
    };
    let count =
        whole(number).map_err(|why| (format!("`{}` is not a size: {why}", text.trim()), SIZE, None))?;
    count
        .checked_mul(factor)
        .ok_or_else(|| (format!("`{}` is larger than 64 bits can hold", text.trim()), SIZE, None))
}

/// Reads a duration.
///
/// # Errors
/// Message, expectation and hint.
pub fn parse_span(text: &str) -> Result<Duration, Complaint> {
    let (number, unit) = split_unit(text);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "" => {
            let hint = Some(format!("write `{number}s` for seconds"));
            return Err((format!("`{}` has no unit", text.trim()), SPAN, hint));
        }
        other => {
            return Err((format!("`{}` is not a duration: unknown unit `{other}`", text.trim()), SPAN, None));
        }
    };
    let value: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| (format!("`{}` is not a duration", text.trim()), SPAN, None))?;
    if value <= 0.0 {
        return Err((format!("`{}` is not a positive duration", text.trim()), SPAN, None));
    }
    let longest = 365.0 * 86_400.0;
    if value * seconds > longest {
        return Err((format!("`{}` is longer than a year", text.trim()), SPAN, None));
    }
    Ok(Duration::from_secs_f64(value * seconds))
}

/// Reads a count.
///
/// # Errors
/// Message, expectation and hint.
pub fn parse_count(text: &str) -> Result<u64, Complaint> {
    whole(text.trim())
        .map_err(|why| (format!("`{}` is not a count: {why}", text.trim()), COUNT, plain_digits(text)))
}

/// Reads a share.
///
/// # Errors
/// Message, expectation and hint.
pub fn parse_share(text: &str) -> Result<f64, Complaint> {
    let trimmed = text.trim();
    let (number, scale) = trimmed.strip_suffix('%').map_or((trimmed, 1.0), |number| (number, 100.0));
    let value =
        number.trim().parse::<f64>().map_err(|_| (format!("`{trimmed}` is not a share"), SHARE, None))?;
    check_share(value / scale, trimmed)
}

fn check_share(value: f64, text: &str) -> Result<f64, Complaint> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    let hint = (value > 1.0 && value <= 100.0 && !text.ends_with('%'))
        .then(|| format!("write `{text}%` for a percentage"));
    Err((format!("`{text}` is not between 0 and 1"), SHARE, hint))
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '_' | '.' | '-' | '+')))
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start_matches(' '))
}

fn whole(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.starts_with('-') {
        return Err("it must not be negative".to_owned());
    }
    let well_formed = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '_')
        && !digits.ends_with('_');
    if !well_formed {
        return Err("only digits and `_` between them".to_owned());
    }
    digits.replace('_', "").parse().map_err(|_| format!("it is larger than {}", u64::MAX))
}

/// What `1e6`, `10k` or `2M` would be in digits.
fn plain_digits(text: &str) -> Option<String> {
    let text = text.trim();
    let scaled = |suffix: &[char], factor: f64| {
        let number: f64 = text.strip_suffix(suffix)?.parse().ok()?;
        Some(number * factor)
    };
    let value = scaled(&['k', 'K'], 1e3)
        .or_else(|| scaled(&['m', 'M'], 1e6))
        .or_else(|| text.parse::<f64>().ok())
        .filter(|value| value.is_finite() && value.fract() == 0.0 && (0.0..1e15).contains(value))?;
    Some(format!("write `{}`", with_underscores(&format!("{value:.0}"))))
}

fn with_underscores(digits: &str) -> String {
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('_');
        }
        grouped.push(digit);
    }
    grouped
}

/// A visitor that hands numbers and texts to one parsing function each.
struct QuantityVisitor<T> {
    expecting: &'static str,
    number: fn(f64) -> Result<T, Complaint>,
    whole: fn(u64) -> Result<T, Complaint>,
    text: fn(&str) -> Result<T, Complaint>,
}

impl<T> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        (self.whole)(value).map_err(complain)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        match u64::try_from(value) {
            Ok(value) => (self.whole)(value).map_err(complain),
            Err(_) => Err(complain((format!("`{value}` is negative"), self.expecting, None))),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        (self.number)(value).map_err(complain)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
        (self.text)(value).map_err(complain)
    }
}

fn complain<E: Error>((message, expected, hint): Complaint) -> E {
    E::custom(complaint(&message, expected, hint.as_deref()))
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor {
            expecting: SIZE,
            number: |value| {
                Err((
                    format!("`{value:?}` is not a whole number of bytes"),
                    SIZE,
                    plain_digits(&value.to_string()),
                ))
            },
            whole: |value| Ok(Self(value)),
            text: |text| parse_size(text).map(Self),
        })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor {
            expecting: SPAN,
            number: |value| {
                Err((format!("`{value:?}` has no unit"), SPAN, Some(format!("write `{value}s` for seconds"))))
            },
            whole: |value| {
                Err((format!("`{value}` has no unit"), SPAN, Some(format!("write `{value}s` for seconds"))))
            },
            text: |text| parse_span(text).map(Self),
        })
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor {
            expecting: COUNT,
            number: |value| {
                Err((format!("`{value:?}` is not a whole number"), COUNT, plain_digits(&value.to_string())))
            },
            whole: |value| Ok(Self(value)),
            text: |text| parse_count(text).map(Self),
        })
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor {
            expecting: SHARE,
            number: |value| check_share(value, &value.to_string()).map(Self),
            whole: |value| {
                // 0 and 1 are exact as floats; anything larger is refused anyway.
                let value = u32::try_from(value).unwrap_or(u32::MAX);
                check_share(value.into(), &value.to_string()).map(Self)
            },
            text: |text| parse_share(text).map(Self),
        })
    }
}

macro_rules! quantity_schema {
    ($type:ty, $name:literal, $numbers:tt, $pattern:literal, $description:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $description,
                    "anyOf": [$numbers, {"type": "string", "pattern": $pattern}]
                })
            }
        }
    };
}

quantity_schema!(Size, "Size", {"type": "integer", "minimum": 0}, r"^[0-9][0-9_]*(B|kB|MB|GB|TB)?$", SIZE);
quantity_schema!(Span, "Duration", {"const": "30s"}, r"^[0-9][0-9_.]*(ms|s|m|min|h|d)$", SPAN);
quantity_schema!(Count, "Count", {"type": "integer", "minimum": 0}, r"^[0-9][0-9_]*$", COUNT);
quantity_schema!(Share, "Share", {"type": "number", "minimum": 0, "maximum": 1}, r"^[0-9.]+ ?%?$", SHARE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_with_units() {
        assert_eq!(parse_size("8GB"), Ok(8 << 30));
        assert_eq!(parse_size("16kB"), Ok(16 << 10));
        assert_eq!(parse_size("1_000"), Ok(1000));
        assert_eq!(parse_span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_span("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(parse_span("1.5h"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_count("20_000"), Ok(20_000));
        assert_eq!(parse_share("10%"), Ok(0.1));
        assert_eq!(parse_share("0.1"), Ok(0.1));
    }

    #[test]
    fn wrong_quantities_say_what_would_be_right() {
        let hint = |complaint: Complaint| complaint.2.unwrap_or_default();
        assert!(parse_size("1 gb").is_err());
        assert_eq!(hint(parse_size("1gb").expect_err("case")), "units are case-sensitive; write `1GB`");
        assert_eq!(hint(parse_size("64MiB").expect_err("unit")), "units are case-sensitive; write `64MB`");
        assert_eq!(hint(parse_count("1e6").expect_err("float")), "write `1_000_000`");
        assert_eq!(hint(parse_count("10k").expect_err("suffix")), "write `10_000`");
        assert_eq!(hint(parse_span("30").expect_err("no unit")), "write `30s` for seconds");
        assert_eq!(hint(parse_share("10").expect_err("percent")), "write `10%` for a percentage");
        for wrong in ["99999999TB", "-1MB", "", "MB", "1.5GB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0s", "-1s", "9999999h", "s"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
        for wrong in ["-3", "18446744073709551616", "1__"] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
    }
}
