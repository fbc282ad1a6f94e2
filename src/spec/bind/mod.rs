//! A tree of placed values into ordinary `#[derive(Deserialize)]` types, with a place for every error.
//!
//! A derived `Deserialize` stops at its first error. To find all mistakes in one pass, [`bind`] marks
//! the value that was wrong as [`Value::Broken`], which every reader below skips, and tries again.
//! Errors that only follow from a broken value are not reported.

mod reader;

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeOwned, Expected, Unexpected};

use self::reader::Reader;

use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::{Node, Place, Value};

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
    Complaint {
        message: String,
        expected: Option<String>,
        hint: Option<String>,
    },
    UnknownKey {
        key: String,
        allowed: &'static [&'static str],
    },
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
            let container =
                matches!(child.value, Value::List(_) | Value::Map(_) | Value::Null | Value::Broken);
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
        let (value, found) =
            bound("rows: 5\nmethods: [copy, {copy: {freeze: on}}, fast]\ninner: {clients: 1, prepared: no}");
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
        let (value, found) = bound(
            "rows: 1e6\nmethods:\n  - cpoy\n  - copy: {freeeze: on}\ninner: {clients: -1, prepared: maybe, x: 1}",
        );
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
