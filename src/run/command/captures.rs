//! Numbers in what a program printed: each is required, and each must be one.

use regex::RegexBuilder;
use serde_json::Value;

use crate::model::{Capture, CaptureFrom, Captured};

/// The number of a capture.
///
/// # Errors
/// Says in words what is missing, ambiguous, or no number.
pub(super) fn capture(capture: &Capture, text: &str) -> Result<Captured, String> {
    let found = match &capture.from {
        CaptureFrom::Regex(regex) => by_regex(regex, text),
        CaptureFrom::Json(path) => by_json(path, text),
    };
    let number = found.and_then(|found| {
        let number = found.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| format!("`{}` is not a number", found.chars().take(60).collect::<String>()))
    });
    match number {
        Ok(value) => Ok(Captured { name: capture.name.clone(), unit: capture.unit, value }),
        Err(why) => {
            Err(format!("the capture `{}` is missing in {}: {why}", capture.name, capture.stream.name()))
        }
    }
}

fn by_regex(regex: &str, text: &str) -> Result<String, String> {
    let compiled =
        RegexBuilder::new(regex).multi_line(true).build().map_err(|error| format!("`{regex}`: {error}"))?;
    let mut found: Option<&str> = None;
    for captures in compiled.captures_iter(text) {
        let Some(group) = captures.get(1) else { continue };
        match found {
            Some(first) if first != group.as_str() => {
                return Err(format!(
                    "`{regex}` matches several times, first {first}, then {}: make it fit one line only",
                    group.as_str()
                ));
            }
            _ => found = Some(group.as_str()),
        }
    }
    found.map(str::to_owned).ok_or_else(|| format!("nothing matches `{regex}`"))
}

fn by_json(path: &[String], text: &str) -> Result<String, String> {
    let document: Value =
        serde_json::from_str(text.trim()).map_err(|error| format!("it is not one JSON document: {error}"))?;
    let mut value = &document;
    for (depth, part) in path.iter().enumerate() {
        let next = match value {
            Value::Array(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            Value::Object(members) => members.get(part),
            _ => None,
        };
        let here =
            || if depth == 0 { "the top".to_owned() } else { format!("`{}`", path[..depth].join(".")) };
        value = next.ok_or_else(|| format!("there is no `{part}` at {}", here()))?;
    }
    match value {
        Value::Number(number) => Ok(number.to_string()),
        Value::String(text) => Ok(text.clone()),
        other => Err(format!("`{}` is {other}, not a number", path.join("."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Stream, Unit};

    /// Summaries as pgbench prints them: from 14 on the line about the connections' time has changed.
    const PGBENCH_13: &str = include_str!("../../../tests/cases/commands/pgbench_13.txt");
    const PGBENCH_15: &str = include_str!("../../../tests/cases/commands/pgbench_15.txt");
    const WITHOUT_TPS: &str = include_str!("../../../tests/cases/commands/pgbench_without_tps.txt");
    const TPS: &str =
        r"^tps = ([0-9.]+) \((?:excluding connections establishing|without initial connection time)\)";

    fn by(from: CaptureFrom) -> Capture {
        Capture { name: "tps".to_owned(), stream: Stream::Stdout, from, unit: Unit::PerSecond }
    }

    fn regex(text: &str) -> Capture {
        by(CaptureFrom::Regex(text.to_owned()))
    }

    fn json(path: &str) -> Capture {
        by(CaptureFrom::Json(path.split('.').map(str::to_owned).collect()))
    }

    #[test]
    fn an_external_tool_changes_its_text() {
        let value = |text| capture(&regex(TPS), text).map(|captured| captured.value);
        assert_eq!(value(PGBENCH_13), Ok(1_082.417_569));
        assert_eq!(value(PGBENCH_15), Ok(1_134.060_932));
        let missing = value(WITHOUT_TPS).unwrap_err();
        assert!(missing.starts_with("the capture `tps` is missing in stdout: nothing matches"), "{missing}");
    }

    #[test]
    fn two_numbers_are_none() {
        let ambiguous = capture(&regex("tps = ([0-9.]+)"), PGBENCH_13).unwrap_err();
        assert!(ambiguous.contains("several times") && ambiguous.contains("1082.417569"), "{ambiguous}");
        assert!(capture(&regex("x=([0-9]+)"), "x=1\nx=1\n").is_ok());
        let word = capture(&regex("x=(.+)"), "x=fast").unwrap_err();
        assert!(word.contains("`fast` is not a number"), "{word}");
        assert!(capture(&regex("x=(.+)"), "x=inf").is_err(), "infinity is no result");
    }

    #[test]
    fn json_paths_go_through_keys_and_lists() {
        let text = r#" {"runs": [{"seconds": 1.5}, {"seconds": "2.5"}], "name": null} "#;
        assert_eq!(capture(&json("runs.0.seconds"), text).map(|captured| captured.value), Ok(1.5));
        assert_eq!(capture(&json("runs.1.seconds"), text).map(|captured| captured.value), Ok(2.5));
        let why = |path: &str| capture(&json(path), text).unwrap_err();
        assert!(why("runs.2.seconds").contains("there is no `2` at `runs`"), "{}", why("runs.2.seconds"));
        assert!(why("x").contains("at the top"));
        assert!(why("name").contains("`name` is null"));
        assert!(capture(&json("x"), "{} {}").unwrap_err().contains("not one JSON document"));
    }
}
