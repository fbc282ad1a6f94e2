//! `CREATE TABLE` and the statements around it.

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, CreateTable, DataType,
    GeneratedAs, Statement as Ast, TableConstraint,
};

use super::identifier::{column_problem, fold, relation_problem};
use super::indexes::primary_key_columns;
use super::source::{Place, Source, SqlFinding};
use super::types::parse_type;
use crate::model::{ColumnType, Persistence};

/// Most columns a PostgreSQL table can have.
pub const MAX_COLUMNS: usize = 1600;

const DECLARE: &str =
    "or declare the table's columns under `columns:`, then the SQL is sent as it is written";
/// Statements that may stand beside CREATE TABLE. SELECT is there for functions such as
/// `create_hypertable`.
const COMPANIONS: [&str; 10] =
    ["CREATE", "ALTER", "COMMENT", "GRANT", "REVOKE", "SET", "SELECT", "DO", "CALL", "SECURITY"];

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
enum Columns {
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
            (Some(header), _) if header.partition_of => {}
            (Some(header), None) => table = Some(header.table(source, columns, &mut findings)),
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

/// The words of `CREATE TABLE` before and around its column list, read from the tokens alone: sqlparser
/// is not needed for them, so they are known for SQL it does not understand.
struct Header {
    name: String,
    name_at: usize,
    qualified: bool,
    temporary: bool,
    unlogged: bool,
    partitioned: bool,
    partition_of: bool,
}

impl Header {
    /// `None` when the statement is no CREATE TABLE.
    fn of(source: &Source) -> Option<Self> {
        if !source.is(0, "create") {
            return None;
        }
        let modifier = |index: &usize| {
            ["global", "local", "temp", "temporary", "unlogged"].iter().any(|word| source.is(*index, word))
        };
        let table_at = (1..).find(|index| !modifier(index)).filter(|index| source.is(*index, "table"))?;
        let after = table_at + 1;
        let name_at = if source.are(after, &["if", "not", "exists"]) { after + 3 } else { after };
        let (name, qualified, next) = source.name(name_at).unwrap_or_default();
        let has = |words: &[&str]| source.top_level(next).any(|index| source.are(index, words));
        Some(Self {
            name,
            name_at,
            qualified,
            temporary: (1..table_at).any(|index| source.is(index, "temp") || source.is(index, "temporary")),
            unlogged: (1..table_at).any(|index| source.is(index, "unlogged")),
            partitioned: has(&["partition", "by"]),
            partition_of: has(&["partition", "of"]),
        })
    }

    fn table(self, source: &Source, columns: Columns, findings: &mut Vec<SqlFinding>) -> ParsedTable {
        self.check(source, findings);
        let mut table = ParsedTable {
            name: self.name,
            persistence: if self.unlogged { Persistence::Unlogged } else { Persistence::Logged },
            partitioned: self.partitioned,
            columns: Vec::new(),
            computed: Vec::new(),
            statements: Vec::new(),
        };
        if columns == Columns::FromSql {
            match source.parse() {
                Ok(Ast::CreateTable(create)) => read_columns(source, &create, &mut table, findings),
                Ok(_) => {
                    findings.push(source.start.finding("this is not understood as CREATE TABLE", DECLARE))
                }
                Err(finding) => findings.push(SqlFinding { hint: Some(beyond_the_parser()), ..finding }),
            }
        }
        table
    }

    fn check(&self, source: &Source, findings: &mut Vec<SqlFinding>) {
        let place = source.token_place(self.name_at);
        if self.qualified {
            let hint = "leave the schema out: loadlab makes tables in the trial's own database";
            findings.push(place.finding(format!("the table's name `{}` has a schema", self.name), hint));
        }
        // Long names are found among all tokens already.
        if let Some(problem) = relation_problem(&self.name).filter(|_| self.name.len() <= 63) {
            findings.push(place.finding(problem, "choose another name"));
        }
        if self.temporary {
            let hint = "use UNLOGGED: a temporary table lives in one session, a trial uses several";
            findings.push(source.start.finding("temporary tables cannot be loaded", hint));
        }
    }
}

fn beyond_the_parser() -> String {
    format!(
        "if the server accepts it (STORAGE, COMPRESSION and LIKE are not understood here), move it to an ALTER TABLE, {DECLARE}"
    )
}

fn read_columns(
    source: &Source,
    create: &CreateTable,
    table: &mut ParsedTable,
    findings: &mut Vec<SqlFinding>,
) {
    let elsewhere = [
        (create.query.is_some(), "CREATE TABLE AS takes its columns from a query"),
        (create.like.is_some(), "LIKE takes its columns from another table"),
        (create.inherits.is_some(), "INHERITS takes columns from another table"),
        (create.columns.is_empty(), "the table has no columns"),
    ];
    if let Some((_, message)) = elsewhere.into_iter().find(|(found, _)| *found) {
        findings.push(source.start.finding(message, format!("write the columns out, {DECLARE}")));
        return;
    }
    for definition in &create.columns {
        add_column(source, definition, table, findings);
    }
    for constraint in &create.constraints {
        if let TableConstraint::PrimaryKey(key) = constraint {
            let place = key.columns.first().map_or(source.start, |_| source.start);
            mark_primary_key(place, &primary_key_columns(key), table, findings);
        }
    }
}

fn add_column(
    source: &Source,
    definition: &ColumnDef,
    table: &mut ParsedTable,
    findings: &mut Vec<SqlFinding>,
) {
    let place = source.place(definition.name.span.start);
    let name = fold(&definition.name);
    let count = table.columns.len() + table.computed.len();
    if count >= MAX_COLUMNS {
        if count == MAX_COLUMNS {
            let message = format!("`{name}` is column {} of the table", MAX_COLUMNS + 1);
            findings.push(place.finding(message, format!("PostgreSQL allows {MAX_COLUMNS} columns")));
        }
        // One finding for all that follow; the count goes on so that it is made once.
        table.computed.push(name);
        return;
    }
    if let Some(problem) = column_problem(&name).filter(|_| name.len() <= 63) {
        findings.push(place.finding(problem, "choose another name"));
    }
    if table.columns.iter().any(|column| column.name == name) || table.computed.contains(&name) {
        findings.push(place.finding(format!("the column `{name}` is declared twice"), "rename one of them"));
        return;
    }
    if definition.data_type == DataType::Unspecified {
        findings
            .push(place.finding(format!("the column `{name}` has no type"), "write its type after its name"));
        return;
    }
    match Kind::of(definition) {
        Kind::Computed => table.computed.push(name),
        Kind::AlwaysIdentity => {
            let message =
                format!("the column `{name}` is GENERATED ALWAYS AS IDENTITY, so INSERT cannot fill it");
            findings.push(place.finding(message, "write GENERATED BY DEFAULT AS IDENTITY"));
        }
        Kind::Loaded => table.columns.push(column(name, place, definition)),
    }
}

/// Who fills a column.
enum Kind {
    Loaded,
    Computed,
    AlwaysIdentity,
}

impl Kind {
    fn of(definition: &ColumnDef) -> Self {
        for option in &definition.options {
            if let ColumnOption::Generated { generated_as, generation_expr, .. } = &option.option {
                return match (generation_expr, generated_as) {
                    (Some(_), _) | (None, GeneratedAs::ExpStored) => Self::Computed,
                    (None, GeneratedAs::Always) => Self::AlwaysIdentity,
                    (None, GeneratedAs::ByDefault) => Self::Loaded,
                };
            }
        }
        Self::Loaded
    }
}

fn column(name: String, place: Place, definition: &ColumnDef) -> ParsedColumn {
    let sql_type = type_text(&definition.data_type);
    let has =
        |wanted: fn(&ColumnOption) -> bool| definition.options.iter().any(|option| wanted(&option.option));
    let primary_key = has(|option| matches!(option, ColumnOption::PrimaryKey(_)));
    let not_null = has(|option| matches!(option, ColumnOption::NotNull | ColumnOption::Generated { .. }));
    let serial = sql_type.contains("serial");
    ParsedColumn {
        kind: parse_type(&sql_type),
        not_null: not_null || primary_key || serial,
        primary_key,
        name,
        sql_type,
        line: place.line,
        column: place.column,
    }
}

/// The type as text: lower case, but names of the user's own types as they are.
fn type_text(data_type: &DataType) -> String {
    let text = data_type.to_string();
    if text.contains('"') { text } else { text.to_ascii_lowercase() }
}

fn mark_primary_key(place: Place, names: &[String], table: &mut ParsedTable, findings: &mut Vec<SqlFinding>) {
    for name in names {
        match table.columns.iter_mut().find(|column| &column.name == name) {
            Some(column) => {
                column.primary_key = true;
                column.not_null = true;
            }
            None if table.computed.contains(name) => {}
            None => {
                let message = format!("the primary key names `{name}`, which is no column of the table");
                findings.push(place.finding(message, ""));
            }
        }
    }
}

/// A statement beside CREATE TABLE: must be one that defines something; ALTER TABLE of the table itself is
/// applied to what is known of it.
fn companion(
    source: &Source,
    table: Option<&mut ParsedTable>,
    columns: Columns,
    findings: &mut Vec<SqlFinding>,
) {
    let verb = source.verb();
    if !COMPANIONS.contains(&verb.as_str()) {
        let message = format!("`{verb}` is not part of a table's definition");
        findings.push(source.start.finding(message, "use an `sql` step for it"));
        return;
    }
    let Some((name, after)) = altered_table(source) else { return };
    let Some(table) = table.filter(|table| table.name == name) else { return };
    if source.are(after, &["set", "unlogged"]) {
        table.persistence = Persistence::Unlogged;
    } else if source.are(after, &["set", "logged"]) {
        table.persistence = Persistence::Logged;
    }
    if columns == Columns::FromSql
        && let Ok(Ast::AlterTable(alter)) = source.parse()
    {
        apply(source, &alter, table, findings);
    }
}

/// The table of `ALTER TABLE [IF EXISTS] [ONLY] name` and the index of the token after it.
pub(super) fn altered_table(source: &Source) -> Option<(String, usize)> {
    if !source.are(0, &["alter", "table"]) {
        return None;
    }
    let at = if source.are(2, &["if", "exists"]) { 4 } else { 2 };
    let at = if source.is(at, "only") { at + 1 } else { at };
    source.name(at).map(|(name, _, next)| (name, next))
}

fn apply(source: &Source, alter: &AlterTable, table: &mut ParsedTable, findings: &mut Vec<SqlFinding>) {
    for operation in &alter.operations {
        match operation {
            AlterTableOperation::AddConstraint { constraint: TableConstraint::PrimaryKey(key), .. } => {
                mark_primary_key(source.start, &primary_key_columns(key), table, findings);
            }
            AlterTableOperation::AddColumn { column_def, .. } => {
                add_column(source, column_def, table, findings)
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                alter_column(source, &fold(column_name), op, table, findings);
            }
            AlterTableOperation::DropColumn { .. }
            | AlterTableOperation::RenameColumn { .. }
            | AlterTableOperation::RenameTable { .. } => {
                let message = "this changes what CREATE TABLE has just made";
                findings.push(source.start.finding(message, "write CREATE TABLE as the table shall be"));
            }
            _ => {}
        }
    }
}

fn alter_column(
    source: &Source,
    name: &str,
    operation: &AlterColumnOperation,
    table: &mut ParsedTable,
    findings: &mut Vec<SqlFinding>,
) {
    let Some(column) = table.columns.iter_mut().find(|column| column.name == name) else { return };
    match operation {
        AlterColumnOperation::SetNotNull => column.not_null = true,
        AlterColumnOperation::DropNotNull => column.not_null = false,
        AlterColumnOperation::SetDataType { .. } => {
            let message = format!("this changes the type of `{name}`");
            findings.push(source.start.finding(message, "write the type into CREATE TABLE"));
        }
        _ => {}
    }
}
