//! COPY's CSV format.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use crate::data::TableGenerator;

use super::text::Workspace;

/// Encodes rows as CSV: NULL is empty, an empty text is `""`.
#[derive(Debug)]
pub struct CsvEncoder {
    table: Arc<TableGenerator>,
    workspace: Workspace,
}

impl CsvEncoder {
    /// An encoder for one thread; the generator is shared.
    pub fn new(table: Arc<TableGenerator>) -> Self {
        Self { table, workspace: Workspace::default() }
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
        for (index, column) in self.table.columns().iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            let value = column.value(row, &mut self.workspace.value);
            match self.workspace.spelling.of(value, column.kind()) {
                None => {}
                Some(spelled) if spelled.free => put_text(spelled.text, out),
                Some(spelled) => out.put_slice(spelled.text.as_bytes()),
            }
        }
        out.put_u8(b'\n');
    }
}

/// Quotes what the server would misread: also a backslash, since `\.` at the start of a line ends the data.
fn put_text(text: &str, out: &mut BytesMut) {
    let special = |byte: u8| matches!(byte, b',' | b'"' | b'\n' | b'\r' | b'\\');
    if !text.is_empty() && !text.bytes().any(special) {
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
