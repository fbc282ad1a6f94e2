//! COPY's CSV format.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use crate::data::TableGenerator;

use super::layout::{Frame, Part, layout};
use super::text::{Spelled, Spelling, Workspace};

/// Encodes rows as CSV: NULL is empty, an empty text is `""`.
#[derive(Debug)]
pub struct CsvEncoder {
    table: Arc<TableGenerator>,
    parts: Vec<Part>,
    workspace: Workspace,
}

impl CsvEncoder {
    /// An encoder for one thread; the generator is shared.
    pub fn new(table: Arc<TableGenerator>) -> Self {
        let frame = Frame { begin: b"", between: b",", end: b"\n" };
        let parts = layout(&table, frame, |value, kind, out| {
            put_field(Spelling::default().of(value, kind), out);
        });
        Self { table, parts, workspace: Workspace::default() }
    }

    /// Appends the line of column names.
    pub fn header(&self, out: &mut BytesMut) {
        for (index, column) in self.table.columns().iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            put_text(column.name(), out);
        }
        out.put_u8(b'\n');
    }

    /// Appends one row with its newline.
    pub fn row(&mut self, row: u64, out: &mut BytesMut) {
        for part in &self.parts {
            match part {
                Part::Constant(bytes) => out.put_slice(bytes),
                Part::Column(index) => {
                    let column = &self.table.columns()[*index];
                    let value = column.value(row, &mut self.workspace.value);
                    put_field(self.workspace.spelling.of(value, column.kind()), out);
                }
            }
        }
    }
}

fn put_field(field: Option<Spelled<'_>>, out: &mut BytesMut) {
    match field {
        None => {}
        Some(spelled) if spelled.free => put_text(spelled.text, out),
        Some(spelled) => out.put_slice(spelled.text.as_bytes()),
    }
}

/// Quotes what the server would misread: also a backslash, since `\.` at the start of a line ends the data.
fn put_text(text: &str, out: &mut BytesMut) {
    let special = |byte: u8| matches!(byte, b',' | b'"' | b'\n' | b'\r' | b'\\');
    if !text.is_empty() && !text.bytes().fold(false, |found, byte| found | special(byte)) {
        out.put_slice(text.as_bytes());
        return;
    }
    out.put_u8(b'"');
    for (index, piece) in text.split('"').enumerate() {
        if index > 0 {
            out.put_slice(b"\"\"");
        }
        out.put_slice(piece.as_bytes());
    }
    out.put_u8(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_where_needed_only() {
        for (text, expected) in [
            ("", "\"\""),
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("\\.", "\"\\.\""),
            ("a\r\nb", "\"a\r\nb\""),
        ] {
            let mut out = BytesMut::new();
            put_text(text, &mut out);
            assert_eq!(&out[..], expected.as_bytes());
        }
    }
}
