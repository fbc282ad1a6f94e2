//! COPY's text format, and one encoder for whichever format a step asks for.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use crate::data::TableGenerator;
use crate::model::CopyFormat;

use super::layout::{Frame, Part, layout};
use super::text::{Spelled, Spelling, Workspace};
use super::{BinaryEncoder, COPY_HEADER, COPY_TRAILER, CsvEncoder};

/// Encodes rows as COPY's text format: tabs, `\N`, backslash escapes.
#[derive(Debug)]
pub struct TextEncoder {
    table: Arc<TableGenerator>,
    parts: Vec<Part>,
    workspace: Workspace,
}

impl TextEncoder {
    /// An encoder for one thread; the generator is shared.
    pub fn new(table: Arc<TableGenerator>) -> Self {
        let frame = Frame { begin: b"", between: b"\t", end: b"\n" };
        let parts = layout(&table, frame, |value, kind, out| {
            put_field(Spelling::default().of(value, kind), out);
        });
        Self { table, parts, workspace: Workspace::default() }
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
        None => out.put_slice(b"\\N"),
        Some(spelled) if spelled.free => escape(spelled.text, out),
        Some(spelled) => out.put_slice(spelled.text.as_bytes()),
    }
}

/// Every backslash is doubled, so neither `\N` nor the end mark `\.` can arise from data.
fn escape(text: &str, out: &mut BytesMut) {
    let mut rest = text.as_bytes();
    // One pass without branches finds out that there is nothing to escape, which is the rule.
    if !rest.iter().fold(false, |found, byte| found | is_special(*byte)) {
        out.put_slice(rest);
        return;
    }
    while let Some(at) = rest.iter().position(|byte| is_special(*byte)) {
        let (plain, special) = rest.split_at(at);
        out.put_slice(plain);
        out.put_slice(match special[0] {
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            _ => b"\\\\",
        });
        rest = &special[1..];
    }
    out.put_slice(rest);
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'\n' | b'\r' | b'\t')
}

/// An encoder of any COPY format.
#[derive(Debug)]
pub enum CopyEncoder {
    /// Text.
    Text(TextEncoder),
    /// CSV.
    Csv(CsvEncoder),
    /// Binary.
    Binary(BinaryEncoder),
}

impl CopyEncoder {
    /// The encoder of a format.
    pub fn new(format: CopyFormat, table: Arc<TableGenerator>) -> Self {
        match format {
            CopyFormat::Text => Self::Text(TextEncoder::new(table)),
            CopyFormat::Csv => Self::Csv(CsvEncoder::new(table)),
            CopyFormat::Binary => Self::Binary(BinaryEncoder::new(table)),
        }
    }

    /// Appends what each COPY statement's data begins with; `names` asks for CSV's header line.
    pub fn begin(&self, names: bool, out: &mut BytesMut) {
        match self {
            Self::Binary(_) => out.put_slice(COPY_HEADER),
            Self::Csv(encoder) if names => encoder.header(out),
            Self::Csv(_) | Self::Text(_) => {}
        }
    }

    /// Appends one row.
    #[inline]
    pub fn row(&mut self, row: u64, out: &mut BytesMut) {
        match self {
            Self::Text(encoder) => encoder.row(row, out),
            Self::Csv(encoder) => encoder.row(row, out),
            Self::Binary(encoder) => encoder.row(row, out),
        }
    }

    /// Appends a range of rows.
    pub fn rows(&mut self, rows: Range<u64>, out: &mut BytesMut) {
        match self {
            Self::Binary(encoder) => encoder.rows(rows, out),
            _ => rows.for_each(|row| self.row(row, out)),
        }
    }

    /// Appends rows from the front of `rows` until `out` holds `bytes` or the range is empty.
    pub fn fill(&mut self, rows: &mut Range<u64>, bytes: usize, out: &mut BytesMut) {
        if let Self::Binary(encoder) = self {
            encoder.fill(rows, bytes, out);
            return;
        }
        while out.len() < bytes {
            let Some(row) = rows.next() else { return };
            self.row(row, out);
        }
    }

    /// Appends what the data ends with.
    pub fn end(&self, out: &mut BytesMut) {
        if matches!(self, Self::Binary(_)) {
            out.put_slice(COPY_TRAILER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_text_can_end_a_field_a_row_or_the_data() {
        let mut out = BytesMut::new();
        escape("\\.\t\r\n\\N x", &mut out);
        assert_eq!(&out[..], b"\\\\.\\t\\r\\n\\\\N x");
    }
}
