//! A tree of placed values into ordinary `#[derive(Deserialize)]` types, with a place for every error.
//!
//! A derived `Deserialize` stops at its first error. To find all mistakes in one pass, [`bind`] marks
//! the value that was wrong as [`Value::Broken`], which every reader below skips, and tries again.
//! Errors that only follow from a broken value are not reported.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, Unexpected, Visitor};

use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::{Node, Place, Value};
use crate::spec::units::parse_count;

/// Separates message, expectation and hint inside the text of a custom error.
const SEPARATOR: char = '\u{1f}';

/// Text for `Error::custom` that carries an expectation and a hint besides its message.
#[must_use]
pub fn complaint(message: &str, expected: &str, hint: Option<&str>) -> String {
    format!("{message}{SEPARATOR}{expected}{SEPARATOR}{}", hint.unwrap_or_default())
}

/// Binds a tree to a type; every mistake goes to `found`. Also gives the tree with what was wrong
/// marked as broken, so that a caller can tell which list elements were left out.
pub fn bind<'n, T: DeserializeOwned>(root: &'n Node, found: &mut Diagnostics) -> (Option<T>, Cow<'n, Node>) {
    let mut tree = Cow::Borrowed(root);
    loop {
        match T::deserialize(Reader { node: &tree }) {
            Ok(value) => return (Some(value), tree),
            Err(error) => {
                let path = error.path.clone();
                if let Some(diagnostic) = error.into_diagnostic(&tree) {
                    found.push(diagnostic);
                }
                if path.is_empty() {
                    return (None, tree);
                }
                break_at(tree.to_mut(), &path);
            }
        }
    }
}

fn break_at(root: &mut Node, innermost_first: &[usize]) {
    let mut node = root;
    for index in innermost_first.iter().rev() {
        node = match &mut node.value {
            Value::List(items) => &mut items[*index],
            Value::Map(entries) => &mut entries[*index].1,
            _ => return,
        };
    }
    node.value = Value::Broken;
}

/// What is wrong, and on the way out of the tree also where.
#[derive(Debug)]
pub struct BindError {
    kind: Kind,
    place: Option<Place>,
    /// Child numbers from the wrong value up to the root.
    path: Vec<usize>,
}

#[derive(Debug)]
enum Kind {
    Complaint { message: String, expected: Option<String>, hint: Option<String> },
    UnknownKey { key: String, allowed: &'static [&'static str] },
    MissingKey(&'static str),
    /// Follows from a value that was reported already.
    Silent,
}

impl BindError {
    fn of(kind: Kind) -> Self {
        Self { kind, place: None, path: Vec::new() }
    }

    fn complain(message: String, expected: impl Into<String>, hint: Option<String>) -> Self {
        Self::of(Kind::Complaint { message, expected: Some(expected.into()), hint })
    }

    /// The error seen from the parent, which knows key and number of the child.
    fn inside(mut self, index: usize, key: Option<&str>, child: &Node, key_place: Option<&Place>) -> Self {
        if self.place.is_none() {
            let container = matches!(child.value, Value::List(_) | Value::Map(_) | Value::Null | Value::Broken);
            self.place = match (container, key_place) {
                (true, Some(place)) => Some(place.clone()),
                _ => Some(child.place.first_line()),
            };
            if let (Kind::Complaint { message, .. }, Some(key)) = (&mut self.kind, key) {
                *message = format!("`{key}`: {message}");
            }
        }
        self.path.push(index);
        self
    }

    fn into_diagnostic(self, root: &Node) -> Option<Diagnostic> {
        let place = self.place.unwrap_or_else(|| root.place.first_line());
        match self.kind {
            Kind::Silent => None,
            Kind::Complaint { message, expected, hint } => {
                let mut found = Diagnostic::new(place, message).maybe_hint(hint);
                found.expected = expected;
                Some(found)
            }
            Kind::UnknownKey { key, allowed } => Some(
                Diagnostic::new(place, format!("unknown key `{key}`"))
                    .expected(one_of(allowed.iter().copied()))
                    .maybe_hint(did_you_mean(&key, allowed.iter().copied())),
            ),
            Kind::MissingKey(key) => Some(Diagnostic::new(place, format!("the key `{key}` is missing here"))),
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Complaint { message, .. } => f.write_str(message),
            Kind::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            Kind::MissingKey(key) => write!(f, "the key `{key}` is missing"),
            Kind::Silent => f.write_str("a value that was found wrong before"),
        }
    }
}

impl std::error::Error for BindError {}

impl de::Error for BindError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        let mut parts = text.split(SEPARATOR);
        let message = parts.next().unwrap_or_default().to_owned();
        let mut rest = parts.map(|part| Some(part.to_owned()).filter(|part| !part.is_empty()));
        let expected = rest.next().flatten();
        Self::of(Kind::Complaint { message, expected, hint: rest.next().flatten() })
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::complain(format!("{} does not fit here", name_of(found)), expected.to_string(), None)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(word: &str, expected: &'static [&'static str]) -> Self {
        let hint = did_you_mean(word, expected.iter().copied());
        Self::complain(format!("unknown word `{word}`"), one_of(expected.iter().copied()), hint)
    }

    fn unknown_field(key: &str, allowed: &'static [&'static str]) -> Self {
        Self::of(Kind::UnknownKey { key: key.to_owned(), allowed })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::of(Kind::MissingKey(key))
    }
}

fn name_of(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => format!("{value:?}"),
        Unexpected::Str(value) => format!("\"{value}\""),
        Unexpected::Unit | Unexpected::Option => "an empty value".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        other => other.to_string(),
    }
}

/// Reads one node.
#[derive(Clone, Copy)]
struct Reader<'n> {
    node: &'n Node,
}

impl Reader<'_> {
    fn wrong(self, expected: &str) -> BindError {
        if matches!(self.node.value, Value::Broken) {
            return BindError::of(Kind::Silent);
        }
        let found = if matches!(self.node.value, Value::Null) { "an empty value".to_owned() } else { self.node.describe() };
        BindError::complain(format!("{found} does not fit here"), expected, None)
    }

    fn int(self, min: i128, max: i128) -> Result<i128, BindError> {
        let expected = if min == 0 { "a whole number of 0 or more" } else { "a whole number" };
        let value = match &self.node.value {
            Value::Int(value) => *value,
            Value::Text(text) => match text.trim().parse::<i64>() {
                Ok(value) => value.into(),
                Err(_) => parse_count(text)
                    .map_err(|(message, _, hint)| BindError::complain(message.replace("a count", "a whole number"), expected, hint))?
                    .into(),
            },
            Value::Float(value) => {
                let hint = (value.fract() == 0.0)
                    .then(|| format!("write `{value:.0}`; in a template `//` divides to a whole number"));
                return Err(BindError::complain(format!("{value:?} is not a whole number"), expected, hint));
            }
            _ => return Err(self.wrong(expected)),
        };
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        Err(BindError::complain(format!("{value} is out of range"), format!("a whole number from {min} to {max}"), None))
    }

    fn float(self) -> Result<f64, BindError> {
        match &self.node.value {
            #[expect(clippy::cast_precision_loss, reason = "a whole number where a fraction is allowed; 2^53 is enough")]
            Value::Int(value) => Ok(*value as f64),
            Value::Float(value) => Ok(*value),
            Value::Text(text) => match text.trim().parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(value),
                _ => Err(self.wrong("a number")),
            },
            _ => Err(self.wrong("a number")),
        }
    }

    fn bool(self) -> Result<bool, BindError> {
        match &self.node.value {
            Value::Bool(value) => Ok(*value),
            Value::Text(text) => match text.to_lowercase().as_str() {
                "true" | "on" | "yes" => Ok(true),
                "false" | "off" | "no" => Ok(false),
                _ => Err(self.wrong("`true` or `false`")),
            },
            _ => Err(self.wrong("`true` or `false`")),
        }
    }

    fn string(self) -> Result<String, BindError> {
        match &self.node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Int(value) => Ok(value.to_string()),
            Value::Float(value) => Ok(value.to_string()),
            Value::Bool(value) => Ok(value.to_string()),
            _ => Err(self.wrong("a text")),
        }
    }
}

macro_rules! read_ints {
    ($($method:ident $type:ident $visit:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
            let value = self.int($type::MIN.into(), $type::MAX.into())?;
            visitor.$visit($type::try_from(value).map_err(|_| self.wrong("a whole number"))?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = BindError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_u64(value),
                (_, Ok(value)) => visitor.visit_i64(value),
                _ => Err(self.wrong("a whole number of at most 64 bits")),
            },
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_str(value),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
            Value::Broken => Err(BindError::of(Kind::Silent)),
        }
    }

    read_ints!(
        deserialize_u8 u8 visit_u8, deserialize_u16 u16 visit_u16, deserialize_u32 u32 visit_u32,
        deserialize_u64 u64 visit_u64, deserialize_i8 i8 visit_i8, deserialize_i16 i16 visit_i16,
        deserialize_i32 i32 visit_i32, deserialize_i64 i64 visit_i64
    );

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        visitor.visit_bool(self.bool()?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, BindError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        match &self.node.value {
            Value::List(items) => visitor.visit_seq(ListReader { items, next: 0 }),
            _ => Err(self.wrong("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        match &self.node.value {
            Value::Map(entries) => visitor.visit_map(MapReader { entries, next: 0 }).map_err(|mut error| {
                let broken = |key: &str| {
                    entries.iter().any(|(name, node)| name.text == key && node.value == Value::Broken)
                };
                if error.path.is_empty() && matches!(error.kind, Kind::MissingKey(key) if broken(key)) {
                    error.kind = Kind::Silent;
                }
                error
            }),
            _ => Err(self.wrong("a map (`key: value`)")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BindError> {
        match &self.node.value {
            Value::Map(_) => self.deserialize_map(visitor),
            _ => Err(self.wrong(&format!("a map with {}", one_of(fields.iter().copied())))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BindError> {
        match &self.node.value {
            Value::Map(entries) if entries.len() == 1 => {
                let (key, content) = &entries[0];
                if content.value == Value::Broken {
                    return Err(BindError::of(Kind::Silent));
                }
                let variant = Variant { word: &key.text, word_place: &key.place, content: Some(content), place: &self.node.place };
                visitor.visit_enum(variant)
            }
            Value::Map(entries) => {
                let message = format!("{} keys where exactly one belongs", entries.len());
                Err(BindError::complain(message, format!("one of {}", one_of(variants.iter().copied())), None))
            }
            Value::Text(word) => visitor.visit_enum(Variant { word, word_place: &self.node.place, content: None, place: &self.node.place }),
            Value::Bool(_) | Value::Int(_) => {
                // `true` stands for `on` where the words are on and off.
                let word = match self.node.value {
                    Value::Bool(value) if variants.contains(&"on") => if value { "on" } else { "off" }.to_owned(),
                    _ => self.string()?,
                };
                visitor.visit_enum(Variant { word: &word, word_place: &self.node.place, content: None, place: &self.node.place })
            }
            _ => Err(self.wrong(&one_of(variants.iter().copied()))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BindError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct ListReader<'n> {
    items: &'n [Node],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for ListReader<'_> {
    type Error = BindError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, BindError> {
        while let Some(node) = self.items.get(self.next) {
            let index = self.next;
            self.next += 1;
            if node.value != Value::Broken {
                let value = seed.deserialize(Reader { node });
                return value.map(Some).map_err(|error| error.inside(index, None, node, None));
            }
        }
        Ok(None)
    }
}

struct MapReader<'n> {
    entries: &'n [(crate::spec::tree::Key, Node)],
    next: usize,
}

impl<'de> de::MapAccess<'de> for MapReader<'_> {
    type Error = BindError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, BindError> {
        while let Some((key, node)) = self.entries.get(self.next) {
            self.next += 1;
            if node.value != Value::Broken {
                let reader = de::value::StrDeserializer::<BindError>::new(&key.text);
                return seed.deserialize(reader).map(Some).map_err(|mut error| {
                    error.place = Some(key.place.clone());
                    error.path.push(self.next - 1);
                    error
                });
            }
        }
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, BindError> {
        let index = self.next.saturating_sub(1);
        let (key, node) = &self.entries[index];
        let value = seed.deserialize(Reader { node });
        value.map_err(|error| error.inside(index, Some(&key.text), node, Some(&key.place)))
    }
}

/// A variant, written as a plain word or as a map with one key.
struct Variant<'n> {
    word: &'n str,
    word_place: &'n Place,
    content: Option<&'n Node>,
    place: &'n Place,
}

impl<'de, 'n> de::EnumAccess<'de> for Variant<'n> {
    type Error = BindError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), BindError> {
        let reader = de::value::StrDeserializer::<BindError>::new(self.word);
        let value = seed.deserialize(reader).map_err(|mut error| {
            error.place = Some(self.word_place.first_line());
            error
        })?;
        Ok((value, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_> {
    type Error = BindError;

    fn unit_variant(self) -> Result<(), BindError> {
        match self.content {
            None => Ok(()),
            Some(node) if node.value == Value::Null || node.entries().is_empty() => Ok(()),
            Some(node) => Err(Reader { node }.wrong("nothing after this word")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, BindError> {
        let empty = Node { value: Value::Map(Vec::new()), place: self.place.clone() };
        match self.content {
            // `copy` alone means `copy` with everything at its default.
            None => seed.deserialize(Reader { node: &empty }),
            Some(node) if node.value == Value::Null => {
                seed.deserialize(Reader { node: &empty }).map_err(|error| {
                    error.inside(0, Some(self.word), node, Some(self.word_place))
                })
            }
            Some(node) => seed
                .deserialize(Reader { node })
                .map_err(|error| error.inside(0, Some(self.word), node, Some(self.word_place))),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, BindError> {
        Err(BindError::complain("this form is not supported".to_owned(), "a map", None))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, BindError> {
        let (word, place) = (self.word, self.word_place);
        match self.content {
            None => Err(BindError::complain(
                format!("`{word}` needs more than the word"),
                format!("a map `{word}: {{...}}` with {}", one_of(fields.iter().copied())),
                None,
            )),
            Some(node) => Reader { node }
                .deserialize_struct("", fields, visitor)
                .map_err(|error| error.inside(0, Some(word), node, Some(place))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::Deserialize;

    use crate::spec::tree::Source;
    use crate::spec::units::Count;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        rows: Count,
        #[serde(default)]
        methods: Vec<Method>,
        inner: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its type matters here")]
        clients: u32,
        prepared: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Method {
        Copy(Options),
        Fast,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Options {
        freeze: Option<bool>,
    }

    fn bound(text: &str) -> (Option<Outer>, Vec<String>) {
        let source = Arc::new(Source { name: "x.yaml".to_owned(), text: text.to_owned() });
        let tree = crate::spec::yaml::parse(&source).unwrap_or_else(|found| panic!("{found}"));
        let mut found = Diagnostics::default();
        let value = bind(&tree, &mut found).0;
        let describe = |item: &Diagnostic| {
            let (line, column) = item.place.line_column();
            format!("{line}:{column} {}", item.message)
        };
        (value, found.items.iter().map(describe).collect())
    }

    #[test]
    fn plain_words_and_maps_are_variants() {
        let (value, found) = bound("rows: 5\nmethods: [copy, {copy: {freeze: on}}, fast]\ninner: {clients: 1, prepared: no}");
        assert_eq!(found, Vec::<String>::new());
        let value = value.expect("binds");
        assert_eq!(value.rows, Count(5));
        assert_eq!(value.inner.prepared, Some(false));
        assert!(matches!(&value.methods[0], Method::Copy(Options { freeze: None })));
        assert!(matches!(&value.methods[1], Method::Copy(Options { freeze: Some(true) })));
        assert!(matches!(&value.methods[2], Method::Fast));
    }

    #[test]
    fn all_mistakes_are_found_in_one_pass() {
        let (value, found) = bound("rows: 1e6\nmethods:\n  - cpoy\n  - copy: {freeeze: on}\ninner: {clients: -1, prepared: maybe, x: 1}");
        assert!(value.is_none());
        assert_eq!(
            found,
            [
                "1:7 `rows`: `1000000.0` is not a whole number",
                "3:5 unknown word `cpoy`",
                "4:12 unknown key `freeeze`",
                "5:18 `clients`: -1 is out of range",
                "5:32 `prepared`: \"maybe\" does not fit here",
                "5:39 unknown key `x`",
            ]
        );
    }

    #[test]
    fn a_missing_key_is_reported_at_its_map() {
        let (_, found) = bound("rows: 1\ninner: {prepared: on}");
        assert_eq!(found, ["2:1 the key `clients` is missing here"]);
    }
}
