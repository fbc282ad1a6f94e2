//! Load steps: rows in, end points after the commit, verification.

use std::time::Instant;

use tokio::task::JoinSet;

use super::{Check, Taken, joined, moved, run_check, set_up};
use crate::engine::postgres::load::{self, WorkError};
use crate::engine::postgres::work::Progress;
use crate::engine::postgres::{quote_ident, verify};
use crate::model::{Load, LoadMethod, Table, Until, Verify};
use crate::run::Expectations;
use crate::run::sampler::Sampler;
use crate::run::stage::Stage;

pub(super) fn method(load: &Load) -> &'static str {
    match load.method {
        LoadMethod::Insert(_) => "insert",
        LoadMethod::Copy(_) => "copy",
        LoadMethod::Unnest(_) => "unnest",
        LoadMethod::Generate(_) => "generate",
        LoadMethod::Procedure(_) => "procedure",
    }
}

pub(super) async fn run_load(
    stage: &Stage<'_>,
    load: &Load,
    expectations: &mut Expectations,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    let table = &stage.tables[load.table];
    taken.measurement.rows_expected = Some(table.rows);
    taken.measurement.content_unverified = load.method.content_is_its_own().map(str::to_owned);
    let progress = Progress::new(load.clients);
    let start = Instant::now();
    let instance = &*stage.instance;
    let (clients, connecting) =
        load::prepare(&instance.endpoint, instance.exchange.as_ref(), table, load, &progress).await?;
    set_up(&mut taken.measurement, start.elapsed(), connecting);
    stage.clear_the_way().await?;
    let waits = stage.watch().await?;
    let before = stage.before().await?;

    let start = Instant::now();
    let sampler = Sampler::start(&progress, start);
    let mut work = JoinSet::new();
    for client in clients {
        work.spawn(client.work());
    }
    let done = joined(work).await;
    let seconds = start.elapsed().as_secs_f64();
    taken.samples = sampler.finish(taken.measurement.step_index, &taken.measurement.step);
    let mut done = done?;
    let end = stage.at_end().await?;
    if matches!(&load.method, LoadMethod::Procedure(procedure) if procedure.body.is_some()) {
        done.rows = verify::count(&stage.owner.client, table).await?;
    }
    taken.measurement.pressure.client_wait_share = waits.finish();

    taken.measurement.spans.seconds = seconds;
    moved(&done, taken);
    // Where the commits lie inside one statement, nobody can tell them from the rest.
    taken.measurement.spans.transfer = (!matches!(load.method, LoadMethod::Procedure(_)))
        .then(|| (seconds - done.commit.as_secs_f64()).max(0.0));
    let flushed = end_points(stage, load, table, taken).await?;
    stage.conclude(&before, &end, flushed, Some(table), &mut taken.measurement).await?;
    // Rows that are lost already void the trial, whatever a later read wants to meet.
    if load.verify == Verify::Now || done.rows != table.rows {
        run_check(stage, &Check::Loaded(load.table), expectations, &mut taken.measurement).await
    } else {
        taken.verify_later = Some(Check::Loaded(load.table));
        Ok(())
    }
}

/// The end points after the commit, each a span of its own. Returns how many CHECKPOINTs that took.
async fn end_points(
    stage: &Stage<'_>,
    load: &Load,
    table: &Table,
    taken: &mut Taken,
) -> Result<u64, WorkError> {
    if load.until >= Until::Durable {
        taken.measurement.spans.flush = Some(stage.checkpoint().await?);
    }
    if load.until >= Until::Settled {
        let start = Instant::now();
        for copy in &table.copies {
            let name = quote_ident(&copy.name);
            stage.admin.client.batch_execute(&format!("VACUUM (ANALYZE) {name}")).await?;
        }
        taken.measurement.spans.settle = Some(start.elapsed().as_secs_f64());
    }
    Ok(u64::from(load.until >= Until::Durable))
}
