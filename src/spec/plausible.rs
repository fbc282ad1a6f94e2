//! Which generators go with which types: what is possible, and what a column gets that is not named.

use crate::model::{ColumnType, Generator, Scalar, TextShape};
use crate::spec::fits::is_text;
use crate::spec::wire::values::{GeneratorFile, ValueFile};

/// Names of the generators that are given.
pub(super) fn given(file: &GeneratorFile) -> Vec<&'static str> {
    let all = [
        ("constant", file.constant.is_some()),
        ("sequence", file.sequence.is_some()),
        ("shuffle", file.shuffle.is_some()),
        ("uniform", file.uniform.is_some()),
        ("zipf", file.zipf.is_some()),
        ("normal", file.normal.is_some()),
        ("choice", file.choice.is_some()),
        ("template", file.template.is_some()),
        ("text", file.text.is_some()),
        ("bytes", file.bytes.is_some()),
        ("uuid", file.uuid.is_some()),
        ("array", file.array.is_some()),
        ("floats_of", file.floats_of.is_some()),
        ("object", file.object.is_some()),
    ];
    all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
}

/// Generators that can make values of a type, besides `constant`.
fn makers(kind: &ColumnType) -> &'static [&'static str] {
    match kind {
        ColumnType::Bool => &["choice"],
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => {
            &["sequence", "shuffle", "uniform", "zipf", "normal", "choice"]
        }
        ColumnType::Float4 | ColumnType::Float8 | ColumnType::Numeric { .. } => {
            &["sequence", "uniform", "normal", "choice"]
        }
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) => &["template", "text", "choice"],
        ColumnType::Bytea => &["bytes", "floats_of", "choice"],
        ColumnType::Date | ColumnType::Timestamp | ColumnType::Timestamptz => {
            &["sequence", "uniform", "choice"]
        }
        ColumnType::Uuid => &["uuid", "choice"],
        ColumnType::Jsonb | ColumnType::Json => &["object", "choice"],
        ColumnType::Array(_) => &["array"],
    }
}

pub(super) fn suits(name: &str, kind: &ColumnType) -> bool {
    makers(kind).contains(&name) || (name == "constant" && !matches!(kind, ColumnType::Array(_)))
}

pub(super) fn suitable(kind: &ColumnType) -> String {
    crate::spec::suggest::one_of(makers(kind).iter().copied())
}

pub(super) fn other_generator(name: &str, kind: &ColumnType) -> Option<String> {
    match (name, kind) {
        ("sequence" | "shuffle", kind) if is_text(kind) => {
            Some("write `{template: \"{{ row }}\"}` for numbered texts".to_owned())
        }
        ("text", ColumnType::Bytea) => Some("write `bytes` instead of `text`".to_owned()),
        ("bytes", kind) if is_text(kind) => Some("write `text` instead of `bytes`".to_owned()),
        _ => None,
    }
}

pub(super) fn max_length(kind: &ColumnType) -> Option<u32> {
    match kind {
        ColumnType::Varchar(length) => *length,
        ColumnType::Char(length) => Some(*length),
        _ => None,
    }
}

/// Where a sequence starts without a word about it.
pub(super) fn first_of(kind: &ColumnType) -> Scalar {
    match kind {
        ColumnType::Date => Scalar::Text("2024-01-01".to_owned()),
        ColumnType::Timestamp => Scalar::Text("2024-01-01T00:00:00".to_owned()),
        ColumnType::Timestamptz => Scalar::Text("2024-01-01T00:00:00Z".to_owned()),
        _ => Scalar::Int(1),
    }
}

/// The generator of a column that is not named: a sequence for a primary key (`key`), else values of the
/// type that neither compress to nothing nor repeat.
#[must_use]
pub fn plausible(kind: &ColumnType, key: bool) -> Generator {
    let uniform = |min: i64, max: i64| Generator::Uniform { min: Scalar::Int(min), max: Scalar::Int(max) };
    let shape = |min: u32, max: u32| {
        Generator::Random(TextShape { min_length: min, max_length: max, compressibility: 0.0 })
    };
    match kind {
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 if key => {
            Generator::Sequence { start: Scalar::Int(1), step: 1.0 }
        }
        ColumnType::Bool => {
            Generator::Choice { values: vec![Scalar::Bool(true), Scalar::Bool(false)], weights: Vec::new() }
        }
        ColumnType::Int2 => uniform(0, 9_999),
        ColumnType::Int4 => uniform(0, 999_999),
        ColumnType::Int8 => uniform(0, 999_999_999),
        ColumnType::Float4 | ColumnType::Float8 => {
            Generator::Uniform { min: Scalar::Float(0.0), max: Scalar::Float(1.0) }
        }
        ColumnType::Numeric { precision, scale } => {
            let digits = precision.map_or(4, |precision| precision.saturating_sub(*scale).min(4));
            uniform(0, 10_i64.pow(digits) - 1)
        }
        ColumnType::Varchar(Some(length)) => shape(16.min(*length), 32.min(*length)),
        ColumnType::Text | ColumnType::Varchar(None) | ColumnType::Bytea => shape(16, 32),
        ColumnType::Char(length) => shape(*length, *length),
        ColumnType::Date => {
            Generator::Uniform { min: first_of(kind), max: Scalar::Text("2024-12-31".to_owned()) }
        }
        ColumnType::Timestamp | ColumnType::Timestamptz => {
            Generator::Sequence { start: first_of(kind), step: 1.0 }
        }
        ColumnType::Uuid => Generator::UuidV4,
        ColumnType::Jsonb | ColumnType::Json => Generator::Object(vec![
            ("id".to_owned(), ColumnType::Int8, plausible(&ColumnType::Int8, true)),
            ("name".to_owned(), ColumnType::Text, shape(8, 16)),
        ]),
        ColumnType::Array(element) => {
            Generator::Array { min: 3, max: 3, element: Box::new(plausible(element, false)) }
        }
    }
}

/// The type that a value inside a JSON object has, read from its generator.
pub(super) fn kind_of(value: &ValueFile) -> ColumnType {
    let of_scalar = |value: &Scalar| match value {
        Scalar::Bool(_) => ColumnType::Bool,
        Scalar::Int(_) => ColumnType::Int8,
        Scalar::Float(_) => ColumnType::Float8,
        Scalar::Null | Scalar::Text(_) => ColumnType::Text,
    };
    let file = match value {
        ValueFile::Constant(value) => return of_scalar(value),
        ValueFile::Made(file) => file,
    };
    if let Some(constant) = &file.constant {
        return of_scalar(&constant.0);
    }
    if let Some(uniform) = &file.uniform {
        return of_scalar(&uniform.min.0);
    }
    if let Some(choice) = &file.choice {
        return choice.values.first().map_or(ColumnType::Text, of_scalar);
    }
    match given(file).first() {
        Some(&("sequence" | "shuffle" | "zipf")) => ColumnType::Int8,
        Some(&"normal") => ColumnType::Float8,
        Some(&"uuid") => ColumnType::Uuid,
        Some(&"object") => ColumnType::Jsonb,
        Some(&"array") => {
            let element = file.array.as_ref().map_or(ColumnType::Text, |array| kind_of(&array.of));
            ColumnType::Array(Box::new(element))
        }
        _ => ColumnType::Text,
    }
}
