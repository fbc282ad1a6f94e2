//! An experiment as written: a tree of values that each know their place in a file.
//!
//! Parsing happens once per file, in [`parse`](crate::spec::yaml::parse). Profiles, `--set` and templates
//! make new trees of the same shape, so that a message about a rendered value still points at the
//! characters a person typed.

use std::sync::Arc;

use crate::model::Scalar;
use crate::spec::diagnostic::Diagnostic;

/// A text that places refer to: a file, a built-in environment or a `--set` of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Path as the user wrote it, or `--set`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A range of characters of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub source: Arc<Source>,
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What is written.
    pub value: Value,
    /// Where it is written.
    pub place: Place,
}

/// The kinds of YAML values.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`; `on`, `off`, `yes` and `no` stay text.
    Bool(bool),
    /// A whole number; wider than any model type so that overflow is found by us.
    Int(i128),
    /// A number with a fraction, always finite.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map in the order of the file.
    Map(Vec<(Key, Node)>),
    /// A value that was found wrong and is skipped, so that later mistakes are found in the same pass.
    Broken,
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Its text; numbers and booleans as they are written.
    pub text: String,
    /// Where it is written.
    pub place: Place,
}

impl Place {
    /// The characters of the place.
    pub fn text(&self) -> &str {
        self.source.text.get(self.start..self.end).unwrap_or_default()
    }

    /// A smaller place around the same words: `token` found in this place for as often as it occurs in
    /// `value` before `offset`. Works for plain, quoted, literal and folded scalars alike, because it
    /// does not need to know how the parser got from the characters to the value.
    #[must_use]
    pub fn narrow(&self, value: &str, offset: usize, token: &str) -> Self {
        let before = value.get(..offset).unwrap_or(value);
        let nth = if token.is_empty() { return self.first_line() } else { before.matches(token).count() };
        match self.text().match_indices(token).nth(nth) {
            Some((at, _)) => Self {
                source: Arc::clone(&self.source),
                start: self.start + at,
                end: self.start + at + token.len(),
            },
            None => self.first_line(),
        }
    }

    /// The first line of the place: long values are not shown whole.
    #[must_use]
    pub fn first_line(&self) -> Self {
        let length = self.text().find('\n').unwrap_or(self.end - self.start);
        let mut end = self.start + self.text().get(..length).unwrap_or_default().trim_end().len();
        if end == self.start {
            end = self.end.min(self.start + 1);
        }
        Self { source: Arc::clone(&self.source), start: self.start, end }
    }

    /// Line and column of the first character, both from 1; columns count characters.
    #[must_use]
    pub fn line_column(&self) -> (usize, usize) {
        let before = self.source.text.get(..self.start).unwrap_or(&self.source.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }
}

impl Node {
    /// The value below a key of a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
    }

    /// The entries of a map; none for other kinds.
    pub fn entries(&self) -> &[(Key, Self)] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// The elements of a list; none for other kinds.
    pub fn items(&self) -> &[Self] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// The text of a text value.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// The value as a scalar; `None` for lists, maps and whole numbers beyond 64 bits.
    pub fn scalar(&self) -> Option<Scalar> {
        match &self.value {
            Value::Null => Some(Scalar::Null),
            Value::Bool(value) => Some(Scalar::Bool(*value)),
            Value::Int(value) => i64::try_from(*value).ok().map(Scalar::Int),
            Value::Float(value) => Some(Scalar::Float(*value)),
            Value::Text(value) => Some(Scalar::Text(value.clone())),
            Value::List(_) | Value::Map(_) | Value::Broken => None,
        }
    }

    /// What a message calls the value: `text "10k"`, `a list`.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}"),
            Value::Text(value) => format!("\"{}\"", shorten(value)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            Value::Broken => "a value that is wrong".to_owned(),
        }
    }

    /// The place of the deepest value that a dotted path names, and whether the whole path was found.
    /// Keys may contain dots. For a map or list the place is that of its key.
    #[must_use]
    pub fn find_place(&self, path: &str) -> (Place, bool) {
        let mut node = self;
        let mut place = self.place.first_line();
        let mut rest = path;
        while !rest.is_empty() {
            let Some((next, next_place, tail)) = node.descend(rest) else { return (place, false) };
            let container =
                matches!(next.value, Value::Map(_) | Value::List(_) | Value::Null | Value::Broken);
            place = if container { next_place } else { next.place.first_line() };
            node = next;
            rest = tail;
        }
        (place, true)
    }

    /// A diagnostic about the value that a dotted path names.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.find_place(path).0, message)
    }

    /// A diagnostic about the key at the end of a dotted path.
    pub fn key_problem(&self, path: &str, key: &str, message: impl Into<String>) -> Diagnostic {
        let entry = self.find(path).and_then(|node| node.entries().iter().find(|(name, _)| name.text == key));
        let place = entry.map_or_else(|| self.find_place(path).0, |(name, _)| name.place.clone());
        Diagnostic::new(place, message)
    }

    /// The node a dotted path names.
    pub fn find(&self, path: &str) -> Option<&Self> {
        let mut node = self;
        let mut rest = path;
        while !rest.is_empty() {
            let (next, _, tail) = node.descend(rest)?;
            node = next;
            rest = tail;
        }
        Some(node)
    }

    /// One step along a dotted path: the child, the place of its key, the rest of the path.
    fn descend<'a, 'p>(&'a self, path: &'p str) -> Option<(&'a Self, Place, &'p str)> {
        if let Value::List(items) = &self.value {
            let (head, tail) = path.split_once('.').unwrap_or((path, ""));
            let item = items.get(head.parse::<usize>().ok()?)?;
            return Some((item, item.place.first_line(), tail));
        }
        let fits =
            |key: &str| path.strip_prefix(key).is_some_and(|tail| tail.is_empty() || tail.starts_with('.'));
        let entry =
            self.entries().iter().filter(|(key, _)| fits(&key.text)).max_by_key(|(key, _)| key.text.len());
        let (key, node) = entry?;
        let tail = &path[key.text.len()..];
        Some((node, key.place.clone(), tail.strip_prefix('.').unwrap_or(tail)))
    }

    /// The tree as JSON, without places.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null | Value::Broken => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => u64::try_from(*value)
                .map(Into::into)
                .or_else(|_| i64::try_from(*value).map(Into::into))
                .unwrap_or_else(|_| value.to_string().into()),
            Value::Float(value) => (*value).into(),
            Value::Text(value) => value.clone().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                entries.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect()
            }
        }
    }
}

/// At most 40 characters, on one line.
#[must_use]
pub fn shorten(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let long = line.chars().count() > 40 || text.trim().lines().count() > 1;
    let mut short: String = line.chars().take(40).collect();
    if long {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use crate::spec::yaml::parse;

    use super::*;

    fn tree(text: &str) -> Node {
        let source = Arc::new(Source { name: "x.yaml".to_owned(), text: text.to_owned() });
        parse(&source).unwrap_or_else(|found| panic!("{found}"))
    }

    #[test]
    fn values_know_their_place() {
        let root = tree("a: 1_000_000\nb: {c: [x, off, no], d: true}\ne: |\n  one\n  two three\n");
        assert_eq!(root.get("a").map(|node| &node.value), Some(&Value::Int(1_000_000)));
        assert_eq!(root.find("a").map(|node| node.place.text()), Some("1_000_000"));
        let off = root.find("b.c.1").expect("it is there");
        assert_eq!(off.value, Value::Text("off".to_owned()));
        assert_eq!(off.place.line_column(), (2, 12));
        assert_eq!(root.find("b.d").map(|node| &node.value), Some(&Value::Bool(true)));
        assert_eq!(root.find_place("b.c").0.text(), "c");
        assert_eq!(root.find_place("b.c.1.unknown"), (off.place.clone(), false));
    }

    #[test]
    fn a_word_inside_a_block_scalar_has_its_own_place() {
        let root = tree("e: |\n  one two\n  two three\n");
        let node = root.get("e").expect("it is there");
        let value = node.text().expect("text");
        let second = value.rfind("two").expect("twice");
        assert_eq!(node.place.narrow(value, second, "two").line_column(), (3, 3));
    }

    #[test]
    fn keys_may_contain_dots() {
        let root = tree("settings: {auto_explain.log_min_duration: 5}");
        assert!(root.find("settings.auto_explain.log_min_duration").is_some());
    }
}
