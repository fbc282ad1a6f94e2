//! Bound arrays, one per column: the parameters of `INSERT ... SELECT * FROM unnest($1, $2, ...)`.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use super::expression::base_name;
use super::field::{put_field, type_oid};
use super::parameters::RawParameter;
use crate::data::{Scratch, TableGenerator, Value};

/// The columns of some rows as arrays in binary format. Reused from statement to statement.
#[derive(Debug)]
pub struct ArrayParameters {
    table: Arc<TableGenerator>,
    columns: Vec<BytesMut>,
    value: Scratch,
    element: Scratch,
}

impl ArrayParameters {
    /// No rows yet.
    #[must_use]
    pub fn new(table: Arc<TableGenerator>) -> Self {
        let columns = table.columns().iter().map(|_| BytesMut::new()).collect();
        Self { table, columns, value: Scratch::default(), element: Scratch::default() }
    }

    /// `$1::integer[], $2::text[]`: without lengths, which the target columns have.
    #[must_use]
    pub fn holes(&self) -> String {
        let hole = |(number, column)| {
            let column: &crate::data::ColumnGenerator = column;
            format!("${number}::{}[]", base_name(column.kind()))
        };
        (1..).zip(self.table.columns()).map(hole).collect::<Vec<_>>().join(", ")
    }

    /// Replaces the rows.
    pub fn set_rows(&mut self, rows: &Range<u64>) {
        let count = i32::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(i32::MAX);
        for (column, out) in self.table.columns().iter().zip(&mut self.columns) {
            out.clear();
            // One dimension, flag of NULLs, type of the elements, their number, index of the first.
            out.put_i32(1);
            out.put_i32(0);
            out.put_u32(type_oid(column.kind()));
            out.put_i32(count);
            out.put_i32(1);
            let mut nulls = false;
            for row in rows.clone() {
                let value = column.value(row, &mut self.value);
                nulls |= matches!(value, Value::Null);
                put_field(value, column.kind(), out, &mut self.element);
            }
            out[7] = u8::from(nulls);
        }
    }

    /// The arrays, for `execute_raw`.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RawParameter<'_>> {
        self.columns.iter().map(|bytes| RawParameter(Some(bytes)))
    }

    /// Bytes of the arrays.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(BytesMut::len).sum()
    }
}
