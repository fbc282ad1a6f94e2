//! Values of settings, read as the server reads them.
//!
//! The rules follow `parse_bool_with_len` (src/backend/utils/adt/bool.c) and `parse_int`, `parse_real`,
//! `convert_to_base_unit` and `config_enum_lookup_by_name` (src/backend/utils/misc/guc.c) of PostgreSQL 14
//! to 18. The result is what `pg_settings.setting` shows: `on`, a plain number in the setting's own unit,
//! the first name of an enum's value.

use super::catalogue::{Kind, Setting};

/// Why a value is not legal: what is wrong, what would be right, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueProblem {
    pub(super) message: String,
    pub(super) expected: String,
    pub(super) hint: Option<String>,
}

/// Units with their size, from the largest, as in the server's tables; memory in bytes, time in
/// microseconds.
const MEMORY: [(&str, f64); 5] =
    [("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0), ("B", 1.0)];
const TIME: [(&str, f64); 6] =
    [("d", 86_400e6), ("h", 3_600e6), ("min", 60e6), ("s", 1e6), ("ms", 1000.0), ("us", 1.0)];

/// The value in the server's own spelling.
pub(super) fn normalise(setting: &Setting, value: &str) -> Result<String, ValueProblem> {
    match setting.kind {
        Kind::Bool => boolean(value).map(on_off).ok_or_else(|| not_boolean(setting, value)),
        Kind::Enum => enumeration(setting, value),
        Kind::Integer => integer(setting, value),
        Kind::Real => real(setting, value),
        Kind::Text => Ok(value.to_owned()),
    }
}

fn on_off(value: bool) -> String {
    if value { "on" } else { "off" }.to_owned()
}

/// `true`, `false`, `yes`, `no` and their beginnings, `on`, `off` and `of`, `1`, `0`; in any case.
fn boolean(value: &str) -> Option<bool> {
    let value = value.to_ascii_lowercase();
    match value.as_str() {
        "" => None,
        "on" | "1" => Some(true),
        "off" | "of" | "0" => Some(false),
        _ if "true".starts_with(&value) || "yes".starts_with(&value) => Some(true),
        _ if "false".starts_with(&value) || "no".starts_with(&value) => Some(false),
        _ => None,
    }
}

fn not_boolean(setting: &Setting, value: &str) -> ValueProblem {
    let ambiguous = value.eq_ignore_ascii_case("o");
    ValueProblem {
        message: format!("`{}` is on or off, not `{value}`", setting.name),
        expected: "on, off, true, false, yes, no, 1 or 0".to_owned(),
        hint: ambiguous.then(|| "`o` could be on or off".to_owned()),
    }
}

fn enumeration(setting: &Setting, value: &str) -> Result<String, ValueProblem> {
    let named = setting.values.iter().find(|known| known.eq_ignore_ascii_case(value));
    let name = named.copied().or_else(|| hidden_spelling(setting, value));
    name.map(|name| first_name(setting.name, name).to_owned()).ok_or_else(|| ValueProblem {
        message: format!("`{}` cannot be `{value}`", setting.name),
        expected: setting.values.join(", "),
        hint: nearest_value(setting, value),
    })
}

fn nearest_value(setting: &Setting, value: &str) -> Option<String> {
    let value = value.to_ascii_lowercase();
    let distance = |known: &&&str| strsim::levenshtein(known, &value);
    let nearest = setting.values.iter().min_by_key(distance)?;
    (distance(&nearest) <= 2).then(|| format!("did you mean `{nearest}`?"))
}

/// Spellings the server takes and does not list: every enum with on and off takes whole boolean words, and
/// a few values have older names.
fn hidden_spelling(setting: &Setting, value: &str) -> Option<&'static str> {
    let value = value.to_ascii_lowercase();
    let switch = setting.values.contains(&"on") && setting.values.contains(&"off");
    match (setting.name, value.as_str()) {
        (_, "true" | "yes" | "1") if switch => Some("on"),
        (_, "false" | "no" | "0") if switch => Some("off"),
        ("wal_level", "archive" | "hot_standby") => Some("replica"),
        ("client_min_messages" | "log_min_messages" | "log_min_error_statement", "debug") => Some("debug2"),
        ("client_min_messages", "info") => Some("info"),
        _ => None,
    }
}

/// Two names of one value: the server shows the first.
fn first_name(setting: &str, value: &'static str) -> &'static str {
    if setting == "wal_compression" && value == "on" { "pglz" } else { value }
}

fn integer(setting: &Setting, value: &str) -> Result<String, ValueProblem> {
    let (number, rest) = leading_integer(value.trim_start()).ok_or_else(|| not_a_number(setting, value))?;
    let number = in_base_unit(setting, number, rest, value)?.round_ties_even();
    in_range(setting, number, value)?;
    Ok(format!("{number:.0}"))
}

fn real(setting: &Setting, value: &str) -> Result<String, ValueProblem> {
    let (number, rest) = leading_real(value.trim_start()).ok_or_else(|| not_a_number(setting, value))?;
    let number = in_base_unit(setting, number, rest, value)?;
    in_range(setting, number, value)?;
    Ok(six_digits(number))
}

fn not_a_number(setting: &Setting, value: &str) -> ValueProblem {
    ValueProblem {
        message: format!("`{}` is a number, not `{value}`", setting.name),
        expected: range_text(setting),
        hint: unit_hint(setting),
    }
}

fn in_range(setting: &Setting, number: f64, value: &str) -> Result<(), ValueProblem> {
    if (setting.min..=setting.max).contains(&number) {
        return Ok(());
    }
    let message = format!("`{}` cannot be {value}: out of range", setting.name);
    Err(ValueProblem { message, expected: range_text(setting), hint: unit_hint(setting) })
}

fn range_text(setting: &Setting) -> String {
    let unit = if setting.unit.is_empty() { String::new() } else { format!(", counted in {}", setting.unit) };
    // Reals without an upper limit end at the largest number there is.
    let end =
        if setting.max > 1e300 { "or more".to_owned() } else { format!("to {}", six_or_whole(setting.max)) };
    format!("{} {end}{unit}", six_or_whole(setting.min))
}

fn six_or_whole(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 { format!("{number:.0}") } else { six_digits(number) }
}

/// Units the setting takes and the name of its own among them, with its size.
fn units(setting: &Setting) -> Option<(&'static [(&'static str, f64)], f64)> {
    let size =
        |units: &[(&str, f64)], name: &str| units.iter().find(|unit| unit.0 == name).map(|unit| unit.1);
    match setting.unit {
        "" => None,
        "8kB" => Some((&MEMORY, 8192.0)),
        unit => size(&MEMORY, unit)
            .map(|base| (MEMORY.as_slice(), base))
            .or_else(|| size(&TIME, unit).map(|base| (TIME.as_slice(), base))),
    }
}

fn unit_hint(setting: &Setting) -> Option<String> {
    let (units, _) = units(setting)?;
    let names: Vec<&str> = units.iter().rev().map(|unit| unit.0).collect();
    Some(format!("a plain number counts {}; units are {}, case matters", setting.unit, names.join(", ")))
}

/// Applies the unit in `rest`. As the server does, a fraction is rounded to whole next smaller units.
fn in_base_unit(setting: &Setting, number: f64, rest: &str, value: &str) -> Result<f64, ValueProblem> {
    let name = rest.trim();
    if name.is_empty() {
        return Ok(number);
    }
    let Some((units, base)) = units(setting) else {
        let message = format!("`{}` has no unit, but `{value}` has one", setting.name);
        return Err(ValueProblem { message, expected: range_text(setting), hint: None });
    };
    let Some(at) = units.iter().position(|unit| unit.0 == name) else {
        return Err(unknown_unit(setting, units, name, value));
    };
    let converted = number * (units[at].1 / base);
    let smaller = units.get(at + 1).map(|unit| unit.1 / base);
    Ok(smaller.map_or(converted, |unit| (converted / unit).round_ties_even() * unit))
}

fn unknown_unit(setting: &Setting, units: &[(&str, f64)], name: &str, value: &str) -> ValueProblem {
    let names: Vec<&str> = units.iter().rev().map(|unit| unit.0).collect();
    let meant = names.iter().find(|known| known.eq_ignore_ascii_case(name));
    ValueProblem {
        message: format!("`{name}` in `{value}` is no unit of `{}`", setting.name),
        expected: format!("a number and one of {}", names.join(", ")),
        hint: Some(match meant {
            Some(meant) => format!("units are case-sensitive: write `{}`", value.replacen(name, meant, 1)),
            None => format!("a plain number counts {}", setting.unit),
        }),
    }
}

/// A whole number as C's `strtol` reads it (hexadecimal and octal too), or, when a fraction or exponent
/// follows, as `strtod` does; and what is left of the text.
fn leading_integer(text: &str) -> Option<(f64, &str)> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', next, ..] if next.is_ascii_hexdigit() => (16, &digits[2..]),
        [b'0', ..] => (8, digits),
        _ => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 || digits[end..].starts_with(['.', 'e', 'E']) {
        return leading_real(text);
    }
    // More digits than fit are far outside of every range; the nearest float says so as well.
    let value = i64::from_str_radix(&digits[..end], radix).map_or(f64::MAX, as_float);
    Some((sign * value, &digits[end..]))
}

#[expect(clippy::cast_precision_loss, reason = "settings are 32-bit; anything larger is out of range anyway")]
fn as_float(value: i64) -> f64 {
    value as f64
}

/// A decimal number at the start of a text, and what is left of it.
fn leading_real(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits(at);
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if whole + fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits((at + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    Some((text[..at].parse().ok()?, &text[at..]))
}

/// C's `%g`: six significant digits without trailing zeros.
fn six_digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a whole number");
    let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).expect("the exponent is below 6");
        let fixed = format!("{number:.decimals$}");
        return if decimals == 0 { fixed } else { trim(&fixed) };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::check::catalogue::find;

    /// Answers of a real server: `postgres -c NAME=VALUE -C NAME`, PostgreSQL 15; 14 and 18 answer the same
    /// but for `wal_compression`, which is a boolean in 14.
    #[test]
    fn values_are_read_as_the_server_reads_them() {
        for line in include_str!("value_cases.tsv").lines().filter(|line| !line.starts_with('#')) {
            let [name, value, answer] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            for major in [15, 18] {
                let found = normalise(find(name, major).unwrap(), value);
                assert_eq!(found.as_deref().unwrap_or("ERROR"), answer, "{name} = {value:?}: {found:?}");
                if let Ok(once) = &found {
                    assert_eq!(
                        normalise(find(name, major).unwrap(), once).as_ref(),
                        Ok(once),
                        "applied twice"
                    );
                }
            }
        }
    }

    #[test]
    fn problems_say_what_is_allowed() {
        let problem = |name: &str, value: &str| {
            let problem = normalise(find(name, 15).unwrap(), value).unwrap_err();
            format!("{} | {} | {}", problem.message, problem.expected, problem.hint.unwrap_or_default())
        };
        insta::assert_snapshot!(problem("fsync", "o"), @"`fsync` is on or off, not `o` | on, off, true, false, yes, no, 1 or 0 | `o` could be on or off");
        insta::assert_snapshot!(problem("shared_buffers", "1 gb"), @"`gb` in `1 gb` is no unit of `shared_buffers` | a number and one of B, kB, MB, GB, TB | units are case-sensitive: write `1 GB`");
        insta::assert_snapshot!(problem("shared_buffers", "8kB"), @"`shared_buffers` cannot be 8kB: out of range | 16 to 1073741823, counted in 8kB | a plain number counts 8kB; units are B, kB, MB, GB, TB, case matters");
        insta::assert_snapshot!(problem("checkpoint_timeout", "5m"), @"`m` in `5m` is no unit of `checkpoint_timeout` | a number and one of us, ms, s, min, h, d | a plain number counts s");
        insta::assert_snapshot!(problem("wal_level", "minimum"), @"`wal_level` cannot be `minimum` | minimal, replica, logical | did you mean `minimal`?");
        insta::assert_snapshot!(problem("max_connections", "10kB"), @"`max_connections` has no unit, but `10kB` has one | 1 to 262143 |");
        insta::assert_snapshot!(problem("random_page_cost", "cheap"), @"`random_page_cost` is a number, not `cheap` | 0 or more |");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(value in "\\PC{0,12}") {
            for name in ["fsync", "shared_buffers", "checkpoint_completion_target", "wal_level", "log_directory"] {
                let _ = normalise(find(name, 15).unwrap(), &value);
            }
        }

        #[test]
        fn numbers_are_answered(value in "[-+]?[0-9]{0,22}[.]?[0-9]{0,4}([eE][-+]?[0-9]{0,4})? ?(kB|MB|ü)?") {
            for name in ["shared_buffers", "vacuum_cost_delay", "max_connections"] {
                let _ = normalise(find(name, 15).unwrap(), &value);
            }
        }
    }
}
