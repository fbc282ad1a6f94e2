//! Runs planned trials: bind, launch, steps, verification, guards, removal. Emits [`Event`]s to a closure
//! and knows neither Parquet nor terminals.

mod busy;
mod ceiling;
mod client;
mod command;
mod expectations;
mod guards;
mod machine;
mod pulse;
mod sampler;
mod stage;
mod step;
mod sync_probe;
mod trial;
mod waits;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

pub use ceiling::LoadSteps;
use expectations::Expectations;
pub use pulse::Pulse;

use crate::environment::Provider;
use crate::environment::ledger::Ledger;
use crate::model::{BoundTrial, Outcome, PlannedTrial, Scalar, TrialRecord};

/// What happened. A finished trial must be stored before the closure returns.
pub enum Event<'a> {
    /// A trial begins.
    Started {
        /// Which.
        trial: &'a PlannedTrial,
        /// 0 for the first attempt.
        attempt: u32,
        /// Label of its treatment.
        label: &'a str,
    },
    /// A load by duration of the trial is at work; told once a second.
    Working(&'a Pulse),
    /// What a client program of the trial printed; comes before the trial's end.
    Output {
        /// Where it belongs in the run's folder: `Measurement::output` with `.stdout` or `.stderr`.
        name: &'a str,
        /// The text, without the trial's password.
        text: &'a str,
    },
    /// A trial ended, well or not; its server is gone.
    Finished(&'a TrialRecord),
}

/// One trial of the plan, bound and with its provider.
pub struct Prepared {
    /// Everything the trial does.
    pub bound: Arc<BoundTrial>,
    /// Where its server comes from; or why the trial is not run on this machine.
    pub provider: Result<Arc<dyn Provider>, String>,
    /// Label of the treatment.
    pub label: String,
    /// Factor names with the level's value.
    pub factors: Vec<(String, Scalar)>,
    /// Name of the experiment.
    pub experiment: String,
    /// Folder of the experiment file, where client programs work.
    pub folder: PathBuf,
    /// Where client programs are written down.
    pub ledger: Arc<Ledger>,
    /// Whether other runs on the machine are allowed.
    pub beside_others: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Trials that are done and verified.
    pub ok: u64,
    /// Trials that failed, timed out or lost their server.
    pub failed: u64,
    /// Trials that were left out because this machine lacks what they need.
    pub not_run: u64,
    /// Whether the user ended the run before all trials were done.
    pub cancelled: bool,
}

/// Runs trials one after another.
///
/// `prepare` binds a trial just before it runs; `emit` stores events. An error of either ends the run;
/// what was emitted before stays.
///
/// # Errors
/// The first error of `prepare` or `emit`.
pub async fn run<E>(
    run_id: &str,
    trials: impl Iterator<Item = (PlannedTrial, u32)>,
    mut prepare: impl AsyncFnMut(&PlannedTrial) -> Result<Prepared, E>,
    mut emit: impl FnMut(Event<'_>) -> Result<(), E>,
    cancel: watch::Receiver<bool>,
) -> Result<Tally, E> {
    let mut tally = Tally::default();
    let mut expectations = Expectations::default();
    for (trial, attempt) in trials {
        if *cancel.borrow() {
            tally.cancelled = true;
            break;
        }
        let prepared = prepare(&trial).await?;
        emit(Event::Started { trial: &trial, attempt, label: &prepared.label })?;
        expectations.begin_trial();
        let (pulse, mut felt) = watch::channel(Pulse::default());
        let request = trial::TrialRequest { run_id, trial: &trial, attempt, prepared: &prepared, pulse };
        let mut outputs = Vec::new();
        let record = {
            let work = trial::run_trial(request, &mut expectations, &mut outputs, cancel.clone());
            let mut work = std::pin::pin!(work);
            loop {
                tokio::select! {
                    record = &mut work => break record,
                    Ok(()) = felt.changed() => {
                        let pulse = felt.borrow_and_update().clone();
                        emit(Event::Working(&pulse))?;
                    }
                }
            }
        };
        for (name, text) in outputs {
            emit(Event::Output { name: &name, text: &text })?;
        }
        emit(Event::Finished(&record))?;
        match record.outcome {
            Outcome::Ok => tally.ok += 1,
            Outcome::Cancelled => tally.cancelled = true,
            Outcome::NotRun => tally.not_run += 1,
            Outcome::Failed | Outcome::TimedOut | Outcome::EnvironmentFault => tally.failed += 1,
        }
    }
    Ok(tally)
}
