//! A started server with everything a step needs: the stage on which the steps of a trial play.

use std::sync::Arc;

use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::settings::{self, ServerReport};
use crate::engine::postgres::{Role, Session, cluster, counters};
use crate::environment::{Instance, Usage};
use crate::model::{BoundTrial, Guard, Measurement, ServerCounters, Table};

const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// A server and the connections of the runner itself.
pub(super) struct Stage<'a> {
    pub(super) instance: &'a Instance,
    pub(super) bound: &'a BoundTrial,
    pub(super) tables: Vec<Arc<Table>>,
    /// Counters, CHECKPOINT, VACUUM.
    pub(super) admin: Session,
    /// Reads tables back.
    pub(super) owner: Session,
    pub(super) report: ServerReport,
}

/// Everything read just before a step.
pub(super) struct Before {
    counters: counters::CounterSnapshot,
    usage: Usage,
    cpu: Option<f64>,
    peak_is_reset: bool,
}

/// Everything that must be read the moment the clock stopped.
pub(super) struct AtEnd {
    lsn: u64,
    cpu: Option<f64>,
    peak: Option<u64>,
    usage: Usage,
}

impl<'a> Stage<'a> {
    /// Connects, reads the settings back.
    pub(super) async fn open(instance: &'a Instance, bound: &'a BoundTrial) -> Result<Self, WorkError> {
        let admin = Session::open(&instance.endpoint, Role::Admin).await?;
        let owner = Session::open(&instance.endpoint, Role::Owner).await?;
        let requested = cluster::requested(&bound.environment, instance.facts.backend);
        let report = settings::report(&admin.client, &requested).await?;
        let tables = bound.tables.iter().cloned().map(Arc::new).collect();
        Ok(Self { instance, bound, tables, admin, owner, report })
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

    pub(super) async fn before(&self) -> Result<Before, WorkError> {
        let counters = counters::snapshot(&self.admin.client, self.report.version_num).await?;
        Ok(Before {
            counters,
            usage: self.instance.running.usage().await,
            peak_is_reset: super::client::reset_peak_memory(),
            cpu: super::client::cpu_seconds(),
        })
    }

    pub(super) async fn at_end(&self) -> Result<AtEnd, WorkError> {
        let cpu = super::client::cpu_seconds();
        let peak = super::client::peak_memory();
        Ok(AtEnd {
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
        measurement.counters = changed;
        measurement.client_cpu_seconds = before.cpu.zip(end.cpu).map(|(from, to)| (to - from).max(0.0));
        measurement.client_peak_memory_bytes = end.peak.filter(|_| before.peak_is_reset);
        Ok(())
    }
}

fn used(before: &Usage, after: &Usage, counters: &mut ServerCounters) {
    let bytes = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
    counters.server_cpu_seconds =
        before.cpu_seconds.zip(after.cpu_seconds).map(|(from, to)| (to - from).max(0.0));
    counters.server_read_bytes = bytes(before.read_bytes, after.read_bytes);
    counters.server_written_bytes = bytes(before.written_bytes, after.written_bytes);
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
