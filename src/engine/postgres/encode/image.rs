//! Rows that differ from the row before in a few bytes only: numbers that count up, and the row number in text.
//!
//! The bytes of the last row are kept and what changed is written over, so that a row costs one copy. That matters
//! where the client must not be what is measured; the bytes are the same as the general encoder's.

use crate::data::{Plain, TableGenerator};

/// The last row of a table whose columns are all constant or plain.
#[derive(Debug, Clone)]
pub(super) struct RowImage {
    fields: Vec<Field>,
    bytes: Vec<u8>,
    row: Option<u64>,
    /// Places of numbers in `bytes`.
    numbers: Vec<Number>,
    /// First places of the row number's digits in `bytes`.
    digits: Vec<usize>,
}

#[derive(Debug, Clone)]
enum Field {
    /// A constant field with its length.
    Constant(Vec<u8>),
    /// `start + row * step` as a big-endian integer of `width` bytes.
    Number { width: usize, start: i64, step: i64 },
    /// Text; `None` is the row number.
    Text(Vec<Option<Vec<u8>>>),
}

#[derive(Debug, Clone, Copy)]
struct Number {
    at: usize,
    width: usize,
    start: i64,
    step: i64,
}

impl RowImage {
    /// `None` when a column is neither constant nor plain. `constant` encodes a constant column with its length.
    pub(super) fn of(
        table: &TableGenerator,
        mut constant: impl FnMut(usize) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let fields = table.columns().iter().enumerate().map(|(index, column)| {
            if let Some(bytes) = constant(index) {
                return Some(Field::Constant(bytes));
            }
            match column.plain()? {
                Plain::Number { width, start, step } => Some(Field::Number { width, start, step }),
                Plain::Text(pieces) => {
                    let owned = |piece: Option<&str>| piece.map(|text| text.as_bytes().to_vec());
                    Some(Field::Text(pieces.into_iter().map(owned).collect()))
                }
            }
        });
        let fields = fields.collect::<Option<Vec<_>>>()?;
        Some(Self { fields, bytes: Vec::new(), row: None, numbers: Vec::new(), digits: Vec::new() })
    }

    /// The bytes of a row, its number of fields first.
    #[inline]
    pub(super) fn at(&mut self, row: u64) -> &[u8] {
        if self.row == row.checked_sub(1) && self.row.is_some() && self.count_up() {
            for number in &self.numbers {
                put_number(&mut self.bytes, *number, row);
            }
        } else {
            self.build(row);
        }
        self.row = Some(row);
        &self.bytes
    }

    /// Adds one to the row number wherever it stands; false when it needs a further digit.
    #[inline]
    fn count_up(&mut self) -> bool {
        let Some(first) = self.digits.first().copied() else { return true };
        let mut nines = 0;
        let width = self.row.map_or(1, decimal_digits);
        while nines < width && self.bytes[first + width - 1 - nines] == b'9' {
            nines += 1;
        }
        if nines == width {
            return false;
        }
        for start in &self.digits {
            let end = start + width;
            self.bytes[end - nines..end].fill(b'0');
            self.bytes[end - 1 - nines] += 1;
        }
        true
    }

    #[cold]
    fn build(&mut self, row: u64) {
        self.bytes.clear();
        self.numbers.clear();
        self.digits.clear();
        // The planner refuses more than 1,600 columns.
        let count = i16::try_from(self.fields.len()).unwrap_or(i16::MAX);
        self.bytes.extend_from_slice(&count.to_be_bytes());
        let decimal = row.to_string();
        for field in &self.fields {
            match field {
                Field::Constant(bytes) => self.bytes.extend_from_slice(bytes),
                Field::Number { width, start, step } => {
                    put_length(&mut self.bytes, *width);
                    let number = Number { at: self.bytes.len(), width: *width, start: *start, step: *step };
                    self.bytes.resize(number.at + width, 0);
                    put_number(&mut self.bytes, number, row);
                    self.numbers.push(number);
                }
                Field::Text(pieces) => {
                    let length = |piece: &Option<Vec<u8>>| piece.as_ref().map_or(decimal.len(), Vec::len);
                    put_length(&mut self.bytes, pieces.iter().map(length).sum());
                    for piece in pieces {
                        if piece.is_none() {
                            self.digits.push(self.bytes.len());
                        }
                        self.bytes.extend_from_slice(piece.as_deref().unwrap_or(decimal.as_bytes()));
                    }
                }
            }
        }
    }
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
}

/// Ranges are checked when the generator is made, so the number fits its width.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "rows are checked to be far fewer")]
fn put_number(bytes: &mut [u8], number: Number, row: u64) {
    let value = number.start.wrapping_add(number.step.wrapping_mul(row as i64));
    let all = value.to_be_bytes();
    bytes[number.at..number.at + number.width].copy_from_slice(&all[8 - number.width..]);
}

#[inline]
fn decimal_digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}
