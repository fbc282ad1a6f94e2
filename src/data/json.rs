//! JSON as `jsonb` prints it: keys in `jsonb`'s order, later duplicates win, one blank after `:` and `,`.

use std::cmp::Ordering;
use std::fmt::Write as _;

use crate::model::ColumnType;

use super::calendar::{write_date, write_timestamp};
use super::decimal;
use super::value::{Scratch, Value};

/// Deepest nesting read.
const DEPTH: u32 = 200;

/// A parsed document, its texts unescaped and its numbers canonical.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Bare(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// The text `jsonb` gives back for a document; `None` when it is no JSON that `jsonb` takes.
pub(super) fn canonical(text: &str) -> Option<String> {
    let node = parse(text)?;
    let mut out = String::with_capacity(text.len());
    print(&node, &mut out);
    Some(out)
}

/// Whether the text is JSON.
pub(super) fn is_valid(text: &str) -> bool {
    parse(text).is_some()
}

/// The order in which `jsonb` keeps keys: by length in bytes, then by bytes.
pub(super) fn key_order(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

fn parse(text: &str) -> Option<Node> {
    let mut reader = Reader { rest: text };
    let node = reader.node(DEPTH)?;
    reader.blank();
    reader.rest.is_empty().then_some(node)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, token: &str) -> Option<()> {
        self.blank();
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    fn node(&mut self, depth: u32) -> Option<Node> {
        self.blank();
        match self.rest.chars().next()? {
            '{' => self.object(depth.checked_sub(1)?),
            '[' => self.list(depth.checked_sub(1)?),
            '"' => self.text().map(Node::Text),
            '-' | '0'..='9' => self.number(),
            _ => ["true", "false", "null"]
                .into_iter()
                .find(|word| self.take(word).is_some())
                .map(|word| Node::Bare(word.to_owned())),
        }
    }

    fn list(&mut self, depth: u32) -> Option<Node> {
        self.take("[")?;
        let mut nodes = Vec::new();
        if self.take("]").is_some() {
            return Some(Node::List(nodes));
        }
        loop {
            nodes.push(self.node(depth)?);
            if self.take("]").is_some() {
                return Some(Node::List(nodes));
            }
            self.take(",")?;
        }
    }

    fn object(&mut self, depth: u32) -> Option<Node> {
        self.take("{")?;
        let mut members: Vec<(String, Node)> = Vec::new();
        if self.take("}").is_some() {
            return Some(Node::Object(members));
        }
        loop {
            self.blank();
            let key = self.text()?;
            self.take(":")?;
            members.push((key, self.node(depth)?));
            if self.take("}").is_some() {
                return Some(Node::Object(unique(members)));
            }
            self.take(",")?;
        }
    }

    fn number(&mut self) -> Option<Node> {
        let end = self.rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let (number, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let unsigned = number.strip_prefix('-').unwrap_or(number);
        let whole = unsigned.find(|c: char| !c.is_ascii_digit()).map_or(unsigned, |end| &unsigned[..end]);
        let after_point =
            unsigned.split_once('.').is_none_or(|(_, after)| after.starts_with(|c: char| c.is_ascii_digit()));
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) || !after_point {
            return None;
        }
        self.rest = rest;
        decimal::canonical(number, None).map(Node::Bare)
    }

    fn text(&mut self) -> Option<String> {
        self.rest = self.rest.strip_prefix('"')?;
        let mut text = String::new();
        loop {
            let end = self.rest.find(['"', '\\'])?;
            let (plain, rest) = self.rest.split_at(end);
            if plain.bytes().any(|byte| byte < 0x20) {
                return None;
            }
            text.push_str(plain);
            self.rest = &rest[1..];
            if rest.starts_with('"') {
                return Some(text);
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(match letter {
            '"' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.code_point().filter(|character| *character != '\0'),
            _ => return None,
        })
    }

    fn code_point(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        self.rest = self.rest.strip_prefix("\\u")?;
        let second = self.hex()?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + second)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits =
            self.rest.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.rest = &self.rest[4..];
        u32::from_str_radix(digits, 16).ok()
    }
}

fn unique(mut members: Vec<(String, Node)>) -> Vec<(String, Node)> {
    // The sort is stable, so of equal keys the last written is the last here.
    members.sort_by(|left, right| key_order(&left.0, &right.0));
    let mut kept: Vec<(String, Node)> = Vec::with_capacity(members.len());
    for member in members {
        if kept.last().is_some_and(|last| last.0 == member.0) {
            kept.pop();
        }
        kept.push(member);
    }
    kept
}

fn print(node: &Node, out: &mut String) {
    match node {
        Node::Bare(text) => out.push_str(text),
        Node::Text(text) => write_text(text, out),
        Node::List(nodes) => {
            out.push('[');
            for (index, node) in nodes.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                print(node, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (index, (key, node)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_text(key, out);
                out.push_str(": ");
                print(node, out);
            }
            out.push('}');
        }
    }
}

/// Appends a JSON string, escaped as PostgreSQL escapes it.
pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Appends a generated value: numbers and truth values bare, infinite ones, dates and the like as strings.
pub(super) fn write_value(value: Value<'_>, zoned: bool, out: &mut String, scratch: &mut Scratch) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(itoa::Buffer::new().format(value)),
        Value::Float4(value) => write_float(f64::from(value), &value.to_string(), out),
        Value::Float8(value) => write_float(value, &value.to_string(), out),
        Value::Numeric(text) if text.ends_with(|last: char| last.is_ascii_digit()) => out.push_str(text),
        Value::Numeric(text) | Value::Text(text) => write_text(text, out),
        Value::Json(text) => out.push_str(text),
        Value::Bytes(bytes) => {
            out.push_str("\"\\\\x");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out.push('"');
        }
        Value::Date(days) => quoted(out, |out| write_date(days, out)),
        Value::Timestamp(micros) => quoted(out, |out| write_timestamp(micros, zoned, out)),
        Value::Uuid(bytes) => quoted(out, |out| write_uuid(bytes, out)),
        Value::Array(array) => {
            let zoned = *array.kind == ColumnType::Timestamptz;
            out.push('[');
            for index in 0..array.len() {
                out.push_str(if index == 0 { "" } else { ", " });
                let mut deeper = Scratch::default();
                write_value(array.element(index, scratch), zoned, out, &mut deeper);
            }
            out.push(']');
        }
    }
}

fn quoted(out: &mut String, write: impl FnOnce(&mut String)) {
    out.push('"');
    write(out);
    out.push('"');
}

/// `plain` is the number without an exponent, which is what `jsonb` (a `numeric` inside) prints.
fn write_float(value: f64, plain: &str, out: &mut String) {
    if value == 0.0 {
        out.push('0');
    } else if value.is_finite() {
        out.push_str(plain);
    } else {
        let word = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        write_text(word, out);
    }
}

/// Appends a UUID in its usual form.
pub fn write_uuid(bytes: [u8; 16], out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_jsonb_does() {
        for (text, expected) in [
            (r#"{"bb":1,"a":2,"a":[1.50,-0,1e3]}"#, r#"{"a": [1.50, 0, 1000], "bb": 1}"#),
            ("[]", "[]"),
            ("{}", "{}"),
            ("[ true , null,false]", "[true, null, false]"),
            (r#""\u00e9\ud83d\ude00\/\n\u0001""#, "\"\u{e9}\u{1f600}/\\n\\u0001\""),
            (r#"{"b":{"z":1,"y":2}}"#, r#"{"b": {"y": 2, "z": 1}}"#),
            ("0.10", "0.10"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_json() {
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "{",
            "[1,]",
            "{a:1}",
            "01",
            "1.",
            "-",
            "\"\u{1}\"",
            r#""\u0000""#,
            r#""\ud800""#,
            "tru",
            &deep,
        ] {
            assert_eq!(canonical(text), None, "{text:.20}");
        }
    }
}
