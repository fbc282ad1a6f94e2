//! A started server with everything a step needs: the stage on which the steps of a trial play.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::guards;
use super::machine::Machine;
use super::step::Dumped;
use super::waits::Waits;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::settings::ServerReport;
use crate::engine::postgres::{Role, Session, counters};
use crate::environment::{EnvironmentError, Instance, Usage};
use crate::model::{Backend, BoundTrial, Guard, Measurement, Pressure, ServerCounters, Table};

/// A role may not do what it tried.
pub(super) const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// A server and the connections of the runner itself.
pub(super) struct Stage<'a> {
    /// Reached elsewhere after a restart.
    pub(super) instance: &'a mut Instance,
    pub(super) bound: &'a BoundTrial,
    pub(super) tables: Vec<Arc<Table>>,
    /// Counters, CHECKPOINT, VACUUM.
    pub(super) admin: Session,
    /// Reads tables back.
    pub(super) owner: Session,
    pub(super) report: ServerReport,
    /// Dumps that steps have made, by step.
    dumps: Mutex<HashMap<String, Dumped>>,
}

/// Everything read just before a step.
pub(super) struct Before {
    counters: counters::CounterSnapshot,
    usage: Usage,
    cpu: Option<f64>,
    peak_is_reset: bool,
    machine: Machine,
}

/// Everything that must be read the moment the clock stopped.
pub(super) struct AtEnd {
    lsn: u64,
    cpu: Option<f64>,
    peak: Option<u64>,
    usage: Usage,
    machine: Machine,
}

impl<'a> Stage<'a> {
    /// Connects, reads the settings back.
    pub(super) async fn open(instance: &'a mut Instance, bound: &'a BoundTrial) -> Result<Self, WorkError> {
        let admin = Session::open(&instance.endpoint, Role::Admin).await?;
        let owner = Session::open(&instance.endpoint, Role::Owner).await?;
        let report =
            crate::engine::postgres::settings::report(&admin.client, &bound.environment.settings).await?;
        if instance.facts.backend != Backend::External {
            counters::allow_checkpoints(&admin.client, report.version_num).await?;
        }
        let tables = bound.tables.iter().cloned().map(Arc::new).collect();
        Ok(Self { instance, bound, tables, admin, owner, report, dumps: Mutex::default() })
    }

    /// Stops the server cleanly, starts it again and connects anew. False when other settings than before are in force.
    ///
    /// # Errors
    /// The outer error when the server is lost; the inner one says why this server is not restarted.
    pub(super) async fn restart(&mut self) -> Result<Result<bool, String>, WorkError> {
        self.instance.endpoint = match self.instance.running.restart().await {
            Ok(endpoint) => endpoint,
            Err(EnvironmentError::Unavailable { reason, .. }) => return Ok(Err(reason)),
            Err(error) => return Err(WorkError::Restart(error.to_string())),
        };
        self.admin = Session::open(&self.instance.endpoint, Role::Admin).await?;
        self.owner = Session::open(&self.instance.endpoint, Role::Owner).await?;
        let asked = &self.bound.environment.settings;
        let report = crate::engine::postgres::settings::report(&self.admin.client, asked).await?;
        let same = report.settings == self.report.settings;
        self.report.postmaster_start = report.postmaster_start;
        Ok(Ok(same))
    }

    /// Empties the write-behind of earlier steps, so that it is not paid in the next window.
    /// Not every role of an external server may ask for one: then the step begins without it.
    pub(super) async fn clear_the_way(&self) -> Result<(), WorkError> {
        match self.checkpoint().await {
            Err(error) if error.sqlstate().as_deref() == Some(INSUFFICIENT_PRIVILEGE) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// A CHECKPOINT. Returns its span in seconds.
    pub(super) async fn checkpoint(&self) -> Result<f64, WorkError> {
        Ok(counters::checkpoint(&self.admin.client, self.report.version_num).await?.as_secs_f64())
    }

    /// Begins to look at what the working sessions wait for.
    pub(super) async fn watch(&self) -> Result<Waits, WorkError> {
        Ok(Waits::start(Session::open(&self.instance.endpoint, Role::Admin).await?))
    }

    /// Waits until the server's statistics count CHECKPOINTs of the experiment: they are told after the answer, and would
    /// otherwise be taken for somebody else's in the next window.
    pub(super) async fn count_checkpoints(&self, before: &Before, own: u64) -> Result<(), WorkError> {
        let earlier = before.counters.checkpoints_requested.unwrap_or(0);
        let wanted = earlier.saturating_add_unsigned(own);
        Ok(counters::await_checkpoints(&self.admin.client, self.report.version_num, wanted).await?)
    }

    /// Remembers a dump.
    pub(super) fn dumped(&self, step: String, dump: Dumped) {
        self.dumps.lock().unwrap_or_else(PoisonError::into_inner).insert(step, dump);
    }

    /// The dump that a step has made.
    pub(super) fn dump(&self, step: &str) -> Option<Dumped> {
        self.dumps.lock().unwrap_or_else(PoisonError::into_inner).get(step).cloned()
    }

    /// Writes the sizes of several tables down; those that do not exist count nothing.
    pub(super) async fn sizes(
        &self,
        tables: &[&Arc<Table>],
        measurement: &mut Measurement,
    ) -> Result<(), WorkError> {
        let names: Vec<String> = tables
            .iter()
            .flat_map(|table| &table.copies)
            .map(|copy| crate::engine::postgres::quote_ident(&copy.name))
            .collect();
        let (heap, index, toast) = counters::sizes(&self.admin.client, &names).await?;
        measurement.counters.table_bytes = Some(heap);
        measurement.counters.index_bytes = Some(index);
        measurement.counters.toast_bytes = Some(toast);
        Ok(())
    }

    pub(super) async fn before(&self) -> Result<Before, WorkError> {
        let counters = counters::snapshot(&self.admin.client, self.report.version_num).await?;
        Ok(Before {
            counters,
            usage: self.instance.running.usage().await,
            peak_is_reset: super::client::reset_peak_memory(),
            machine: Machine::now(),
            cpu: super::client::cpu_seconds(),
        })
    }

    pub(super) async fn at_end(&self) -> Result<AtEnd, WorkError> {
        let cpu = super::client::cpu_seconds();
        let peak = super::client::peak_memory();
        let machine = Machine::now();
        Ok(AtEnd {
            machine,
            lsn: counters::lsn(&self.admin.client).await?,
            cpu,
            peak,
            usage: self.instance.running.usage().await,
        })
    }

    /// Fills in what changed over the window, once the sessions that worked are gone.
    /// `own_checkpoints`: CHECKPOINTs of the runner since [`Stage::before`].
    pub(super) async fn conclude(
        &self,
        before: &Before,
        end: &AtEnd,
        own_checkpoints: u64,
        table: Option<&Table>,
        measurement: &mut Measurement,
    ) -> Result<(), WorkError> {
        counters::settle_statistics(&self.admin.client, self.report.version_num).await?;
        let mut after = counters::snapshot(&self.admin.client, self.report.version_num).await?;
        after.lsn = end.lsn;
        let mut changed = counters::difference(&before.counters, &after);
        changed.checkpoints_requested =
            changed.checkpoints_requested.map(|count| count.saturating_sub(own_checkpoints));
        if let Some(table) = table {
            let names: Vec<String> =
                table.copies.iter().map(|copy| crate::engine::postgres::quote_ident(&copy.name)).collect();
            let (heap, index, toast) = counters::sizes(&self.admin.client, &names).await?;
            changed.table_bytes = Some(heap);
            changed.index_bytes = Some(index);
            changed.toast_bytes = Some(toast);
        }
        used(&before.usage, &end.usage, &mut changed);
        guard(&changed, &mut measurement.guards);
        measurement.pressure = Pressure {
            client_wait_share: measurement.pressure.client_wait_share,
            throttled_periods: grown(before.usage.throttled_periods, end.usage.throttled_periods),
            memory_kills: grown(before.usage.memory_kills, end.usage.memory_kills),
            ..end.machine.since(&before.machine)
        };
        let streams = streams(measurement);
        let seconds = measurement.spans.seconds;
        let mut tripped = guards::of_machine(&measurement.pressure, seconds, streams);
        // A quota that the experiment asks for is part of what is measured.
        let asked_for = self.bound.environment.limits.cpus.is_some();
        tripped.retain(|guard| *guard != Guard::Throttled || !asked_for);
        measurement.guards.extend(tripped);
        measurement.counters = changed;
        measurement.client_cpu_seconds = before.cpu.zip(end.cpu).map(|(from, to)| (to - from).max(0.0));
        measurement.client_peak_memory_bytes = end.peak.filter(|_| before.peak_is_reset);
        Ok(())
    }
}

fn used(before: &Usage, after: &Usage, counters: &mut ServerCounters) {
    counters.server_cpu_seconds =
        before.cpu_seconds.zip(after.cpu_seconds).map(|(from, to)| (to - from).max(0.0));
    counters.server_read_bytes = grown(before.read_bytes, after.read_bytes);
    counters.server_written_bytes = grown(before.written_bytes, after.written_bytes);
}

fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Whether rows flow without a question and an answer for each batch: COPY in and out, and results that are read in one go.
fn streams(measurement: &Measurement) -> bool {
    measurement.method == "copy" || measurement.kind == "read" && measurement.batch_latency.is_none()
}

fn guard(counters: &ServerCounters, guards: &mut Vec<Guard>) {
    if counters.autovacuum_runs.is_some_and(|runs| runs > 0) {
        guards.push(Guard::AutovacuumInWindow);
    }
    let checkpoints = counters.checkpoints_timed.unwrap_or(0) + counters.checkpoints_requested.unwrap_or(0);
    if checkpoints > 0 {
        guards.push(Guard::CheckpointInWindow);
    }
}
