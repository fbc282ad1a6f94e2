//! Rules for tables: names, number of columns, rows and their size.

#![expect(clippy::cast_precision_loss, reason = "sizes are estimates")]

use std::collections::HashMap;

use super::finding::Finding;
use crate::model::{BoundTrial, Column, ColumnType, DEFAULT_BLOCK_SIZE, Generator, Table};
use crate::plan::{row_bytes, smallest_row_bytes, text_row_bytes};
use crate::spec::ddl::MAX_COLUMNS;

/// Most rows of a table. More would need tens of terabytes and weeks.
const MAX_ROWS: u64 = 1_000_000_000_000;
/// What a page keeps for itself and for the pointer to its only tuple (`MaxHeapTupleSize` in `access/htup_details.h`).
const PAGE_OVERHEAD: u32 = 32;
/// Longest message the server takes: 1 GiB less the terminating bytes.
pub(super) const MAX_MESSAGE: f64 = 1_073_741_822.0;

/// All findings about the tables of a trial.
pub(super) fn check(trial: &BoundTrial) -> Vec<Finding> {
    let mut findings = Vec::new();
    let page = trial.environment.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
    for table in &trial.tables {
        findings.extend([columns(table), rows(table), row_size(table, page)].into_iter().flatten());
        findings.extend(table.columns.iter().filter_map(|column| float_source(table, column)));
    }
    findings.extend(names(trial));
    findings
}

fn columns(table: &Table) -> Option<Finding> {
    let count = table.columns.len();
    let pointer = format!("tables.{}.columns", table.name);
    if count == 0 {
        return Some(Finding::new(
            pointer,
            format!("table `{}` has no column that rows could fill", table.name),
        ));
    }
    (count > MAX_COLUMNS).then(|| {
        let message = format!("table `{}` has {count} columns", table.name);
        Finding::new(pointer, message).expected(format!("at most {MAX_COLUMNS}, PostgreSQL's limit"))
    })
}

/// Bytes of floats need a column to take the numbers from.
fn float_source(table: &Table, column: &Column) -> Option<Finding> {
    let Generator::FloatsOf(source) = &column.generator else { return None };
    let pointer = format!("tables.{}.values.{}.floats_of", table.name, column.name);
    let expected = "a column of type float4[] or float8[] of the same table";
    let Some(found) = table.columns.iter().find(|other| other.name == *source) else {
        let message = format!("table `{}` has no column `{source}`", table.name);
        return Some(Finding::new(pointer, message).expected(expected));
    };
    if table.numbers_in(&column.name).is_none() || found.kind == ColumnType::Bytea {
        let message = format!("column `{source}` of type {} holds no floats", found.sql_type);
        return Some(Finding::new(pointer, message).expected(expected));
    }
    (column.not_null && (found.nulls > 0.0)).then(|| {
        let message =
            format!("column `{}` is NOT NULL, but `{source}` has NULLs to take numbers from", column.name);
        Finding::new(pointer, message).hint("take `nulls` out there, or NOT NULL here")
    })
}

fn rows(table: &Table) -> Option<Finding> {
    (table.rows > MAX_ROWS).then(|| {
        let need = size_text(table.rows as f64 * row_bytes(&table.columns));
        let message =
            format!("{} rows of table `{}` would need about {need} on disk", table.rows, table.name);
        Finding::new(format!("tables.{}.rows", table.name), message)
            .expected(format!("at most {MAX_ROWS} rows"))
    })
}

/// `1.5 TB`, in powers of 1000.
fn size_text(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB"];
    let mut size = bytes;
    let mut at = 0;
    while size >= 1000.0 && at + 1 < units.len() {
        size /= 1000.0;
        at += 1;
    }
    format!("{size:.1} {}", units[at])
}

/// A row must fit on a page once its long values are stored elsewhere, and in one message.
fn row_size(table: &Table, page: u32) -> Option<Finding> {
    let max_tuple = f64::from(page.saturating_sub(PAGE_OVERHEAD));
    let pointer = format!("tables.{}.values", table.name);
    let smallest = smallest_row_bytes(&table.columns);
    if table.columns.len() <= MAX_COLUMNS && smallest > max_tuple {
        let message = format!(
            "rows of table `{}` take about {smallest:.0} bytes even with long values stored elsewhere, more than fits on a page",
            table.name
        );
        let finding = Finding::new(pointer, message).expected(format!("at most {max_tuple:.0} bytes"));
        return Some(finding.hint("use fewer or narrower columns"));
    }
    let longest = text_row_bytes(&table.columns);
    (longest > MAX_MESSAGE).then(|| {
        let message =
            format!("the longest row of table `{}` takes {} as text", table.name, size_text(longest));
        Finding::new(pointer, message).expected("less than 1 GiB, the longest message of the protocol")
    })
}

/// Every physical table of a trial needs its own name.
fn names(trial: &BoundTrial) -> Vec<Finding> {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let mut findings = Vec::new();
    for table in &trial.tables {
        for (number, copy) in table.copies.iter().enumerate() {
            let Some(owner) = owners.insert(&copy.name, &table.name) else { continue };
            let pointer = format!("tables.{}.ddl", table.name);
            if owner == table.name {
                let message = format!(
                    "copy {number} of table `{}` has the same name `{}` as another copy",
                    table.name, copy.name
                );
                findings.push(
                    Finding::new(pointer, message)
                        .hint("use the number of the copy in the name: `name_{{ copy }}`"),
                );
                break;
            }
            let message = format!("tables `{owner}` and `{}` both create `{}`", table.name, copy.name);
            findings.push(Finding::new(pointer, message).hint("give them different names"));
        }
    }
    findings
}
