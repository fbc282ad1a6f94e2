//! One step: counters before, clock, work, clock, counters after. The runner owns the clock.

mod command;
mod dump;
mod load;
mod read;
mod read_state;
mod restore;
mod statements;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::Expectations;
use super::command::Printed;
use super::stage::Stage;
use crate::data::Content;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::timeline::Timeline;
use crate::engine::postgres::work::{Latencies, WorkDone};
use crate::model::{Measurement, Sample, Step, StepKind, Table, Through};

pub(super) use dump::Dumped;
pub(super) use verify::{Check, run_check};

/// A step's measurement while it grows: what is there when the step fails is kept.
pub(in crate::run) struct Taken {
    pub(super) measurement: Measurement,
    pub(super) samples: Vec<Sample>,
    /// What is verified after the last step.
    pub(super) verify_later: Option<Check>,
    /// What a client program has printed so far.
    printed: Option<Printed>,
}

impl Taken {
    /// Names and texts of the files that a client program's output becomes.
    pub(super) fn outputs(&self) -> Vec<(String, String)> {
        let files = self.measurement.output.as_ref().zip(self.printed.as_ref());
        files.map(|(name, printed)| printed.files(name)).unwrap_or_default()
    }

    /// The identity of a step, before anything was measured; `index` counts repetitions as steps of their own.
    pub(super) fn of(step: &Step, index: u32, repetition: u32, tables: &[Arc<Table>]) -> Self {
        let (kind, method, table, clients) = match &step.kind {
            StepKind::Create { table, .. } => ("create", "", Some(*table), 1),
            StepKind::Index { table } => ("index", "", Some(*table), 1),
            StepKind::Sql { .. } => ("sql", "", None, 1),
            StepKind::Command(_) => ("command", "", None, 1),
            StepKind::Load(load) => ("load", load::method(load), Some(load.table), load.clients),
            StepKind::Read(read) => ("read", read::method(read), Some(read.table), read.clients),
            StepKind::Dump(dump) => ("dump", dump.format.name(), None, dump.jobs),
            StepKind::Restore(restore) => ("restore", through(restore.through), None, restore.jobs),
        };
        let measurement = Measurement {
            step_index: index,
            step: step.name.clone(),
            repetition,
            kind: kind.to_owned(),
            method: method.to_owned(),
            parameters: serde_json::to_string(&step.kind).expect("a step is plain data"),
            table: table.map(|table| tables[table].name.clone()),
            clients,
            ..Measurement::default()
        };
        Self { measurement, samples: Vec::new(), verify_later: None, printed: None }
    }
}

fn through(through: Through) -> &'static str {
    match through {
        Through::Direct => "direct",
        Through::Psql => "psql",
    }
}

/// Runs one step. On an error `taken` holds what was measured until then.
pub(super) async fn run_step(
    stage: &mut Stage<'_>,
    step: &Step,
    expectations: &mut Expectations,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    match &step.kind {
        StepKind::Create { table, with_indexes } => {
            let table = &Arc::clone(&stage.tables[*table]);
            let mut sql: Vec<&String> = Vec::new();
            for copy in &table.copies {
                sql.extend(&copy.ddl);
                sql.extend(copy.indexes.iter().filter(|_| *with_indexes));
            }
            statements::run_statements(stage, &sql, false, Some(table), taken).await
        }
        StepKind::Index { table } => {
            let table = &stage.tables[*table];
            let sql = table.copies.iter().flat_map(|copy| &copy.indexes).collect::<Vec<_>>();
            statements::run_statements(stage, &sql, false, Some(table), taken).await
        }
        StepKind::Sql { statements: sql, transaction } => {
            statements::run_statements(stage, &sql.iter().collect::<Vec<_>>(), *transaction, None, taken)
                .await
        }
        StepKind::Command(command) => command::run_command(stage, &step.name, command, taken).await,
        StepKind::Load(load) => load::run_load(stage, load, expectations, taken).await,
        StepKind::Read(read) => read::run_read(stage, read, expectations, taken).await,
        StepKind::Dump(dump) => dump::run_dump(stage, dump, taken).await,
        StepKind::Restore(restore) => restore::run_restore(stage, restore, expectations, taken).await,
    }
}

/// The spans before the clock: connecting, and all else that was made ready.
fn set_up(measurement: &mut Measurement, all: Duration, connecting: Duration) {
    measurement.spans.connect = Some(connecting.as_secs_f64());
    measurement.spans.prepare = Some(all.saturating_sub(connecting).as_secs_f64());
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
    measurement.scheduled_latency = done.scheduled.as_ref().and_then(Latencies::percentiles);
    measurement.commit_latency = done.commits.percentiles();
    measurement.spans.commit = measurement.commit_latency.map(|_| done.commit.as_secs_f64());
    measurement.spans.first_row = done.first_row.map(|span| span.as_secs_f64());
}

/// How long nothing came, as far as the batches tell. `seconds` must be measured before.
fn stalls(timeline: &Timeline, taken: &mut Taken) {
    let (gap, share) = timeline.stalls(taken.measurement.spans.seconds);
    taken.measurement.longest_gap = gap;
    taken.measurement.stalled_share = share;
}

fn hex(content: Content) -> String {
    format!("{:032x}", content.checksum)
}
