//! Which generators SQL on the server can compute, to the last bit: those that follow from the row number alone.
//!
//! The rule is here because files are checked by it before a server starts; the translation is the engine's, and a
//! test there holds both together.

use super::{Column, ColumnType, Generator};

/// Most elements of an array that is written out in SQL.
const MOST_ELEMENTS: u32 = 1000;

impl Column {
    /// Whether SQL of the row number gives the very values of the generator.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn computable(&self) -> Result<(), &'static str> {
        match self.nulls {
            1.0 => Ok(()),
            0.0 => of_row(&self.generator, &self.kind),
            _ => Err("which rows are NULL is drawn at random"),
        }
    }
}

fn of_row(generator: &Generator, kind: &ColumnType) -> Result<(), &'static str> {
    match generator {
        Generator::Constant(_) | Generator::Sequence { .. } | Generator::Template(_) => Ok(()),
        Generator::Array { min, max, element } => match kind {
            _ if min != max => Err("the length of its arrays is drawn at random"),
            _ if *max > MOST_ELEMENTS => Err("its arrays are too long to be written out in SQL"),
            ColumnType::Array(of) => of_row(element, of),
            _ => Err("only an array column holds arrays"),
        },
        Generator::Object(members) => {
            members.iter().try_for_each(|(_, kind, member)| in_document(member, kind))
        }
        Generator::Stored(_) => Err("its values come from a file"),
        _ => Err("its values are drawn at random"),
    }
}

/// Documents are put together as text, so only values whose text is the same everywhere can be members.
fn in_document(generator: &Generator, kind: &ColumnType) -> Result<(), &'static str> {
    use ColumnType::{Int2, Int4, Int8, Numeric, Text, Varchar};
    match generator {
        Generator::Constant(_) => Ok(()),
        Generator::Object(members) => {
            members.iter().try_for_each(|(_, kind, member)| in_document(member, kind))
        }
        Generator::Template(_) => match kind {
            Text | Varchar(_) => Ok(()),
            _ => Err("its documents hold a template that is padded"),
        },
        Generator::Sequence { .. } => match kind {
            Int2 | Int4 | Int8 | Numeric { .. } | Text | Varchar(_) => Ok(()),
            _ => Err("its documents hold a sequence that is neither of whole or decimal numbers nor of text"),
        },
        Generator::Array { .. } => Err("its documents hold arrays"),
        _ => Err("its values are drawn at random"),
    }
}
