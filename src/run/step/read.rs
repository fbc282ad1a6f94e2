//! Read steps: rows out, and whether they are the ones that were loaded.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::{Taken, hex, joined, moved, read_state, set_up, stalls};
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::read::{self, KeyRange, Parking, ReadRequest};
use crate::engine::postgres::work::Progress;
use crate::model::{By, Decode, DumpSource, Guard, Read, ReadMethod, Step, StepKind, Table, Verify};
use crate::run::Expectations;
use crate::run::sampler::Sampler;
use crate::run::stage::Stage;

pub(super) fn method(read: &Read) -> &'static str {
    match read.method {
        ReadMethod::Select { .. } => "select",
        ReadMethod::CopyOut { .. } => "copy_out",
        ReadMethod::Scan => "scan",
    }
}

pub(super) async fn run_read(
    stage: &mut Stage<'_>,
    read: &Read,
    expectations: &mut Expectations,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    let table = &Arc::clone(&stage.tables[read.table]);
    let place = stage.bound.steps.iter().position(|step| step.name == taken.measurement.step);
    let unchanged = place.is_some_and(|place| holds_what_was_loaded(&stage.bound.steps, place, read.table));
    taken.measurement.rows_expected = unchanged.then(|| expectations.count(table));
    // Before the caches are brought into their state: without an index on the key this reads the table.
    let keys = key_ranges(stage, read, table).await?;
    read_state::arrange(stage, read, taken).await?;
    let progress = Progress::new(read.clients);
    let parking = Parking::default();
    let asked = &stage.bound.environment.settings;
    let settings =
        read::session_settings(|name| asked.keys().any(|setting| setting.eq_ignore_ascii_case(name)));
    let request = ReadRequest {
        endpoint: &stage.instance.endpoint,
        table,
        read,
        keys: &keys,
        settings: &settings,
        progress: &progress,
        parking: &parking,
    };
    let start = Instant::now();
    let (clients, connecting) = read::prepare(&request).await?;
    set_up(&mut taken.measurement, start.elapsed(), connecting);
    let waits = stage.watch().await?;
    taken.measurement.read.get_or_insert_default().session_settings =
        settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    read_state::look(stage, read, table, taken).await?;
    if read.method == ReadMethod::Scan {
        // Pages that are dirty already are not counted as dirtied.
        stage.needed_checkpoint().await?;
    }
    let before = stage.before().await?;

    let start = Instant::now();
    progress.begin(start);
    let sampler = Sampler::start(&progress, start);
    let mut work = JoinSet::new();
    for client in clients {
        work.spawn(client.work(start));
    }
    let done = joined(work).await;
    taken.measurement.spans.seconds = start.elapsed().as_secs_f64();
    taken.samples = sampler.finish(taken.measurement.step_index, &taken.measurement.step);
    let done = done?;
    let end = stage.at_end().await?;
    drop(parking);
    taken.measurement.pressure.client_wait_share = waits.finish();

    moved(&done, taken);
    stalls(&progress.timeline(), taken);
    taken.measurement.scan = done.scanned;
    stage.conclude(&before, &end, 0, Some(table), &mut taken.measurement).await?;
    if unchanged && taken.measurement.rows_expected != Some(done.rows) {
        taken.measurement.guards.push(Guard::RowsWrong);
    }
    if let Some(content) = done.content {
        taken.measurement.checksum = Some(hex(content));
        if unchanged && !content_is_its_own(&stage.bound.steps, read.table) {
            let expected = match read.decode {
                Decode::Floats => expectations.floats_of_columns(table, &read.columns)?,
                Decode::None | Decode::Values => expectations.of_columns(table, &read.columns)?,
            };
            taken.measurement.checksum_expected = Some(hex(expected));
            if content.checksum != expected.checksum {
                taken.measurement.guards.push(Guard::ChecksumWrong);
            }
        }
    }
    Ok(())
}

/// Whether the experiment's own SQL made the rows of a table, so that their content is not known beforehand.
fn content_is_its_own(steps: &[Step], table: usize) -> bool {
    steps.iter().any(|step| {
        matches!(&step.kind, StepKind::Load(load) if load.table == table && load.method.content_is_its_own().is_some())
    })
}

/// Ends of the key in each copy of the table, where clients share it by a key.
async fn key_ranges(stage: &Stage<'_>, read: &Read, table: &Table) -> Result<Vec<KeyRange>, WorkError> {
    let By::Key { column } = &read.by else { return Ok(Vec::new()) };
    let nullable = table.columns.iter().any(|known| known.name == *column && !known.not_null);
    let mut ranges = Vec::with_capacity(table.copies.len());
    for copy in &table.copies {
        ranges.push(KeyRange::ask(&stage.owner, &copy.name, column, nullable).await?);
    }
    Ok(ranges)
}

/// Whether a table still holds the generator's rows at a step: SQL of the experiment after the load may have
/// changed them, unless the load is to be verified after the last step.
fn holds_what_was_loaded(steps: &[Step], now: usize, table: usize) -> bool {
    let mut holds = false;
    for step in &steps[..now] {
        match &step.kind {
            StepKind::Load(load) if load.table == table => holds = true,
            // What a dump step took away and brings back is what it was; a dump of the user is verified by the generator.
            StepKind::Restore(restore) if restore.tables.contains(&table) => {
                holds |= matches!(restore.from, DumpSource::Path { .. });
            }
            StepKind::Sql { .. } | StepKind::Command(_) => {
                let verified_last = |step: &Step| matches!(&step.kind, StepKind::Load(load) if load.table == table && load.verify == Verify::End);
                holds &= steps[..now].iter().any(verified_last);
            }
            _ => {}
        }
    }
    holds
}
