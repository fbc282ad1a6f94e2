//! Binary COPY, with everything that is the same in every row encoded once.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use crate::data::{Scratch, TableGenerator};

use super::field::put_field;
use super::layout::{Frame, Part, layout};

/// What a binary COPY stream begins with: signature, no flags, no extension.
pub const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with.
pub const COPY_TRAILER: &[u8] = &[0xff, 0xff];

/// Encodes rows as binary COPY wants them, without header and trailer.
#[derive(Debug)]
pub struct BinaryEncoder {
    table: Arc<TableGenerator>,
    parts: Vec<Part>,
    scratch: Scratch,
    element: Scratch,
    longest: usize,
}

impl BinaryEncoder {
    /// An encoder for one thread; the generator is shared.
    pub fn new(table: Arc<TableGenerator>) -> Self {
        // The planner refuses more than 1,600 columns.
        let fields = i16::try_from(table.columns().len()).unwrap_or(i16::MAX).to_be_bytes();
        let frame = Frame { begin: &fields, between: b"", end: b"" };
        let parts =
            layout(&table, frame, |value, kind, out| put_field(value, kind, out, &mut Scratch::default()));
        Self { table, parts, scratch: Scratch::default(), element: Scratch::default(), longest: 64 }
    }

    /// Appends one row.
    #[inline]
    pub fn row(&mut self, row: u64, out: &mut BytesMut) {
        let start = out.len();
        out.reserve(self.longest);
        for part in &self.parts {
            match part {
                Part::Constant(bytes) => out.put_slice(bytes),
                Part::Column(index) => {
                    let column = &self.table.columns()[*index];
                    put_field(column.value(row, &mut self.scratch), column.kind(), out, &mut self.element);
                }
            }
        }
        self.longest = self.longest.max(out.len() - start);
    }

    /// Appends a range of rows.
    pub fn rows(&mut self, rows: Range<u64>, out: &mut BytesMut) {
        rows.for_each(|row| self.row(row, out));
    }

    /// Appends rows from the front of `rows` until `out` holds `bytes` or the range is empty.
    pub fn fill(&mut self, rows: &mut Range<u64>, bytes: usize, out: &mut BytesMut) {
        while out.len() < bytes {
            let Some(row) = rows.next() else { return };
            self.row(row, out);
        }
    }
}
