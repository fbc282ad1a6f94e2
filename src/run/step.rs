//! One step: counters before, clock, work, clock, counters after. The runner owns the clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Expectations;
use super::sampler::Sampler;
use super::stage::Stage;
use crate::data::Content;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::work::{Progress, WorkDone};
use crate::engine::postgres::{Role, Session, WORKER, load, read, verify};
use crate::model::{
    Cache, Guard, Load, LoadMethod, Measurement, Outcome, Read, ReadMethod, Sample, Step, StepKind, Table,
    Until, Verify,
};

/// A step's measurement while it grows: what is there when the step fails is kept.
pub(super) struct Taken {
    pub(super) measurement: Measurement,
    pub(super) samples: Vec<Sample>,
    /// The table whose content is verified after the last step.
    pub(super) verify_later: Option<usize>,
}

impl Taken {
    /// The identity of a step, before anything was measured.
    pub(super) fn of(step: &Step, index: u32, tables: &[Arc<Table>]) -> Self {
        let (kind, method, table, clients) = match &step.kind {
            StepKind::Create { table, .. } => ("create", "", Some(*table), 1),
            StepKind::Index { table } => ("index", "", Some(*table), 1),
            StepKind::Sql { .. } => ("sql", "", None, 1),
            StepKind::Load(load) => ("load", load_method(load), Some(load.table), load.clients),
            StepKind::Read(read) => ("read", read_method(read), Some(read.table), read.clients),
        };
        let measurement = Measurement {
            step_index: index,
            step: step.name.clone(),
            kind: kind.to_owned(),
            method: method.to_owned(),
            parameters: serde_json::to_string(&step.kind).expect("a step is plain data"),
            table: table.map(|table| tables[table].name.clone()),
            clients,
            ..Measurement::default()
        };
        Self { measurement, samples: Vec::new(), verify_later: None }
    }
}

fn load_method(load: &Load) -> &'static str {
    match load.method {
        LoadMethod::Insert(_) => "insert",
        LoadMethod::Copy(_) => "copy",
    }
}

fn read_method(read: &Read) -> &'static str {
    match read.method {
        ReadMethod::Select { .. } => "select",
        ReadMethod::CopyOut { .. } => "copy_out",
    }
}

/// Runs one step. On an error `taken` holds what was measured until then.
pub(super) async fn run_step(
    stage: &Stage<'_>,
    step: &Step,
    expectations: &mut Expectations,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    match &step.kind {
        StepKind::Create { table, with_indexes } => {
            let table = &stage.tables[*table];
            let mut sql: Vec<&String> = Vec::new();
            for copy in &table.copies {
                sql.extend(&copy.ddl);
                sql.extend(copy.indexes.iter().filter(|_| *with_indexes));
            }
            statements(stage, &sql, false, Some(table), taken).await
        }
        StepKind::Index { table } => {
            let table = &stage.tables[*table];
            let sql = table.copies.iter().flat_map(|copy| &copy.indexes).collect::<Vec<_>>();
            statements(stage, &sql, false, Some(table), taken).await
        }
        StepKind::Sql { statements: sql, transaction } => {
            statements(stage, &sql.iter().collect::<Vec<_>>(), *transaction, None, taken).await
        }
        StepKind::Load(load) => run_load(stage, load, expectations, taken).await,
        StepKind::Read(read) => run_read(stage, read, expectations, taken).await,
    }
}

async fn statements(
    stage: &Stage<'_>,
    sql: &[&String],
    transaction: bool,
    table: Option<&Table>,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    // A session of its own: what it did is in the server's statistics when it has ended, not before.
    let session = Session::open_as(&stage.instance.endpoint, Role::Owner, WORKER).await?;
    let before = stage.before().await?;
    let start = Instant::now();
    if transaction {
        session.client.batch_execute("BEGIN").await?;
    }
    for statement in sql {
        session.client.batch_execute(statement).await?;
    }
    if transaction {
        session.client.batch_execute("COMMIT").await?;
    }
    taken.measurement.spans.seconds = start.elapsed().as_secs_f64();
    let end = stage.at_end().await?;
    drop(session);
    stage.conclude(&before, &end, 0, table, &mut taken.measurement).await
}

async fn run_load(
    stage: &Stage<'_>,
    load: &Load,
    expectations: &mut Expectations,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    let table = &stage.tables[load.table];
    taken.measurement.rows_expected = Some(table.rows);
    let progress = Progress::new(load.clients);
    let start = Instant::now();
    let instance = stage.instance;
    let (clients, connecting) =
        load::prepare(&instance.endpoint, instance.exchange.as_ref(), table, load, &progress).await?;
    set_up(&mut taken.measurement, start.elapsed(), connecting);
    stage.clear_the_way().await?;
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
    let done = done?;
    let end = stage.at_end().await?;

    taken.measurement.spans.seconds = seconds;
    moved(&done, taken);
    taken.measurement.spans.transfer = Some((seconds - done.commit.as_secs_f64()).max(0.0));
    let flushed = end_points(stage, load, table, taken).await?;
    stage.conclude(&before, &end, flushed, Some(table), &mut taken.measurement).await?;
    // Rows that are lost already void the trial, whatever a later read wants to meet.
    if load.verify == Verify::Now || done.rows != table.rows {
        verify_table(stage, load.table, expectations, &mut taken.measurement).await
    } else {
        taken.verify_later = Some(load.table);
        Ok(())
    }
}

/// The spans before the clock: connecting, and all else that was made ready.
fn set_up(measurement: &mut Measurement, all: Duration, connecting: Duration) {
    measurement.spans.connect = Some(connecting.as_secs_f64());
    measurement.spans.prepare = Some(all.saturating_sub(connecting).as_secs_f64());
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
            let name = crate::engine::postgres::quote_ident(&copy.name);
            stage.admin.client.batch_execute(&format!("VACUUM (ANALYZE) {name}")).await?;
        }
        taken.measurement.spans.settle = Some(start.elapsed().as_secs_f64());
    }
    Ok(u64::from(load.until >= Until::Durable))
}

async fn run_read(
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

    moved(&done, taken);
    stage.conclude(&before, &end, 0, Some(table), &mut taken.measurement).await?;
    if unchanged && done.rows != table.rows {
        taken.measurement.guards.push(Guard::RowsWrong);
    }
    if let Some(content) = done.content {
        taken.measurement.checksum = Some(hex(content));
        if unchanged {
            let expected = expectations.of_columns(table, &read.columns)?;
            taken.measurement.checksum_expected = Some(hex(expected));
            if content.checksum != expected.checksum {
                taken.measurement.guards.push(Guard::ChecksumWrong);
            }
        }
    }
    Ok(())
}

/// Whether a table still holds the generator's rows at a step: SQL of the experiment after the load may have
/// changed them, unless the load is to be verified after the last step.
fn holds_what_was_loaded(steps: &[Step], now: usize, table: usize) -> bool {
    let mut holds = false;
    for step in &steps[..now] {
        match &step.kind {
            StepKind::Load(load) if load.table == table => holds = true,
            StepKind::Sql { .. } => {
                let verified_last = |step: &Step| matches!(&step.kind, StepKind::Load(load) if load.table == table && load.verify == Verify::End);
                holds &= steps[..now].iter().any(verified_last);
            }
            _ => {}
        }
    }
    holds
}

/// Waits for all clients; the first error ends the others (their connections are dropped).
async fn joined(mut work: JoinSet<Result<WorkDone, WorkError>>) -> Result<WorkDone, WorkError> {
    let mut all = Vec::new();
    while let Some(done) = work.join_next().await {
        match done {
            Ok(done) => all.push(done?),
            Err(error) => return Err(WorkError::Protocol(format!("a client ended early: {error}"))),
        }
    }
    Ok(WorkDone::together(all))
}

fn moved(done: &WorkDone, taken: &mut Taken) {
    let measurement = &mut taken.measurement;
    measurement.rows = Some(done.rows);
    measurement.payload_bytes = Some(done.payload_bytes);
    measurement.batch_latency = done.batches.percentiles();
    measurement.commit_latency = done.commits.percentiles();
    measurement.spans.commit = measurement.commit_latency.map(|_| done.commit.as_secs_f64());
    measurement.spans.first_row = done.first_row.map(|span| span.as_secs_f64());
}

/// Compares what the server stores with what the generator says; a difference trips a guard.
pub(super) async fn verify_table(
    stage: &Stage<'_>,
    table: usize,
    expectations: &mut Expectations,
    measurement: &mut Measurement,
) -> Result<(), WorkError> {
    let start = Instant::now();
    let table = &stage.tables[table];
    let copies = verify::stored_content(&stage.owner.client, table).await?;
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
        let found = verify::first_difference(&stage.owner.client, table).await?;
        measurement.error =
            Some(found.map_or(text.clone(), |(name, difference)| format!("{text}\n{name}: {difference}")));
    }
    Ok(())
}

/// All copies together.
fn all(copies: &[Content]) -> Content {
    copies.iter().fold(Content::default(), |total, copy| total.merge(*copy))
}

fn hex(content: Content) -> String {
    format!("{:032x}", content.checksum)
}
