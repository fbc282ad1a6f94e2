//! Content of a table by the generator, by a COPY stream and by the rows of a SELECT.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, Type};

use crate::data::{Content, DataError, TableGenerator, share};
use crate::model::Table;

use super::{BinaryEncoder, CopyRows, StreamError};

/// What copy `copy_index` of a table holds once it is loaded, all columns in table order.
pub fn expected_content(table: &Table, copy_index: usize) -> Result<Content, DataError> {
    let generator = Arc::new(TableGenerator::new(table)?);
    let copies = table.copies.len() as u64;
    Ok(content_of(&generator, share(table.rows, copies, copy_index as u64)))
}

/// What some rows of some columns are. For a read of a part: [`TableGenerator::select`].
pub fn content_of(table: &Arc<TableGenerator>, rows: Range<u64>) -> Content {
    let mut encoder = BinaryEncoder::new(Arc::clone(table));
    let mut buffer = BytesMut::new();
    let mut content = Content::default();
    for row in rows {
        buffer.clear();
        encoder.row(row, &mut buffer);
        // The number of fields stands before them.
        content.add_row(&buffer[2..]);
    }
    content
}

/// Content of a `COPY (SELECT ...) TO STDOUT (FORMAT binary)` stream.
#[derive(Debug, Default)]
pub struct ContentReader {
    rows: CopyRows,
    content: Content,
}

impl ContentReader {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes, cut anywhere.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), StreamError> {
        let content = &mut self.content;
        self.rows.push(chunk, |body| content.add_row(body))
    }

    /// The content, when the stream was whole.
    pub fn finish(self) -> Result<Content, StreamError> {
        self.rows.finish()?;
        Ok(self.content)
    }
}

/// Content of rows that come field by field, in binary format.
#[derive(Debug, Default)]
pub struct RowHasher {
    content: Content,
    body: Vec<u8>,
}

impl RowHasher {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field to the row at hand; `None` is NULL.
    #[inline]
    pub fn field(&mut self, field: Option<&[u8]>) {
        let length = field.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.body.extend_from_slice(&length.to_be_bytes());
        self.body.extend_from_slice(field.unwrap_or_default());
    }

    /// Ends the row at hand.
    #[inline]
    pub fn end_row(&mut self) {
        self.content.add_row(&self.body);
        self.body.clear();
    }

    /// Adds a whole row.
    pub fn row<'a>(&mut self, fields: impl IntoIterator<Item = Option<&'a [u8]>>) {
        fields.into_iter().for_each(|field| self.field(field));
        self.end_row();
    }

    /// The content of all rows ended.
    pub fn content(&self) -> Content {
        self.content
    }
}

/// A field of a row of any type as it came over the wire: `row.get::<_, RawField>(index).0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawField<'a>(pub Option<&'a [u8]>);

impl<'a> FromSql<'a> for RawField<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
