//! Values as arithmetic of the row number, for engines that let the server compute them.

use crate::model::TemplatePart;

use super::maker::{Maker, Member, Target, Whole};
use super::value::{Scratch, Value};
use super::{json, table::ColumnGenerator};

/// How a value follows from the row number `row` of 0 and up.
#[derive(Debug, Clone)]
pub enum Formula<'a> {
    /// The same value in every row.
    Constant(Value<'a>),
    /// `(start + row * step) / 10^scale`; days since 2000-01-01 for dates, microseconds since then for timestamps.
    Whole {
        /// Value of row 0, in units of the last digit.
        start: i128,
        /// Added for every row.
        step: i128,
        /// Digits after the point.
        scale: u32,
    },
    /// `start + row * step` in double precision, then rounded to the column's type.
    Real {
        /// Value of row 0.
        start: f64,
        /// Added for every row.
        step: f64,
    },
    /// Text with functions of the row number.
    Template(&'a [TemplatePart]),
    /// An array of so many equal elements.
    Array(Box<Formula<'a>>, u32),
    /// A JSON document in pieces.
    Document(Vec<Piece<'a>>),
}

/// A piece of a JSON document.
#[derive(Debug, Clone)]
pub enum Piece<'a> {
    /// Copied as it is.
    Text(String),
    /// A number, as its text.
    Number(Formula<'a>),
    /// A text, as a JSON string.
    Quoted(Formula<'a>),
}

impl ColumnGenerator {
    /// The formula of the column's values; `None` when they do not follow from the row number alone.
    #[must_use]
    pub fn formula(&self) -> Option<Formula<'_>> {
        if let Some(value) = self.constant() {
            return Some(Formula::Constant(value));
        }
        if self.may_be_null() { None } else { of_maker(self.maker()) }
    }
}

fn of_maker(maker: &Maker) -> Option<Formula<'_>> {
    Some(match maker {
        Maker::Constant(value) => Formula::Constant(value.borrow()),
        Maker::Whole(Whole::Sequence { start, step }, target) => {
            let scale = if let Target::Numeric { scale, .. } = target { *scale } else { 0 };
            Formula::Whole { start: *start, step: *step, scale }
        }
        Maker::FloatSequence { start, step, .. } => Formula::Real { start: *start, step: *step },
        Maker::Template { parts, .. } => Formula::Template(parts),
        Maker::Array { min, max, element, .. } if min == max => {
            Formula::Array(Box::new(of_maker(element)?), *max)
        }
        Maker::Object(members) => {
            let mut pieces = Vec::new();
            document(members, &mut pieces)?;
            Formula::Document(pieces)
        }
        _ => return None,
    })
}

fn document<'a>(members: &'a [Member], pieces: &mut Vec<Piece<'a>>) -> Option<()> {
    literal("{", pieces);
    for (index, member) in members.iter().enumerate() {
        literal(if index == 0 { "" } else { ", " }, pieces);
        literal(&member.label, pieces);
        match &member.maker {
            Maker::Constant(value) => {
                let mut text = String::new();
                json::write_value(value.borrow(), member.zoned, &mut text, &mut Scratch::default());
                literal(&text, pieces);
            }
            Maker::Object(members) => document(members, pieces)?,
            Maker::Whole(Whole::Sequence { .. }, Target::Int { .. } | Target::Numeric { .. }) => {
                pieces.push(Piece::Number(of_maker(&member.maker)?));
            }
            Maker::Whole(Whole::Sequence { .. }, Target::Text { width: None })
            | Maker::Template { width: None, .. } => {
                pieces.push(Piece::Quoted(of_maker(&member.maker)?));
            }
            _ => return None,
        }
    }
    literal("}", pieces);
    Some(())
}

fn literal(text: &str, pieces: &mut Vec<Piece<'_>>) {
    if let Some(Piece::Text(last)) = pieces.last_mut() {
        last.push_str(text);
    } else {
        pieces.push(Piece::Text(text.to_owned()));
    }
}
