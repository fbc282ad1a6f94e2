//! The rows of a table: one generator per column.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::model::{Column, ColumnType, Generator, StoredColumn, Table, TemplatePart};

use super::compile::{Place, compile, floats_of};
use super::maker::{Maker, Target, Whole};
use super::random::Stream;
use super::stored::RowStore;
use super::value::{Scratch, Value};

/// Why rows of a table cannot be generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DataError {
    /// A generator does not fit its column.
    #[error("table {table}, column {column} ({sql_type}): {reason}")]
    Column {
        /// Table of the file.
        table: String,
        /// Column.
        column: String,
        /// Type as written in the DDL.
        sql_type: String,
        /// What does not fit.
        reason: String,
    },
    /// A column was asked for that the table does not have.
    #[error("table {table} has no column {column} (it has {known})")]
    UnknownColumn {
        /// Table of the file.
        table: String,
        /// What was asked for.
        column: String,
        /// The columns there are.
        known: String,
    },
}

/// Makes the values of a table, each from (seed, column name, row number) alone.
#[derive(Debug, Clone)]
pub struct TableGenerator {
    columns: Vec<ColumnGenerator>,
    rows: u64,
}

impl TableGenerator {
    /// All columns, in table order.
    pub fn new(table: &Table) -> Result<Self, DataError> {
        Self::of(table, table.columns.iter())
    }

    /// Some columns, in the order of `names`; their values are those of [`Self::new`].
    pub fn select(table: &Table, names: &[String]) -> Result<Self, DataError> {
        let find = |name: &String| {
            table.columns.iter().find(|column| column.name == *name).ok_or_else(|| DataError::UnknownColumn {
                table: table.name.clone(),
                column: name.clone(),
                known: table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", "),
            })
        };
        let columns: Vec<&Column> = names.iter().map(find).collect::<Result<_, _>>()?;
        Self::of(table, columns.into_iter())
    }

    fn of<'a>(table: &Table, columns: impl Iterator<Item = &'a Column>) -> Result<Self, DataError> {
        let mut stores = Stores::default();
        let columns: Result<Vec<_>, _> =
            columns.map(|column| ColumnGenerator::new(column, table, &mut stores)).collect();
        Ok(Self { columns: columns?, rows: table.rows })
    }

    /// The columns.
    pub fn columns(&self) -> &[ColumnGenerator] {
        &self.columns
    }

    /// Rows of the whole table, over all its copies.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Row stores of one table, each opened once.
#[derive(Default)]
struct Stores(Vec<(PathBuf, Arc<RowStore>)>);

impl Stores {
    fn maker(&mut self, stored: &StoredColumn, kind: &ColumnType) -> Result<Maker, String> {
        let known = self.0.iter().find(|(folder, _)| *folder == stored.store);
        let store = if let Some((_, store)) = known {
            Arc::clone(store)
        } else {
            let folder = stored.store.display();
            let opened = RowStore::open(&stored.store).map_err(|error| {
                format!("the row store {folder} cannot be opened: {error}; remove that folder")
            })?;
            self.0.push((stored.store.clone(), Arc::new(opened)));
            Arc::clone(&self.0[self.0.len() - 1].1)
        };
        Ok(Maker::Stored { store, column: stored.column, kind: kind.clone() })
    }
}

/// Makes the values of one column.
#[derive(Debug, Clone)]
pub struct ColumnGenerator {
    name: String,
    kind: ColumnType,
    stream: Stream,
    nulls: Nulls,
    maker: Maker,
}

/// A value that follows plainly from the row number, so that an encoder can go from one row to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plain<'a> {
    /// An integer of `width` bytes: `start + row * step`.
    Number {
        /// 2, 4 or 8.
        width: usize,
        /// Value of row 0.
        start: i64,
        /// Added for every row.
        step: i64,
    },
    /// Pieces of text; `None` is the row number in decimal.
    Text(Vec<Option<&'a str>>),
}

/// Which rows are NULL.
#[derive(Debug, Clone, Copy)]
enum Nulls {
    None,
    /// Rows whose draw is below this.
    Below(u64),
    All,
}

/// Number of the stream that decides about NULL, apart from those of elements.
const NULL_STREAM: u64 = u64::MAX;

impl ColumnGenerator {
    fn new(column: &Column, table: &Table, stores: &mut Stores) -> Result<Self, DataError> {
        let error = |reason: String| DataError::Column {
            table: table.name.clone(),
            column: column.name.clone(),
            sql_type: column.sql_type.clone(),
            reason,
        };
        if let Generator::Stored(stored) = &column.generator {
            let maker = stores.maker(stored, &column.kind).map_err(error)?;
            // Which values are NULL, the file says.
            return Ok(Self {
                name: column.name.clone(),
                kind: column.kind.clone(),
                stream: Stream::of_column(table.seed, &column.name),
                nulls: Nulls::None,
                maker,
            });
        }
        // Bytes of another column's numbers are drawn where that column's are, NULL as well.
        let source = match &column.generator {
            Generator::FloatsOf(name) => Some(float_source(name, column, table).map_err(error)?),
            _ => None,
        };
        let drawn = source.unwrap_or(column);
        let stream = Stream::of_column(table.seed, &drawn.name);
        let place = Place { kind: &drawn.kind, rows: table.rows, stream };
        let maker = match source {
            Some(source) => floats_of(&source.generator, place).map_err(error)?,
            None => compile(&column.generator, place).map_err(error)?,
        };
        let nulls = nulls(drawn.nulls).map_err(error)?;
        if column.not_null && (maker.can_be_null() || !matches!(nulls, Nulls::None)) {
            return Err(error("NULL is not allowed here".to_owned()));
        }
        Ok(Self { name: column.name.clone(), kind: column.kind.clone(), stream, nulls, maker })
    }

    /// Unquoted SQL name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type.
    pub fn kind(&self) -> &ColumnType {
        &self.kind
    }

    /// The value when it is the same in every row.
    pub fn constant(&self) -> Option<Value<'_>> {
        match (&self.maker, self.nulls) {
            (_, Nulls::All) => Some(Value::Null),
            (Maker::Constant(value), Nulls::None) => Some(value.borrow()),
            _ => None,
        }
    }

    /// Whether some rows, drawn at random, are NULL.
    pub(super) fn may_be_null(&self) -> bool {
        !matches!(self.nulls, Nulls::None)
    }

    pub(super) fn maker(&self) -> &Maker {
        &self.maker
    }

    /// How the value follows from the row number, when it does so plainly.
    pub fn plain(&self) -> Option<Plain<'_>> {
        if !matches!(self.nulls, Nulls::None) {
            return None;
        }
        match &self.maker {
            Maker::Whole(Whole::Sequence { start, step }, Target::Int { .. }) => {
                let width = match self.kind {
                    ColumnType::Int2 => 2,
                    ColumnType::Int4 => 4,
                    ColumnType::Int8 => 8,
                    _ => return None,
                };
                let (start, step) = (i64::try_from(*start).ok()?, i64::try_from(*step).ok()?);
                Some(Plain::Number { width, start, step })
            }
            Maker::Template { parts, width: None } => {
                let pieces = parts.iter().map(|part| match part {
                    TemplatePart::Text(text) => Some(Some(text.as_str())),
                    TemplatePart::Row { divide: 1, modulo: 0, multiply: 1, add: 0, pad: 0 } => Some(None),
                    TemplatePart::Row { .. } => None,
                });
                pieces.collect::<Option<Vec<_>>>().map(Plain::Text)
            }
            _ => None,
        }
    }

    /// The value of a row, made in `scratch` where it needs memory.
    #[inline]
    pub fn value<'s>(&'s self, row: u64, scratch: &'s mut Scratch) -> Value<'s> {
        match self.nulls {
            Nulls::None => {}
            Nulls::All => return Value::Null,
            Nulls::Below(bound) => {
                if self.stream.numbered(NULL_STREAM).at(row).bits() < bound {
                    return Value::Null;
                }
            }
        }
        self.maker.value(self.stream, row, scratch)
    }
}

/// The column whose numbers a `bytea` column holds.
fn float_source<'a>(name: &str, column: &Column, table: &'a Table) -> Result<&'a Column, String> {
    if column.kind != ColumnType::Bytea {
        return Err("only bytea holds the bytes of another column's numbers".to_owned());
    }
    let found = table.columns.iter().find(|other| other.name == name);
    found.ok_or_else(|| format!("there is no column {name} to take numbers from"))
}

fn nulls(share: f64) -> Result<Nulls, String> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    let bound = (share * 18_446_744_073_709_551_616.0) as u64;
    match share {
        0.0 => Ok(Nulls::None),
        1.0 => Ok(Nulls::All),
        share if (0.0..1.0).contains(&share) => Ok(Nulls::Below(bound)),
        share => Err(format!("the share of nulls is {share}, not within 0 to 1")),
    }
}
