//! PostgreSQL's spellings of the types rows can be generated for.

use crate::model::ColumnType;

/// Digits after the point of a `numeric` without a declared scale. The server keeps any; a generator
/// has to send some, and two are what amounts and prices have.
const UNDECLARED_SCALE: u32 = 2;
/// Longest `char(n)` and `varchar(n)`, the server's limit.
const MAX_LENGTH: u32 = 10_485_760;
/// Largest precision of `numeric`, the server's limit.
const MAX_PRECISION: u32 = 1000;

/// The type named by `text`, in any spelling PostgreSQL knows; `None` for a type that rows cannot be
/// generated for (or that does not exist).
///
/// `serial` and its relatives give the integer they stand for. All arrays are one-dimensional: the
/// server does not distinguish `int[]` from `int[][]` or `int[3]`.
#[must_use]
pub fn parse_type(text: &str) -> Option<ColumnType> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(element) = array_element(&text) {
        return parse_type(element).filter(is_scalar).map(|kind| ColumnType::Array(Box::new(kind)));
    }
    let (name, modifiers) = split_modifiers(&text)?;
    scalar(name.strip_prefix("pg_catalog.").unwrap_or(&name), &modifiers)
}

fn is_scalar(kind: &ColumnType) -> bool {
    !matches!(kind, ColumnType::Array(_))
}

/// `int` of `int[]`, `int[3][3]`, `int array`, `int array[3]`.
fn array_element(text: &str) -> Option<&str> {
    let mut element = text;
    while let Some((before, length)) = element.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        if !length.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        element = before.trim_end();
    }
    let stripped = element.strip_suffix("array").filter(|rest| rest.ends_with(char::is_whitespace));
    let element = stripped.map_or(element, str::trim_end);
    (element.len() < text.len()).then_some(element)
}

/// Words of the type with single blanks, and the numbers in its parentheses.
fn split_modifiers(text: &str) -> Option<(String, Vec<i64>)> {
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((before, rest)) = text.split_once('(') else {
        return Some((words(text), Vec::new()));
    };
    let (inside, after) = rest.split_once(')')?;
    let numbers = inside.split(',').map(|number| number.trim().parse().ok()).collect::<Option<Vec<_>>>()?;
    Some((words(&format!("{before} {after}")), numbers))
}

fn scalar(name: &str, modifiers: &[i64]) -> Option<ColumnType> {
    match (name, modifiers) {
        ("numeric" | "decimal" | "dec", _) => numeric(modifiers),
        ("varchar" | "character varying" | "char varying", [_]) => {
            length(modifiers).map(|n| ColumnType::Varchar(Some(n)))
        }
        ("char" | "character" | "bpchar", [_]) => length(modifiers).map(ColumnType::Char),
        ("float", [digits]) => float(*digits),
        // Fewer digits than 6 are rounded by the server; generated values have all of them.
        ("timestamp" | "timestamp without time zone", [6]) => Some(ColumnType::Timestamp),
        ("timestamptz" | "timestamp with time zone", [6]) => Some(ColumnType::Timestamptz),
        (_, []) => unmodified(name),
        _ => None,
    }
}

fn unmodified(name: &str) -> Option<ColumnType> {
    Some(match name {
        "bool" | "boolean" => ColumnType::Bool,
        "int2" | "smallint" | "smallserial" | "serial2" => ColumnType::Int2,
        "int" | "int4" | "integer" | "serial" | "serial4" => ColumnType::Int4,
        "int8" | "bigint" | "bigserial" | "serial8" => ColumnType::Int8,
        "float4" | "real" => ColumnType::Float4,
        "float8" | "double precision" | "float" => ColumnType::Float8,
        "text" => ColumnType::Text,
        // Without a length, bpchar is text whose trailing blanks do not count; nothing is padded.
        "varchar" | "character varying" | "char varying" | "bpchar" => ColumnType::Varchar(None),
        "char" | "character" => ColumnType::Char(1),
        "bytea" => ColumnType::Bytea,
        "date" => ColumnType::Date,
        "timestamp" | "timestamp without time zone" => ColumnType::Timestamp,
        "timestamptz" | "timestamp with time zone" => ColumnType::Timestamptz,
        "uuid" => ColumnType::Uuid,
        "jsonb" => ColumnType::Jsonb,
        "json" => ColumnType::Json,
        _ => return None,
    })
}

fn numeric(modifiers: &[i64]) -> Option<ColumnType> {
    let (precision, scale) = match *modifiers {
        [] => return Some(ColumnType::Numeric { precision: None, scale: UNDECLARED_SCALE }),
        [precision] => (precision, 0),
        [precision, scale] => (precision, scale),
        _ => return None,
    };
    let precision = u32::try_from(precision).ok().filter(|digits| (1..=MAX_PRECISION).contains(digits))?;
    let scale = u32::try_from(scale).ok().filter(|digits| *digits <= precision)?;
    Some(ColumnType::Numeric { precision: Some(precision), scale })
}

fn length(modifiers: &[i64]) -> Option<u32> {
    modifiers.first().and_then(|length| u32::try_from(*length).ok()).filter(|n| (1..=MAX_LENGTH).contains(n))
}

/// `float(p)`: 1 to 24 binary digits are `real`, 25 to 53 `double precision`.
fn float(digits: i64) -> Option<ColumnType> {
    match digits {
        1..=24 => Some(ColumnType::Float4),
        25..=53 => Some(ColumnType::Float8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &ColumnType, spellings: &[&str]) {
        for text in spellings {
            assert_eq!(parse_type(text).as_ref(), Some(kind), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_a_number_is_known() {
        check(&ColumnType::Bool, &["bool", "BOOLEAN", "pg_catalog.bool"]);
        check(&ColumnType::Int2, &["int2", "smallint", "smallserial", "serial2"]);
        check(&ColumnType::Int4, &["int", "INTEGER", "int4", "serial", "serial4"]);
        check(&ColumnType::Int8, &["int8", "bigint", "bigserial", "serial8"]);
        check(&ColumnType::Float4, &["real", "float4", "float(24)"]);
        check(
            &ColumnType::Float8,
            &["float", "float8", "double precision", "DOUBLE  PRECISION", "float(25)"],
        );
        check(&ColumnType::Numeric { precision: None, scale: 2 }, &["numeric", "decimal", "dec"]);
        check(&ColumnType::Numeric { precision: Some(10), scale: 0 }, &["numeric(10)", "decimal(10, 0)"]);
        check(
            &ColumnType::Numeric { precision: Some(10), scale: 2 },
            &["numeric(10,2)", "DECIMAL ( 10 , 2 )"],
        );
    }

    #[test]
    fn every_spelling_of_a_text_is_known() {
        check(&ColumnType::Text, &["text"]);
        check(&ColumnType::Varchar(None), &["varchar", "character varying", "bpchar"]);
        check(
            &ColumnType::Varchar(Some(255)),
            &["varchar(255)", "character varying (255)", "char varying(255)"],
        );
        check(&ColumnType::Char(1), &["char", "character", "char(1)"]);
        check(&ColumnType::Char(9), &["char(9)", "CHARACTER(9)", "bpchar(9)"]);
        check(&ColumnType::Bytea, &["bytea"]);
        check(&ColumnType::Json, &["json"]);
        check(&ColumnType::Jsonb, &["jsonb"]);
        check(&ColumnType::Uuid, &["uuid"]);
    }

    #[test]
    fn every_spelling_of_a_time_is_known() {
        check(&ColumnType::Date, &["date"]);
        check(&ColumnType::Timestamp, &["timestamp", "timestamp(6)", "timestamp (6) without time zone"]);
        check(&ColumnType::Timestamptz, &["timestamptz", "timestamptz(6)", "timestamp with time zone"]);
        check(&ColumnType::Timestamptz, &["timestamp(6) with time zone", "TIMESTAMP(6) WITH TIME ZONE"]);
    }

    #[test]
    fn arrays_are_one_dimensional() {
        let kind = ColumnType::Array(Box::new(ColumnType::Int4));
        check(&kind, &["int[]", "int [3]", "int[][]", "int[3][]", "integer ARRAY", "int array[4]"]);
        check(&ColumnType::Array(Box::new(ColumnType::Varchar(Some(5)))), &["varchar(5)[]"]);
    }

    #[test]
    fn other_types_are_not_known() {
        for text in [
            "",
            "timestamp(3)",
            "timestamptz(0)",
            "time",
            "interval",
            "inet",
            "money",
            "int(11)",
            "varchar(0)",
            "numeric(0)",
            "numeric(3,4)",
            "numeric(2,-1)",
            "timestamp(7)",
            "float(54)",
            "[]",
            "array",
            "int[",
            "int]",
            "int[a]",
            "varchar(",
            "\"char\"",
            "myarray",
        ] {
            assert_eq!(parse_type(text), None, "{text}");
        }
    }
}
