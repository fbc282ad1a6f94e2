//! Checks a generator against its column's type and makes it ready to run.

use crate::model::{ColumnType, Generator, Scalar, TemplatePart, TextShape};

use super::calendar;
use super::constant::{constant, integer_bounds, width};
use super::distribution::{Weights, Zipf};
use super::maker::{Maker, Member, Shape, Target, Whole, template_number};
use super::permutation::Permutation;
use super::random::Stream;
use super::value::OwnedValue;
use super::{decimal, json};

/// Longest generated text, array and scale: beyond it a row could not be stored anyway.
const LONGEST: u32 = 1 << 28;

/// Exponents of zipf between which its arithmetic is sound.
const MIN_EXPONENT: f64 = 1e-9;
const MAX_EXPONENT: f64 = 100.0;

/// What a generator needs to know of its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) kind: &'a ColumnType,
    pub(super) rows: u64,
    pub(super) stream: Stream,
}

/// The reason why a generator cannot fill its column.
type Reason = String;

/// Makes a generator ready to run.
pub(super) fn compile(generator: &Generator, place: Place<'_>) -> Result<Maker, Reason> {
    match generator {
        Generator::Constant(scalar) => constant(scalar, place.kind).map(Maker::Constant),
        Generator::Sequence { start, step } => sequence(start, *step, place),
        Generator::Shuffle { start } => shuffle(start, place),
        Generator::Uniform { min, max } => uniform(min, max, place),
        Generator::Zipf { start, n, exponent } => zipf(*start, *n, *exponent, place),
        Generator::Normal { mean, deviation } => normal(*mean, *deviation, place),
        Generator::Choice { values, weights } => choice(values, weights, place.kind),
        Generator::Template(parts) => template(parts, place),
        Generator::Random(shape) => random(shape, place.kind),
        Generator::UuidV4 if *place.kind == ColumnType::Uuid => Ok(Maker::UuidV4),
        Generator::UuidV7 { start_ms } if *place.kind == ColumnType::Uuid => {
            Ok(Maker::UuidV7 { start_ms: *start_ms })
        }
        Generator::UuidV4 | Generator::UuidV7 { .. } => Err("only a uuid column holds UUIDs".to_owned()),
        Generator::Object(members) => object(members, place),
        Generator::Array { min, max, element } => array(*min, *max, element, place),
        Generator::Stored(_) => Err("values of a file fill whole columns only".to_owned()),
        Generator::FloatsOf(_) => Err("the numbers of another column fill whole columns only".to_owned()),
    }
}

/// Makes the bytes of the numbers of another column, which is described by `place`.
pub(super) fn floats_of(source: &Generator, place: Place<'_>) -> Result<Maker, Reason> {
    let floats = matches!(place.kind, ColumnType::Array(element) if matches!(**element, ColumnType::Float4 | ColumnType::Float8));
    if !floats {
        return Err("it takes the numbers of a column of type float4[] or float8[]".to_owned());
    }
    let array = compile(source, place)?;
    let null = |value: &OwnedValue| matches!(value, OwnedValue::Array(_, elements) if elements.contains(&OwnedValue::Null));
    let with_nulls = match &array {
        Maker::Array { element, .. } => element.can_be_null(),
        Maker::Constant(value) => null(value),
        Maker::Choice { values, .. } => values.iter().any(null),
        _ => false,
    };
    if with_nulls {
        return Err("bytes have no NULL for the elements of the array that are NULL".to_owned());
    }
    Ok(Maker::FloatsOf(Box::new(array)))
}

/// The target of numbers; `scale` is that of the generator's own numbers.
fn target(kind: &ColumnType, scale: u32) -> Option<Target> {
    Some(match kind {
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => {
            let (min, max) = integer_bounds(kind)?;
            Target::Int { min, max }
        }
        ColumnType::Float4 => Target::Float4,
        ColumnType::Float8 => Target::Float8,
        ColumnType::Numeric { precision: Some(precision), scale } => {
            let limit = 10_i128.checked_pow(*precision).map_or(i128::MAX, |limit| limit - 1);
            Target::Numeric { scale: *scale, limit }
        }
        ColumnType::Numeric { precision: None, scale: least } => {
            Target::Numeric { scale: scale.max(*least), limit: i128::MAX }
        }
        ColumnType::Text | ColumnType::Varchar(_) => Target::Text { width: None },
        ColumnType::Char(length) => Target::Text { width: Some(*length) },
        ColumnType::Date => Target::Date,
        ColumnType::Timestamp | ColumnType::Timestamptz => Target::Timestamp,
        _ => return None,
    })
}

fn numbers(kind: &ColumnType, scale: u32) -> Result<Target, Reason> {
    let target = target(kind, scale).ok_or("this type holds no numbers, dates or timestamps")?;
    match target {
        Target::Numeric { scale, .. } if scale > 36 => {
            Err(format!("{scale} digits after the point are too many"))
        }
        target => Ok(target),
    }
}

fn scale_of(scalar: &Scalar) -> u32 {
    decimal::written_scale(&scalar.to_string()).unwrap_or(0)
}

/// The scalar in units of the target.
fn units(scalar: &Scalar, kind: &ColumnType, target: Target) -> Result<i128, Reason> {
    let text = scalar.to_string();
    let number = match target {
        Target::Int { .. } | Target::Date | Target::Timestamp => match constant(scalar, kind)? {
            OwnedValue::Int(number) => Some(i128::from(number)),
            OwnedValue::Date(days) if days.unsigned_abs() < i32::MAX.unsigned_abs() => Some(i128::from(days)),
            OwnedValue::Timestamp(micros) if micros.unsigned_abs() < i64::MAX.unsigned_abs() => {
                Some(i128::from(micros))
            }
            _ => None,
        },
        Target::Numeric { scale, .. } => decimal::mantissa(&text, scale),
        _ => text.parse::<i64>().ok().map(i128::from),
    };
    number.ok_or_else(|| format!("{text:?} is no number this generator can start from"))
}

/// Refuses a source that leaves the type between two numbers.
fn inside(first: Option<i128>, last: Option<i128>, place: Place<'_>, target: Target) -> Result<(), Reason> {
    let (Some(first), Some(last)) = (first, last) else {
        return Err("the numbers pass 128 bits".to_owned());
    };
    let (low, high) = (first.min(last), first.max(last));
    let (min, max) = match target {
        Target::Int { min, max } => (i128::from(min), i128::from(max)),
        Target::Date => (i128::from(calendar::FIRST_DAY), i128::from(calendar::LAST_DAY)),
        Target::Timestamp => (i128::from(calendar::FIRST_INSTANT), i128::from(calendar::LAST_INSTANT)),
        Target::Numeric { limit, .. } => (-limit, limit),
        Target::Float4 | Target::Float8 | Target::Text { .. } => (i128::MIN, i128::MAX),
    };
    if low < min || high > max {
        return Err(format!("values from {low} to {high} leave the type's range {min} to {max}"));
    }
    match (target, width(place.kind)) {
        (Target::Text { .. }, Some(width)) if digits(low).max(digits(high)) > u64::from(width) => {
            Err(format!("values from {low} to {high} are longer than {width} characters"))
        }
        _ => Ok(()),
    }
}

fn digits(number: i128) -> u64 {
    number.to_string().len() as u64
}

fn last_row(rows: u64) -> u64 {
    rows.saturating_sub(1)
}

fn sequence(start: &Scalar, step: f64, place: Place<'_>) -> Result<Maker, Reason> {
    let step_text = step.to_string();
    let step_scale = decimal::written_scale(&step_text).ok_or("the step must be a finite number")?;
    let target = numbers(place.kind, step_scale.max(scale_of(start)))?;
    if matches!(target, Target::Float4 | Target::Float8) {
        return match start.to_string().parse::<f64>() {
            Ok(start) if start.is_finite() => Ok(Maker::FloatSequence { start, step, target }),
            _ => Err(format!("{:?} is no number", start.to_string())),
        };
    }
    let scale = match target {
        Target::Numeric { scale, .. } => scale,
        Target::Timestamp => 6,
        _ => 0,
    };
    if step_scale > scale {
        return Err(format!("the step {step_text} has more digits after the point than the type's {scale}"));
    }
    let step = decimal::mantissa(&step_text, scale).ok_or("the step passes 128 bits")?;
    let start = units(start, place.kind, target)?;
    let last = step.checked_mul(i128::from(last_row(place.rows))).and_then(|way| start.checked_add(way));
    inside(Some(start), last, place, target)?;
    Ok(Maker::Whole(Whole::Sequence { start, step }, target))
}

fn shuffle(start: &Scalar, place: Place<'_>) -> Result<Maker, Reason> {
    let target = numbers(place.kind, scale_of(start))?;
    let (start, unit) = (units(start, place.kind, target)?, target.unit());
    let last = unit.checked_mul(i128::from(last_row(place.rows))).and_then(|way| start.checked_add(way));
    inside(Some(start), last, place, target)?;
    let permutation = Permutation::new(place.rows, place.stream);
    Ok(Maker::Whole(Whole::Shuffle { start, unit, permutation }, target))
}

fn uniform(min: &Scalar, max: &Scalar, place: Place<'_>) -> Result<Maker, Reason> {
    if *place.kind == ColumnType::Bool {
        return Ok(Maker::Coin);
    }
    let target = numbers(place.kind, scale_of(min).max(scale_of(max)))?;
    if matches!(target, Target::Float4 | Target::Float8) {
        return match (min.to_string().parse::<f64>(), max.to_string().parse::<f64>()) {
            (Ok(min), Ok(max)) if min <= max && min.is_finite() && max.is_finite() => {
                Ok(Maker::FloatUniform { min, max, target })
            }
            _ => Err(format!("{min} to {max} is no range of finite numbers")),
        };
    }
    let (low, high) = (units(min, place.kind, target)?, units(max, place.kind, target)?);
    if low > high {
        return Err(format!("min {min} is above max {max}"));
    }
    inside(Some(low), Some(high), place, target)?;
    Ok(Maker::Whole(Whole::Uniform { min: low, span: high.abs_diff(low).saturating_add(1) }, target))
}

fn zipf(start: i64, n: u64, exponent: f64, place: Place<'_>) -> Result<Maker, Reason> {
    if n == 0 || !(MIN_EXPONENT..=MAX_EXPONENT).contains(&exponent) {
        return Err(format!(
            "zipf needs n of at least 1 and an exponent of {MIN_EXPONENT} to {MAX_EXPONENT}, not {n} and {exponent}"
        ));
    }
    let target = match numbers(place.kind, 0)? {
        Target::Date | Target::Timestamp => return Err("zipf makes numbers, not dates".to_owned()),
        target => target,
    };
    let unit = target.unit();
    let first = unit.checked_mul(i128::from(start));
    let last = unit.checked_mul(i128::from(start) + i128::from(n - 1));
    inside(first, last, place, target)?;
    let start = first.unwrap_or_default();
    Ok(Maker::Whole(Whole::Zipf { start, unit, zipf: Zipf::new(n, exponent) }, target))
}

fn normal(mean: f64, deviation: f64, place: Place<'_>) -> Result<Maker, Reason> {
    if !mean.is_finite() || !deviation.is_finite() || deviation < 0.0 {
        return Err(format!(
            "normal needs a finite mean and a deviation of at least 0, not {mean} and {deviation}"
        ));
    }
    match numbers(place.kind, 0)? {
        Target::Date | Target::Timestamp | Target::Text { .. } => Err("normal makes numbers only".to_owned()),
        target => Ok(Maker::Normal { mean, deviation, target }),
    }
}

fn choice(values: &[Scalar], weights: &[f64], kind: &ColumnType) -> Result<Maker, Reason> {
    let values: Result<Vec<OwnedValue>, Reason> = values.iter().map(|value| constant(value, kind)).collect();
    let values = values?;
    if values.is_empty() {
        return Err("a choice needs at least one value".to_owned());
    }
    if weights.is_empty() {
        return Ok(Maker::Choice { values, weights: None });
    }
    if weights.len() != values.len() {
        return Err(format!("{} weights for {} values", weights.len(), values.len()));
    }
    let weights = Weights::new(weights).ok_or("weights must be at least 0, and one above it")?;
    Ok(Maker::Choice { values, weights: Some(weights) })
}

fn template(parts: &[TemplatePart], place: Place<'_>) -> Result<Maker, Reason> {
    if !matches!(place.kind, ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_)) {
        return Err("a template makes text only".to_owned());
    }
    let mut longest = 0_u64;
    for part in parts {
        longest += match part {
            TemplatePart::Text(text) if text.contains('\0') => {
                return Err("text cannot hold the character NUL".to_owned());
            }
            TemplatePart::Text(text) => text.chars().count() as u64,
            TemplatePart::Row { divide, modulo, multiply, add, pad } => {
                let number = |row| template_number(row, *divide, 0, *multiply, *add);
                let quotient = last_row(place.rows) / (*divide).max(1);
                let top = if *modulo == 0 { quotient } else { quotient.min(modulo - 1) };
                let ends = [number(0), number(top.saturating_mul((*divide).max(1)))];
                ends.map(|end| digits(end).max(u64::from(*pad) + u64::from(end < 0)))
                    .into_iter()
                    .max()
                    .unwrap_or(0)
            }
        };
    }
    let fixed = width(place.kind);
    match fixed {
        Some(width) if longest > u64::from(width) => {
            Err(format!("the template gives up to {longest} characters, the column takes {width}"))
        }
        _ => Ok(Maker::Template { parts: parts.to_vec(), width: padded(place.kind) }),
    }
}

fn padded(kind: &ColumnType) -> Option<u32> {
    match kind {
        ColumnType::Char(length) => Some(*length),
        _ => None,
    }
}

fn random(shape: &TextShape, kind: &ColumnType) -> Result<Maker, Reason> {
    let (min, max, repeated) = (shape.min_length, shape.max_length, shape.compressibility);
    if min > max || max > LONGEST || !(0.0..=1.0).contains(&repeated) {
        return Err(format!("lengths {min} to {max} with compressibility {repeated} are no shape of a text"));
    }
    let shape = Shape { min, max, repeated };
    match (kind, width(kind)) {
        (ColumnType::Bytea, _) => Ok(Maker::Bytes(shape)),
        (_, Some(width)) if max > width => Err(format!("{max} characters do not fit into {width}")),
        (ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_), _) => {
            Ok(Maker::Letters { shape, width: padded(kind) })
        }
        _ => Err("only text and bytea hold random text".to_owned()),
    }
}

fn object(members: &[(String, ColumnType, Generator)], place: Place<'_>) -> Result<Maker, Reason> {
    if !matches!(place.kind, ColumnType::Jsonb | ColumnType::Json) {
        return Err("only json and jsonb hold objects".to_owned());
    }
    let mut made = Vec::with_capacity(members.len());
    for (name, kind, generator) in members {
        if made.iter().any(|member: &Member| member.name == *name) || name.contains('\0') {
            return Err(format!("the key {name:?} is there twice or holds NUL"));
        }
        // Documents inside follow the column: jsonb is canonical all the way down.
        let kind = if *kind == ColumnType::Json { place.kind } else { kind };
        let inner = Place { kind, rows: place.rows, stream: place.stream.named(name) };
        let maker = compile(generator, inner).map_err(|reason| format!("{name}: {reason}"))?;
        let mut label = String::new();
        json::write_text(name, &mut label);
        label.push_str(": ");
        made.push(Member { label, name: name.clone(), zoned: *kind == ColumnType::Timestamptz, maker });
    }
    if *place.kind == ColumnType::Jsonb {
        made.sort_by(|left, right| json::key_order(&left.name, &right.name));
    }
    Ok(Maker::Object(made))
}

fn array(min: u32, max: u32, element: &Generator, place: Place<'_>) -> Result<Maker, Reason> {
    let ColumnType::Array(kind) = place.kind else {
        return Err("only an array column holds arrays".to_owned());
    };
    if min > max || max > LONGEST || matches!(**kind, ColumnType::Array(_)) {
        return Err(format!("{min} to {max} elements of one dimension cannot be generated"));
    }
    let inner = Place { kind, rows: place.rows, stream: place.stream };
    let element = compile(element, inner).map_err(|reason| format!("element: {reason}"))?;
    Ok(Maker::Array { min, max, element: Box::new(element), kind: (**kind).clone() })
}
