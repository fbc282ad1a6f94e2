//! Rules for load steps.

#![expect(clippy::cast_precision_loss, reason = "sizes are estimates")]

use std::time::Duration;

use super::duration;
use super::finding::Finding;
use super::load_in_server;
use super::tables::MAX_MESSAGE;
use crate::model::{Copy, CopyFormat, Insert, Load, LoadMethod, SameTransaction, Table};
use crate::plan::text_row_bytes;

/// Bind counts its parameters with 16 bits (frontend/backend protocol, "Message Formats", Bind).
const MAX_PARAMETERS: u64 = 65_535;
/// Bytes of a `CopyData` message: below, messages cost more than rows; above, buffers grow for nothing.
const CHUNK_BYTES: std::ops::RangeInclusive<u32> = 1000..=512 * 1024 * 1024;
/// The rule for FREEZE, as the documentation of COPY has it.
const FREEZE_RULE: &str = "PostgreSQL documentation, COPY, FREEZE: only into a table created or truncated in \
    the current transaction, and not into a partitioned table";

/// All findings about a load step.
pub(super) fn check(index: usize, load: &Load, table: &Table, timeout: Duration) -> Vec<Finding> {
    let base = format!("steps.{index}.load");
    let mut findings = Vec::new();
    let copies = table.copies.len();
    if load.clients > 0 && (load.clients as usize) < copies {
        let message = format!(
            "{} clients cannot feed {copies} copies of table `{}`: some stay empty",
            load.clients, table.name
        );
        findings.push(Finding::new(format!("{base}.clients"), message).expected(format!("{copies} or more")));
    }
    match &load.method {
        LoadMethod::Insert(insert) => {
            insert_rules(&format!("{base}.method.insert"), insert, table, &mut findings);
        }
        LoadMethod::Copy(copy) => {
            copy_rules(&format!("{base}.method.copy"), copy, &mut findings);
            let rules = Transaction { base: &base, load, copy, table };
            findings.extend(rules.check());
        }
        LoadMethod::Unnest(unnest) => {
            load_in_server::unnest(&format!("{base}.method.unnest"), unnest, table, &mut findings);
        }
        LoadMethod::Generate(generate) => {
            let base = format!("{base}.method.generate");
            load_in_server::generate(&base, generate, table, &mut findings);
        }
        LoadMethod::Procedure(procedure) => {
            let base = format!("{base}.method.procedure");
            load_in_server::procedure(&base, procedure, table, &mut findings);
        }
    }
    findings.extend(duration::check(&base, load, timeout));
    findings
}

fn insert_rules(base: &str, insert: &Insert, table: &Table, findings: &mut Vec<Finding>) {
    let statement = format!("{base}.rows_per_statement");
    if zero_rows(
        base,
        &[
            ("rows_per_statement", Some(insert.rows_per_statement)),
            ("rows_per_batch", Some(insert.rows_per_batch)),
            ("rows_per_commit", insert.rows_per_commit),
        ],
        findings,
    ) {
        return;
    }
    findings.extend(parameters(&statement, insert, table));
    findings.extend(message_size(base, insert, table));
    if !insert.rows_per_batch.is_multiple_of(insert.rows_per_statement) {
        let message = format!(
            "a batch of {} rows cannot be made of statements of {} rows",
            insert.rows_per_batch, insert.rows_per_statement
        );
        let finding = Finding::new(format!("{base}.rows_per_batch"), message);
        findings.push(finding.expected(format!("a multiple of {}", insert.rows_per_statement)));
    }
    if let Some(commit) = insert.rows_per_commit.filter(|commit| *commit < insert.rows_per_batch) {
        let message = format!(
            "a commit every {commit} rows is impossible with batches of {} rows",
            insert.rows_per_batch
        );
        let finding = Finding::new(format!("{base}.rows_per_commit"), message);
        findings.push(
            finding
                .expected(format!("{} or more", insert.rows_per_batch))
                .hint("commits come after whole batches"),
        );
    }
}

pub(super) fn zero_rows(base: &str, counts: &[(&str, Option<u64>)], findings: &mut Vec<Finding>) -> bool {
    let zeros = counts.iter().filter(|(_, rows)| *rows == Some(0));
    let made: Vec<Finding> = zeros
        .map(|(key, _)| {
            Finding::new(format!("{base}.{key}"), format!("`{key}` cannot be 0")).expected("1 or more")
        })
        .collect();
    let any = !made.is_empty();
    findings.extend(made);
    any
}

fn parameters(pointer: &str, insert: &Insert, table: &Table) -> Option<Finding> {
    let columns = table.columns.len() as u64;
    let needed = insert.rows_per_statement.saturating_mul(columns);
    if !insert.prepared || columns == 0 || needed <= MAX_PARAMETERS {
        return None;
    }
    let message = format!(
        "{} rows of {columns} columns in one statement need {needed} bind parameters",
        insert.rows_per_statement
    );
    let most = MAX_PARAMETERS / columns;
    let finding =
        Finding::new(pointer, message).expected(format!("at most {MAX_PARAMETERS}, the protocol's limit"));
    Some(finding.hint(format!(
        "the largest `rows_per_statement` here is {most}; `rows_per_batch` sends several statements in one round trip"
    )))
}

/// One statement is one message; one batch is held in the client's memory.
fn message_size(base: &str, insert: &Insert, table: &Table) -> Option<Finding> {
    let row = text_row_bytes(&table.columns);
    let most = MAX_MESSAGE / row;
    let (key, rows) = if insert.rows_per_statement as f64 > most {
        ("rows_per_statement", insert.rows_per_statement)
    } else if insert.rows_per_batch as f64 > most {
        ("rows_per_batch", insert.rows_per_batch)
    } else {
        return None;
    };
    let message = format!(
        "{rows} rows of up to {row:.0} bytes do not fit in 1 GiB, the longest message of the protocol"
    );
    Some(Finding::new(format!("{base}.{key}"), message).expected(format!("at most {most:.0} rows")))
}

fn copy_rules(base: &str, copy: &Copy, findings: &mut Vec<Finding>) {
    zero_rows(base, &[("rows_per_commit", copy.rows_per_commit)], findings);
    if copy.header && copy.format != CopyFormat::Csv {
        let message = format!("format {} has no header line", copy.format.sql());
        let finding = Finding::new(format!("{base}.header"), message);
        findings.push(finding.expected("format: csv").hint("loadlab uses header lines with CSV only"));
    }
    if !CHUNK_BYTES.contains(&copy.chunk_bytes) {
        let message = format!("messages of {} bytes are not possible", copy.chunk_bytes);
        let finding = Finding::new(format!("{base}.chunk"), message).expected("1 kB to 512 MiB");
        findings.push(finding.hint(
            "the server takes messages of less than 1 GiB, and a message ends with the row that fills it",
        ));
    }
}

/// COPY and what must happen in its transaction.
struct Transaction<'a> {
    base: &'a str,
    load: &'a Load,
    copy: &'a Copy,
    table: &'a Table,
}

impl Transaction<'_> {
    fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let same = self.copy.same_transaction != SameTransaction::None;
        if self.copy.freeze {
            findings.extend(self.freeze(same));
        }
        if same || self.copy.freeze {
            findings.extend(self.one_transaction());
        }
        findings
    }

    fn freeze(&self, same: bool) -> Vec<Finding> {
        let finding = |message: &str| {
            Finding::new(format!("{}.method.copy.freeze", self.base), message).hint(FREEZE_RULE)
        };
        let mut findings = Vec::new();
        if !same {
            let message = "FREEZE needs a table that is created or truncated in the transaction of the COPY";
            findings.push(finding(message).expected("same_transaction: create or truncate"));
        }
        if self.table.partitioned {
            findings.push(finding(&format!(
                "FREEZE is impossible for the partitioned table `{}`",
                self.table.name
            )));
        }
        findings
    }

    /// Only one client, and only one transaction of it, can have created or emptied the table.
    fn one_transaction(&self) -> Vec<Finding> {
        let (pointer, what) = if self.copy.freeze {
            (format!("{}.method.copy.freeze", self.base), "FREEZE".to_owned())
        } else {
            let word =
                if self.copy.same_transaction == SameTransaction::Create { "create" } else { "truncate" };
            (format!("{}.method.copy.same_transaction", self.base), format!("`same_transaction: {word}`"))
        };
        let copies = self.table.copies.len();
        let mut findings = Vec::new();
        if self.load.clients as usize > copies {
            let message = format!(
                "{what} allows one client per table: {} clients would load {copies} table{}",
                self.load.clients,
                if copies == 1 { "" } else { "s" }
            );
            let hint = "clients have their own transactions, and only the one that created or truncated the table may use it so";
            findings.push(
                Finding::new(pointer.clone(), message).expected(format!("clients: {copies}")).hint(hint),
            );
        }
        if self.copy.rows_per_commit.is_some() {
            let message = format!(
                "{what} is impossible with `rows_per_commit`: after the first commit the transaction is another"
            );
            findings.push(Finding::new(pointer, message).hint("take `rows_per_commit` out"));
        }
        findings
    }
}
