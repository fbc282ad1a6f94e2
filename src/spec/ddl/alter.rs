//! Statements beside `CREATE TABLE`.

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, Statement as Ast, TableConstraint,
};

use super::columns::{add_column, mark_primary_key};
use super::identifier::fold;
use super::indexes::primary_key_columns;
use super::source::{Source, SqlFinding};
use super::table::{Columns, ParsedTable};
use crate::model::Persistence;

/// Statements that may stand beside CREATE TABLE. SELECT is there for functions such as
/// `create_hypertable`.
const COMPANIONS: [&str; 10] =
    ["CREATE", "ALTER", "COMMENT", "GRANT", "REVOKE", "SET", "SELECT", "DO", "CALL", "SECURITY"];

/// A statement beside CREATE TABLE: must be one that defines something; ALTER TABLE of the table itself is
/// applied to what is known of it.
pub(super) fn companion(
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
                add_column(source, column_def, table, findings);
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
