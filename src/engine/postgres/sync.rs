//! Commits of almost nothing, with and without waiting for the device.

use tokio_postgres::{Client, Statement};

use super::SessionError;

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// That this server's WAL is flushed; no standby is waited for.
    ForDevice,
    /// Nothing.
    NotAtAll,
}

/// A statement whose commit writes some bytes of WAL and changes no table. (`pg_logical_emit_message`: the server's
/// documentation, chapter on replication functions; it does not need logical replication.)
///
/// # Errors
/// When the role may not call it.
pub async fn prepare(client: &Client) -> Result<Statement, SessionError> {
    Ok(client.prepare("SELECT pg_logical_emit_message(true, 'loadlab', 'x'::text)").await?)
}

/// Chooses what the next commits of the session wait for.
///
/// # Errors
/// When the connection is lost.
pub async fn choose(client: &Client, wait: Wait) -> Result<(), SessionError> {
    let sql = match wait {
        Wait::ForDevice => "SET synchronous_commit = local",
        Wait::NotAtAll => "SET synchronous_commit = off",
    };
    Ok(client.batch_execute(sql).await?)
}
