//! Index and constraint statements.

use sqlparser::ast::{
    AlterTableOperation, CreateIndex, Expr, Ident, IndexColumn, PrimaryKeyConstraint, Statement as Ast,
    TableConstraint,
};

use super::alter::altered_table;
use super::identifier::{MAX_NAME_BYTES, fold, fold_object, relation_problem};
use super::source::{Source, SqlFinding};

/// Statements that may stand among a table's indexes.
const ALLOWED: [&str; 11] =
    ["CREATE", "ALTER", "CLUSTER", "COMMENT", "REINDEX", "ANALYZE", "VACUUM", "SELECT", "SET", "DO", "CALL"];

/// The remedy for SQL that is not understood.
const USE_SQL: &str = "if the server accepts it, move it to an `sql` step";

/// What the index statements of a table say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedIndexes {
    /// All statements, in order, as written.
    pub statements: Vec<String>,
    /// Tables they name, each once, without quotes.
    pub tables: Vec<String>,
    /// Columns they name, in order; columns inside of expressions are not listed.
    pub columns: Vec<NamedColumn>,
    /// Columns of the primary key, if one is added.
    pub primary_key: Vec<String>,
    /// How many indexes are made.
    pub indexes: usize,
}

/// A column named by an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedColumn {
    /// Name without quotes, as the server stores it.
    pub name: String,
    /// Line inside the SQL, from 1.
    pub line: usize,
    /// Column inside the SQL, from 1.
    pub column: usize,
}

/// Reads index statements: `CREATE INDEX`, `ALTER TABLE ... ADD ...` and what may stand beside them. No
/// statement at all is fine.
///
/// # Errors
/// Everything that is wrong, each with its place inside `sql`.
pub fn parse_indexes(sql: &str) -> Result<ParsedIndexes, Vec<SqlFinding>> {
    let mut findings = Vec::new();
    let sources = Source::read(sql, &mut findings);
    let mut indexes = ParsedIndexes::default();
    for source in &sources {
        read_statement(source, &mut indexes, &mut findings);
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    indexes.statements = sources.into_iter().map(|source| source.text).collect();
    Ok(indexes)
}

fn read_statement(source: &Source, indexes: &mut ParsedIndexes, findings: &mut Vec<SqlFinding>) {
    let verb = source.verb();
    let creates_table = ["table", "unlogged", "temp", "temporary"].iter().any(|word| source.is(1, word));
    if !ALLOWED.contains(&verb.as_str()) || (verb == "CREATE" && creates_table) {
        let what = if verb == "CREATE" { "CREATE TABLE".to_owned() } else { verb };
        let message = format!("`{what}` is not an index or a constraint");
        findings.push(source.start.finding(message, "use `ddl` for tables and an `sql` step for the rest"));
    } else if source.are(0, &["create", "index"]) || source.are(0, &["create", "unique", "index"]) {
        match source.parse() {
            Ok(Ast::CreateIndex(index)) => read_index(source, &index, indexes, findings),
            Ok(_) => findings.push(source.start.finding("this is not understood as CREATE INDEX", USE_SQL)),
            Err(finding) => findings.push(SqlFinding { hint: Some(USE_SQL.to_owned()), ..finding }),
        }
    } else if let Some((table, _)) = altered_table(source) {
        name_table(table, indexes);
        if let Ok(Ast::AlterTable(alter)) = source.parse() {
            for operation in &alter.operations {
                read_constraint(source, operation, indexes);
            }
        }
    }
}

fn name_table(table: String, indexes: &mut ParsedIndexes) {
    if !indexes.tables.contains(&table) {
        indexes.tables.push(table);
    }
}

fn read_index(
    source: &Source,
    index: &CreateIndex,
    indexes: &mut ParsedIndexes,
    findings: &mut Vec<SqlFinding>,
) {
    let (table, qualified) = fold_object(&index.table_name);
    if qualified {
        let message = format!("the name of the table `{table}` has a schema");
        findings.push(source.start.finding(message, "leave the schema out"));
    }
    let name = index.name.as_ref().map(|name| fold_object(name).0);
    if let Some(problem) =
        name.and_then(|name| relation_problem(&name).filter(|_| name.len() <= MAX_NAME_BYTES))
    {
        findings.push(source.start.finding(problem, "choose another name"));
    }
    name_table(table, indexes);
    indexes.indexes += 1;
    let keys = index.columns.iter().filter_map(column_of);
    indexes.columns.extend(keys.chain(&index.include).map(|ident| named(source, ident)));
}

fn read_constraint(source: &Source, operation: &AlterTableOperation, indexes: &mut ParsedIndexes) {
    let AlterTableOperation::AddConstraint { constraint, .. } = operation else { return };
    let (columns, include) = match constraint {
        TableConstraint::PrimaryKey(key) => {
            indexes.primary_key = primary_key_columns(key);
            (&key.columns, key.include.as_slice())
        }
        TableConstraint::Unique(unique) => (&unique.columns, unique.include.as_slice()),
        _ => return,
    };
    indexes.indexes += 1;
    let keys = columns.iter().filter_map(column_of);
    indexes.columns.extend(keys.chain(include).map(|ident| named(source, ident)));
}

/// Names of a primary key's columns.
pub(super) fn primary_key_columns(key: &PrimaryKeyConstraint) -> Vec<String> {
    key.columns.iter().filter_map(column_of).map(fold).collect()
}

/// The column of an index key that is a plain column.
fn column_of(key: &IndexColumn) -> Option<&Ident> {
    match &key.column.expr {
        Expr::Identifier(ident) => Some(ident),
        _ => None,
    }
}

fn named(source: &Source, ident: &Ident) -> NamedColumn {
    let place = source.place(ident.span.start);
    NamedColumn { name: fold(ident), line: place.line, column: place.column }
}
