//! Rules for read steps.

use super::finding::Finding;
use crate::model::{
    Backend, By, Cache, ColumnType, CopyFormat, Decode, EnvironmentSpec, Needs, Read, ReadMethod, SelectMode,
    Storage, Table, TextOrBinary,
};

/// All findings about a read step.
pub(super) fn check(index: usize, read: &Read, table: &Table, environment: &EnvironmentSpec) -> Vec<Finding> {
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
    if table.partitioned && read.clients as usize > copies && read.by == By::Pages {
        let message = format!("{} clients cannot share the partitioned table `{}`", read.clients, table.name);
        let finding = Finding::new(format!("{base}.clients"), message);
        findings.push(
            finding
                .expected(format!("{copies}"))
                .hint("clients share a table by its pages, and a partitioned table has none of its own: share it by a key (`by: key, key: COLUMN`)"),
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
    findings.extend(key(&base, read, table));
    findings.extend(decoding(&base, read, table));
    findings.extend(lossy_text(&base, read, environment));
    if read.cache == Cache::Cold && environment.storage == Storage::Tmpfs {
        let finding = Finding::new(format!("{base}.cache"), "rows on `storage: tmpfs` are never cold");
        findings.push(finding.hint("use `storage: layer` or `volume` in the environment"));
    }
    findings
}

/// An external server is never restarted, so nothing that it reads is cold.
pub(super) fn never_cold(index: usize, read: &Read, needs: &Needs) -> Option<Finding> {
    (read.cache == Cache::Cold && needs.backend == Some(Backend::External)).then(|| {
        let message = "a read from an external server is never cold: loadlab does not restart it";
        Finding::new(format!("steps.{index}.read.cache"), message).expected("`as-is` or `warm`")
    })
}

/// The column whose ranges are the clients' shares.
fn key(base: &str, read: &Read, table: &Table) -> Option<Finding> {
    let By::Key { column: name } = &read.by else { return None };
    let pointer = format!("{base}.key");
    let Some(column) = table.columns.iter().find(|column| column.name == *name) else {
        return Some(unknown_column(pointer, name, table));
    };
    let integer = matches!(column.kind, ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8);
    (!integer).then(|| {
        let message = format!("column `{name}` is of type {}, not of an integer type", column.sql_type);
        Finding::new(pointer, message).expected("a column of type smallint, integer or bigint")
    })
}

/// Whether there is anything to decode.
fn decoding(base: &str, read: &Read, table: &Table) -> Option<Finding> {
    let pointer = format!("{base}.decode");
    if read.method == ReadMethod::Scan && read.decode != Decode::None {
        let finding = Finding::new(pointer, "no rows travel in a scan, so there is nothing to decode");
        return Some(finding.hint("take `decode` out, or read by `select` or `copy_out`"));
    }
    let numbers = read.columns.iter().any(|name| table.numbers_in(name).is_some());
    (read.decode == Decode::Floats && !numbers).then(|| {
        let message = format!("no column of table `{}` that is read holds floats", table.name);
        Finding::new(pointer, message)
            .expected("a column of type float4[] or float8[], or a bytea column made by `floats_of` of one")
    })
}

/// Settings under which the text of a value is not the value.
fn lossy_text(base: &str, read: &Read, environment: &EnvironmentSpec) -> Option<Finding> {
    let text = matches!(
        read.method,
        ReadMethod::Select { format: TextOrBinary::Text, .. }
            | ReadMethod::CopyOut { format: CopyFormat::Text | CopyFormat::Csv }
    );
    if !text || read.decode == Decode::None {
        return None;
    }
    let lossy = environment.settings.iter().find(|(name, value)| {
        let value = value.to_string();
        match name.to_ascii_lowercase().as_str() {
            "datestyle" => !value.to_ascii_uppercase().contains("ISO"),
            "extra_float_digits" => value.trim().parse::<i64>().is_ok_and(|digits| digits < 1),
            _ => false,
        }
    });
    lossy.map(|(name, value)| {
        let message = format!("values cannot be decoded from text while `{name}` is {value}");
        let finding = Finding::new(format!("{base}.decode"), message);
        finding.expected("DateStyle ISO and extra_float_digits of 1 or more").hint("or read in binary")
    })
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
