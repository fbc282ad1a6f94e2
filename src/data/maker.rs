//! Generators made ready to run: checked, resolved for the column's type, without allocation per row.

use std::sync::Arc;

use crate::model::{ColumnType, TemplatePart};

use super::calendar::SECOND;
use super::decimal::write_fixed;
use super::distribution::{Weights, Zipf, normal};
use super::json;
use super::permutation::Permutation;
use super::random::{Draws, Stream};
use super::stored::RowStore;
use super::value::{ArrayValue, Nested, OwnedValue, Scratch, Value};

/// Makes the values of a column, of elements of an array or of a member of an object.
#[derive(Debug, Clone)]
pub(super) enum Maker {
    Constant(OwnedValue),
    Whole(Whole, Target),
    FloatSequence {
        start: f64,
        step: f64,
        target: Target,
    },
    FloatUniform {
        min: f64,
        max: f64,
        target: Target,
    },
    Normal {
        mean: f64,
        deviation: f64,
        target: Target,
    },
    Coin,
    Choice {
        values: Vec<OwnedValue>,
        weights: Option<Weights>,
    },
    Template {
        parts: Vec<TemplatePart>,
        width: Option<u32>,
    },
    Letters {
        shape: Shape,
        width: Option<u32>,
    },
    Bytes(Shape),
    UuidV4,
    UuidV7 {
        start_ms: u64,
    },
    Object(Vec<Member>),
    /// A column of a row store.
    Stored {
        store: Arc<RowStore>,
        column: usize,
        kind: ColumnType,
    },
    Array {
        min: u32,
        max: u32,
        element: Box<Maker>,
        kind: ColumnType,
    },
    /// The bytes of the numbers of an array.
    FloatsOf(Box<Maker>),
}

/// A source of whole numbers: of the type's units, such as days, microseconds or units of a numeric's last digit.
#[derive(Debug, Clone)]
pub(super) enum Whole {
    /// `start + row * step`.
    Sequence { start: i128, step: i128 },
    /// `start + permutation(row) * unit`.
    Shuffle { start: i128, unit: i128, permutation: Permutation },
    /// `min` and up, `span` different numbers.
    Uniform { min: i128, span: u128 },
    /// `start + (rank - 1) * unit`.
    Zipf { start: i128, unit: i128, zipf: Zipf },
}

/// What a number becomes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    Int {
        min: i64,
        max: i64,
    },
    Float4,
    Float8,
    /// `limit` is the largest absolute number of last digits.
    Numeric {
        scale: u32,
        limit: i128,
    },
    /// `width` is what it is padded to, for `char(n)`.
    Text {
        width: Option<u32>,
    },
    Date,
    Timestamp,
}

/// Length and repetition of random text or bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) repeated: f64,
}

/// A key of an object with its value.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// The key as a JSON string, with `: ` after it.
    pub(super) label: String,
    /// Name of the stream.
    pub(super) name: String,
    pub(super) zoned: bool,
    pub(super) maker: Maker,
}

impl Maker {
    /// Whether [`Self::value`] can give NULL.
    pub(super) fn can_be_null(&self) -> bool {
        let null = |value: &OwnedValue| *value == OwnedValue::Null;
        match self {
            Self::Constant(value) => null(value),
            Self::Choice { values, .. } => values.iter().any(null),
            Self::FloatsOf(array) => array.can_be_null(),
            _ => false,
        }
    }

    /// The value of a row.
    #[inline]
    pub(super) fn value<'s>(&'s self, stream: Stream, row: u64, scratch: &'s mut Scratch) -> Value<'s> {
        match self {
            Self::Constant(value) => value.borrow(),
            Self::Whole(whole, target) => target.whole(whole.number(stream, row), scratch),
            Self::Template { parts, width } => template(parts, *width, row, scratch),
            Self::Stored { store, column, kind } => store.value(row, *column, kind, scratch),
            _ => self.drawn(stream, row, scratch),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a sequence of floats has the precision of floats")]
    fn drawn<'s>(&'s self, stream: Stream, row: u64, scratch: &'s mut Scratch) -> Value<'s> {
        let mut draws = stream.at(row);
        match self {
            Self::FloatSequence { start, step, target } => target.real(start + row as f64 * step, scratch),
            Self::FloatUniform { min, max, target } => {
                // Two products, so that the range may be wider than the largest float.
                let share = draws.unit();
                let real = min * (1.0 - share) + max * share;
                target.real(real.clamp(*min, *max), scratch)
            }
            Self::Normal { mean, deviation, target } => {
                target.real(mean + deviation * normal(&mut draws), scratch)
            }
            Self::Coin => Value::Bool(draws.bits() >> 63 == 1),
            Self::Choice { values, weights } => {
                let index = match weights {
                    Some(weights) => weights.pick(&mut draws),
                    None => usize::try_from(draws.below(values.len() as u128)).unwrap_or(0),
                };
                values.get(index).map_or(Value::Null, OwnedValue::borrow)
            }
            Self::Letters { shape, width } => letters(*shape, *width, &mut draws, scratch),
            Self::Bytes(shape) => random_bytes(*shape, &mut draws, scratch),
            Self::UuidV4 => Value::Uuid(uuid(draws.wide_bits(), 4)),
            Self::UuidV7 { start_ms } => {
                let moment = u128::from(start_ms.wrapping_add(row)) << 80;
                Value::Uuid(uuid(moment | (draws.wide_bits() >> 48), 7))
            }
            Self::Object(members) => object(members, stream, row, scratch),
            Self::Array { min, max, element, kind } => {
                let count = min + draws.up_to(max - min);
                Value::Array(ArrayValue::made(kind, element, stream, row, count))
            }
            Self::FloatsOf(array) => floats_of(array, stream, row, scratch),
            Self::Constant(_) | Self::Whole(..) | Self::Template { .. } | Self::Stored { .. } => {
                self.value(stream, row, scratch)
            }
        }
    }
}

impl Whole {
    #[inline]
    fn number(&self, stream: Stream, row: u64) -> i128 {
        match self {
            Self::Sequence { start, step } => start + i128::from(row) * step,
            Self::Shuffle { start, unit, permutation } => start + i128::from(permutation.at(row)) * unit,
            Self::Uniform { min, span } => min.wrapping_add_unsigned(stream.at(row).below(*span)),
            Self::Zipf { start, unit, zipf } => start + i128::from(zipf.rank(&mut stream.at(row)) - 1) * unit,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "ranges are checked when the generator is made; floats lose digits as the type does"
)]
impl Target {
    /// A whole number in the type's units.
    #[inline]
    fn whole(self, number: i128, scratch: &mut Scratch) -> Value<'_> {
        match self {
            Self::Int { .. } => Value::Int(number as i64),
            Self::Float4 => Value::Float4(number as f32),
            Self::Float8 => Value::Float8(number as f64),
            Self::Numeric { scale, .. } => {
                scratch.text.clear();
                write_fixed(number, scale, &mut scratch.text);
                Value::Numeric(&scratch.text)
            }
            Self::Text { width } => {
                scratch.text.clear();
                write_fixed(number, 0, &mut scratch.text);
                pad(&mut scratch.text, width);
                Value::Text(&scratch.text)
            }
            Self::Date => Value::Date(number as i32),
            Self::Timestamp => Value::Timestamp(number as i64),
        }
    }

    /// A real number, rounded half away from zero and clamped to the type.
    fn real(self, number: f64, scratch: &mut Scratch) -> Value<'_> {
        match self {
            // Casts of floats saturate.
            Self::Int { min, max } => Value::Int((libm::round(number) as i64).clamp(min, max)),
            Self::Float4 => Value::Float4((number as f32).clamp(f32::MIN, f32::MAX)),
            Self::Float8 => Value::Float8(number.clamp(f64::MIN, f64::MAX)),
            Self::Numeric { scale, limit } => {
                let digits = libm::round(number * power_of_ten(scale)) as i128;
                self.whole(digits.clamp(-limit, limit), scratch)
            }
            Self::Text { .. } | Self::Date | Self::Timestamp => {
                self.whole(libm::round(number) as i128, scratch)
            }
        }
    }
}

/// Ten to a power by repeated multiplication, the same on every platform.
fn power_of_ten(power: u32) -> f64 {
    (0..power).fold(1.0, |product, _| product * 10.0)
}

/// Pads to `char(n)`; all texts here are ASCII or templates whose width was counted in characters.
fn pad(text: &mut String, width: Option<u32>) {
    if let Some(width) = width {
        let length = if text.is_ascii() { text.len() } else { text.chars().count() };
        text.extend(std::iter::repeat_n(' ', (width as usize).saturating_sub(length)));
    }
}

fn template<'s>(
    parts: &'s [TemplatePart],
    width: Option<u32>,
    row: u64,
    scratch: &'s mut Scratch,
) -> Value<'s> {
    let text = &mut scratch.text;
    text.clear();
    for part in parts {
        match part {
            TemplatePart::Text(piece) => text.push_str(piece),
            TemplatePart::Row { divide: 1, modulo: 0, multiply: 1, add: 0, pad: 0 } => {
                text.push_str(itoa::Buffer::new().format(row));
            }
            TemplatePart::Row { divide, modulo, multiply, add, pad } => {
                let number = template_number(row, *divide, *modulo, *multiply, *add);
                let mut buffer = itoa::Buffer::new();
                let digits = buffer.format(number.unsigned_abs());
                text.push_str(if number < 0 { "-" } else { "" });
                text.extend(std::iter::repeat_n('0', usize::from(*pad).saturating_sub(digits.len())));
                text.push_str(digits);
            }
        }
    }
    pad(text, width);
    Value::Text(text)
}

/// `(row / divide) % modulo * multiply + add`.
pub(super) fn template_number(row: u64, divide: u64, modulo: u64, multiply: i64, add: i64) -> i128 {
    let quotient = row / divide.max(1);
    let rest = if modulo == 0 { quotient } else { quotient % modulo };
    i128::from(rest) * i128::from(multiply) + i128::from(add)
}

/// 64 letters of one byte: six random bits each, so that pglz and lz4 find nothing to shorten.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Letters of one draw of 64 bits.
const LETTERS_OF_DRAW: usize = 10;

/// Length of a text and how many bytes at its end repeat one letter.
fn lengths(shape: Shape, draws: &mut Draws) -> (usize, usize) {
    let length = shape.min + draws.up_to(shape.max - shape.min);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32")]
    let repeated = libm::round(f64::from(length) * shape.repeated) as usize;
    (length as usize, repeated.min(length as usize))
}

fn letter(bits: u64) -> u8 {
    LETTERS[usize::from(bits.to_le_bytes()[0] & 63)]
}

fn letters<'s>(shape: Shape, width: Option<u32>, draws: &mut Draws, scratch: &'s mut Scratch) -> Value<'s> {
    let (length, repeated) = lengths(shape, draws);
    let text = &mut scratch.text;
    text.clear();
    let mut missing = length - repeated;
    while missing > 0 {
        let mut bits = draws.bits();
        for _ in 0..missing.min(LETTERS_OF_DRAW) {
            text.push(char::from(letter(bits)));
            bits >>= 6;
        }
        missing = missing.saturating_sub(LETTERS_OF_DRAW);
    }
    let again = char::from(letter(draws.bits()));
    text.extend(std::iter::repeat_n(again, repeated));
    pad(text, width);
    Value::Text(text)
}

fn random_bytes<'s>(shape: Shape, draws: &mut Draws, scratch: &'s mut Scratch) -> Value<'s> {
    let (length, repeated) = lengths(shape, draws);
    let bytes = &mut scratch.bytes;
    bytes.clear();
    while bytes.len() < length - repeated {
        bytes.extend_from_slice(&draws.bits().to_le_bytes());
    }
    bytes.truncate(length - repeated);
    let [again, ..] = draws.bits().to_le_bytes();
    bytes.resize(length, again);
    Value::Bytes(bytes)
}

/// Sets version and variant (RFC 9562).
fn uuid(bits: u128, version: u128) -> [u8; 16] {
    let cleared = bits & !(0xF << 76) & !(0b11 << 62);
    (cleared | (version << 76) | (0b10 << 62)).to_be_bytes()
}

fn object<'s>(members: &'s [Member], stream: Stream, row: u64, scratch: &'s mut Scratch) -> Value<'s> {
    let Nested { text, member: inner, element, .. } = scratch.nested();
    text.clear();
    text.push('{');
    for (index, member) in members.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        text.push_str(&member.label);
        let value = member.maker.value(stream.named(&member.name), row, inner);
        json::write_value(value, member.zoned, text, element);
    }
    text.push('}');
    Value::Json(text)
}

fn floats_of<'s>(array: &'s Maker, stream: Stream, row: u64, scratch: &'s mut Scratch) -> Value<'s> {
    let Nested { bytes, member, element, .. } = scratch.nested();
    let Value::Array(array) = array.value(stream, row, member) else { return Value::Null };
    bytes.clear();
    for index in 0..array.len() {
        match array.element(index, element) {
            Value::Float4(number) => bytes.extend_from_slice(&number.to_be_bytes()),
            Value::Float8(number) => bytes.extend_from_slice(&number.to_be_bytes()),
            // Refused when the generator is made.
            _ => {}
        }
    }
    Value::Bytes(bytes)
}

impl Target {
    /// How many of the type's units make one step of a sequence or shuffle: seconds for timestamps.
    pub(super) fn unit(self) -> i128 {
        match self {
            Self::Timestamp => i128::from(SECOND),
            Self::Numeric { scale, .. } => 10_i128.checked_pow(scale).unwrap_or(i128::MAX),
            _ => 1,
        }
    }
}
