//! `needs`: what an experiment asks of the machine.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::words;
use crate::model::{Backend, Bound, Relation};
use crate::spec::bind::complaint;
use crate::spec::units::{Size, parse_count, parse_size};

/// What the machine must have; a treatment whose needs are not met is not run, and the results say why.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedsFile {
    /// CPUs that loadlab may use: `">= 4"`.
    pub cores: Option<CountBound>,
    /// Physical memory: `">= 8GB"`.
    pub memory: Option<SizeBound>,
    /// Free space where servers keep their data (loadlab's cache folder): `">= 20GB"`.
    pub disk: Option<SizeBound>,
    /// Major version of the server: `">= 17"`.
    pub version: Option<CountBound>,
    /// Where the server runs. Without `--on`, that backend is then taken.
    pub backend: Option<BackendWord>,
    /// `true`: loadlab must run as root, for what only root may do (dropping caches).
    pub root: Option<bool>,
    /// Programs on the search path or beside a local server: `[pg_dump, pgbench]`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Block sizes that local servers must have been built with (`loadlab env build`): `[4kB, 8kB]`.
    #[serde(default)]
    pub block_sizes: Vec<Size>,
}

words! {
    /// Where a server runs.
    BackendWord => Backend {
        /// A container.
        Container => Backend::Container,
        /// A cluster from programs of this machine.
        Local => Backend::Local,
        /// A server that already runs.
        External => Backend::External,
    }
}

/// A number with a relation: `">= 4"`, `"< 18"`; a bare number means at least that many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountBound(pub Bound);

/// A size with a relation: `">= 8GB"`; a bare size means at least that much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeBound(pub Bound);

const COUNT: &str = "a number with `>=`, `>`, `<=`, `<` or `=` before it, such as `\">= 4\"`";
const SIZE: &str = "a size with `>=`, `>`, `<=`, `<` or `=` before it, such as `\">= 8GB\"`";

/// Number of a text without its relation; message and hint when it is none.
type Parse = fn(&str) -> Result<u64, (String, Option<String>)>;

fn bound(text: &str, parse: Parse) -> Result<Bound, (String, Option<String>)> {
    let text = text.trim();
    let sign =
        Relation::SIGNS.iter().find_map(|(sign, relation)| Some((text.strip_prefix(sign)?, *relation)));
    let (number, relation) = sign.unwrap_or((text, Relation::AtLeast));
    let value = parse(number.trim())?;
    let text = if sign.is_some() { text.to_owned() } else { format!(">= {text}") };
    Ok(Bound { relation, value, text })
}

struct BoundVisitor {
    expecting: &'static str,
    parse: Parse,
}

impl Visitor<'_> for BoundVisitor {
    type Value = Bound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Bound, E> {
        Ok(Bound { relation: Relation::AtLeast, value, text: format!(">= {value}") })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Bound, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Bound, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bound, E> {
        bound(text, self.parse)
            .map_err(|(message, hint)| E::custom(complaint(&message, self.expecting, hint.as_deref())))
    }
}

impl<'de> Deserialize<'de> for CountBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse: Parse = |text| parse_count(text).map_err(|(message, _, hint)| (message, hint));
        deserializer.deserialize_any(BoundVisitor { expecting: COUNT, parse }).map(Self)
    }
}

impl<'de> Deserialize<'de> for SizeBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse: Parse = |text| parse_size(text).map_err(|(message, _, hint)| (message, hint));
        deserializer.deserialize_any(BoundVisitor { expecting: SIZE, parse }).map(Self)
    }
}

macro_rules! bound_schema {
    ($type:ty, $name:literal, $pattern:literal, $description:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $description,
                    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": $pattern}]
                })
            }
        }
    };
}

bound_schema!(CountBound, "CountBound", r"^(>=|<=|==?|>|<)? *[0-9][0-9_]*$", COUNT);
bound_schema!(SizeBound, "SizeBound", r"^(>=|<=|==?|>|<)? *[0-9][0-9_]*(B|kB|MB|GB|TB)?$", SIZE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_with_and_without_a_relation() {
        let read = |text| bound(text, |text| parse_size(text).map_err(|(message, _, hint)| (message, hint)));
        let at_least = read("8GB").expect("a size");
        assert_eq!(
            (at_least.relation, at_least.value, at_least.text.as_str()),
            (Relation::AtLeast, 8 << 30, ">= 8GB")
        );
        let less = read("< 1MB").expect("a size");
        assert_eq!((less.relation, less.value), (Relation::LessThan, 1 << 20));
        assert_eq!(read("=16").expect("a size").relation, Relation::Exactly);
        assert_eq!(
            read(">= 8gb").expect_err("case").1.as_deref(),
            Some("units are case-sensitive; write `8GB`")
        );
        for wrong in ["", ">=", "> -1", "=> 4", "much"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
