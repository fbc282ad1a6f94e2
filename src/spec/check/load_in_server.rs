//! Rules for loads whose rows the server takes apart or makes: unnest, generate, procedure.

#![expect(clippy::cast_precision_loss, reason = "sizes are estimates")]

use std::collections::BTreeMap;

use super::finding::Finding;
use super::load::zero_rows;
use super::tables::MAX_MESSAGE;
use crate::model::{ColumnType, Generate, Procedure, Table, Unnest};
use crate::plan::text_row_bytes;
use crate::spec::suggest::{did_you_mean, one_of};

/// What a value takes in an array at most, beyond its text: length word, version of jsonb, head of a numeric.
const AROUND_VALUE: f64 = 13.0;

pub(super) fn unnest(base: &str, unnest: &Unnest, table: &Table, findings: &mut Vec<Finding>) {
    let counts =
        [("rows_per_batch", Some(unnest.rows_per_batch)), ("rows_per_commit", unnest.rows_per_commit)];
    if zero_rows(base, &counts, findings) {
        return;
    }
    for column in &table.columns {
        if matches!(column.kind, ColumnType::Array(_)) {
            let message = format!(
                "column `{}` of table `{}` is an array, and unnest takes arrays apart down to their elements",
                column.name, table.name
            );
            let finding = Finding::new(base, message);
            findings
                .push(finding.hint("load this table by `insert` or `copy`, or leave the column out of it"));
        }
    }
    let row = text_row_bytes(&table.columns) + table.columns.len() as f64 * AROUND_VALUE;
    let most = (MAX_MESSAGE / row).floor();
    if unnest.rows_per_batch as f64 > most {
        let message = format!(
            "{} rows of up to {row:.0} bytes do not fit in 1 GiB, the longest message of the protocol",
            unnest.rows_per_batch
        );
        let finding = Finding::new(format!("{base}.rows_per_batch"), message);
        findings.push(finding.expected(format!("at most {most:.0} rows")));
    }
    if let Some(commit) = unnest.rows_per_commit.filter(|commit| *commit < unnest.rows_per_batch) {
        let message = format!(
            "a commit every {commit} rows is impossible with batches of {} rows",
            unnest.rows_per_batch
        );
        let finding = Finding::new(format!("{base}.rows_per_commit"), message);
        findings.push(
            finding
                .expected(format!("{} or more", unnest.rows_per_batch))
                .hint("commits come after whole batches"),
        );
    }
}

pub(super) fn generate(base: &str, generate: &Generate, table: &Table, findings: &mut Vec<Finding>) {
    zero_rows(base, &[("rows_per_commit", generate.rows_per_commit)], findings);
    values(base, &generate.expressions, table, findings);
}

pub(super) fn procedure(base: &str, procedure: &Procedure, table: &Table, findings: &mut Vec<Finding>) {
    zero_rows(base, &[("rows_per_commit", procedure.rows_per_commit)], findings);
    let Some(body) = &procedure.body else {
        return values(base, &procedure.expressions, table, findings);
    };
    let finding = |key: &str, message: &str| Finding::new(format!("{base}.{key}"), message);
    if procedure.rows_per_commit.is_some() {
        let finding = finding("rows_per_commit", "a `body` of one's own commits by itself");
        findings.push(finding.hint("write COMMIT in the body, and take `rows_per_commit` out"));
    }
    if !procedure.expressions.is_empty() {
        let finding = finding("expressions", "a `body` of one's own says by itself what is inserted");
        findings.push(finding.hint("take `expressions` or `body` out"));
    }
    if body.trim().is_empty() {
        findings.push(
            finding("body", "the body is empty").hint("it has to insert rows `first_row` to `last_row`"),
        );
    }
}

/// Every column needs an expression: the experiment's, or one that gives the generator's very values.
fn values(base: &str, own: &BTreeMap<String, String>, table: &Table, findings: &mut Vec<Finding>) {
    let names = || table.columns.iter().map(|column| column.name.as_str());
    for (name, sql) in own {
        let pointer = format!("{base}.expressions.{name}");
        if !names().any(|column| column == name) {
            let message = format!("table `{}` has no column `{name}` that rows are loaded into", table.name);
            let mut finding = Finding::new(pointer, message).expected(one_of(names()));
            finding.hint = did_you_mean(name, names());
            findings.push(finding);
        } else if sql.trim().is_empty() {
            findings.push(
                Finding::new(pointer, "an expression cannot be empty").expected("SQL such as `row + 1`"),
            );
        }
    }
    for column in table.columns.iter().filter(|column| !own.contains_key(&column.name)) {
        if let Err(reason) = column.computable() {
            let message = format!("the server cannot make the values of column `{}`: {reason}", column.name);
            let expected = "a constant, a sequence or a template without random nulls";
            findings.push(Finding::new(base, message).expected(expected).hint(format!(
                "give the column such a generator, or SQL of its own: `expressions: {{{}: \"row % 10\"}}`; then only \
                 the number of rows is verified",
                column.name
            )));
        }
    }
}
