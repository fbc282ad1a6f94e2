//! YAML text into a [`Node`] tree: the only place that knows the parser.
//!
//! Nothing in a file can make the parser work or grow without bound: the text has at most 1 MiB and
//! nesting, nodes, anchors and alias expansion have budgets far above any honest experiment.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Spanned};

use crate::spec::diagnostic::Diagnostic;
use crate::spec::tree::{Key, Node, Place, Source, Value};

/// Largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Parses a whole text.
///
/// # Errors
/// The first syntax error, duplicate key or exceeded budget, with its place.
pub fn parse(source: &Arc<Source>) -> Result<Node, Box<Diagnostic>> {
    if source.text.len() as u64 > MAX_FILE_BYTES {
        return Err(Box::new(
            Diagnostic::new(whole(source), "the file is larger than 1 MiB")
                .hint("put long SQL into .sql files and data into data files"),
        ));
    }
    match serde_yaml::from_str_with_options::<Spanned<Raw>>(&source.text, options()) {
        Ok(root) => Ok(attach(root, source)),
        Err(error) => Err(Box::new(explain(&error, source))),
    }
}

fn options() -> serde_yaml::Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_events: 300_000,
            max_nodes: 100_000,
            max_aliases: 1_000,
            max_anchors: 200,
            max_depth: 40,
            flow_nesting_limit: 40,
            max_documents: 1,
            max_merge_keys: 200,
            max_total_scalar_bytes: 4 * 1024 * 1024,
        },
        // `off` and `no` are values of server settings, not booleans.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        with_snippet: false,
    }
}

fn whole(source: &Arc<Source>) -> Place {
    Place { source: Arc::clone(source), start: 0, end: source.text.find('\n').unwrap_or(source.text.len()) }
}

/// A parser error as a diagnostic.
fn explain(error: &serde_yaml::Error, source: &Arc<Source>) -> Diagnostic {
    let place =
        error.location().map_or_else(|| whole(source), |location| place(location, source).first_line());
    let rendered = error.without_snippet().to_string();
    let line = rendered.lines().next().unwrap_or_default();
    // The parser appends or prepends the place, which the diagnostic shows anyway.
    let line = line.split(" at line ").next().unwrap_or(line);
    let line = line.trim_start_matches("error: ");
    let line =
        line.split_once(": ").filter(|(head, _)| head.starts_with("line ")).map_or(line, |(_, tail)| tail);
    let message = if line.contains("budget") || line.contains("nesting") || line.contains("recursion limit") {
        return Diagnostic::new(place, format!("the file asks for too much: {line}"))
            .expected("at most 40 levels of nesting, 100,000 values and 1,000 aliases");
    } else if line.contains("duplicate") {
        format!("the key `{}` stands here twice", place.text())
    } else {
        format!("this is not valid YAML: {line}")
    };
    let diagnostic = Diagnostic::new(place, message);
    if let Some(quoted) = unquoted_template(&diagnostic.place) {
        let message = "a template at the start of a value must be quoted";
        return Diagnostic::new(diagnostic.place, message).hint(format!("write `{quoted}`"));
    }
    if line.contains("duplicate") {
        diagnostic.hint("keep one of the two; the later one would silently win")
    } else {
        diagnostic.hint(
            "check indentation (spaces only), quotes, and that `{{ ... }}` at the start of a value is quoted",
        )
    }
}

/// The quoted form of a template that YAML took for a map in a map.
fn unquoted_template(place: &Place) -> Option<String> {
    let text = &place.source.text;
    let open = text.get(..=place.start)?.rfind("{{").filter(|open| place.start - open <= 2)?;
    let close = open + text[open..].find("}}")? + 2;
    let quoted = text[..open].ends_with('"') || text[..open].ends_with('\'');
    let template = text.get(open..close)?;
    (!quoted && !template.contains('\n')).then(|| format!("\"{template}\""))
}

/// The tree as the parser gives it, before places are tied to their source.
#[derive(Debug)]
enum Raw {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<RawKey>, Spanned<Raw>)>),
}

/// A key: any scalar, as text.
#[derive(Debug)]
struct RawKey(String);

fn attach(raw: Spanned<Raw>, source: &Arc<Source>) -> Node {
    let place = place(raw.referenced, source);
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Bool(value) => Value::Bool(value),
        Raw::Int(value) => Value::Int(value),
        Raw::Float(value) => Value::Float(value),
        Raw::Text(value) => Value::Text(value),
        Raw::List(items) => Value::List(items.into_iter().map(|item| attach(item, source)).collect()),
        Raw::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, node)| {
                    let place = self::place(key.referenced, source);
                    (Key { text: key.value.0, place }, attach(node, source))
                })
                .collect(),
        ),
    };
    let place = Place { end: end_of(&value, &place), ..place };
    Node { value, place }
}

/// The parser's place of a list or map is its first character; this is the end of its last part.
fn end_of(value: &Value, place: &Place) -> usize {
    let last = match value {
        Value::List(items) => items.last().map(|item| item.place.end),
        Value::Map(entries) => entries.last().map(|(key, node)| node.place.end.max(key.place.end)),
        _ => return place.end,
    };
    let Some(last) = last.filter(|last| *last >= place.start) else { return place.end };
    let closing = place.source.text[last..].chars().next().filter(|c| matches!(c, '}' | ']'));
    let opened = place.source.text[place.start..].starts_with(['{', '[']);
    last + usize::from(opened && closing.is_some())
}

fn place(location: Location, source: &Arc<Source>) -> Place {
    let span = location.span();
    let length = source.text.len();
    let to_usize = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok());
    let (start, size) = match (to_usize(span.byte_offset()), to_usize(span.byte_len())) {
        (Some(start), Some(size)) => (start, size),
        // Places of syntax errors count lines and characters only.
        _ => (offset_of(location.line(), location.column(), &source.text), 1),
    };
    let start = start.min(length);
    let end = start.saturating_add(size).min(length);
    let start = (0..=start).rev().find(|at| source.text.is_char_boundary(*at)).unwrap_or(0);
    let end = (end..=length).find(|at| source.text.is_char_boundary(*at)).unwrap_or(length);
    Place { source: Arc::clone(source), start, end }
}

/// Byte offset of a line and column, both from 1.
fn offset_of(line: u64, column: u64, text: &str) -> usize {
    let skip = |count: u64| usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
    let before: usize = text.split_inclusive('\n').take(skip(line)).map(str::len).sum();
    before + text[before..].chars().take(skip(column)).map(char::len_utf8).sum::<usize>()
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Int(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Raw, E> {
        if value.is_finite() { Ok(Raw::Float(value)) } else { Err(E::custom("a number must be finite")) }
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries: Vec<(Spanned<RawKey>, Spanned<Raw>)> = Vec::new();
        while let Some(key) = map.next_key::<Spanned<RawKey>>()? {
            entries.push((key, map.next_value()?));
        }
        Ok(Raw::Map(entries))
    }
}

impl<'de> Deserialize<'de> for RawKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Raw::deserialize(deserializer)? {
            Raw::Null => Ok(Self("null".to_owned())),
            Raw::Bool(value) => Ok(Self(value.to_string())),
            Raw::Int(value) => Ok(Self(value.to_string())),
            Raw::Float(value) => Ok(Self(value.to_string())),
            Raw::Text(value) => Ok(Self(value)),
            Raw::List(_) | Raw::Map(_) => Err(D::Error::custom("a key must be a plain word or number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let source = Arc::new(Source { name: "x.yaml".to_owned(), text: text.to_owned() });
        match parse(&source) {
            Ok(node) => panic!("should be refused: {node:?}"),
            Err(found) => found.to_string(),
        }
    }

    #[test]
    fn bombs_are_refused_quickly() {
        let started = std::time::Instant::now();
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let previous = format!("*a{}", level - 1);
            bomb = format!("{bomb}a{level}: &a{level} [{}]\n", vec![previous; 9].join(", "));
        }
        assert!(message(&bomb).contains("too much"), "{}", message(&bomb));
        assert!(message(&"[".repeat(400_000)).contains("x.yaml:1:"));
        let deep: String = (0..3000).map(|level| format!("{}a:\n", " ".repeat(level))).take(1000).collect();
        assert!(!message(&deep).is_empty());
        assert!(message(&"x".repeat(2 << 20)).contains("1 MiB"));
        assert!(started.elapsed().as_secs() < 10);
    }

    #[test]
    fn duplicate_keys_are_refused() {
        let found = message("a: 1\nb: 2\na: 3\n");
        assert!(found.contains("the key `a` stands here twice") && found.contains("x.yaml:3:1"), "{found}");
    }
}
