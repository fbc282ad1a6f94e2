//! `values`: how the values of a column are made.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::scalar::{Length, Single};
use crate::model::Scalar;
use crate::spec::bind::complaint;
use crate::spec::units::{Count, Share};

/// A constant, or a map with exactly one generator and optionally `nulls`.
#[derive(Debug, Clone)]
pub enum ValueFile {
    /// The same value in every row.
    Constant(Scalar),
    /// A generator.
    Made(Box<GeneratorFile>),
}

/// Exactly one generator, and optionally the share of nulls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorFile {
    /// The same value in every row.
    pub constant: Option<Single>,
    /// `start + row * step`; days for dates, seconds for timestamps.
    pub sequence: Option<SequenceFile>,
    /// The numbers `start` to `start + rows - 1`, each once, in a seeded random order.
    pub shuffle: Option<ShuffleFile>,
    /// Evenly distributed between two bounds, both included.
    pub uniform: Option<UniformFile>,
    /// Skewed: whole numbers, the k-th with a probability proportional to `1 / k^exponent`.
    pub zipf: Option<ZipfFile>,
    /// Normally distributed.
    pub normal: Option<NormalFile>,
    /// One of several values: a list, or a map from values to weights.
    pub choice: Option<ChoiceFile>,
    /// Text with the row number in it: `"order-{{ row }}"`, `"{{ row % 100 | pad(3) }}"`.
    pub template: Option<String>,
    /// Random text of a length and compressibility.
    pub text: Option<ShapeFile>,
    /// Random bytes of a length and compressibility.
    pub bytes: Option<ShapeFile>,
    /// Random (`v4`) or time-ordered (`v7`) UUIDs.
    pub uuid: Option<UuidWord>,
    /// An array of generated elements.
    pub array: Option<ArrayFile>,
    /// For `bytea`: the numbers of a `float4[]` or `float8[]` column of the same row, as big-endian IEEE 754.
    pub floats_of: Option<String>,
    /// A JSON object with a generator for each key.
    #[schemars(with = "Option<BTreeMap<String, ValueFile>>")]
    pub object: Option<IndexMap<String, ValueFile>>,
    /// Share of rows that are NULL, such as `10%`.
    pub nulls: Option<Share>,
}

/// `start + row * step`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceFile {
    /// Value of the first row. Default 1; dates and timestamps 2024-01-01.
    pub start: Option<Single>,
    /// Added for every row: days for dates, seconds for timestamps. Default 1.
    pub step: Option<f64>,
}

/// Each number once, in random order.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShuffleFile {
    /// Smallest value. Default 1.
    pub start: Option<Single>,
}

/// Evenly distributed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UniformFile {
    /// Smallest value.
    pub min: Single,
    /// Largest value.
    pub max: Single,
}

/// Zipf distributed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZipfFile {
    /// Number of distinct values.
    pub n: Count,
    /// Skew, greater than 0. Default 1.
    pub exponent: Option<f64>,
    /// Most frequent value. Default 1.
    pub start: Option<i64>,
}

/// Normally distributed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NormalFile {
    /// Mean.
    pub mean: f64,
    /// Standard deviation, 0 or more.
    pub deviation: f64,
}

/// Length and compressibility.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShapeFile {
    /// Characters (bytes for bytea): a number, or `{min, max}`.
    pub length: Length,
    /// 0 for text that does not compress, 1 for one repeated letter. Default 0.
    pub compressibility: Option<Share>,
}

/// An array.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayFile {
    /// Elements: a number, or `{min, max}`.
    pub length: Length,
    /// How each element is made.
    pub of: ValueFile,
}

/// Versions of UUIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UuidWord {
    /// Random.
    V4,
    /// Time-ordered.
    V7,
}

/// Values with weights; no weights means all alike.
#[derive(Debug, Clone)]
pub struct ChoiceFile {
    /// The values.
    pub values: Vec<Scalar>,
    /// Their weights, or none.
    pub weights: Vec<f64>,
}

impl<'de> Deserialize<'de> for ValueFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = ValueFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a constant, or a map with one generator such as `{sequence: {start: 1}}`")
    }

    fn visit_unit<E>(self) -> Result<ValueFile, E> {
        Ok(ValueFile::Constant(Scalar::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<ValueFile, E> {
        Ok(ValueFile::Constant(Scalar::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ValueFile, E> {
        Ok(ValueFile::Constant(Scalar::Int(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<ValueFile, E> {
        let value =
            i64::try_from(value).map_err(|_| E::custom(format!("{value} is larger than {}", i64::MAX)))?;
        self.visit_i64(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<ValueFile, E> {
        Ok(ValueFile::Constant(Scalar::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<ValueFile, E> {
        Ok(ValueFile::Constant(Scalar::Text(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<ValueFile, A::Error> {
        let expected = "a constant, or a map with one generator such as `{sequence: {start: 1}}`";
        let hint =
            "write `{choice: [...]}` for one of several values, `{array: {length: 3, of: ...}}` for an array";
        Err(A::Error::custom(complaint("a list does not fit here", expected, Some(hint))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ValueFile, A::Error> {
        let made = GeneratorFile::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ValueFile::Made(Box::new(made)))
    }
}

impl JsonSchema for ValueFile {
    fn schema_name() -> Cow<'static, str> {
        "ColumnValues".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let single = generator.subschema_for::<Single>();
        let made = generator.subschema_for::<GeneratorFile>();
        json_schema!({
            "description": "A constant, or a map with exactly one generator and optionally `nulls`.",
            "anyOf": [single, made]
        })
    }
}

impl<'de> Deserialize<'de> for ChoiceFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor)
    }
}

struct ChoiceVisitor;

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = ChoiceFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values, or a map from values to weights")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ChoiceFile, A::Error> {
        let values: Vec<Single> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(ChoiceFile { values: values.into_iter().map(|value| value.0).collect(), weights: Vec::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ChoiceFile, A::Error> {
        let weighted: IndexMap<String, f64> = IndexMap::deserialize(MapAccessDeserializer::new(map))?;
        let (values, weights) = weighted.into_iter().map(|(value, weight)| (plain(&value), weight)).unzip();
        Ok(ChoiceFile { values, weights })
    }
}

/// A map key as the value it would be outside a key.
fn plain(key: &str) -> Scalar {
    match (key, key.parse::<i64>(), key.parse::<f64>()) {
        ("true", ..) => Scalar::Bool(true),
        ("false", ..) => Scalar::Bool(false),
        ("null", ..) => Scalar::Null,
        (_, Ok(value), _) => Scalar::Int(value),
        (_, _, Ok(value)) if value.is_finite() => Scalar::Float(value),
        _ => Scalar::Text(key.to_owned()),
    }
}

impl JsonSchema for ChoiceFile {
    fn schema_name() -> Cow<'static, str> {
        "Choice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let single = generator.subschema_for::<Single>();
        json_schema!({
            "anyOf": [
                {"type": "array", "minItems": 1, "items": single},
                {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number", "exclusiveMinimum": 0}}
            ]
        })
    }
}
