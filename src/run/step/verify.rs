//! Whether a table holds what the generator says.

use std::time::Instant;

use super::hex;
use crate::data::Content;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::verify;
use crate::model::{Guard, Measurement, Outcome, Table};
use crate::run::Expectations;
use crate::run::stage::Stage;

/// Compares what the server stores with what the generator says; a difference trips a guard.
pub(in crate::run) async fn verify_table(
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
    measurement.rows_in_table = Some(stored.rows);
    measurement.checksum = Some(hex(stored));
    measurement.checksum_expected = Some(hex(expected));
    if stored.rows != expected.rows {
        measurement.guards.push(Guard::RowsWrong);
    }
    // Copy by copy: rows that ended up in the wrong one would cancel out in the sum.
    if copies.iter().zip(&expected_copies).any(|(stored, expected)| stored.checksum != expected.checksum) {
        measurement.guards.push(Guard::ChecksumWrong);
    }
    if copies != expected_copies {
        measurement.outcome = Some(Outcome::Failed);
        let text = format!("the table {} holds {stored}; the generator says {expected}", table.name);
        let found =
            verify::first_difference(&stage.owner.client, table, &expectations.rows_of(table)).await?;
        measurement.error =
            Some(found.map_or(text.clone(), |(name, difference)| format!("{text}\n{name}: {difference}")));
    }
    Ok(())
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
