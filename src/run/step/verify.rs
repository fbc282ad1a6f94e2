//! Whether tables hold what the generator says, or what they held when they were dumped.

use std::time::Instant;

use super::hex;
use crate::data::Content;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::verify;
use crate::model::{Guard, Measurement, Outcome, Table};
use crate::run::Expectations;
use crate::run::stage::Stage;

/// What has to be verified.
#[derive(Debug, Clone)]
pub(in crate::run) enum Check {
    /// A table that a load has filled.
    Loaded(usize),
    /// Tables that came out of a dump.
    Restored(Vec<Restored>),
}

/// A restored table.
#[derive(Debug, Clone)]
pub(in crate::run) struct Restored {
    pub(super) table: usize,
    /// What each copy held when it was dumped; `None`: what the generator says.
    pub(super) expected: Option<Vec<Content>>,
}

/// Verifies; a difference trips a guard.
pub(in crate::run) async fn run_check(
    stage: &Stage<'_>,
    check: &Check,
    expectations: &mut Expectations,
    measurement: &mut Measurement,
) -> Result<(), WorkError> {
    match check {
        Check::Loaded(table) => verify_table(stage, *table, expectations, measurement).await,
        Check::Restored(tables) => verify_restored(stage, tables, expectations, measurement).await,
    }
}

/// Compares what the server stores with what the generator says; a difference trips a guard.
async fn verify_table(
    stage: &Stage<'_>,
    table: usize,
    expectations: &mut Expectations,
    measurement: &mut Measurement,
) -> Result<(), WorkError> {
    let start = Instant::now();
    let table = &stage.tables[table];
    let copies = verify::stored_content(&stage.owner.client, table).await?;
    if measurement.content_unverified.is_some() {
        measurement.spans.verify = Some(start.elapsed().as_secs_f64());
        count_only(table, all(&copies), measurement);
        return Ok(());
    }
    let expected_copies = expectations.of(table)?;
    let (stored, expected) = (all(&copies), all(&expected_copies));
    measurement.spans.verify = Some(start.elapsed().as_secs_f64());
    compare(&copies, &expected_copies, measurement);
    if copies != expected_copies {
        let text = format!("the table {} holds {stored}; the generator says {expected}", table.name);
        let found =
            verify::first_difference(&stage.owner.client, table, &expectations.rows_of(table)).await?;
        measurement.error =
            Some(found.map_or(text.clone(), |(name, difference)| format!("{text}\n{name}: {difference}")));
    }
    Ok(())
}

async fn verify_restored(
    stage: &Stage<'_>,
    tables: &[Restored],
    expectations: &mut Expectations,
    measurement: &mut Measurement,
) -> Result<(), WorkError> {
    let start = Instant::now();
    let (mut stored, mut expected) = (Vec::new(), Vec::new());
    let mut wrong = Vec::new();
    for restored in tables {
        let table = &stage.tables[restored.table];
        let (held, origin) = match &restored.expected {
            Some(held) => (held.clone(), "it held"),
            None => (expectations.of(table)?, "the generator says"),
        };
        let copies = verify::stored_content(&stage.owner.client, table).await?;
        if copies != held {
            let (now, then) = (all(&copies), all(&held));
            wrong.push(format!("the restored table {} holds {now}; {origin} {then}", table.name));
        }
        stored.extend(copies);
        expected.extend(held);
    }
    measurement.spans.verify = Some(start.elapsed().as_secs_f64());
    compare(&stored, &expected, measurement);
    measurement.rows = measurement.rows_in_table;
    measurement.rows_expected = Some(all(&expected).rows);
    if !wrong.is_empty() {
        measurement.error = Some(wrong.join("\n"));
    }
    Ok(())
}

/// Writes both down and trips guards where they differ.
fn compare(stored: &[Content], expected: &[Content], measurement: &mut Measurement) {
    let (all_stored, all_expected) = (all(stored), all(expected));
    measurement.rows_in_table = Some(all_stored.rows);
    measurement.checksum = Some(hex(all_stored));
    measurement.checksum_expected = Some(hex(all_expected));
    if all_stored.rows != all_expected.rows {
        measurement.guards.push(Guard::RowsWrong);
    }
    // Copy by copy: rows that ended up in the wrong one would cancel out in the sum.
    if stored.iter().zip(expected).any(|(stored, expected)| stored.checksum != expected.checksum) {
        measurement.guards.push(Guard::ChecksumWrong);
    }
    if stored != expected {
        measurement.outcome = Some(Outcome::Failed);
    }
}

/// The experiment's own SQL made the rows: their number is all that is known beforehand.
fn count_only(table: &Table, stored: Content, measurement: &mut Measurement) {
    measurement.rows_in_table = Some(stored.rows);
    measurement.checksum = Some(hex(stored));
    if stored.rows != table.rows {
        measurement.guards.push(Guard::RowsWrong);
        measurement.outcome = Some(Outcome::Failed);
        let (name, rows) = (&table.name, table.rows);
        measurement.error =
            Some(format!("the table {name} holds {} rows; the load was to make {rows}", stored.rows));
    }
}

/// All copies together.
fn all(copies: &[Content]) -> Content {
    copies.iter().fold(Content::default(), |total, copy| total.merge(*copy))
}
