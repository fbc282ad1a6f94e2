//! The numbers of float arrays as a checksum that does not depend on how they are stored.

use xxhash_rust::xxh3::xxh3_128;

use super::content::Content;
use super::table::TableGenerator;
use super::value::{Scratch, Value};

/// Checksum of numbers, value by value: the wrapping sum of XXH3-128 of the numbers of each value (array or bytes)
/// that is not NULL, each number by its bits, big-endian. Order of rows does not matter, order of the numbers in
/// a value does; NULL elements count for nothing.
#[derive(Debug, Clone, Default)]
pub struct FloatHasher {
    content: Content,
    value: Vec<u8>,
}

impl FloatHasher {
    /// Adds a number to the value at hand.
    #[inline]
    pub fn float4(&mut self, number: f32) {
        self.value.extend_from_slice(&number.to_bits().to_be_bytes());
    }

    /// Adds a number to the value at hand.
    #[inline]
    pub fn float8(&mut self, number: f64) {
        self.value.extend_from_slice(&number.to_bits().to_be_bytes());
    }

    /// Ends the value at hand.
    #[inline]
    pub fn end_value(&mut self) {
        self.content.checksum = self.content.checksum.wrapping_add(xxh3_128(&self.value));
        self.value.clear();
    }

    /// Ends a row.
    #[inline]
    pub fn end_row(&mut self) {
        self.content.rows += 1;
    }

    /// Rows ended, with the checksum of their numbers.
    pub fn content(&self) -> Content {
        self.content
    }
}

/// What the numbers of some rows are; all columns of the generator are float arrays or bytes of such.
pub fn floats_of_rows(table: &TableGenerator, rows: std::ops::Range<u64>) -> Content {
    let mut hasher = FloatHasher::default();
    let (mut scratch, mut element) = (Scratch::default(), Scratch::default());
    for row in rows {
        for column in table.columns() {
            match column.value(row, &mut scratch) {
                Value::Array(array) => {
                    for index in 0..array.len() {
                        match array.element(index, &mut element) {
                            Value::Float4(number) => hasher.float4(number),
                            Value::Float8(number) => hasher.float8(number),
                            _ => {}
                        }
                    }
                }
                Value::Bytes(bytes) => hasher.value.extend_from_slice(bytes),
                _ => continue,
            }
            hasher.end_value();
        }
        hasher.end_row();
    }
    hasher.content()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::{column, table};
    use crate::model::{ColumnType, Generator, Scalar, Table};

    fn numbers(kind: ColumnType, nulls: f64) -> Table {
        let element = Generator::Uniform { min: Scalar::Float(-1e30), max: Scalar::Float(1e30) };
        let array = Generator::Array { min: 0, max: 5, element: Box::new(element) };
        let mut numbers = column("n", ColumnType::Array(Box::new(kind)), array);
        numbers.nulls = nulls;
        table(vec![numbers, column("b", ColumnType::Bytea, Generator::FloatsOf("n".to_owned()))], 200)
    }

    fn one(table: &Table, column: &str) -> Content {
        floats_of_rows(&TableGenerator::select(table, &[column.to_owned()]).expect("valid"), 0..200)
    }

    #[test]
    fn arrays_and_bytes_hold_the_same_numbers() {
        for kind in [ColumnType::Float4, ColumnType::Float8] {
            let table = numbers(kind, 0.3);
            let (arrays, bytes) = (one(&table, "n"), one(&table, "b"));
            assert_eq!(arrays, bytes);
            assert_eq!(arrays.rows, 200);
            assert_ne!(arrays.checksum, one(&numbers(ColumnType::Float8, 0.6), "n").checksum);
        }
    }

    #[test]
    fn only_float_arrays_without_null_elements_have_bytes() {
        let wrong = |kind: ColumnType, element: Generator| {
            let array = Generator::Array { min: 1, max: 1, element: Box::new(element) };
            let columns = vec![
                column("n", ColumnType::Array(Box::new(kind)), array),
                column("b", ColumnType::Bytea, Generator::FloatsOf("n".to_owned())),
            ];
            TableGenerator::new(&table(columns, 1)).expect_err("refused").to_string()
        };
        let text = wrong(ColumnType::Int4, Generator::Constant(Scalar::Int(1)));
        assert!(text.contains("float8[]"), "{text}");
        let text = wrong(ColumnType::Float8, Generator::Constant(Scalar::Null));
        assert!(text.contains("NULL"), "{text}");
    }

    #[test]
    fn order_inside_a_value_matters() {
        let of = |numbers: &[f64]| {
            let mut hasher = FloatHasher::default();
            for number in numbers {
                hasher.float8(*number);
            }
            hasher.end_value();
            hasher.content().checksum
        };
        assert_ne!(of(&[1.0, 2.0]), of(&[2.0, 1.0]));
        assert_ne!(of(&[0.0]), of(&[-0.0]), "to the last bit");
    }
}
