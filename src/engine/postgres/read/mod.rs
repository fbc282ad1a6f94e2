//! Reading rows: what all methods share. One file per method.

mod copy_out;
mod select;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::load::WorkError;
use super::work::{Progress, WorkDone};
use super::{Endpoint, Role, Session, WORKER, quote_ident};
use crate::model::{Decode, Read, ReadMethod, Table};

/// What a client of a read works on.
#[derive(Clone)]
struct Task {
    client: u32,
    decode: Decode,
    progress: Progress,
}

/// A client that is connected and prepared, ready for the clock.
pub struct ReadClient {
    session: Session,
    task: Task,
    sql: String,
    method: ReadMethod,
}

impl ReadClient {
    /// Reads all its rows.
    pub async fn work(self, start: Instant) -> Result<WorkDone, WorkError> {
        match self.method {
            ReadMethod::Select { mode, format } => {
                select::read(self.session, self.task, &self.sql, mode, format, start).await
            }
            ReadMethod::CopyOut { format } => {
                copy_out::read(&self.session, &self.task, &self.sql, format, start).await
            }
        }
    }
}

/// Connects all clients of a read. Client `i` of `n` reads table copy `i % copies`, and of that a
/// contiguous share of its pages. Also gives the time that connecting took, over all clients.
pub async fn prepare(
    endpoint: &Endpoint,
    table: &Arc<Table>,
    read: &Read,
    progress: &Progress,
) -> Result<(Vec<ReadClient>, Duration), WorkError> {
    let copies = u32::try_from(table.copies.len()).unwrap_or(u32::MAX);
    let mut clients = Vec::with_capacity(read.clients as usize);
    let mut connecting = Duration::ZERO;
    for client in 0..read.clients {
        let start = Instant::now();
        let session = Session::open_as(endpoint, Role::Owner, WORKER).await?;
        connecting += start.elapsed();
        // A scan that starts where another left off would return other rows first.
        session.client.batch_execute("SET synchronize_seqscans = off").await?;
        let copy = client % copies;
        let sharing = (read.clients - copy).div_ceil(copies);
        let name = &table.copies[copy as usize].name;
        let pages = pages(&session, name, client / copies, sharing).await?;
        let columns = read.columns.iter().map(|name| quote_ident(name)).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {columns} FROM {}{pages}", quote_ident(name));
        let task = Task { client, decode: read.decode, progress: progress.clone() };
        clients.push(ReadClient { session, task, sql, method: read.method.clone() });
    }
    Ok((clients, connecting))
}

/// ` WHERE ctid ...` for one of several clients; nothing when there is only one.
async fn pages(session: &Session, table: &str, index: u32, sharing: u32) -> Result<String, WorkError> {
    if sharing == 1 {
        return Ok(String::new());
    }
    let sql = "SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::int8";
    let pages: i64 = session.client.query_one(sql, &[&quote_ident(table)]).await?.get(0);
    let bound = |part: u32| pages * i64::from(part) / i64::from(sharing);
    let from = format!(" WHERE ctid >= '({},0)'", bound(index));
    Ok(if index + 1 == sharing { from } else { format!("{from} AND ctid < '({},0)'", bound(index + 1)) })
}
