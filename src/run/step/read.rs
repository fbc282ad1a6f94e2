//! Read steps: rows out, and whether they are the ones that were loaded.

use std::time::Instant;

use tokio::task::JoinSet;

use super::{Taken, hex, joined, moved, set_up};
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::work::Progress;
use crate::engine::postgres::{read, verify};
use crate::model::{Cache, DumpSource, Guard, Read, ReadMethod, Step, StepKind, Verify};
use crate::run::Expectations;
use crate::run::sampler::Sampler;
use crate::run::stage::Stage;

pub(super) fn method(read: &Read) -> &'static str {
    match read.method {
        ReadMethod::Select { .. } => "select",
        ReadMethod::CopyOut { .. } => "copy_out",
    }
}

pub(super) async fn run_read(
    stage: &Stage<'_>,
    read: &Read,
    expectations: &mut Expectations,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    let table = &stage.tables[read.table];
    let unchanged =
        holds_what_was_loaded(&stage.bound.steps, taken.measurement.step_index as usize, read.table);
    taken.measurement.rows_expected = unchanged.then_some(table.rows);
    let progress = Progress::new(read.clients);
    if read.cache == Cache::Warm {
        verify::stored_content(&stage.owner.client, table).await?;
    }
    let start = Instant::now();
    let (clients, connecting) = read::prepare(&stage.instance.endpoint, table, read, &progress).await?;
    set_up(&mut taken.measurement, start.elapsed(), connecting);
    let waits = stage.watch().await?;
    let before = stage.before().await?;

    let start = Instant::now();
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
    taken.measurement.pressure.client_wait_share = waits.finish();

    moved(&done, taken);
    stage.conclude(&before, &end, 0, Some(table), &mut taken.measurement).await?;
    if unchanged && done.rows != table.rows {
        taken.measurement.guards.push(Guard::RowsWrong);
    }
    if let Some(content) = done.content {
        taken.measurement.checksum = Some(hex(content));
        if unchanged && !content_is_its_own(&stage.bound.steps, read.table) {
            let expected = expectations.of_columns(table, &read.columns)?;
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
            StepKind::Sql { .. } => {
                let verified_last = |step: &Step| matches!(&step.kind, StepKind::Load(load) if load.table == table && load.verify == Verify::End);
                holds &= steps[..now].iter().any(verified_last);
            }
            _ => {}
        }
    }
    holds
}
