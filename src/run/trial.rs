//! One trial on one fresh server, from launch to removal. Errors become values: a failed trial is a record.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use super::guards;
use super::stage::Stage;
use super::step::{Check, Taken, run_check, run_step};
use super::{Expectations, Prepared, Pulse, sync_probe};
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::{Role, Session, SessionError};
use crate::environment::{EnvironmentError, Instance, Launch, Provider};
use crate::model::{Guard, Outcome, PlannedTrial, ServerFacts, Storage, TrialRecord};

/// Longest time for launching or removing a server; providers have shorter deadlines of their own.
const PROVIDER_DEADLINE: Duration = Duration::from_mins(3);

/// Longest time for an answer that needs no work: a server that hangs must not hang the run.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// What is asked for.
pub(super) struct TrialRequest<'a> {
    pub(super) run_id: &'a str,
    pub(super) trial: &'a PlannedTrial,
    pub(super) attempt: u32,
    pub(super) prepared: &'a Prepared,
    pub(super) pulse: watch::Sender<Pulse>,
}

/// Runs the trial. Never fails: whatever goes wrong is in the record.
pub(super) async fn run_trial(
    request: TrialRequest<'_>,
    expectations: &mut Expectations,
    outputs: &mut Vec<(String, String)>,
    mut cancel: watch::Receiver<bool>,
) -> TrialRecord {
    let start = Instant::now();
    let mut record = blank(&request);
    let provider = match &request.prepared.provider {
        Ok(provider) => provider.as_ref(),
        Err(reason) => {
            record.outcome = Outcome::NotRun;
            record.error = Some(reason.clone());
            return record;
        }
    };
    let cpus = request.prepared.bound.environment.client_cpuset.as_deref();
    if let Err(error) = super::client::pin(cpus) {
        record.outcome = Outcome::EnvironmentFault;
        record.error = Some(error);
        return record;
    }
    match launch(&request, provider).await {
        Err(error) => {
            record.outcome = Outcome::EnvironmentFault;
            record.error = Some(error.to_string());
        }
        Ok(mut instance) => {
            record.server_start_seconds = Some(start.elapsed().as_secs_f64());
            let cancelled = tokio::select! {
                () = play(&request, &mut instance, expectations, outputs, &mut record) => false,
                () = cancellation(&mut cancel) => true,
            };
            if cancelled {
                record.outcome = Outcome::Cancelled;
                record.error = Some("ended by the user".to_owned());
            }
            remove(instance, &mut record).await;
        }
    }
    record.seconds = start.elapsed().as_secs_f64();
    record
}

fn blank(request: &TrialRequest<'_>) -> TrialRecord {
    TrialRecord {
        trial: request.trial.clone(),
        attempt: request.attempt,
        treatment: request.prepared.label.clone(),
        factors: request.prepared.factors.clone(),
        started_at: Timestamp::now(),
        seconds: 0.0,
        server_start_seconds: None,
        server: None,
        outcome: Outcome::Ok,
        error: None,
        error_sqlstate: None,
        settings: Vec::new(),
        measurements: Vec::new(),
        samples: Vec::new(),
    }
}

async fn launch(request: &TrialRequest<'_>, provider: &dyn Provider) -> Result<Instance, EnvironmentError> {
    let launch = Launch {
        run_id: request.run_id.to_owned(),
        trial: request.trial.number,
        environment: request.prepared.bound.environment.clone(),
    };
    let started = tokio::time::timeout(PROVIDER_DEADLINE, provider.start(&launch)).await;
    started.unwrap_or_else(|_| {
        Err(EnvironmentError::NotReady { reason: format!("no answer within {PROVIDER_DEADLINE:?}") })
    })
}

/// Ends when the user asked for the end. A closed channel means nobody can ask any more.
async fn cancellation(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn remove(instance: Instance, record: &mut TrialRecord) {
    let stopped = tokio::time::timeout(PROVIDER_DEADLINE, instance.running.stop()).await;
    let error = match stopped {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("the server could not be removed within {PROVIDER_DEADLINE:?}"),
    };
    if record.outcome == Outcome::Ok {
        record.outcome = Outcome::EnvironmentFault;
        record.error = Some(format!("after the last step: {error}"));
    }
}

/// Everything between the server's first answer and its removal.
async fn play(
    request: &TrialRequest<'_>,
    instance: &mut Instance,
    expectations: &mut Expectations,
    outputs: &mut Vec<(String, String)>,
    record: &mut TrialRecord,
) {
    let bound = &request.prepared.bound;
    let opened = tokio::time::timeout(ANSWER_DEADLINE, Stage::open(instance, request)).await;
    let mut stage = match opened.unwrap_or_else(|_| Err(no_answer("opening the first sessions").into())) {
        Ok(stage) => stage,
        Err(error) => return failed(instance, &error, record).await,
    };
    record.settings.clone_from(&stage.report.settings);
    let sync_seconds = sync_probe::sync_seconds(&stage.instance.endpoint).await;
    record.server = Some(ServerFacts { sync_seconds, ..facts(&stage) });
    let mut later = Vec::new();
    let repeated =
        bound.steps.iter().flat_map(|step| (0..step.repeat).map(move |repetition| (step, repetition)));
    for (index, (step, repetition)) in repeated.enumerate() {
        let index = u32::try_from(index).expect("there are few steps");
        let mut taken = Taken::of(step, index, repetition, &stage.tables);
        let work = run_step(&mut stage, step, expectations, &mut taken);
        let ended = tokio::time::timeout(step.timeout, work).await;
        let go_on = conclude_step(stage.instance, ended, step.timeout, &mut taken, record).await;
        later.extend(taken.verify_later.take().map(|check| Later {
            place: record.measurements.len(),
            check,
            timeout: step.timeout,
        }));
        record.samples.append(&mut taken.samples);
        outputs.append(&mut taken.outputs());
        record.measurements.push(taken.measurement);
        if !go_on {
            break;
        }
    }
    // A read that met wrong rows is explained by the load that made them.
    if record.outcome == Outcome::Ok || rows_are_wrong(record) {
        verify_at_end(&stage, &later, expectations, record).await;
    }
    guard_trial(&stage, record).await;
}

/// A load or restore whose tables are verified after the last step.
struct Later {
    /// Index of its measurement.
    place: usize,
    check: Check,
    timeout: Duration,
}

fn rows_are_wrong(record: &TrialRecord) -> bool {
    let mut guards = record.measurements.iter().flat_map(|measurement| &measurement.guards);
    guards.any(|guard| matches!(guard, Guard::RowsWrong | Guard::ChecksumWrong))
}

fn no_answer(what: &str) -> SessionError {
    SessionError::Deadline(ANSWER_DEADLINE, what.to_owned())
}

/// Sets the outcome of a step; true when the next step may run.
async fn conclude_step(
    instance: &Instance,
    ended: Result<Result<(), WorkError>, tokio::time::error::Elapsed>,
    timeout: Duration,
    taken: &mut Taken,
    record: &mut TrialRecord,
) -> bool {
    match ended {
        Ok(Ok(())) => {
            let measurement = &mut taken.measurement;
            let wrong = [Guard::RowsWrong, Guard::ChecksumWrong];
            if measurement.guards.iter().any(|guard| wrong.contains(guard)) {
                measurement.outcome = Some(Outcome::Failed);
                let error = measurement
                    .error
                    .get_or_insert_with(|| "the rows are not what the generator says".to_owned());
                record.error = Some(format!("step {}: {error}", measurement.step));
                record.outcome = Outcome::Failed;
                return false;
            }
            measurement.outcome = Some(Outcome::Ok);
            true
        }
        Ok(Err(error)) => {
            failed(instance, &error, record).await;
            taken.measurement.outcome = Some(record.outcome);
            taken.measurement.error.clone_from(&record.error);
            record.error =
                record.error.take().map(|error| format!("step {}: {error}", taken.measurement.step));
            false
        }
        Err(_) => {
            record.outcome = Outcome::TimedOut;
            let error =
                format!("step {} took longer than its timeout of {timeout:?}", taken.measurement.step);
            taken.measurement.outcome = Some(Outcome::TimedOut);
            taken.measurement.error = Some(error.clone());
            record.error = Some(error);
            false
        }
    }
}

/// An error of the work: the server's refusal, or the end of the server, which the provider can explain.
async fn failed(instance: &Instance, error: &WorkError, record: &mut TrialRecord) {
    record.outcome = Outcome::Failed;
    record.error_sqlstate = error.sqlstate();
    let mut text = error.to_string();
    if error.server_is_gone() {
        record.outcome = Outcome::EnvironmentFault;
        let diagnosis = tokio::time::timeout(ANSWER_DEADLINE, instance.running.diagnose()).await;
        if let Ok(Some(diagnosis)) = diagnosis {
            text = format!("{text}\n{diagnosis}");
        }
    }
    record.error = Some(text);
}

async fn verify_at_end(
    stage: &Stage<'_>,
    later: &[Later],
    expectations: &mut Expectations,
    record: &mut TrialRecord,
) {
    for load in later {
        let measurement = &mut record.measurements[load.place];
        let work = run_check(stage, &load.check, expectations, measurement);
        let verified = tokio::time::timeout(load.timeout, work).await;
        let error = match verified {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("cannot verify: {error}")),
            Err(_) => Some(format!("cannot verify within the step's timeout of {:?}", load.timeout)),
        };
        if error.is_some() {
            measurement.outcome = Some(Outcome::Failed);
            measurement.error = error;
        }
        if measurement.outcome == Some(Outcome::Failed) {
            record.outcome = Outcome::Failed;
            let error = measurement.error.as_deref().unwrap_or("not verified");
            record.error = Some(format!("step {}: {error}", measurement.step));
        }
    }
}

/// Guards that concern the whole trial go onto each of its measurements.
async fn guard_trial(stage: &Stage<'_>, record: &mut TrialRecord) {
    let mut tripped = Vec::new();
    if record.settings.iter().any(|setting| !setting.in_force) {
        tripped.push(Guard::SettingNotInForce);
    }
    if restarted(stage).await {
        tripped.push(Guard::ServerRestarted);
    }
    if stage.lost_to_memory().await {
        tripped.push(Guard::OutOfMemoryKill);
    }
    let sync =
        record.server.as_ref().and_then(|server| guards::of_sync(server, stage.is_unsafe_on_purpose()));
    for measurement in &mut record.measurements {
        measurement.guards.extend(&tripped);
        measurement.guards.extend(sync.filter(|_| guards::writes(&measurement.kind)));
        measurement.guards.sort_unstable();
        measurement.guards.dedup();
    }
}

/// Whether another postmaster answers now, or none. Asked on a new connection: the old one may be dead.
async fn restarted(stage: &Stage<'_>) -> bool {
    let ask = async {
        let session = Session::open(&stage.instance.endpoint, Role::Admin).await.ok()?;
        let row = session.client.query_one("SELECT pg_postmaster_start_time()::text", &[]).await.ok()?;
        Some(row.get::<_, String>(0))
    };
    let answer = tokio::time::timeout(ANSWER_DEADLINE, ask).await.unwrap_or(None);
    answer.as_ref() != Some(&stage.report.postmaster_start)
}

fn facts(stage: &Stage<'_>) -> ServerFacts {
    let facts = &stage.instance.facts;
    let environment = &stage.bound.environment;
    ServerFacts {
        backend: facts.backend,
        environment: environment.name.clone(),
        version_num: stage.report.version_num,
        identity: facts.identity.clone(),
        fresh: facts.fresh.clone(),
        storage: facts.storage.clone(),
        connection: facts.connection.clone(),
        cpuset: facts.cpuset.clone(),
        client_cpuset: environment.client_cpuset.clone(),
        cluster: Some(stage.report.cluster.clone()),
        sync_seconds: None,
        durable: stage.report.durable && environment.storage != Storage::Tmpfs && facts.storage != "tmpfs",
    }
}
