//! Single values, and values that may be written as a word or as a map.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::model::Scalar;

/// One value: text, number, `true`, `false` or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Single(pub Scalar);

/// Something that may be written as just its name, or as a map with its keys.
#[derive(Debug, Clone, PartialEq)]
pub struct NameOr<T>(pub T);

/// One value or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOrMany {
    /// The values.
    pub values: Vec<String>,
    /// Whether they were written as a list.
    pub is_list: bool,
}

/// A number of characters or elements: `20`, or `{min: 10, max: 30}`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Length {
    /// Fewest.
    pub min: u32,
    /// Most.
    pub max: u32,
}

struct SingleVisitor;

impl<'de> Deserialize<'de> for Single {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SingleVisitor)
    }
}

impl Visitor<'_> for SingleVisitor {
    type Value = Single;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a single value: text, number, `true`, `false`")
    }

    fn visit_unit<E>(self) -> Result<Single, E> {
        Ok(Single(Scalar::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Single, E> {
        Ok(Single(Scalar::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Single, E> {
        Ok(Single(Scalar::Int(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Single, E> {
        let value =
            i64::try_from(value).map_err(|_| E::custom(format!("{value} is larger than {}", i64::MAX)))?;
        Ok(Single(Scalar::Int(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Single, E> {
        Ok(Single(Scalar::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Single, E> {
        Ok(Single(Scalar::Text(value.to_owned())))
    }
}

impl JsonSchema for Single {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One value: text, number, true, false or nothing.",
            "type": ["string", "number", "boolean", "null"]
        })
    }
}

impl<'de, T: Deserialize<'de> + From<String>> Deserialize<'de> for NameOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrVisitor(PhantomData))
    }
}

struct NameOrVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + From<String>> Visitor<'de> for NameOrVisitor<T> {
    type Value = NameOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or text, or a map with more keys")
    }

    fn visit_str<E>(self, value: &str) -> Result<NameOr<T>, E> {
        Ok(NameOr(T::from(value.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NameOr<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(NameOr)
    }
}

impl<T: JsonSchema> JsonSchema for NameOr<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("NameOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let map = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{"type": "string"}, map] })
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor)
    }
}

struct OneOrManyVisitor;

impl<'de> Visitor<'de> for OneOrManyVisitor {
    type Value = OneOrMany;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a list of names")
    }

    fn visit_str<E>(self, value: &str) -> Result<OneOrMany, E> {
        Ok(OneOrMany { values: vec![value.to_owned()], is_list: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMany, A::Error> {
        let values = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(OneOrMany { values, is_list: true })
    }
}

impl JsonSchema for OneOrMany {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
        })
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LengthVisitor)
    }
}

/// The map form of a length.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LengthRange {
    /// Fewest.
    min: u32,
    /// Most.
    max: u32,
}

struct LengthVisitor;

impl<'de> Visitor<'de> for LengthVisitor {
    type Value = Length;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a length such as `20`, or `{min: 10, max: 30}`")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Length, E> {
        let value = u32::try_from(value).map_err(|_| E::custom(format!("{value} is too long")))?;
        Ok(Length { min: value, max: value })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Length, A::Error> {
        let range = LengthRange::deserialize(MapAccessDeserializer::new(map))?;
        if range.min > range.max {
            return Err(A::Error::custom(format!("min {} is greater than max {}", range.min, range.max)));
        }
        Ok(Length { min: range.min, max: range.max })
    }
}

impl JsonSchema for Length {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let range = generator.subschema_for::<LengthRange>();
        json_schema!({ "anyOf": [{"type": "integer", "minimum": 0}, range] })
    }
}
