//! `design`: factors, levels, blocks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::scalar::Single;
use crate::spec::units::{Share, Span};

/// What is varied, how often, and in which seeded order.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesignFile {
    /// The factors. Every combination of their levels is a treatment; the first level is the reference.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Levels>")]
    pub factors: IndexMap<String, Levels>,
    /// Treatments added to the crossing; each names a level of every factor.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Single>>")]
    pub include: Vec<IndexMap<String, Single>>,
    /// Combinations taken out of the crossing: `{storage: unlogged, batch: 1}`.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Single>>")]
    pub exclude: Vec<IndexMap<String, Single>>,
    /// How many blocks (one trial of every treatment each): a number, or `{min, max, until, budget}`. Default 6.
    pub blocks: Option<BlocksFile>,
    /// Seed of the order of trials and of generated rows. Default 1.
    pub seed: Option<u64>,
}

/// The levels of a factor: a list of values, or names with a value or several values each.
#[derive(Debug, Clone)]
pub struct Levels(pub Vec<(String, LevelFile)>);

/// One level.
#[derive(Debug, Clone)]
pub enum LevelFile {
    /// A value.
    Value(Single),
    /// Several values that vary together: `{{ factor.key }}`.
    Values(IndexMap<String, Single>),
}

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelsVisitor)
    }
}

struct LevelsVisitor;

impl<'de> Visitor<'de> for LevelsVisitor {
    type Value = Levels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of levels such as `[1, 500]`, or a map from level names to values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Levels, A::Error> {
        let values: Vec<Single> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Levels(values.into_iter().map(|value| (value.0.to_string(), LevelFile::Value(value))).collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Levels, A::Error> {
        let levels: IndexMap<String, LevelFile> = IndexMap::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Levels(levels.into_iter().collect()))
    }
}

impl JsonSchema for Levels {
    fn schema_name() -> Cow<'static, str> {
        "Levels".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let single = generator.subschema_for::<Single>();
        json_schema!({
            "description": "A list of values, or names with a value or several values each.",
            "anyOf": [
                {"type": "array", "minItems": 1, "items": single},
                {"type": "object", "minProperties": 1, "additionalProperties": {
                    "anyOf": [single, {"type": "object", "additionalProperties": single}]
                }}
            ]
        })
    }
}

impl<'de> Deserialize<'de> for LevelFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = LevelFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or a map of values that vary together")
    }

    fn visit_bool<E>(self, value: bool) -> Result<LevelFile, E> {
        Ok(LevelFile::Value(Single(crate::model::Scalar::Bool(value))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<LevelFile, E> {
        Ok(LevelFile::Value(Single(crate::model::Scalar::Int(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<LevelFile, E> {
        let value =
            i64::try_from(value).map_err(|_| E::custom(format!("{value} is larger than {}", i64::MAX)))?;
        self.visit_i64(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<LevelFile, E> {
        Ok(LevelFile::Value(Single(crate::model::Scalar::Float(value))))
    }

    fn visit_str<E>(self, value: &str) -> Result<LevelFile, E> {
        Ok(LevelFile::Value(Single(crate::model::Scalar::Text(value.to_owned()))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LevelFile, A::Error> {
        IndexMap::deserialize(MapAccessDeserializer::new(map)).map(LevelFile::Values)
    }
}

/// A number of blocks, or the rule that decides it.
#[derive(Debug, Clone, Copy)]
pub enum BlocksFile {
    /// Exactly so many.
    Fixed(u32),
    /// Until the answer is sharp enough.
    Until(BlocksRule),
}

/// Between `min` and `max` blocks, ending early when the answer is sharp enough or the time is used up.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlocksRule {
    /// At least this many. Default 6.
    pub min: Option<u32>,
    /// At most this many.
    pub max: u32,
    /// Stop when every interval in question lies within this share of its ratio, such as `3%`: with claims those that verdicts
    /// rest on, else those of all effects.
    pub until: Option<Share>,
    /// Stop when this time has been used, such as `30m`.
    pub budget: Option<Span>,
}

impl<'de> Deserialize<'de> for BlocksFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlocksVisitor)
    }
}

struct BlocksVisitor;

impl<'de> Visitor<'de> for BlocksVisitor {
    type Value = BlocksFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of blocks such as `6`, or `{min: 6, max: 20, until: 3%, budget: 30m}`")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<BlocksFile, E> {
        u32::try_from(value)
            .map(BlocksFile::Fixed)
            .map_err(|_| E::custom(format!("{value} blocks are too many")))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BlocksFile, A::Error> {
        BlocksRule::deserialize(MapAccessDeserializer::new(map)).map(BlocksFile::Until)
    }
}

impl JsonSchema for BlocksFile {
    fn schema_name() -> Cow<'static, str> {
        "Blocks".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rule = generator.subschema_for::<BlocksRule>();
        json_schema!({ "anyOf": [{"type": "integer", "minimum": 1}, rule] })
    }
}
