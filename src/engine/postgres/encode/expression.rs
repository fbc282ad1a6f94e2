//! Generators as SQL of the variable `row` (a bigint of 0 and up), for rows that the server makes itself.
//!
//! Only what gives the same bits as the generator is translated; [`crate::model::Column::computable`] is the rule.

use std::collections::BTreeMap;

use super::literal::quote;
use super::text::Spelling;
use crate::data::{ColumnGenerator, Formula, Piece, TableGenerator, Value, write_date, write_timestamp};
use crate::model::{ColumnType, TemplatePart};

/// Microseconds of an hour: multiples of it are exact as doubles, which the server multiplies intervals by.
const HOUR: i128 = 3_600_000_000;
/// Whole numbers up to here are exact as doubles.
const EXACT: i128 = 1 << 53;

/// An expression for each column, in table order: the experiment's own, else the generator's.
///
/// # Errors
/// Names the column whose generator no SQL can stand for.
pub fn expressions(table: &TableGenerator, own: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let one = |column: &ColumnGenerator| match own.get(column.name()) {
        Some(sql) => Ok(format!("({sql})")),
        None => column
            .formula()
            .and_then(|formula| Translator { rows: table.rows() }.expression(&formula, column.kind()))
            .ok_or_else(|| {
                format!(
                    "the server cannot compute column {}: give an expression of `row` for it",
                    column.name()
                )
            }),
    };
    table.columns().iter().map(one).collect()
}

/// The type's name for a cast.
#[must_use]
pub fn type_name(kind: &ColumnType) -> String {
    match kind {
        ColumnType::Numeric { precision: Some(precision), scale } => format!("numeric({precision}, {scale})"),
        ColumnType::Char(length) => format!("character({length})"),
        ColumnType::Array(element) => format!("{}[]", type_name(element)),
        other => base_name(other).to_owned(),
    }
}

/// The type's name without its length.
pub(super) fn base_name(kind: &ColumnType) -> &'static str {
    match kind {
        ColumnType::Bool => "boolean",
        ColumnType::Int2 => "smallint",
        ColumnType::Int4 => "integer",
        ColumnType::Int8 => "bigint",
        ColumnType::Float4 => "real",
        ColumnType::Float8 => "double precision",
        ColumnType::Numeric { .. } => "numeric",
        ColumnType::Text => "text",
        ColumnType::Varchar(_) => "varchar",
        ColumnType::Char(_) => "bpchar",
        ColumnType::Bytea => "bytea",
        ColumnType::Date => "date",
        ColumnType::Timestamp => "timestamp",
        ColumnType::Timestamptz => "timestamptz",
        ColumnType::Uuid => "uuid",
        ColumnType::Jsonb => "jsonb",
        ColumnType::Json => "json",
        ColumnType::Array(element) => base_name(element),
    }
}

#[derive(Clone, Copy)]
struct Translator {
    rows: u64,
}

impl Translator {
    fn expression(self, formula: &Formula<'_>, kind: &ColumnType) -> Option<String> {
        Some(match formula {
            Formula::Constant(value) => constant(*value, kind),
            Formula::Whole { start, step, scale } => self.whole(*start, *step, *scale, kind)?,
            Formula::Real { start, step } => {
                let sum = format!(
                    "'{start:e}'::double precision + row::double precision * '{step:e}'::double precision"
                );
                if *kind == ColumnType::Float4 { format!("({sum})::real") } else { sum }
            }
            Formula::Template(parts) => self.template(parts),
            Formula::Array(element, count) => {
                let ColumnType::Array(of) = kind else { return None };
                let element = self.expression(element, of)?;
                let elements = vec![element; usize::try_from(*count).ok()?];
                format!("ARRAY[{}]::{}", elements.join(", "), type_name(kind))
            }
            Formula::Document(pieces) => {
                let texts = pieces.iter().map(|piece| self.piece(piece)).collect::<Option<Vec<_>>>()?;
                format!("({})::{}", texts.join(" || "), base_name(kind))
            }
        })
    }

    fn piece(self, piece: &Piece<'_>) -> Option<String> {
        Some(match piece {
            Piece::Text(text) => literal(text),
            Piece::Number(Formula::Whole { start, step, scale }) => {
                format!("({})::text", self.number(*start, *step, *scale))
            }
            Piece::Quoted(formula) => {
                format!("to_json({})::text", self.expression(formula, &ColumnType::Text)?)
            }
            Piece::Number(_) => return None,
        })
    }

    fn whole(self, start: i128, step: i128, scale: u32, kind: &ColumnType) -> Option<String> {
        let mut first = String::new();
        Some(match kind {
            ColumnType::Date => {
                write_date(i32::try_from(start).ok()?, &mut first);
                format!("'{first}'::date + ({})::integer", self.number(0, step, 0))
            }
            ColumnType::Timestamp | ColumnType::Timestamptz => {
                write_timestamp(i64::try_from(start).ok()?, *kind == ColumnType::Timestamptz, &mut first);
                format!("'{first}'::{} + {}", base_name(kind), self.interval(step))
            }
            ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) => {
                format!("({})::text", self.number(start, step, scale))
            }
            ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 | ColumnType::Numeric { .. } => {
                self.number(start, step, scale)
            }
            _ => return None,
        })
    }

    /// `start + row * step` as bigint where no part of it can leave that type, else as numeric.
    fn number(self, start: i128, step: i128, scale: u32) -> String {
        let way = step.saturating_mul(i128::from(self.rows));
        let small = way.abs().saturating_add(start.abs()) < i128::from(i64::MAX);
        if scale > 0 || !small {
            return format!("{}::numeric + row * {}::numeric", decimal(start, scale), decimal(step, scale));
        }
        let way = if step == 1 { "row".to_owned() } else { format!("row * {}", bracketed(step)) };
        if start == 0 { way } else { format!("{start} + {way}") }
    }

    /// `row * step` microseconds as an interval, exactly.
    fn interval(self, step: i128) -> String {
        let micros = self.number(0, step, 0);
        if step.saturating_mul(i128::from(self.rows)).abs() < EXACT {
            return match (step % HOUR, step % 1_000_000) {
                (0, _) => format!("row * interval '{} hours'", step / HOUR),
                (_, 0) => format!("row * interval '{} seconds'", step / 1_000_000),
                _ => format!("row * interval '{step} microseconds'"),
            };
        }
        format!("({micros}) / {HOUR} * interval '1 hour' + ({micros}) % {HOUR} * interval '1 microsecond'")
    }

    fn template(self, parts: &[TemplatePart]) -> String {
        let text = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => literal(text),
            TemplatePart::Row { divide, modulo, multiply, add, pad } => {
                let quotient = if *divide > i64::MAX.unsigned_abs() {
                    "0::bigint".to_owned()
                } else if *divide > 1 {
                    format!("row / {divide}")
                } else {
                    "row".to_owned()
                };
                let top = self.rows.saturating_sub(1) / (*divide).max(1);
                let (rest, top) = if *modulo == 0 || *modulo > top {
                    (quotient, top)
                } else {
                    (format!("{quotient} % {modulo}"), *modulo - 1)
                };
                padded(&scaled(&rest, top, *multiply, *add), ends(top, *multiply, *add), *pad)
            }
        };
        if parts.is_empty() { literal("") } else { parts.iter().map(text).collect::<Vec<_>>().join(" || ") }
    }
}

/// Smallest and largest of `rest * multiply + add` for `rest` from 0 to `top`.
fn ends(top: u64, multiply: i64, add: i64) -> (i128, i128) {
    let (first, last) = (i128::from(add), i128::from(top) * i128::from(multiply) + i128::from(add));
    (first.min(last), first.max(last))
}

/// `rest * multiply + add` as bigint, or as numeric where that would leave the type.
fn scaled(rest: &str, top: u64, multiply: i64, add: i64) -> String {
    let fits = |number: i128| number.abs() < i128::from(i64::MAX);
    if !fits(i128::from(top) * i128::from(multiply))
        || !fits(ends(top, multiply, add).0)
        || !fits(ends(top, multiply, add).1)
    {
        return format!("({rest})::numeric * {} + {}", bracketed(multiply.into()), bracketed(add.into()));
    }
    let product =
        if multiply == 1 { rest.to_owned() } else { format!("({rest}) * {}", bracketed(multiply.into())) };
    if add == 0 { product } else { format!("{product} + {}", bracketed(add.into())) }
}

/// The number as text with at least `pad` digits; the sign stands before them.
fn padded(number: &str, (low, high): (i128, i128), pad: u8) -> String {
    if pad == 0 {
        return format!("({number})::text");
    }
    let longest = high.unsigned_abs().max(low.unsigned_abs()).to_string().len();
    match (low < 0, longest <= usize::from(pad)) {
        (false, true) => format!("lpad(({number})::text, {pad}, '0')"),
        (false, false) => format!("lpad(({number})::text, greatest({pad}, length(({number})::text)), '0')"),
        (true, _) => format!(
            "CASE WHEN {number} < 0 THEN '-' ELSE '' END || lpad(abs({number})::text, greatest({pad}, length(abs({number})::text)), '0')"
        ),
    }
}

fn bracketed(number: i128) -> String {
    if number < 0 { format!("({number})") } else { number.to_string() }
}

/// `1234` with two digits after the point: `12.34`.
fn decimal(number: i128, scale: u32) -> String {
    let digits = number.unsigned_abs().to_string();
    let scale = scale as usize;
    let digits = if digits.len() <= scale { format!("{digits:0>width$}", width = scale + 1) } else { digits };
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if number < 0 { "-" } else { "" };
    format!("'{sign}{whole}{point}{fraction}'")
}

fn literal(text: &str) -> String {
    let mut out = String::new();
    quote(text, &mut out);
    out + "::text"
}

fn constant(value: Value<'_>, kind: &ColumnType) -> String {
    let mut spelling = Spelling::default();
    let mut out = String::new();
    match spelling.of(value, kind) {
        None => out.push_str("NULL"),
        Some(spelled) => quote(spelled.text, &mut out),
    }
    let array = if matches!(kind, ColumnType::Array(_)) { "[]" } else { "" };
    format!("{out}::{}{array}", base_name(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::TableGenerator;
    use crate::model::{Column, Generator, Persistence, Scalar, Table};

    fn sequence(start: &str, step: f64) -> Generator {
        Generator::Sequence { start: Scalar::Text(start.to_owned()), step }
    }

    fn translated(kind: ColumnType, nulls: f64, generator: Generator) -> Option<String> {
        let column =
            Column { name: "c".to_owned(), kind, sql_type: String::new(), not_null: false, nulls, generator };
        let computable = column.computable().is_ok();
        let table = Table {
            name: "t".to_owned(),
            copies: Vec::new(),
            columns: vec![column],
            persistence: Persistence::Logged,
            partitioned: false,
            rows: 1000,
            seed: 1,
        };
        let generator = TableGenerator::new(&table).unwrap();
        let made = expressions(&generator, &BTreeMap::new()).ok();
        assert_eq!(made.is_some(), computable, "the rule for files and the translation differ: {made:?}");
        made.map(|mut made| made.remove(0))
    }

    #[test]
    fn expressions_are_short_and_exact() {
        let row = |pad, add| {
            Generator::Template(vec![
                TemplatePart::Text("it's ".to_owned()),
                TemplatePart::Row { divide: 10, modulo: 7, multiply: -2, add, pad },
            ])
        };
        let cases = [
            (ColumnType::Int4, sequence("1000000", 1.0), "1000000 + row"),
            (ColumnType::Int8, sequence("0", -3.0), "row * (-3)"),
            (
                ColumnType::Int8,
                sequence("9223372036854775807", -9e15),
                "'9223372036854775807'::numeric + row * '-9000000000000000'::numeric",
            ),
            (
                ColumnType::Numeric { precision: None, scale: 0 },
                sequence("0.5", 0.25),
                "'0.50'::numeric + row * '0.25'::numeric",
            ),
            (ColumnType::Date, sequence("2024-01-01", 1.0), "'2024-01-01'::date + (row)::integer"),
            (
                ColumnType::Timestamptz,
                sequence("2024-01-01", 1.5),
                "'2024-01-01 00:00:00+00'::timestamptz + row * interval '1500000 microseconds'",
            ),
            (ColumnType::Text, row(0, 50), "'it''s '::text || ((row / 10 % 7) * (-2) + 50)::text"),
            (
                ColumnType::Text,
                row(3, 50),
                "'it''s '::text || lpad(((row / 10 % 7) * (-2) + 50)::text, 3, '0')",
            ),
            (ColumnType::Int4, Generator::Constant(Scalar::Null), "NULL::integer"),
            (ColumnType::Bool, Generator::Constant(Scalar::Bool(true)), "'t'::boolean"),
        ];
        for (kind, generator, expected) in cases {
            assert_eq!(translated(kind, 0.0, generator).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_drawn_at_random_is_not_translated() {
        let uniform = || Generator::Uniform { min: Scalar::Int(0), max: Scalar::Int(9) };
        let array = |min, element| Generator::Array { min, max: 2, element: Box::new(element) };
        let ints = ColumnType::Array(Box::new(ColumnType::Int4));
        let document = |kind, member| Generator::Object(vec![("k".to_owned(), kind, member)]);
        assert_eq!(translated(ColumnType::Int4, 0.5, sequence("0", 1.0)), None);
        assert_eq!(translated(ColumnType::Int4, 0.0, uniform()), None);
        assert_eq!(translated(ColumnType::Uuid, 0.0, Generator::UuidV4), None);
        assert_eq!(translated(ints.clone(), 0.0, array(1, sequence("0", 1.0))), None);
        assert_eq!(translated(ints.clone(), 0.0, array(2, uniform())), None);
        assert!(translated(ints, 0.0, array(2, sequence("0", 1.0))).is_some());
        assert_eq!(translated(ColumnType::Jsonb, 0.0, document(ColumnType::Int8, uniform())), None);
        assert_eq!(
            translated(ColumnType::Jsonb, 0.0, document(ColumnType::Float8, sequence("0", 1.0))),
            None
        );
        assert!(translated(ColumnType::Jsonb, 0.0, document(ColumnType::Int8, sequence("0", 1.0))).is_some());
    }
}
