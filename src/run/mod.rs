//! Runs planned trials: bind, launch, steps, verification, guards, removal. Emits [`Event`]s to a closure
//! and knows neither Parquet nor terminals.

mod client;
mod sampler;
mod stage;
mod step;
mod trial;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::data::{Content, DataError, TableGenerator};
use crate::engine::postgres::encode::{content_of, expected_content};
use crate::environment::Provider;
use crate::model::{BoundTrial, Outcome, PlannedTrial, Scalar, Table, TrialRecord};

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
        let request = trial::TrialRequest { run_id, trial: &trial, attempt, prepared: &prepared };
        let record = trial::run_trial(request, &mut expectations, cancel.clone()).await;
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

/// What the generator says tables hold, computed once per distinct table of a run.
#[derive(Default)]
struct Expectations(HashMap<String, Vec<Content>>);

impl Expectations {
    /// Content of each copy of a table.
    fn of(&mut self, table: &Table) -> Result<Vec<Content>, DataError> {
        self.get(table, "all", || (0..table.copies.len()).map(|copy| expected_content(table, copy)).collect())
    }

    /// Content of some columns of all rows, in the order they are read.
    fn of_columns(&mut self, table: &Table, columns: &[String]) -> Result<Content, DataError> {
        let contents = self.get(table, &format!("{columns:?}"), || {
            let generator = Arc::new(TableGenerator::select(table, columns)?);
            Ok(vec![content_of(&generator, 0..table.rows)])
        })?;
        Ok(contents[0])
    }

    fn get(
        &mut self,
        table: &Table,
        what: &str,
        make: impl FnOnce() -> Result<Vec<Content>, DataError>,
    ) -> Result<Vec<Content>, DataError> {
        let copies = table.copies.len();
        let key = format!("{:?} {} {} {copies} {what}", table.columns, table.rows, table.seed);
        if let Some(contents) = self.0.get(&key) {
            return Ok(contents.clone());
        }
        let contents = make()?;
        self.0.insert(key, contents.clone());
        Ok(contents)
    }
}
