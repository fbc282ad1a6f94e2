//! Numbers of float arrays and of `bytea` columns that hold the same numbers, decoded one by one.

use std::hint::black_box;

use super::{array, text};
use crate::data::{Content, FloatHasher};
use crate::model::ColumnType;

/// Numbers and the checksum of their bits.
#[derive(Default)]
pub(super) struct Floats {
    hasher: FloatHasher,
    /// Bytes of a `bytea` that came as text.
    bytes: Vec<u8>,
}

impl Floats {
    /// Takes a value in binary format: an array, or the numbers one after another.
    pub(super) fn binary(
        &mut self,
        kind: &ColumnType,
        number: &ColumnType,
        bytes: &[u8],
    ) -> Result<(), String> {
        match kind {
            ColumnType::Array(_) => self.array(number, bytes).ok_or("the array is damaged")?,
            _ => unpack(&mut self.hasher, number, bytes).ok_or("the bytes hold no whole numbers")?,
        }
        self.hasher.end_value();
        Ok(())
    }

    /// Takes a value in text form: `{1.5,2}`, or bytes in hexadecimal.
    pub(super) fn text(
        &mut self,
        kind: &ColumnType,
        number: &ColumnType,
        value: &[u8],
    ) -> Result<(), String> {
        if let ColumnType::Array(_) = kind {
            array::each(value, |item| item.map_or(Ok(()), |item| parse(&mut self.hasher, number, item)))?;
        } else {
            self.bytes.clear();
            let bytes = &mut self.bytes;
            if !text::bytea(value, |byte| bytes.push(byte)) {
                return Err("the text is no bytea".to_owned());
            }
            unpack(&mut self.hasher, number, &self.bytes).ok_or("the bytes hold no whole numbers")?;
        }
        self.hasher.end_value();
        Ok(())
    }

    pub(super) fn end_row(&mut self) {
        self.hasher.end_row();
    }

    pub(super) fn content(&self) -> Content {
        self.hasher.content()
    }

    /// Dimensions, flag, type; of each dimension length and first index; then the elements, each after its length
    /// (`src/backend/utils/adt/arrayfuncs.c`, `array_send`).
    fn array(&mut self, number: &ColumnType, bytes: &[u8]) -> Option<()> {
        let (dimensions, rest) = bytes.split_first_chunk::<4>()?;
        let dimensions = usize::try_from(i32::from_be_bytes(*dimensions)).ok()?;
        let mut rest = rest.get(8 + dimensions * 8..)?;
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            rest = match usize::try_from(i32::from_be_bytes(*length)) {
                Ok(length) => {
                    let (item, after) = after.split_at_checked(length)?;
                    unpack(&mut self.hasher, number, item)?;
                    after
                }
                // NULL.
                Err(_) => after,
            };
        }
        rest.is_empty().then_some(())
    }
}

/// Takes big-endian numbers one after another.
#[inline]
fn unpack(hasher: &mut FloatHasher, number: &ColumnType, bytes: &[u8]) -> Option<()> {
    if *number == ColumnType::Float4 {
        let (items, rest) = bytes.as_chunks::<4>();
        for item in items {
            hasher.float4(black_box(f32::from_be_bytes(*item)));
        }
        rest.is_empty().then_some(())
    } else {
        let (items, rest) = bytes.as_chunks::<8>();
        for item in items {
            hasher.float8(black_box(f64::from_be_bytes(*item)));
        }
        rest.is_empty().then_some(())
    }
}

/// Takes a number in text form, in the precision of its type.
#[inline]
fn parse(hasher: &mut FloatHasher, number: &ColumnType, item: &[u8]) -> Result<(), String> {
    let wrong = || format!("{:?} is no number", String::from_utf8_lossy(item));
    let text = std::str::from_utf8(item).map_err(|_| wrong())?;
    if *number == ColumnType::Float4 {
        hasher.float4(black_box(text.parse().map_err(|_| wrong())?));
    } else {
        hasher.float8(black_box(text.parse().map_err(|_| wrong())?));
    }
    Ok(())
}
