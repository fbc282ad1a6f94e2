//! Steps that run a client program.

use std::time::Instant;

use super::{Stage, Taken};
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::{Reach, SessionError};
use crate::environment::ledger::PrivatePath;
use crate::model::{Captured, Command};
use crate::run::client::children_cpu_seconds;
use crate::run::command::{Printed, Program, Telling, password_line, variables};

pub(super) async fn run_command(
    stage: &Stage<'_>,
    step: &str,
    command: &Command,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    let (trial, attempt) = (stage.request.trial, stage.request.attempt);
    let prepared = stage.request.prepared;
    let reach = stage.instance.endpoint.reach().map_err(SessionError::Connect)?;
    let printed = Printed::without(reach.password.clone());
    taken.printed = Some(printed.clone());
    taken.measurement.output = Some(format!("output/{:06}-{attempt}-{step}", trial.number));
    let mark = format!("{}-{}-{attempt}-{step}", stage.request.run_id, trial.number);
    let password_file = password_file(stage, &reach)?;
    let telling = Telling {
        experiment: &prepared.experiment,
        step,
        trial,
        factors: &prepared.factors,
        tables: &stage.bound.tables,
        scratch: stage.scratch.as_ref().map(PrivatePath::path),
    };
    let variables = variables(&reach, password_file.path(), &mark, &telling, |name| std::env::var_os(name));
    let folder = prepared.folder.join(&command.folder);
    stage.clear_the_way().await?;
    let before = stage.before().await?;
    let cpu = children_cpu_seconds();

    let start = Instant::now();
    let mut program = Program::start(&command.run, &folder, &variables, &mark, &prepared.ledger, &printed)
        .map_err(WorkError::Program)?;
    let ended = program.ended().await;
    taken.measurement.spans.seconds = start.elapsed().as_secs_f64();
    let used = cpu.zip(children_cpu_seconds()).map(|(from, to)| (to - from).max(0.0));
    program.tidy().await;
    let end = stage.at_end().await?;

    stage.conclude(&before, &end, 0, None, &mut taken.measurement).await?;
    taken.measurement.client_cpu_seconds = used;
    // This process only waited; how much memory the program took is not known.
    taken.measurement.client_peak_memory_bytes = None;
    let status = ended.map_err(WorkError::Program)?;
    let (captures, missing) = printed.captures(&command.captures);
    taken.measurement.rows = captures.iter().find(|captured| captured.name == "rows").and_then(rows);
    taken.measurement.captures = captures;
    let name = command.run.first().map(String::as_str).unwrap_or_default();
    match printed.complaint(name, status).or(missing) {
        Some(complaint) => Err(WorkError::Program(complaint)),
        None => Ok(()),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers only")]
fn rows(captured: &Captured) -> Option<u64> {
    (captured.value >= 0.0 && captured.value.fract() == 0.0).then_some(captured.value as u64)
}

fn password_file(stage: &Stage<'_>, reach: &Reach) -> Result<PrivatePath, WorkError> {
    let written = stage.request.prepared.ledger.private_file(&password_line(reach));
    written.map_err(|error| WorkError::Program(format!("the password file: {error}")))
}
