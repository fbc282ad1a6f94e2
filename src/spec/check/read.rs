//! Rules for read steps.

use super::finding::Finding;
use crate::model::{Read, ReadMethod, SelectMode, Table};

/// All findings about a read step.
pub(super) fn check(index: usize, read: &Read, table: &Table) -> Vec<Finding> {
    let base = format!("steps.{index}.read");
    let mut findings = Vec::new();
    let copies = table.copies.len();
    if read.clients > 0 && (read.clients as usize) < copies {
        let message = format!(
            "{} client{} cannot read {copies} copies of table `{}`: some stay unread",
            read.clients,
            if read.clients == 1 { "" } else { "s" },
            table.name
        );
        findings.push(Finding::new(format!("{base}.clients"), message).expected(format!("{copies} or more")));
    }
    if table.partitioned && read.clients as usize > copies {
        let message = format!("{} clients cannot share the partitioned table `{}`", read.clients, table.name);
        let finding = Finding::new(format!("{base}.clients"), message);
        findings.push(
            finding
                .expected(format!("{copies}"))
                .hint("clients share a table by its pages, and a partitioned table has none of its own"),
        );
    }
    if read.columns.is_empty() {
        findings.push(
            Finding::new(format!("{base}.columns"), "no column is read").expected("one or more columns"),
        );
    }
    for (number, name) in read.columns.iter().enumerate() {
        if !table.columns.iter().any(|column| &column.name == name) {
            findings.push(unknown_column(format!("{base}.columns.{number}"), name, table));
        }
    }
    if let ReadMethod::Select { mode: SelectMode::Portal { fetch_size }, .. } = read.method
        && (fetch_size == 0 || i32::try_from(fetch_size).is_err())
    {
        let finding = Finding::new(
            format!("{base}.method.select.mode.portal.fetch_size"),
            format!("a portal cannot fetch {fetch_size} rows"),
        );
        findings.push(finding.expected(format!("1 to {}", i32::MAX)));
    }
    findings
}

fn unknown_column(pointer: String, name: &str, table: &Table) -> Finding {
    let message = format!("table `{}` has no column `{name}` that rows are loaded into", table.name);
    let nearest = table
        .columns
        .iter()
        .map(|column| (strsim::jaro_winkler(name, &column.name), &column.name))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|(left, _), (right, _)| left.total_cmp(right));
    let finding = Finding::new(pointer, message);
    if let Some((_, nearest)) = nearest {
        return finding.hint(format!("did you mean `{nearest}`?"));
    }
    let names: Vec<&str> = table.columns.iter().take(20).map(|column| column.name.as_str()).collect();
    finding.expected(names.join(", "))
}
