//! Server counters before and after a step, by major version.
//!
//! Statistics views move between majors (checkpoints left `pg_stat_bgwriter` in 17); every query here
//! is chosen by version, and what a version does not have is `None`, never zero.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::{SessionError, WORKER};
use crate::model::ServerCounters;

/// Absolute values at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CounterSnapshot {
    /// Bytes of WAL since the cluster was made.
    pub lsn: u64,
    /// `pg_stat_wal.wal_records`.
    pub wal_records: Option<i64>,
    /// `pg_stat_wal.wal_fpi`.
    pub wal_full_page_images: Option<i64>,
    /// Checkpoints begun by time or WAL volume.
    pub checkpoints_timed: Option<i64>,
    /// Checkpoints asked for.
    pub checkpoints_requested: Option<i64>,
    /// Finished autovacuum and autoanalyze runs in this database.
    pub autovacuum_runs: Option<i64>,
    /// Autovacuum workers in this database now.
    pub autovacuum_workers: i64,
}

/// The WAL position in bytes: where the next record will be inserted, for the position that is already written lags
/// behind whenever nobody waits for a commit. Read on its own, first thing after the clock stopped.
pub async fn lsn(admin: &Client) -> Result<u64, SessionError> {
    let row =
        admin.query_one("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text", &[]).await?;
    Ok(row.get::<_, String>(0).parse().unwrap_or(0))
}

/// Does a CHECKPOINT and waits until the server's statistics count it: they are told after the answer, and
/// would otherwise show up in the next window as a checkpoint of somebody else. Returns the span of the
/// CHECKPOINT alone.
pub async fn checkpoint(admin: &Client, version_num: i32) -> Result<Duration, SessionError> {
    let before = requested_checkpoints(admin, version_num).await?;
    let start = Instant::now();
    admin.batch_execute("CHECKPOINT").await?;
    let span = start.elapsed();
    await_checkpoints(admin, version_num, before + 1).await?;
    Ok(span)
}

/// Waits, half a second at most, until the statistics count so many requested checkpoints since the server began.
pub async fn await_checkpoints(admin: &Client, version_num: i32, wanted: i64) -> Result<(), SessionError> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        if requested_checkpoints(admin, version_num).await? >= wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Lets the owner role ask for checkpoints, where there is a role for that (from 15).
pub async fn allow_checkpoints(admin: &Client, version_num: i32) -> Result<(), SessionError> {
    if version_num >= 150_000 {
        admin.batch_execute(&format!("GRANT pg_checkpoint TO {}", super::OWNER)).await?;
    }
    Ok(())
}

async fn requested_checkpoints(admin: &Client, version_num: i32) -> Result<i64, SessionError> {
    Ok(admin.query_one(checkpoint_query(version_num), &[]).await?.get(1))
}

/// Checkpoints by time or volume, and asked for; they have a view of their own from 17.
fn checkpoint_query(version_num: i32) -> &'static str {
    if version_num >= 170_000 {
        "SELECT num_timed, num_requested FROM pg_stat_checkpointer"
    } else {
        "SELECT checkpoints_timed, checkpoints_req FROM pg_stat_bgwriter"
    }
}

/// All counters. Call [`settle_statistics`] before, where sessions have just worked.
pub async fn snapshot(admin: &Client, version_num: i32) -> Result<CounterSnapshot, SessionError> {
    let wal = admin.query_one("SELECT wal_records, wal_fpi FROM pg_stat_wal", &[]).await?;
    let checkpoints = admin.query_one(checkpoint_query(version_num), &[]).await?;
    let vacuum = admin.query_one(AUTOVACUUM, &[]).await?;
    Ok(CounterSnapshot {
        lsn: lsn(admin).await?,
        wal_records: Some(wal.get(0)),
        wal_full_page_images: Some(wal.get(1)),
        checkpoints_timed: Some(checkpoints.get(0)),
        checkpoints_requested: Some(checkpoints.get(1)),
        autovacuum_runs: Some(vacuum.get(0)),
        autovacuum_workers: vacuum.get(1),
    })
}

/// A worker that is still busy has not been counted by the statistics yet.
const AUTOVACUUM: &str = "SELECT (SELECT coalesce(sum(autovacuum_count + autoanalyze_count), 0)::int8 \
     FROM pg_stat_user_tables), (SELECT count(*) FROM pg_stat_activity \
     WHERE backend_type = 'autovacuum worker' AND datname = current_database())";

/// Waits (at most two seconds) until the sessions that worked are gone and so have reported their
/// statistics: a backend reports at most once a second while it lives, and for the last time at its end.
pub async fn settle_statistics(admin: &Client, version_num: i32) -> Result<(), SessionError> {
    let start = Instant::now();
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    while start.elapsed() < Duration::from_secs(2) {
        if admin.query_one(busy, &[&WORKER]).await?.get::<_, i64>(0) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    if version_num < 150_000 {
        // Up to 14 statistics pass through a collector that writes at most every 500 ms.
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    Ok(())
}

/// Of the sessions that load and read: how many wait for their client now, and how many there are.
/// (`ClientRead` and `ClientWrite`: the table of wait events in the server's documentation, chapter on monitoring.)
pub async fn waiting_for_client(admin: &Client) -> Result<(u64, u64), SessionError> {
    let sql = "SELECT count(*) FILTER (WHERE wait_event_type = 'Client'), count(*) FROM pg_stat_activity
               WHERE application_name = $1 AND datname = current_database()";
    let row = admin.query_one(sql, &[&WORKER]).await?;
    let number = |index| u64::try_from(row.get::<_, i64>(index)).unwrap_or(0);
    Ok((number(0), number(1)))
}

/// Bytes of a group of tables with their partitions: (tables with free space and visibility maps, indexes, TOAST).
pub async fn sizes(admin: &Client, tables: &[String]) -> Result<(u64, u64, u64), SessionError> {
    let sql = "SELECT coalesce(sum(pg_table_size(c.oid)), 0)::int8, coalesce(sum(pg_indexes_size(c.oid)), 0)::int8, \
         coalesce(sum(pg_total_relation_size(nullif(c.reltoastrelid, 0))), 0)::int8 \
         FROM pg_class c WHERE c.oid IN (SELECT to_regclass(name)::oid FROM unnest($1::text[]) name UNION \
         SELECT relid::oid FROM unnest($1::text[]) name, pg_partition_tree(to_regclass(name)))";
    let row = admin.query_one(sql, &[&tables]).await?;
    let bytes = |index: usize| u64::try_from(row.get::<_, i64>(index)).unwrap_or(0);
    Ok((bytes(0).saturating_sub(bytes(2)), bytes(1), bytes(2)))
}

/// What changed between two snapshots; sizes and resources are filled in by the caller.
#[must_use]
pub fn difference(before: &CounterSnapshot, after: &CounterSnapshot) -> ServerCounters {
    let delta = |from: Option<i64>, to: Option<i64>| u64::try_from(to? - from?).ok();
    ServerCounters {
        wal_bytes: Some(after.lsn.saturating_sub(before.lsn)),
        wal_records: delta(before.wal_records, after.wal_records),
        wal_full_page_images: delta(before.wal_full_page_images, after.wal_full_page_images),
        checkpoints_timed: delta(before.checkpoints_timed, after.checkpoints_timed),
        checkpoints_requested: delta(before.checkpoints_requested, after.checkpoints_requested),
        // Whoever works at either end worked inside.
        autovacuum_runs: delta(before.autovacuum_runs, after.autovacuum_runs).map(|finished| {
            let working = before.autovacuum_workers.max(after.autovacuum_workers);
            finished + u64::try_from(working).unwrap_or(0)
        }),
        ..ServerCounters::default()
    }
}
