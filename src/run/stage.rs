//! A started server with everything a step needs: the stage on which the steps of a trial play.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::busy::Busy;
use super::guards;
use super::machine::{self, Machine};
use super::step::Dumped;
use super::trial::TrialRequest;
use super::waits::Waits;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::settings::{self, ServerReport};
use crate::engine::postgres::{Role, Session, cluster, counters};
use crate::environment::ledger::PrivatePath;
use crate::environment::{EnvironmentError, Instance, Usage};
use crate::model::{
    Backend, BoundTrial, Guard, Measurement, Pressure, ServerCounters, StepKind, Storage, Table,
};

const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// A server and the connections of the runner itself.
pub(super) struct Stage<'a> {
    /// Reached elsewhere after a restart.
    pub(super) instance: &'a mut Instance,
    pub(super) bound: &'a BoundTrial,
    pub(super) request: &'a TrialRequest<'a>,
    pub(super) tables: Vec<Arc<Table>>,
    /// Counters, CHECKPOINT, VACUUM.
    pub(super) admin: Session,
    /// Reads tables back.
    pub(super) owner: Session,
    pub(super) report: ServerReport,
    /// Where client programs may write; made for trials that have some.
    pub(super) scratch: Option<PrivatePath>,
    /// Processes that the kernel had killed for want of memory before the first step.
    killed_before: Option<u64>,
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
    busy: Busy,
    other_runs: Option<u64>,
}

/// Everything that must be read the moment the clock stopped.
pub(super) struct AtEnd {
    lsn: u64,
    cpu: Option<f64>,
    peak: Option<u64>,
    usage: Usage,
    machine: Machine,
    busy: Busy,
}

impl Before {
    /// What is read exactly (WAL position, CPU, block I/O) counts from here, the edge between warm-up and window. Views
    /// of the server lag behind their sessions, so their counters stay those of the whole step.
    pub(super) fn window_opens(&mut self, edge: AtEnd) {
        self.counters.lsn = edge.lsn;
        self.cpu = edge.cpu;
        self.usage = edge.usage;
        self.machine = edge.machine;
        self.busy = edge.busy;
    }
}

impl<'a> Stage<'a> {
    /// Connects, reads the settings back.
    pub(super) async fn open(
        instance: &'a mut Instance,
        request: &'a TrialRequest<'a>,
    ) -> Result<Self, WorkError> {
        let bound: &BoundTrial = &request.prepared.bound;
        let admin = Session::open(&instance.endpoint, Role::Admin).await?;
        let owner = Session::open(&instance.endpoint, Role::Owner).await?;
        let requested = cluster::requested(&bound.environment, instance.facts.backend);
        let report = settings::report(&admin.client, &requested).await?;
        if instance.facts.backend != Backend::External {
            counters::allow_checkpoints(&admin.client, report.version_num).await?;
        }
        let tables = bound.tables.iter().cloned().map(Arc::new).collect();
        let runs_programs = bound.steps.iter().any(|step| matches!(step.kind, StepKind::Command(_)));
        let scratch = runs_programs.then(|| request.prepared.ledger.private_folder()).transpose();
        let scratch = scratch.map_err(|error| WorkError::Program(error.to_string()))?;
        let dumps = Mutex::default();
        let killed_before = instance.running.usage().await.memory_kills;
        Ok(Self { instance, bound, request, tables, admin, owner, report, scratch, killed_before, dumps })
    }

    /// Stops the server cleanly, starts it again and connects anew. False when a setting that was asked for is not in force any more.
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
        let asked = cluster::requested(&self.bound.environment, self.instance.facts.backend);
        let report = settings::report(&self.admin.client, &asked).await?;
        self.report.postmaster_start = report.postmaster_start;
        Ok(Ok(report.settings.iter().all(|setting| setting.in_force)))
    }

    /// Whether the kernel killed a process of the server since the first step began: a step that failed has no counters of its own.
    pub(super) async fn lost_to_memory(&self) -> bool {
        grown(self.killed_before, self.instance.running.usage().await.memory_kills) > Some(0)
    }

    /// Empties the write-behind of earlier steps, so that it is not paid in the next window.
    /// Not every role of an external server may ask for one: then the step begins without it.
    pub(super) async fn clear_the_way(&self) -> Result<(), WorkError> {
        match self.checkpoint().await {
            Err(error) if error.sqlstate().as_deref() == Some(INSUFFICIENT_PRIVILEGE) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// A CHECKPOINT without which the step would not be what it says.
    pub(super) async fn needed_checkpoint(&self) -> Result<(), WorkError> {
        match self.checkpoint().await {
            Err(error) if error.sqlstate().as_deref() == Some(INSUFFICIENT_PRIVILEGE) => {
                Err(WorkError::Protocol(
                    "a CHECKPOINT is needed before this read, and the role may not do one: grant it pg_checkpoint \
                     (PostgreSQL 15 or newer), or connect as a superuser"
                        .to_owned(),
                ))
            }
            other => other.map(drop),
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
            other_runs: machine::other_runs().await,
            usage: self.instance.running.usage().await,
            peak_is_reset: super::client::reset_peak_memory(),
            machine: Machine::now(),
            busy: Busy::now(),
            cpu: super::client::cpu_seconds(),
        })
    }

    pub(super) async fn at_end(&self) -> Result<AtEnd, WorkError> {
        let cpu = super::client::cpu_seconds();
        let peak = super::client::peak_memory();
        let machine = Machine::now();
        let busy = Busy::now();
        Ok(AtEnd {
            machine,
            busy,
            lsn: counters::lsn(&self.admin.client).await?,
            cpu,
            peak,
            usage: self.instance.running.usage().await,
        })
    }

    /// Whether the experiment itself asks for what a guard warns of: then it is part of what is measured.
    fn is_asked_for(&self, guard: Guard) -> bool {
        guard == Guard::AutovacuumInWindow && self.asks_for("autovacuum", "on")
    }

    /// Whether the experiment itself gives up what makes commits safe: then a sync that costs nothing is no surprise.
    pub(super) fn is_unsafe_on_purpose(&self) -> bool {
        self.bound.environment.storage == Storage::Tmpfs
            || self.asks_for("fsync", "off")
            || self.asks_for("synchronous_commit", "off")
    }

    fn asks_for(&self, name: &str, value: &str) -> bool {
        let mut settings = self.report.settings.iter();
        settings
            .any(|setting| setting.name == name && setting.requested.is_some() && setting.effective == value)
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
        measurement.pressure = Pressure {
            // Whoever was there at either end was there inside.
            other_runs: machine::other_runs().await.max(before.other_runs),
            client_wait_share: measurement.pressure.client_wait_share,
            throttled_periods: grown(before.usage.throttled_periods, end.usage.throttled_periods),
            memory_kills: grown(before.usage.memory_kills, end.usage.memory_kills),
            ..end.machine.since(&before.machine)
        };
        measurement.client_cpu_seconds = before.cpu.zip(end.cpu).map(|(from, to)| (to - from).max(0.0));
        let known = changed.server_cpu_seconds.zip(measurement.client_cpu_seconds).map(|(a, b)| a + b);
        end.busy.add_since(&before.busy, known, &mut measurement.pressure);
        let terms = guards::Terms {
            seconds: measurement.spans.seconds,
            streams: streams(measurement),
            has_quota: self.bound.environment.limits.cpus.is_some(),
            beside_others: self.request.prepared.beside_others,
        };
        let tripped = guards::of_machine(&measurement.pressure, terms)
            .into_iter()
            .chain(guards::of_server(&changed))
            .filter(|guard| !self.is_asked_for(*guard));
        measurement.guards.extend(tripped);
        measurement.counters = changed;
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
    let copies = measurement.method == "copy" && measurement.scheduled_latency.is_none();
    copies || measurement.kind == "read" && measurement.batch_latency.is_none()
}
