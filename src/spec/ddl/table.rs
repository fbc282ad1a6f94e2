//! `CREATE TABLE` and the statements around it.

use sqlparser::ast::Statement as Ast;

use super::alter::companion;
use super::columns::read_columns;
use super::header::{Header, Partition};
use super::source::{Place, Source, SqlFinding};
use crate::model::{ColumnType, Persistence};

/// Most columns a PostgreSQL table can have.
pub const MAX_COLUMNS: usize = 1600;

/// The remedy for SQL that is not understood.
pub(super) const DECLARE: &str =
    "or declare the table's columns under `columns:`, then the SQL is sent as it is written";
/// What the SQL of a table says.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedTable {
    /// The table's name without quotes, as the server stores it.
    pub name: String,
    /// Logged or unlogged.
    pub persistence: Persistence,
    /// Whether it is PARTITION BY.
    pub partitioned: bool,
    /// Columns that rows bring a value for, in table order.
    pub columns: Vec<ParsedColumn>,
    /// Names of columns the server computes (`GENERATED ALWAYS AS (...)`): never loaded.
    pub computed: Vec<String>,
    /// All statements, in order, as written.
    pub statements: Vec<String>,
}

/// A column as declared.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedColumn {
    /// Name without quotes, as the server stores it.
    pub name: String,
    /// Type as text, good for casts and messages.
    pub sql_type: String,
    /// The type, when rows can be generated for it.
    pub kind: Option<ColumnType>,
    /// NOT NULL, serial, identity or part of the primary key.
    pub not_null: bool,
    /// Whether it is part of the primary key.
    pub primary_key: bool,
    /// Line of its name inside the SQL, from 1.
    pub line: usize,
    /// Column of its name inside the SQL, from 1.
    pub column: usize,
}

/// Reads the SQL of a table: exactly one `CREATE TABLE`, and statements that belong to it.
///
/// # Errors
/// Everything that is wrong, each with its place inside `sql`.
pub fn parse_table(sql: &str) -> Result<ParsedTable, Vec<SqlFinding>> {
    read(sql, Columns::FromSql)
}

/// Reads the SQL of a table whose columns are declared elsewhere: like [`parse_table`], but the columns
/// are not looked at and stay empty, so that SQL beyond the parser's grammar is possible.
///
/// # Errors
/// Everything that is wrong, each with its place inside `sql`.
pub fn parse_table_header(sql: &str) -> Result<ParsedTable, Vec<SqlFinding>> {
    read(sql, Columns::Declared)
}

/// Where the columns come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    FromSql,
    Declared,
}

fn read(sql: &str, columns: Columns) -> Result<ParsedTable, Vec<SqlFinding>> {
    let mut findings = Vec::new();
    let sources = Source::read(sql, &mut findings);
    let mut table: Option<ParsedTable> = None;
    for source in &sources {
        let header = Header::of(source);
        match (header, &mut table) {
            (Some(header), _) if header.partition == Partition::Of => {}
            (Some(header), None) => table = Some(create(source, header, columns, &mut findings)),
            (Some(_), Some(first)) => findings.push(second_table(source, &first.name)),
            (None, first) => companion(source, first.as_mut(), columns, &mut findings),
        }
    }
    if table.is_none() && findings.is_empty() {
        let message = "there is no CREATE TABLE statement here";
        findings.push(Place { line: 1, column: 1 }.finding(message, "write one, with all columns"));
    }
    match table {
        Some(table) if findings.is_empty() => {
            Ok(ParsedTable { statements: sources.into_iter().map(|source| source.text).collect(), ..table })
        }
        _ => Err(findings),
    }
}

fn second_table(source: &Source, first: &str) -> SqlFinding {
    let message = format!("a second CREATE TABLE stands here, `{first}` is created above");
    source.start.finding(message, "give every table its own entry under `tables:`")
}

/// What a CREATE TABLE statement says.
fn create(source: &Source, header: Header, columns: Columns, findings: &mut Vec<SqlFinding>) -> ParsedTable {
    header.check(source, findings);
    let parsed = (columns == Columns::FromSql).then(|| header.parse(source));
    let mut table = ParsedTable {
        name: header.name,
        persistence: header.persistence,
        partitioned: header.partition == Partition::By,
        columns: Vec::new(),
        computed: Vec::new(),
        statements: Vec::new(),
    };
    match parsed {
        None => {}
        Some(Ok(Ast::CreateTable(create))) => read_columns(source, &create, &mut table, findings),
        Some(Ok(_)) => findings.push(source.start.finding("this is not understood as CREATE TABLE", DECLARE)),
        Some(Err(finding)) => findings.push(SqlFinding { hint: Some(beyond_the_parser()), ..finding }),
    }
    table
}

fn beyond_the_parser() -> String {
    format!(
        "if the server accepts it (STORAGE, COMPRESSION and LIKE are not understood here), move it to an ALTER TABLE, {DECLARE}"
    )
}
