//! Rows as SQL literals, for INSERT by simple query.

use std::ops::Range;
use std::sync::Arc;

use crate::data::{TableGenerator, Value};

use super::text::Workspace;

/// Writes rows as `(1, 'a', NULL), (2, 'b', NULL)`.
///
/// Right under either setting of `standard_conforming_strings`: a text with a backslash becomes `E'...'`.
#[derive(Debug)]
pub struct LiteralEncoder {
    table: Arc<TableGenerator>,
    workspace: Workspace,
}

impl LiteralEncoder {
    /// An encoder for one thread; the generator is shared.
    pub fn new(table: Arc<TableGenerator>) -> Self {
        Self { table, workspace: Workspace::default() }
    }

    /// Appends the rows, to stand after VALUES.
    pub fn rows(&mut self, rows: Range<u64>, out: &mut String) {
        let first = rows.start;
        for row in rows {
            out.push_str(if row == first { "(" } else { ", (" });
            self.fields(row, out);
            out.push(')');
        }
    }

    fn fields(&mut self, row: u64, out: &mut String) {
        for (index, column) in self.table.columns().iter().enumerate() {
            out.push_str(if index == 0 { "" } else { ", " });
            let value = column.value(row, &mut self.workspace.value);
            let bare = is_bare(value);
            match self.workspace.spelling.of(value, column.kind()) {
                None => out.push_str("NULL"),
                Some(spelled) if bare => out.push_str(spelled.text),
                Some(spelled) => quote(spelled.text, out),
            }
        }
    }
}

/// Numbers stand bare, but for what SQL would read as something else: `-0`, `NaN`, infinities, long exponents.
fn is_bare(value: Value<'_>) -> bool {
    match value {
        Value::Int(_) => true,
        Value::Float4(number) => f64::from(number).abs() < 1e15 && f64::from(number).abs() >= 1e-4,
        Value::Float8(number) => number.abs() < 1e15 && number.abs() >= 1e-4,
        Value::Numeric(text) => text.ends_with(|last: char| last.is_ascii_digit()),
        _ => false,
    }
}

/// Appends the text as an SQL literal.
pub(super) fn quote(text: &str, out: &mut String) {
    let escaped = text.contains('\\');
    out.push_str(if escaped { "E'" } else { "'" });
    for character in text.chars() {
        match character {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            other => out.push(other),
        }
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_stay_data() {
        for (text, expected) in [("it's", "'it''s'"), ("a\\'b", "E'a\\\\''b'"), ("", "''")] {
            let mut out = String::new();
            quote(text, &mut out);
            assert_eq!(out, expected);
        }
    }
}
