//! Bound parameters of INSERT: every field of some rows, ready in binary format.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

use crate::data::TableGenerator;

use super::BinaryEncoder;

/// The parameters of one statement, `rows × columns` of them, row by row. Reused from statement to statement.
#[derive(Debug)]
pub struct Parameters {
    encoder: BinaryEncoder,
    columns: usize,
    rows: usize,
    buffer: BytesMut,
}

impl Parameters {
    /// No rows yet.
    pub fn new(table: Arc<TableGenerator>) -> Self {
        let columns = table.columns().len();
        Self { encoder: BinaryEncoder::new(table), columns, rows: 0, buffer: BytesMut::new() }
    }

    /// Replaces the rows.
    pub fn set_rows(&mut self, rows: Range<u64>) {
        self.buffer.clear();
        self.rows = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        self.encoder.rows(rows, &mut self.buffer);
    }

    /// The parameters, for `query_raw` and `execute_raw`.
    pub fn iter(&self) -> RawParameters<'_> {
        RawParameters {
            rest: &self.buffer,
            columns: self.columns,
            missing: self.rows * self.columns,
            of_row: 0,
        }
    }

    /// Bytes of the encoded rows.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }
}

impl<'a> IntoIterator for &'a Parameters {
    type Item = RawParameter<'a>;
    type IntoIter = RawParameters<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The fields of encoded rows.
#[derive(Debug, Clone)]
pub struct RawParameters<'a> {
    rest: &'a [u8],
    columns: usize,
    missing: usize,
    of_row: usize,
}

impl<'a> Iterator for RawParameters<'a> {
    type Item = RawParameter<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.missing = self.missing.checked_sub(1)?;
        if self.of_row == 0 {
            // The number of fields stands before each row.
            self.rest = self.rest.get(2..)?;
            self.of_row = self.columns;
        }
        self.of_row -= 1;
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let field = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (field, rest) = match field {
            Some(length) => rest.split_at_checked(length).map(|(field, rest)| (Some(field), rest))?,
            None => (None, rest),
        };
        self.rest = rest;
        Some(RawParameter(field))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.missing, Some(self.missing))
    }
}

impl ExactSizeIterator for RawParameters<'_> {}

/// A parameter that is already in binary format; NULL if `None`. Goes to a parameter of any type unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawParameter<'a>(pub Option<&'a [u8]>);

impl ToSql for RawParameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Ok(match self.0 {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                IsNull::No
            }
            None => IsNull::Yes,
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Binary
    }

    to_sql_checked!();
}
