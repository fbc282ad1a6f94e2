//! Binary COPY, with everything that is the same in every row encoded once.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use crate::data::{Scratch, TableGenerator};

use super::field::put_field;
use super::image::RowImage;
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
    image: Option<RowImage>,
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
        let image = RowImage::of(&table, |index| {
            let column = &table.columns()[index];
            let mut out = BytesMut::new();
            put_field(column.constant()?, column.kind(), &mut out, &mut Scratch::default());
            Some(out.to_vec())
        });
        Self { table, parts, image, scratch: Scratch::default(), element: Scratch::default(), longest: 64 }
    }

    /// Appends one row.
    #[inline]
    pub fn row(&mut self, row: u64, out: &mut BytesMut) {
        if let Some(image) = &mut self.image {
            out.extend_from_slice(image.at(row));
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::booking_table;

    #[test]
    fn counting_up_in_place_gives_the_bytes_that_making_each_row_gives() {
        let table = Arc::new(TableGenerator::new(&booking_table(1_000_000)).expect("a valid table"));
        let (mut counting, mut making) = (BinaryEncoder::new(Arc::clone(&table)), BinaryEncoder::new(table));
        assert!(counting.image.is_some());
        making.image = None;
        let (mut ours, mut theirs) = (BytesMut::new(), BytesMut::new());
        for rows in [0..130, 95..105, 9_990..10_011, 7..8, 8..9, 99_999..100_002, 0..2, 1..3] {
            counting.rows(rows.clone(), &mut ours);
            making.rows(rows, &mut theirs);
        }
        assert_eq!(ours, theirs);
    }
}
