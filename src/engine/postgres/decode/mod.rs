//! What a client does with the rows it reads: nothing, or every value decoded and folded into a checksum.
//!
//! Values that came as text are decoded into the values they stand for and folded in their binary form, so a table
//! has one checksum however it is read. That holds while the session prints dates in ISO order and floats with all
//! their digits: [`refuse_lossy_text`].

mod array;
mod binary;
mod floats;
mod rows;
mod text;

use bytes::BytesMut;

use super::load::WorkError;
use super::{Session, encode::field::put_field};
use crate::data::{Content, Scratch, Value};
use crate::model::{ColumnType, Decode, Read, Table};

pub(super) use rows::{csv_row, text_row};

/// A column that is read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadColumn {
    name: String,
    kind: ColumnType,
    /// Type of the numbers in it, where it holds floats.
    numbers: Option<ColumnType>,
}

/// The columns of a read, in its order.
pub(super) fn columns_of(table: &Table, read: &Read) -> Vec<ReadColumn> {
    let find = |name: &String| table.columns.iter().find(|column| column.name == *name);
    let column = |name: &String| {
        let kind = find(name)?.kind.clone();
        Some(ReadColumn { name: name.clone(), kind, numbers: table.numbers_in(name).cloned() })
    };
    read.columns.iter().filter_map(column).collect()
}

/// Takes rows field by field.
pub(super) struct Decoder {
    decode: Decode,
    columns: Vec<ReadColumn>,
    /// Fields of the row at hand that were taken.
    taken: usize,
    /// The row at hand in binary format.
    body: BytesMut,
    content: Content,
    floats: floats::Floats,
    /// Memory for what is unescaped.
    buffer: Vec<u8>,
}

impl Decoder {
    pub(super) fn new(decode: Decode, columns: Vec<ReadColumn>) -> Self {
        Self {
            decode,
            columns,
            taken: 0,
            body: BytesMut::new(),
            content: Content::default(),
            floats: floats::Floats::default(),
            buffer: Vec::new(),
        }
    }

    /// Whether fields are not looked at at all.
    pub(super) fn is_idle(&self) -> bool {
        self.decode == Decode::None
    }

    /// Takes the next field in binary format; `None` is NULL.
    #[inline]
    pub(super) fn binary(&mut self, field: Option<&[u8]>) -> Result<(), WorkError> {
        let column = next(&self.columns, &mut self.taken)?;
        let Some(bytes) = field else {
            self.null();
            return Ok(());
        };
        match (self.decode, &column.numbers) {
            (Decode::None, _) | (Decode::Floats, None) => {}
            (Decode::Floats, Some(number)) => {
                self.floats.binary(&column.kind, number, bytes).map_err(|why| undecodable(column, &why))?;
            }
            (Decode::Values, _) => {
                binary::decode(&column.kind, bytes).map_err(|why| undecodable(column, &why.to_string()))?;
                let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
                self.body.extend_from_slice(&length.to_be_bytes());
                self.body.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Takes the next field as text; `None` is NULL.
    #[inline]
    pub(super) fn text(&mut self, field: Option<&[u8]>) -> Result<(), WorkError> {
        let column = next(&self.columns, &mut self.taken)?;
        let Some(bytes) = field else {
            self.null();
            return Ok(());
        };
        let done = match (self.decode, &column.numbers) {
            (Decode::None, _) | (Decode::Floats, None) => Ok(()),
            (Decode::Floats, Some(number)) => self.floats.text(&column.kind, number, bytes),
            (Decode::Values, _) => text::put(&column.kind, bytes, &mut self.body),
        };
        done.map_err(|why| undecodable(column, &why))
    }

    fn null(&mut self) {
        if self.decode == Decode::Values {
            put_field(Value::Null, &ColumnType::Bool, &mut self.body, &mut Scratch::default());
        }
    }

    /// Ends the row at hand.
    #[inline]
    pub(super) fn end_row(&mut self) -> Result<(), WorkError> {
        if self.taken != self.columns.len() {
            let (found, expected) = (self.taken, self.columns.len());
            return Err(WorkError::Protocol(format!("a row has {found} fields, not {expected}")));
        }
        self.taken = 0;
        match self.decode {
            Decode::None => {}
            Decode::Values => {
                self.content.add_row(&self.body);
                self.body.clear();
            }
            Decode::Floats => self.floats.end_row(),
        }
        Ok(())
    }

    /// Takes a whole row of a binary COPY stream: its fields, each after its length.
    pub(super) fn binary_row(&mut self, mut body: &[u8]) -> Result<(), WorkError> {
        while let Some((length, rest)) = body.split_first_chunk::<4>() {
            let (field, rest) = match usize::try_from(i32::from_be_bytes(*length)) {
                Ok(length) => {
                    let split = rest.split_at_checked(length);
                    let (field, rest) =
                        split.ok_or_else(|| WorkError::Protocol("a row ends inside a field".to_owned()))?;
                    (Some(field), rest)
                }
                Err(_) => (None, rest),
            };
            self.binary(field)?;
            body = rest;
        }
        self.end_row()
    }

    /// Content of all rows ended; `None` when nothing was decoded.
    pub(super) fn content(&self) -> Option<Content> {
        match self.decode {
            Decode::None => None,
            Decode::Values => Some(self.content),
            Decode::Floats => Some(self.floats.content()),
        }
    }
}

/// The column of the next field.
#[inline]
fn next<'a>(columns: &'a [ReadColumn], taken: &mut usize) -> Result<&'a ReadColumn, WorkError> {
    let column = columns.get(*taken);
    *taken += 1;
    column.ok_or_else(|| WorkError::Protocol(format!("a row has more than {} fields", columns.len())))
}

#[cold]
fn undecodable(column: &ReadColumn, why: &str) -> WorkError {
    WorkError::Protocol(format!("cannot decode a value of column {}: {why}", column.name))
}

/// Refuses to decode text of a session that prints less than the values, or in an order that can be misread.
///
/// # Errors
/// Names the setting and what to do.
pub(super) async fn refuse_lossy_text(session: &Session) -> Result<(), WorkError> {
    let sql = "SELECT current_setting('DateStyle'), current_setting('extra_float_digits')::int4";
    let row = session.client.query_one(sql, &[]).await?;
    let (style, digits): (String, i32) = (row.get(0), row.get(1));
    let wrong = if !style.starts_with("ISO") {
        format!("DateStyle is {style}")
    } else if digits < 1 {
        format!("extra_float_digits is {digits}")
    } else {
        return Ok(());
    };
    Err(WorkError::Protocol(format!(
        "values read as text cannot be compared with the generator's: {wrong}; decode needs DateStyle ISO and \
         extra_float_digits of 1 or more (the server's defaults), or read with `decode: none` or in binary"
    )))
}

#[cfg(test)]
mod tests;
