//! A row as stretches that are the same in every row and columns that are made: the former are encoded once.

use bytes::{BufMut, BytesMut};

use crate::data::{TableGenerator, Value};
use crate::model::ColumnType;

/// A stretch of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The same in every row: constants and what stands between fields.
    Constant(Vec<u8>),
    /// Index of a column whose value is made.
    Column(usize),
}

/// What stands around fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// Before the first field.
    pub(super) begin: &'a [u8],
    /// Between two.
    pub(super) between: &'a [u8],
    /// After the last.
    pub(super) end: &'a [u8],
}

/// The parts of a table's rows; neighbouring constants become one.
pub(super) fn layout(
    table: &TableGenerator,
    frame: Frame<'_>,
    mut encode: impl FnMut(Value<'_>, &ColumnType, &mut BytesMut),
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut constant = BytesMut::from(frame.begin);
    for (index, column) in table.columns().iter().enumerate() {
        if index > 0 {
            constant.put_slice(frame.between);
        }
        if let Some(value) = column.constant() {
            encode(value, column.kind(), &mut constant);
            continue;
        }
        if !constant.is_empty() {
            parts.push(Part::Constant(constant.split().to_vec()));
        }
        parts.push(Part::Column(index));
    }
    constant.put_slice(frame.end);
    if !constant.is_empty() {
        parts.push(Part::Constant(constant.to_vec()));
    }
    parts
}
