//! A table: its DDL, its rows and how their values are made.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Scalar;

/// A table bound for one treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Key in the file.
    pub name: String,
    /// The physical tables: one, or `copies` many.
    pub copies: Vec<TableCopy>,
    /// Columns in table order; all copies are alike.
    pub columns: Vec<Column>,
    /// Logged, unlogged or temporary.
    pub persistence: Persistence,
    /// Whether the DDL makes a partitioned table.
    pub partitioned: bool,
    /// Rows over all copies; copy `i` of `n` holds the `i`-th contiguous part.
    pub rows: u64,
    /// Seed of the generated values.
    pub seed: u64,
}

impl Table {
    /// The type of the numbers in a column that holds floats: `float4[]`, `float8[]`, or `bytea` made by `floats_of`.
    /// `None` for every other column.
    #[must_use]
    pub fn numbers_in(&self, column: &str) -> Option<&ColumnType> {
        let find = |name: &str| self.columns.iter().find(|column| column.name == name);
        let column = find(column)?;
        let array = match &column.generator {
            Generator::FloatsOf(source) if column.kind == ColumnType::Bytea => find(source)?,
            _ => column,
        };
        match &array.kind {
            ColumnType::Array(element) if matches!(**element, ColumnType::Float4 | ColumnType::Float8) => {
                Some(element)
            }
            _ => None,
        }
    }
}

/// One physical table with its own rendered SQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableCopy {
    /// Unquoted SQL name.
    pub name: String,
    /// CREATE statements.
    pub ddl: Vec<String>,
    /// Index and constraint statements.
    pub indexes: Vec<String>,
}

/// logged, unlogged or temporary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    /// Ordinary, WAL-logged.
    Logged,
    /// `CREATE UNLOGGED TABLE`.
    Unlogged,
}

/// A column with the generator of its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Unquoted SQL name.
    pub name: String,
    /// Type as far as generator and encoders need it.
    pub kind: ColumnType,
    /// Type as written in the DDL, for messages and casts.
    pub sql_type: String,
    /// NOT NULL or part of a primary key.
    pub not_null: bool,
    /// Share of rows that are NULL, 0 to 1.
    pub nulls: f64,
    /// How a non-null value is made from (seed, column, row number).
    pub generator: Generator,
}

/// The PostgreSQL types that rows can be generated for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric(precision, scale)`; `scale` digits after the point are always sent.
    Numeric {
        /// Total digits, if declared.
        precision: Option<u32>,
        /// Digits after the point.
        scale: u32,
    },
    /// `text`
    Text,
    /// `varchar(n)`
    Varchar(Option<u32>),
    /// `char(n)`; values are blank-padded to `n`.
    Char(u32),
    /// `bytea`
    Bytea,
    /// `date`
    Date,
    /// `timestamp`
    Timestamp,
    /// `timestamptz`
    Timestamptz,
    /// `uuid`
    Uuid,
    /// `jsonb`
    Jsonb,
    /// `json`
    Json,
    /// One-dimensional array of another type.
    Array(Box<ColumnType>),
}

/// How the value of a row is made. Row numbers start at 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    /// The same value in every row, already checked against the column's type.
    Constant(Scalar),
    /// `start + row * step`; days for dates, seconds for timestamps.
    Sequence {
        /// Value of row 0 (date and timestamp: the text of it).
        start: Scalar,
        /// Added for every row; not 0.
        step: f64,
    },
    /// The sequence `start .. start + rows`, each once, in a seeded pseudo-random order.
    Shuffle {
        /// Smallest value.
        start: Scalar,
    },
    /// Evenly distributed between two bounds, both included.
    Uniform {
        /// Smallest value.
        min: Scalar,
        /// Largest value.
        max: Scalar,
    },
    /// Whole numbers `start .. start + n` with probability of the k-th proportional to `1 / k^exponent`.
    Zipf {
        /// Most frequent value.
        start: i64,
        /// Number of distinct values.
        n: u64,
        /// Skew, greater than 0.
        exponent: f64,
    },
    /// Normally distributed.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation, at least 0.
        deviation: f64,
    },
    /// One of several values.
    Choice {
        /// The values, checked against the column's type.
        values: Vec<Scalar>,
        /// Relative weights, the same number; empty for equal weights.
        weights: Vec<f64>,
    },
    /// Text pieces and functions of the row number.
    Template(Vec<TemplatePart>),
    /// Random text or bytes of a length and compressibility.
    Random(TextShape),
    /// Version 4 (random) UUID.
    UuidV4,
    /// Version 7 (time-ordered) UUID: millisecond `start_ms + row`.
    UuidV7 {
        /// Unix time of row 0 in milliseconds.
        start_ms: u64,
    },
    /// A jsonb/json object with fixed keys.
    Object(Vec<(String, ColumnType, Generator)>),
    /// The numbers of a float array column of the same table and row, big-endian IEEE 754 one after another, as `bytea`.
    /// NULL where that column is NULL.
    FloatsOf(String),
    /// Values of a file.
    Stored(StoredColumn),
    /// An array of `min..=max` elements.
    Array {
        /// Fewest elements.
        min: u32,
        /// Most elements.
        max: u32,
        /// Generator of the elements.
        element: Box<Generator>,
    },
}

/// A column of a file of the user's, as it lies in a row store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredColumn {
    /// Folder of the store.
    pub store: PathBuf,
    /// Identity of the file's content (XXH3-128, hex).
    pub digest: String,
    /// Place of the column in the store.
    pub column: usize,
    /// Average bytes of a value that is not NULL.
    pub average_bytes: f64,
    /// Most bytes of a value.
    pub most_bytes: u32,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TemplatePart {
    /// Copied as it is.
    Text(String),
    /// `(row / divide) % modulo * multiply + add`, zero-padded to `pad` digits.
    Row {
        /// Divisor, at least 1.
        divide: u64,
        /// Modulus; 0 for none.
        modulo: u64,
        /// Factor.
        multiply: i64,
        /// Addend.
        add: i64,
        /// Minimum number of digits.
        pad: u8,
    },
}

/// Length and compressibility of generated text or bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextShape {
    /// Fewest characters (bytes for bytea).
    pub min_length: u32,
    /// Most characters.
    pub max_length: u32,
    /// Share of the text that repeats itself: 0 is incompressible letters, 1 is one repeated letter.
    pub compressibility: f64,
}
