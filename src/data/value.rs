//! One value, borrowed from its generator or from reusable memory, and its owned twin for constants.

use crate::model::ColumnType;

use super::maker::Maker;
use super::random::Stream;
use super::stored::{Cursor, field as stored};

/// A value of a row. What it means on the wire depends on the column's type.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`, `integer`, `bigint`; always inside the column's range.
    Int(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric` as the server prints it: all digits of its scale, or `NaN`, `Infinity`, `-Infinity`.
    Numeric(&'a str),
    /// `text`, `varchar`, and `char(n)` padded with blanks to `n`.
    Text(&'a str),
    /// `bytea`
    Bytes(&'a [u8]),
    /// Days since 2000-01-01; the ends of the range are the infinities.
    Date(i32),
    /// Microseconds since 2000-01-01 (UTC for `timestamptz`); the ends of the range are the infinities.
    Timestamp(i64),
    /// `uuid`
    Uuid([u8; 16]),
    /// `json` as written, `jsonb` as the server prints it.
    Json(&'a str),
    /// A one-dimensional array.
    Array(ArrayValue<'a>),
}

/// An array whose elements are made one by one when asked for.
#[derive(Debug, Clone, Copy)]
pub struct ArrayValue<'a> {
    /// Type of the elements.
    pub kind: &'a ColumnType,
    elements: Elements<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Elements<'a> {
    Constant(&'a [OwnedValue]),
    /// A field of a row store.
    Stored(&'a [u8]),
    Made {
        maker: &'a Maker,
        stream: Stream,
        row: u64,
        count: u32,
    },
}

impl<'a> ArrayValue<'a> {
    pub(super) fn constant(kind: &'a ColumnType, elements: &'a [OwnedValue]) -> Self {
        Self { kind, elements: Elements::Constant(elements) }
    }

    pub(super) fn made(kind: &'a ColumnType, maker: &'a Maker, stream: Stream, row: u64, count: u32) -> Self {
        Self { kind, elements: Elements::Made { maker, stream, row, count } }
    }

    pub(super) fn stored(kind: &'a ColumnType, field: &'a [u8]) -> Self {
        Self { kind, elements: Elements::Stored(field) }
    }

    /// Number of elements.
    pub fn len(&self) -> u32 {
        match self.elements {
            Elements::Constant(elements) => u32::try_from(elements.len()).unwrap_or(u32::MAX),
            Elements::Stored(field) => stored::count(field),
            Elements::Made { count, .. } => count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an element is NULL.
    pub fn has_null(&self) -> bool {
        match self.elements {
            Elements::Constant(elements) => {
                elements.iter().any(|element| matches!(element, OwnedValue::Null))
            }
            Elements::Stored(field) => stored::has_null(field),
            Elements::Made { maker, .. } => maker.can_be_null(),
        }
    }

    /// The element at `index`, made in `scratch`; NULL beyond the end.
    pub fn element<'s>(&self, index: u32, scratch: &'s mut Scratch) -> Value<'s>
    where
        'a: 's,
    {
        match self.elements {
            Elements::Constant(elements) => {
                elements.get(index as usize).map_or(Value::Null, OwnedValue::borrow)
            }
            Elements::Stored(field) => stored::element(field, index)
                .and_then(|field| stored::value(field, self.kind))
                .unwrap_or(Value::Null),
            Elements::Made { maker, stream, row, .. } => {
                maker.value(stream.numbered(u64::from(index)), row, scratch)
            }
        }
    }
}

/// Memory that values are made in; one per thread is kept and reused for every row.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(super) text: String,
    pub(super) bytes: Vec<u8>,
    inner: Option<Box<(Scratch, Scratch)>>,
    cursor: Option<Box<Cursor>>,
}

/// The parts of a [`Scratch`] that an object needs at once.
pub(super) struct Nested<'a> {
    /// Where the object is written.
    pub(super) text: &'a mut String,
    /// Where bytes are written.
    pub(super) bytes: &'a mut Vec<u8>,
    /// Where its members are made.
    pub(super) member: &'a mut Scratch,
    /// Where elements of arrays in it are made.
    pub(super) element: &'a mut Scratch,
}

impl Scratch {
    /// The page of a row store that is being read.
    pub(super) fn cursor(&mut self) -> &mut Cursor {
        self.cursor.get_or_insert_default()
    }

    pub(super) fn nested(&mut self) -> Nested<'_> {
        let (member, element) = self.inner.get_or_insert_default().as_mut();
        Nested { text: &mut self.text, bytes: &mut self.bytes, member, element }
    }
}

/// A value that owns its memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OwnedValue {
    Null,
    Bool(bool),
    Int(i64),
    Float4(f32),
    Float8(f64),
    Numeric(String),
    Text(String),
    Bytes(Vec<u8>),
    Date(i32),
    Timestamp(i64),
    Uuid([u8; 16]),
    Json(String),
    Array(ColumnType, Vec<OwnedValue>),
}

impl OwnedValue {
    #[inline]
    pub(super) fn borrow(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float4(value) => Value::Float4(*value),
            Self::Float8(value) => Value::Float8(*value),
            Self::Numeric(text) => Value::Numeric(text),
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::Date(days) => Value::Date(*days),
            Self::Timestamp(micros) => Value::Timestamp(*micros),
            Self::Uuid(bytes) => Value::Uuid(*bytes),
            Self::Json(text) => Value::Json(text),
            Self::Array(kind, elements) => Value::Array(ArrayValue::constant(kind, elements)),
        }
    }
}
