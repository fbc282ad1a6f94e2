//! The deserializer over a tree: one node, and the lists, maps and variants in it.

use serde::de::{self, DeserializeSeed, Deserializer, Visitor};

use crate::spec::bind::{BindError, Kind};
use crate::spec::suggest::one_of;
use crate::spec::tree::{Key, Node, Place, Value};
use crate::spec::units::parse_count;

/// Reads one node.
#[derive(Clone, Copy)]
pub(super) struct Reader<'n> {
    pub(super) node: &'n Node,
}

impl Reader<'_> {
    fn wrong(self, expected: &str) -> BindError {
        if matches!(self.node.value, Value::Broken) {
            return BindError::of(Kind::Silent);
        }
        let found = if matches!(self.node.value, Value::Null) {
            "an empty value".to_owned()
        } else {
            self.node.describe()
        };
        BindError::complain(format!("{found} does not fit here"), expected, None)
    }

    fn int(self, min: i128, max: i128) -> Result<i128, BindError> {
        let expected = if min == 0 { "a whole number of 0 or more" } else { "a whole number" };
        let value = match &self.node.value {
            Value::Int(value) => *value,
            Value::Text(text) => match text.trim().parse::<i64>() {
                Ok(value) => value.into(),
                Err(_) => parse_count(text)
                    .map_err(|(message, _, hint)| {
                        BindError::complain(message.replace("a count", "a whole number"), expected, hint)
                    })?
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
        Err(BindError::complain(
            format!("{value} is out of range"),
            format!("a whole number from {min} to {max}"),
            None,
        ))
    }

    fn float(self) -> Result<f64, BindError> {
        match &self.node.value {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a whole number where a fraction is allowed; 2^53 is enough"
            )]
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

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, BindError> {
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
                let variant = Variant {
                    word: &key.text,
                    word_place: &key.place,
                    content: Some(content),
                    place: &self.node.place,
                };
                visitor.visit_enum(variant)
            }
            Value::Map(entries) => {
                let message = format!("{} keys where exactly one belongs", entries.len());
                Err(BindError::complain(
                    message,
                    format!("one of {}", one_of(variants.iter().copied())),
                    None,
                ))
            }
            Value::Text(word) => visitor.visit_enum(Variant {
                word,
                word_place: &self.node.place,
                content: None,
                place: &self.node.place,
            }),
            Value::Bool(_) | Value::Int(_) => {
                // `true` stands for `on` where the words are on and off.
                let word = match self.node.value {
                    Value::Bool(value) if variants.contains(&"on") => {
                        if value { "on" } else { "off" }.to_owned()
                    }
                    _ => self.string()?,
                };
                visitor.visit_enum(Variant {
                    word: &word,
                    word_place: &self.node.place,
                    content: None,
                    place: &self.node.place,
                })
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
    entries: &'n [(Key, Node)],
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

impl<'de> de::EnumAccess<'de> for Variant<'_> {
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
            Some(node) if node.value == Value::Null => seed
                .deserialize(Reader { node: &empty })
                .map_err(|error| error.inside(0, Some(self.word), node, Some(self.word_place))),
            Some(node) => seed
                .deserialize(Reader { node })
                .map_err(|error| error.inside(0, Some(self.word), node, Some(self.word_place))),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, BindError> {
        Err(BindError::complain("this form is not supported".to_owned(), "a map", None))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BindError> {
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
