//! Load steps: rows in, end points after the commit, verification.

use std::time::Instant;

use tokio::task::JoinSet;

use super::{Check, Taken, joined, moved, run_check, set_up, stalls};
use crate::engine::postgres::load::{self, LoadClient, Supply, WorkError};
use crate::engine::postgres::work::{Progress, WorkDone};
use crate::engine::postgres::{quote_ident, verify};
use crate::model::{Load, LoadMethod, Outside, Table, Until, Verify, Window};
use crate::run::Expectations;
use crate::run::pulse;
use crate::run::sampler::{self, Sampler};
use crate::run::stage::{AtEnd, Stage};

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
    taken.measurement.rows_expected = load.duration.is_none().then_some(table.rows);
    taken.measurement.content_unverified = load.method.content_is_its_own().map(str::to_owned);
    let progress = Progress::timed(load.clients, load.duration);
    let start = Instant::now();
    let instance = &*stage.instance;
    let ready = load::prepare(&instance.endpoint, instance.exchange.as_ref(), table, load, &progress).await?;
    set_up(&mut taken.measurement, start.elapsed(), ready.connecting);
    stage.clear_the_way().await?;
    let waits = stage.watch().await?;
    let mut before = stage.before().await?;

    let (done, end) = match load.duration {
        None => until_the_last_row(stage, load, ready.clients, &progress, taken).await?,
        Some(window) => {
            let (done, edge, end) = by_duration(stage, ready.clients, &window, &progress, taken).await?;
            before.window_opens(edge);
            expectations.loaded(table, ready.supplies.iter().map(Supply::taken).collect());
            (done, end)
        }
    };
    if load.duration.is_none() {
        expectations.loaded(table, Vec::new());
    }
    taken.measurement.pressure.client_wait_share = waits.finish();
    stalls(&progress.timeline(), taken);
    let flushed = end_points(stage, load, table, taken).await?;
    stage.conclude(&before, &end, flushed, Some(table), &mut taken.measurement).await?;
    // Rows that are lost already void the trial, whatever a later read wants to meet.
    if load.verify == Verify::Now || done.rows != expectations.count(table) {
        run_check(stage, &Check::Loaded(load.table), expectations, &mut taken.measurement).await
    } else {
        taken.verify_later = Some(Check::Loaded(load.table));
        Ok(())
    }
}

/// The clients begin to work.
fn at_work(clients: Vec<LoadClient>) -> JoinSet<Result<WorkDone, WorkError>> {
    let mut work = JoinSet::new();
    for client in clients {
        work.spawn(client.work());
    }
    work
}

async fn until_the_last_row(
    stage: &Stage<'_>,
    load: &Load,
    clients: Vec<LoadClient>,
    progress: &Progress,
    taken: &mut Taken,
) -> Result<(WorkDone, AtEnd), WorkError> {
    let start = Instant::now();
    progress.begin(start);
    let sampler = Sampler::start(progress, start);
    let done = joined(at_work(clients)).await;
    let seconds = start.elapsed().as_secs_f64();
    taken.samples = sampler.finish(taken.measurement.step_index, &taken.measurement.step);
    let mut done = done?;
    let end = stage.at_end().await?;
    if matches!(&load.method, LoadMethod::Procedure(procedure) if procedure.body.is_some()) {
        done.rows = verify::count(&stage.owner.client, &stage.tables[load.table]).await?;
    }
    taken.measurement.spans.seconds = seconds;
    moved(&done, taken);
    // Where the commits lie inside one statement, nobody can tell them from the rest.
    taken.measurement.spans.transfer = (!matches!(load.method, LoadMethod::Procedure(_)))
        .then(|| (seconds - done.commit.as_secs_f64()).max(0.0));
    Ok((done, end))
}

/// Works through warm-up and window and commits what is open. What the server and this process used is read at both
/// edges of the window; `seconds` is the window as it was asked for, and rows count where their COMMIT was acknowledged.
async fn by_duration(
    stage: &Stage<'_>,
    clients: Vec<LoadClient>,
    window: &Window,
    progress: &Progress,
    taken: &mut Taken,
) -> Result<(WorkDone, AtEnd, AtEnd), WorkError> {
    let start = tokio::time::Instant::now();
    progress.begin(start.into_std());
    let edges = async {
        tokio::time::sleep_until(start + window.warm_up).await;
        let opened = stage.at_end().await?;
        tokio::time::sleep_until(start + window.end()).await;
        Ok((opened, stage.at_end().await?))
    };
    let work = async { tokio::try_join!(joined(at_work(clients)), edges) };
    let ended = tokio::select! {
        ended = work => ended,
        never = pulse::beat(&stage.request.pulse, &taken.measurement.step, window, progress) => match never {},
    };
    let timeline = progress.timeline();
    taken.samples = sampler::timed(&timeline, taken.measurement.step_index, &taken.measurement.step);
    let (done, (opened, closed)) = ended?;
    moved(&done, taken);
    let phases = timeline.phases();
    let measurement = &mut taken.measurement;
    measurement.rows = Some(phases.inside);
    measurement.spans.seconds = window.measure.as_secs_f64();
    measurement.outside = Some(Outside {
        warm_up: window.warm_up.as_secs_f64(),
        rows_warm_up: phases.before,
        rows_after: phases.after,
    });
    Ok((done, opened, closed))
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
